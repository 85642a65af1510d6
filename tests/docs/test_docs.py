"""What the pages tell a reader to type is typed here, in the order of the page, in an empty folder.

* A ``console`` block's ``$`` lines are run. They must succeed; where ``$ echo $?`` follows, it shows the status that is
  expected. Shown output is compared; ``…`` stands for anything, alone on a line for any number of lines.
* Where the shown output has a line ``word: …``, a person runs the command at a terminal and types what stands there.
  The word that donewhen asks for is another one each time; the page's own stands for it. Where a review waits for a
  key, a line ``key: …`` shows the one that they press; a terminal does not.
* A ``python`` block is run in a namespace that it shares with the page's other blocks. A ``text`` block right below it
  is what it prints.
* A block marked ``file=NAME`` is written to that file instead; the sentence above it must name the file.
* A block marked ``needs=CLIENT`` is run where that client is installed; elsewhere the test says what it left out.
* A ``text`` block marked ``same-as=PATH`` has the very text of that file of the project.
* In a ``yaml`` block, the ``run:`` lines that call donewhen are run; the project's action and its hooks for pre-commit,
  which others test by running their steps, must have what a block gives them.

The reader has a home of their own, and a name for git: whatever a page installs or a client writes goes there, never
to the real one.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

from donewhen.foundation.errors import UsageError
from donewhen.foundation.process import split_command
from donewhen_kit import run_main
from page_rewriting import REWRITING, rewrite_page

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFERENCE = ROOT / "docs" / "reference"
TRANSCRIPTS = ROOT / "docs" / "transcripts"

# Commands that are not run here, each with the reason.
EXEMPT = {
    "make demo": "CI runs it as it stands",
    "uv tool install .": "the tests of the packaging install a clone with it, in an empty home",
    "make test": "CI runs it as it stands; here it would run itself",
    "make lint": "CI runs it as it stands, and its tools are not among the test dependencies",
    ". .venv/bin/activate": "it changes the reader's own shell",
}
ASKED = re.compile(r"type ([a-z]+-[a-z]+) and press")
TYPED = re.compile(r"^word: (.*)$", re.MULTILINE)
PRESSED = re.compile(r"key: (\S)(?:, then: (.+))?")
Person = Callable[..., tuple[int, str]]
LANGUAGES = {"console", "python", "text", "yaml", "toml", "py"}
# Everything else that looks like a link to another machine is a mistake. `in-toto.io` is part of the name of a type.
HOSTS = {"www.w3.org", "keepachangelog.com", "semver.org", "in-toto.io", "api.github.com", "HOST", "127.0.0.1:8643"}


@dataclass(frozen=True)
class Block:
    """A fenced block: where it starts, its language, what it is marked with, and its lines."""

    page: Path
    line: int
    language: str
    marks: dict[str, str]
    lines: tuple[str, ...]
    above: str

    @property
    def file(self) -> str | None:
        return self.marks.get("file")

    @property
    def needs(self) -> str | None:
        return self.marks.get("needs")

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").split("\n")
    start: int | None = None
    for number, line in enumerate(lines):
        if not line.startswith("```"):
            continue
        if start is None:
            start = number
            continue
        language, _, marks = lines[start].removeprefix("```").partition(" ")
        above = "\n".join(lines[max(0, start - 4) : start])
        marked = dict(re.findall(r"([a-z-]+)=(\S+)", marks))
        assert marked.keys() <= {"file", "needs", "same-as"}, f"{page}:{start + 1}: unknown mark"
        yield Block(page, start + 1, language, marked, tuple(lines[start + 1 : number]), above)
        start = None
    assert start is None, f"{page}:{start}: the block is not closed"


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def claude_client() -> Path | None:
    """The real CLI that the SDK's wheel bundles."""
    sdk = find_spec("claude_agent_sdk")
    bundled = Path(sdk.origin).parent / "_bundled" / "claude" if sdk is not None and sdk.origin else None
    return bundled if bundled is not None and bundled.exists() else None


def codex_client() -> Path | None:
    """The real CLI: where the Makefile puts it, or on the PATH."""
    beside = Path(sys.prefix) / "codex" / "node_modules" / ".bin" / "codex"
    found = str(beside) if beside.exists() else shutil.which("codex")
    return Path(found) if found else None


CLIENTS: dict[str, Callable[[], Path | None]] = {"claude-agent-sdk": claude_client, "codex": codex_client}
MARKS = {"claude-agent-sdk": pytest.mark.claude, "codex": pytest.mark.codex}


def typed_pages() -> Iterator[object]:
    """Every page; one that starts a real client has that client's mark."""
    for page in PAGES:
        needed = {block.needs for block in blocks(page) if block.needs is not None}
        yield pytest.param(page, id=name_of(page), marks=[MARKS[requirement] for requirement in sorted(needed)])


@pytest.fixture
def reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[types.ModuleType]:
    """The reader in an empty folder, the environment switched on; what is typed into Python goes into the module."""
    folder, home = tmp_path / "work", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\nname = Reader\nemail = reader@localhost\n[init]\ndefaultBranch = main\n")
    monkeypatch.chdir(folder)
    for name in list(os.environ):
        if name.startswith(("ANTHROPIC_", "CLAUDE", "CODEX", "OPENAI_")):
            monkeypatch.delenv(name)
    for name in ("DISABLE_TELEMETRY", "DISABLE_ERROR_REPORTING", "DISABLE_AUTOUPDATER"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    monkeypatch.syspath_prepend(folder)
    before = set(sys.modules)
    module = types.ModuleType("typed_by_the_reader")
    sys.modules[module.__name__] = module
    yield module
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if name == module.__name__ or (file and Path(file).is_relative_to(tmp_path)):
            del sys.modules[name]


@pytest.mark.parametrize("page", [*typed_pages()])
def test_what_a_page_tells_to_type_works(
    page: Path, reader: types.ModuleType, as_person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    printed: str | None = None
    left_out: list[str] = []
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block}: a {block.language or 'nameless'} block is not tested; name it"
        shown, printed = printed, None
        if block.needs is not None:
            client = CLIENTS[block.needs]()
            if client is None:
                left_out.append(f"{block} ({block.needs})")
                continue
            monkeypatch.setenv("PATH", os.pathsep.join([os.environ["PATH"], str(client.parent)]))
        if block.file is not None:
            assert block.file in block.above, f"{block}: the reader is not told to write {block.file}"
            Path(block.file).parent.mkdir(parents=True, exist_ok=True)
            Path(block.file).write_text(block.text, encoding="utf-8")
        elif "same-as" in block.marks:
            assert block.text == (ROOT / block.marks["same-as"]).read_text(encoding="utf-8"), block
        elif block.language == "console":
            run_console(block, as_person)
        elif block.language == "yaml":
            run_workflow(block)
        elif block.language == "toml":
            pytest.fail(f"{block}: settings that are not written to a file are not tested")
        elif block.language == "text" and shown is not None:
            assert_like(block.lines, shown, str(block))
        elif block.language == "python":
            printed = run_python(block, reader)
    if left_out:
        pytest.skip(f"LOUD: not installed, so NOT run: {', '.join(left_out)}")


def test_what_the_reader_types_stays_in_their_own_home(reader: types.ModuleType, tmp_path: Path) -> None:
    done = run("donewhen hooks install --claude --codex --user && env")
    assert done.returncode == 0, done.stdout
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.json")) == [
        "home/.claude/settings.json",
        "home/.codex/hooks.json",
    ]
    assert not re.search(r"^(ANTHROPIC|OPENAI|CLAUDE|CODEX)_", done.stdout, re.MULTILINE)
    assert Path.home() == tmp_path / "home"


def test_every_transcript_is_shown_on_a_page_as_it_is() -> None:
    shown = {block.marks["same-as"] for page in PAGES for block in blocks(page) if "same-as" in block.marks}
    assert {str(path.relative_to(ROOT)) for path in TRANSCRIPTS.iterdir()} <= shown


def run_python(block: Block, module: types.ModuleType) -> str:
    # Padded, so that a traceback names the line of the page.
    code = compile("\n" * block.line + block.text, str(block.page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as output:
        exec(code, module.__dict__)  # noqa: S102 - this is the point
    return output.getvalue()


def run_console(block: Block, as_person: Person) -> None:
    steps = list(console_steps(block))
    assert steps, f"{block}: no line starts with $"
    status = 0
    for number, (command, shown) in enumerate(steps):
        if command == "echo $?":
            assert shown == [str(status)], f"{block}: the exit status is {status}"
            continue
        if command in EXEMPT:
            continue
        done = run_at_a_terminal(command, shown, as_person) if TYPED.search("\n".join(shown)) else run(command)
        status = done.returncode
        follows = steps[number + 1][0] if number + 1 < len(steps) else ""
        if follows != "echo $?":
            assert status == 0, f"{block}: {command!r} ended with {status}:\n{done.stdout}"
        if shown:
            assert_like([one for one in shown if not PRESSED.fullmatch(one)], done.stdout, f"{block}: {command}")


def console_steps(block: Block) -> Iterator[tuple[str, list[str]]]:
    command: str | None = None
    shown: list[str] = []
    for line in block.lines:
        if command is not None and command.endswith("\\"):
            command = command.removesuffix("\\") + line.strip()
        elif line.startswith("$ "):
            if command is not None:
                yield command, shown
            command, shown = line.removeprefix("$ "), []
        else:
            assert command is not None, f"{block}: output before the first command"
            shown.append(line)
    if command is not None:
        yield command, shown


def run_workflow(block: Block) -> None:
    commands = re.findall(r"run: (donewhen .*)", block.text)
    assert commands or uses_our_files(block), f"{block}: no line calls donewhen"
    for command in commands:
        done = run(command)
        assert done.returncode == 0, f"{block}: {command!r} ended with {done.returncode}:\n{done.stdout}"


def uses_our_files(block: Block) -> bool:
    """Whether a block has our action as a step, or our hooks, and asks only for what they have."""
    data = yaml.safe_load(block.text)
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    known = {one["id"] for one in yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))}
    steps = [step for job in data.get("jobs", {}).values() for step in job["steps"]]
    ours = [step for step in steps if step.get("uses", "").partition("@")[0].endswith("/donewhen")]
    hooks = {hook["id"] for one in data.get("repos", ()) for hook in one["hooks"]}
    assert all(inputs.keys() >= step.get("with", {}).keys() for step in ours), block
    assert hooks <= known, block
    return bool(ours or hooks)


def environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "HOME")}
    return kept | {"LANG": "C.UTF-8", "COLUMNS": "80", "PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}


def run_at_a_terminal(command: str, shown: list[str], as_person: Person) -> subprocess.CompletedProcess[str]:
    """A person runs donewhen and types what the page shows them typing: the word that is asked for, or another."""
    program, *arguments = shlex.split(command)
    asked, typed = ASKED.search("\n".join(shown)), TYPED.search("\n".join(shown))
    assert program == "donewhen" and asked and typed, f"{command!r}: the page does not show what a person is asked"
    answer = None if typed[1] == asked[1] else typed[1]
    found = [pressed for one in shown if (pressed := PRESSED.fullmatch(one))]
    keys = [pressed[1] + (f"{pressed[2]}\n" if pressed[2] else "") for pressed in found]
    status, screen = as_person(arguments, Path.cwd(), answer=answer, keys=keys, env=environment() | {"NO_COLOR": "1"})
    word = ASKED.search(screen)
    assert word, f"{command!r}: nobody was asked for a word:\n{screen}"
    return subprocess.CompletedProcess(command, status, screen.replace("\r\n", "\n").replace(word[1], asked[1]))


def run(command: str) -> subprocess.CompletedProcess[str]:
    if (words := calls_only_donewhen(command)) is not None:
        return run_main(words, env=environment(), merged=True)
    return subprocess.run(
        ["sh", "-c", command],
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=600,
    )


def calls_only_donewhen(command: str) -> list[str] | None:
    """The words of a line that needs no shell and does nothing but call donewhen."""
    try:
        program, *words = split_command(command)
    except UsageError:
        return None
    return words if program == "donewhen" and not any(word.startswith("~") for word in words) else None


def assert_like(expected: list[str] | tuple[str, ...], actual: str, where: str) -> None:
    """The lines shown are those printed; blank lines at the ends and trailing spaces don't matter."""
    wanted = [line.rstrip() for line in "\n".join(expected).strip("\n").split("\n")]
    pattern = "".join(
        # "…" alone on a line: any number of lines, none as well. Elsewhere: anything on that line.
        r"(?:.*\n)*" if line.strip() == "…" else re.escape(line).replace("…", ".*") + r"\n"
        for line in wanted
    )
    printed = "\n".join(line.rstrip() for line in actual.split("\n")).strip("\n") + "\n"
    shown = "\n".join(wanted)
    if REWRITING and not re.fullmatch(pattern, printed):
        page = ROOT / where.split(":")[0]
        assert page.is_file() and rewrite_page(page, wanted, printed), f"{where}: shown\n{shown}\n\nprinted\n{printed}"
        return
    assert re.fullmatch(pattern, printed), f"{where}: shown\n{shown}\n\nprinted\n{printed}"


@pytest.mark.parametrize(
    ("shown", "printed", "like"),
    [
        (["one", "two"], "one  \ntwo\n\n", True),
        (["one", "two"], "one\n", False),
        (["one", "two"], "one\ntwo\nthree\n", False),
        (["one", "…", "four"], "one\ntwo\nthree\nfour\n", True),
        (["one", "…"], "one\ntwo\n", True),
        (["one", "…"], "two\none\n", False),
        (["took … s (all)"], "took 0.2 s (all)\n", True),
        (["took … s"], "took\n0.2 s\n", False),
    ],
)
def test_output_is_compared_leniently_but_compared(shown: list[str], printed: str, like: bool) -> None:
    if like:
        assert_like(shown, printed, "here")
    else:
        with pytest.raises(AssertionError):
            assert_like(shown, printed, "here")


def test_nothing_is_exempt_from_running_that_no_page_has_or_that_ci_does_not_run() -> None:
    consoles = [block for page in PAGES for block in blocks(page) if block.language == "console"]
    assert set(EXEMPT) <= {command for console in consoles for command, _ in console_steps(console)}
    in_ci = [line.strip() for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()]
    for command in EXEMPT:
        assert command in in_ci or not command.startswith("make ")


LINK = re.compile(r"!?\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_and_pictures_lead_somewhere(page: Path) -> None:
    for target in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, fragment = target.partition("#")
        leads_to = (page.parent / path).resolve() if path else page
        assert leads_to.exists(), f"{name_of(page)} links to {target}"
        assert leads_to.is_relative_to(ROOT), f"{name_of(page)} links out of the project: {target}"
        if fragment:
            assert fragment in anchors(leads_to), f"{name_of(page)} links to {target}, which has no such heading"


def without_code(text: str) -> str:
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "code", text)


def anchors(page: Path) -> set[str]:
    """The fragments that Markdown viewers make of headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ +(.*?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_can_be_reached_from_the_readme() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md":
            continue
        seen.add(page)
        targets = LINK.findall(re.sub(r"`", "", page.read_text(encoding="utf-8")))
        linked = [(page.parent / target.partition("#")[0]).resolve() for target in targets if ":" not in target]
        waiting += [one for one in linked if one.is_file()]
    assert sorted(map(name_of, PAGES)) == sorted(map(name_of, seen))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_speaks_of_the_project_and_not_of_where_it_was_made(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for host in re.findall(r"https?://([^/\s)>\"'`]+)", text):
        assert host in HOSTS, f"{name_of(page)} names the host {host}"
    places = [r"/(?:work|root|home|Users)/", r"/tmp/\w", r"pypi\.org|pythonhosted|npmjs|artifactory|\bindex-url\b"]
    # "Session" is a word of the package; the ones in which people work are not. Nor are issues, but those on GitHub.
    making = [
        r"(?i)\bissues?\b" if "GitHub" not in text else r"(?i)\bissue #\d",
        r"\bAI developer",
        r"(?i)\b(?:coding|working|earlier|previous|later) sessions?\b",
    ]
    later = [r"\bcoming soon\b", r"\bTODO\b", r"\bTBD\b", r"\bwill be (?:added|supported)\b", r"\broadmap\b"]
    for pattern in places + making + later:
        # A checker that looks for unfinished marks may name them.
        found = re.findall(pattern, text if pattern not in later else without_code(text))
        assert not found, f"{name_of(page)} says {found[0]!r}"


@pytest.mark.parametrize("picture", sorted((ROOT / "docs" / "images").glob("*.svg")), ids=lambda one: one.name)
def test_a_picture_needs_nothing_from_elsewhere(picture: Path) -> None:
    from xml.parsers import expat

    text = picture.read_text(encoding="utf-8")
    expat.ParserCreate().Parse(text, True)
    assert not re.search(r"@font-face|@import|<script|<image|<foreignObject|href|url\((?!#)", text)
    assert set(re.findall(r"https?://([^/\s\"']+)", text)) <= {"www.w3.org"}


def test_signatures_that_are_not_run_stand_in_the_reference_only() -> None:
    for page in PAGES:
        if REFERENCE not in page.parents:
            assert [str(block) for block in blocks(page) if block.language == "py"] == []
