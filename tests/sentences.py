"""Snapshots of the product's wording: one ``sentences.txt`` per folder of tests, rewritten by ``make sentences``.

A test asserts codes and values itself, and hands every text whose wording may change to ``assert_sentences``. The text
is compared with what ``sentences.txt`` beside the test holds for this test and this call. With ``--rewrite-sentences``,
pytest stores the wording of the tests that ran and passed; the diff of the file shows what was reworded.

What differs between two machines or two runs (folders, times, hashes, ports …) is replaced by a placeholder first. So a
test that cares for such a value asserts it as well.
"""

from __future__ import annotations

import difflib
import getpass
import hashlib
import html.parser
import inspect
import os
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from lean_python import lean_python

FILE = "sentences.txt"
_CALLED = "assert_sentences"
_LONGEST_NAME = 160
_LONGEST_LINE = 110
REPOSITORY = Path(__file__).resolve().parent.parent
_HEADER = (
    "# The product's wording, as the tests of this folder see it. Written by `make sentences`, compared by tests.\n"
    "# After a rewording, run `make sentences` and look at the diff. Don't edit this file.\n"
)
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)`'][.:?!]) (?=[A-Z-])")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")
# Dates of the clocks that tests set are values, and stay; what is later comes from the clock of the machine.
_YEAR_MONTH = r"(?:2026-?(?:0[7-9]|1[0-2])|20(?:2[7-9]|[3-8]\d)-?(?:0[1-9]|1[0-2]))"
# Not every version of Python says these in the same words.
_JSON_ERROR = (
    r"(?:Expecting (?:value|property name enclosed in double quotes|'.' delimiter)|Extra data"
    r"|Illegal trailing comma before end of (?:object|array))(?:: line \d+ column \d+ \(char \d+\))"
)
_VOLATILE: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), to)
    for pattern, to in (
        (r"(?:just now|\d+ (?:minute|hour|day|month|year)s? ago) \(\d{4}-\d\d-\d\d \d\d:\d\d\)", "‹time›"),
        (r"\b(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]):\d+", "‹address›"),
        (rf"\b{_YEAR_MONTH}-?\d\d[T ]\d\d:?\d\d(?::?\d\d(?:\.\d+)?)?(?: ?Z\b| ?UTC\b|[+-]\d\d:?\d\d)?", "‹time›"),
        (r"‹time›-[0-9a-f]{6}\b", "‹time›-‹hash›"),
        (rf"(?<!\d){_YEAR_MONTH}-?\d\d(?!\d)", "‹date›"),
        (r"\bsha(1|256|512):[0-9a-f]{6,}…?", r"sha\1:…"),
        (r"\bed25519:[A-Za-z0-9+/]{20,}={0,2}", "ed25519:…"),
        (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "‹uuid›"),
        (r"(?<![\w#&])(?:[0-9a-f]{10,}|(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,9})\b…?", "‹hash›"),
        (r"\b(pid|process) \d+", r"\1 ‹pid›"),
        (r"\b\d+(?:\.\d+)? ?(?:ms|s|sec|seconds?|minutes?)\b", "‹duration›"),
        (r"\b(donewhen|Python|python|click|pytest)[ -]?v?\d+(?:\.\d+)+\w*(?:\.\w+)?", r"\1 ‹version›"),
        (r"\btype [a-z]+-[a-z]+ and\b", "type ‹word› and"),
        (r" at 0x[0-9a-f]+", " at 0x…"),
        (r"\b(donewhen_override_\w+?_)\d{6,}", r"\1‹hash›"),
        (r"\b(word|passphrase|confirmation): \S+", r"\1: …"),
        (r"(?<=\S) {3,}", "  "),
        (r"([─━═=_-])\1{3,}", r"\1\1\1"),
        (r"(\S)\1{30,}", r"\1\1\1…"),
        (r"(/\.[\w.]+-|/tmp)[a-z0-9_]{8}(?=/|$|\W)", r"\1‹random›"),
        (r"\bsh: (?:line )?1: (\S+): (?:not found|No such file or directory)", r"sh: \1: not found"),
        # How much of a command is shown depends on how long the path of its program is.
        (r"`‹python› [^`\n]*…`", "`‹python› …`"),
        (r"maximum recursion depth exceeded[^.)\n]*", "maximum recursion depth exceeded"),
        (_JSON_ERROR, "‹JSON error›"),
        (r"(not JSON compliant): -?(?:inf|nan)", r"\1"),
        (r"Symlink loop from '[^']*'|Too many levels of symbolic links", "‹a circle of links›"),
        (r"(?:\w+: )?embedded null (?:byte|character(?: in path)?)", "embedded null byte"),
        (r"\b(donewhen_override_\w+?_)\d+", r"\1…"),
        (r"No such device or address|Operation not supported on socket", "‹no file›"),
        # The name of pytest's temporary folder: thirty characters of the test's name, and a number.
        (r"\btest_\w{25}\d+\b", "‹folder›"),
        (r"\breceived \d+ bytes, expected \d+", "received … bytes, expected …"),
    )
)

_stored: dict[Path, dict[str, list[str]]] = {}
_folders: list[tuple[re.Pattern[str], str]] = []
_rewriting = False
_running: _Running | None = None


def assert_sentences(*texts: object) -> None:
    """Compare the wording of ``texts`` with the snapshot of this call, or store it when rewriting.

    A text is a string, an error, ``None``, or a sequence or mapping of those: an item each on a line of its own.
    """
    if _running is None:
        raise RuntimeError("assert_sentences was called outside of a test.")
    _running.compare("\n".join(stable(_plain(text)) for text in texts))


def lines_with(text: str, *values: str) -> list[str]:
    """The lines of a long text that hold one of the values; the test fails when one of them is in no line."""
    lines = text.splitlines()
    for value in values:
        assert any(value in line for line in lines), f"{value!r} is in no line of:\n{text}"
    return [line for line in lines if any(value in line for value in values)]


def visible(page: str) -> str:
    """The words of an HTML page below its header, each block on a line of its own."""
    reader = _Words()
    reader.feed(page)
    lines = (re.sub(r"\s+", " ", line).strip() for line in "".join(reader.words).split("\n"))
    return "\n".join(line for line in lines if line)


def stable(text: str) -> str:
    """The text without what differs between two machines or two runs."""
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    text = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
    for pattern, to in (*_folders, *_VOLATILE):
        text = pattern.sub(to, text)
    lines = (_SENTENCE_END.sub("\n", line) if len(line) > _LONGEST_LINE else line for line in text.split("\n"))
    return "\n".join(line.rstrip() for line in lines).strip("\n")


def _plain(text: object) -> str:
    match text:
        case None:
            return "(none)"
        case str():
            return text
        case BaseException():
            return str(text)
        case Mapping():
            return "\n".join(f"{name}: {_plain(one)}" for name, one in text.items())
        case tuple() if hasattr(text, "_fields") or all(not isinstance(one, tuple) for one in text):
            return " | ".join(_plain(one) for one in text)
        case Iterable():
            return "\n".join(_plain(one) for one in text)
    return str(text)


class _Words(html.parser.HTMLParser):
    """Collects the text that a reader of a page sees."""

    _HIDDEN = frozenset({"head", "script", "style", "header", "nav"})
    _INLINE = frozenset(
        ["a", "abbr", "b", "bdi", "code", "em", "i", "kbd", "mark", "small", "span", "strong", "td", "th", "time"]
    )

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._hidden += tag in self._HIDDEN
        self.words.append(" " if tag in self._INLINE else "\n")

    def handle_endtag(self, tag: str) -> None:
        self._hidden -= tag in self._HIDDEN
        self.words.append(" " if tag in self._INLINE else "\n")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.words.append(data.replace("\n", " "))


class _Running:
    """The test that runs now, and its calls so far."""

    def __init__(self, test: pytest.Item) -> None:
        self._folder, self._key = _place(test.path, test.nodeid)
        self.said: list[str] = []

    @property
    def _expected(self) -> list[str]:
        return _read(self._folder).get(self._key, [])

    def compare(self, text: str) -> None:
        __tracebackhide__ = True
        self.said.append(text)
        if _rewriting:
            return
        number = len(self.said)
        if number > len(self._expected):
            pytest.fail(f"{FILE} has no sentence {number} of {self._key}. Run: make sentences\nIt is:\n{text}")
        expected = self._expected[number - 1]
        if text != expected:
            lines = difflib.unified_diff(expected.split("\n"), text.split("\n"), FILE, "now", lineterm="", n=2)
            message = "\n".join(lines)
            pytest.fail(f"Sentence {number} of {self._key} is another. If that is meant: make sentences\n{message}")

    def close(self) -> None:
        __tracebackhide__ = True
        if not _rewriting and len(self.said) < len(self._expected):
            pytest.fail(
                f"{FILE} has {len(self._expected)} sentence(s) of {self._key}, but it asserted {len(self.said)}. "
                "If that is meant: make sentences"
            )


class _Report:
    """What the whole run, in all its processes, has shown; writes the files at its end."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seen: dict[Path, set[str]] = {}
        self._said: dict[Path, dict[str, list[str]]] = {}
        self._told: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        folder, key = _place(self._config.rootpath / report.nodeid.split("::")[0], report.nodeid)
        self._seen.setdefault(folder, set()).add(key)
        for name, said in report.user_properties:
            if name == "sentences" and report.passed and report.when == "call":
                self._said.setdefault(folder, {})[key] = list(said)  # type: ignore[call-overload]

    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        complete = exitstatus in (0, 1) and not self._partial() and not session.shouldfail and not session.shouldstop
        for folder, seen in sorted(self._seen.items()):
            before = _read(folder)
            said = self._said.get(folder, {}) if _rewriting else {}
            after = {key: texts for key, texts in (before | said).items() if texts}
            gone = set(_stale(folder, after, seen)) if complete else set()
            name = (folder / FILE).relative_to(REPOSITORY)
            if not _rewriting:
                self._told += [f"{name} holds sentences of a test that is gone: {key}" for key in sorted(gone)]
                continue
            after = {key: texts for key, texts in after.items() if key not in gone}
            if after != before:
                _write(folder, after)
                changed = sum(before.get(key) != texts for key, texts in after.items())
                self._told.append(f"{name}: {changed} test(s) rewritten, {len(before.keys() - after.keys())} dropped")

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        for line in self._told:
            terminalreporter.write_line(line)

    def _partial(self) -> bool:
        option = self._config.option
        return bool(
            option.keyword or option.markexpr or option.deselect or any("::" in one for one in option.file_or_dir)
        )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-sentences", action="store_true", help=f"store the product's wording in {FILE}")


def pytest_configure(config: pytest.Config) -> None:
    global _rewriting
    _rewriting = config.getoption("--rewrite-sentences")
    os.environ.pop("COLUMNS", None)  # how wide the terminal is that the tests are started in must not show
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(config))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whoever rewrites sentences need not wait for tests that have none."""
    if _rewriting:
        config.hook.pytest_deselected(items=[item for item in items if not _has_sentences(item)])
        items[:] = [item for item in items if _has_sentences(item)]


@pytest.fixture(autouse=True, scope="session")
def _known_folders(tmp_path_factory: pytest.TempPathFactory) -> None:
    temporary = tmp_path_factory.getbasetemp()
    bases = "|".join(re.escape(str(base)) for base in (temporary, temporary.resolve()))
    _folders.append((re.compile(rf"(?:file://)?(?:{bases})/[^/\s'\"`:,;)]+"), "‹tmp›"))
    _folders.append((re.compile(rf"\b{re.escape(getpass.getuser())}(?= \((?:person|agent|ci|key)\))"), "‹user›"))
    places = {
        lean_python(): "‹python›",
        sys.executable: "‹python›",
        sys.prefix: "‹prefix›",
        str(REPOSITORY): "‹repository›",
    }
    _folders.extend((re.compile(re.escape(place)), to) for place, to in places.items())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    global _running
    _running = _Running(item)
    try:
        return (yield)
    finally:
        _running = None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    done = yield
    if _running is not None:
        _running.close()
    return done


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    report: Any = yield
    if _rewriting and _running is not None and report.when == "call":
        report.user_properties.append(("sentences", _running.said))
    return report


def _place(path: Path, nodeid: str) -> tuple[Path, str]:
    """Which file a test's sentences are in, and under which key."""
    _, _, name = nodeid.partition("::")
    name = re.sub(r" at 0x[0-9a-f]+", " at 0x…", name.replace(str(REPOSITORY), "‹repository›"))
    if len(name) > _LONGEST_NAME:
        name = f"{name[:_LONGEST_NAME]}… {hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return path.parent, f"{path.name}::{name}"


def _has_sentences(test: pytest.Item) -> bool:
    """Whether a snapshot has the test, or it calls ``assert_sentences``: itself, or by a function of its module."""
    folder, key = _place(test.path, test.nodeid)
    function = getattr(test, "function", None)
    if key in _read(folder) or function is None:
        return key in _read(folder)
    known = getattr(inspect.unwrap(function), "__globals__", {})
    names = _names(inspect.unwrap(function).__code__)
    helpers = (known.get(name) for name in names)
    return _CALLED in names.union(*(_names(helper.__code__) for helper in helpers if inspect.isfunction(helper)))


def _names(code: types.CodeType) -> set[str]:
    inner = (const for const in code.co_consts if isinstance(const, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _stale(folder: Path, stored: Iterable[str], seen: set[str]) -> Iterator[str]:
    """Keys whose test is gone: its file is, or all other tests of this file ran."""
    ran = {key.split("::")[0] for key in seen}
    for key in stored:
        file = key.split("::")[0]
        if key not in seen and (file in ran or not (folder / file).exists()):
            yield key


def _read(folder: Path) -> dict[str, list[str]]:
    if folder not in _stored:
        path = folder / FILE
        _stored[folder] = _parse(path.read_text(encoding="utf-8")) if path.exists() else {}
    return _stored[folder]


def _parse(text: str) -> dict[str, list[str]]:
    tests: dict[str, list[str]] = {}
    texts: list[str] = []
    for line in text.split("\n"):
        if not line or line.startswith("# "):
            continue
        if not line.startswith("  "):
            texts = tests.setdefault(line, [])
            continue
        number, _, words = line.partition("|")
        if number.strip():
            texts.append(words.removeprefix(" "))
        else:
            texts[-1] += "\n" + words.removeprefix(" ")
    return tests


def _write(folder: Path, tests: Mapping[str, list[str]]) -> None:
    blocks = [_HEADER]
    for key in sorted(tests):
        lines = [key]
        for number, text in enumerate(tests[key], start=1):
            first, *others = text.split("\n")
            lines.append(f"  {number:>2}| {first}".rstrip())
            lines += [f"    | {line}".rstrip() for line in others]
        blocks.append("\n".join(lines) + "\n")
    new = folder / f".{FILE}.{os.getpid()}"
    new.write_text("\n".join(blocks), encoding="utf-8")
    new.replace(folder / FILE)
