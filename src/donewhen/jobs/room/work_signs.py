"""The signs in the work of a job: lines that a person should look at before the work counts as done."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.git_objects import LINK
from donewhen.jobs.ledger.entry_content import FoundSign
from donewhen.jobs.ledger.terms_content import JobTerms
from donewhen.jobs.room.basis import RoomBasis
from donewhen.jobs.room.reading import RoomReading
from donewhen.jobs.room.room_plan import RoomPlan, Tree
from donewhen.jobs.room.work_area import JudgingFiles, area_of
from donewhen.signs.changed_lines import split_lines
from donewhen.signs.exceptions import read_exception
from donewhen.signs.kinds import ChangedFile, Sign
from donewhen.signs.signs import Around, signs_of_change, top_modules
from donewhen.signs.suppressions import TOOLS

_CODE = (".py", ".pyw", ".pyi", ".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte")
_COMPILED = (".so", ".pyd", ".dll", ".dylib", ".pyc", ".pyo", ".node", ".wasm", ".jar", ".class")
_NAMING = (*_CODE, ".toml", ".cfg", ".ini", ".json", ".yml", ".yaml", ".html", ".j2", ".jinja2")
"""Files in which the callers of a function may be."""
_MAX_FILES, _MAX_BYTES = 5000, 1 << 20
_WORD = re.compile(r"\w+")
_WRAPPERS = re.compile(
    r"(?i)(?:^|/)(?:gnu)?makefile$|(?:^|/)(?:package\.json|tox\.ini|noxfile\.py|justfile|taskfile\.ya?ml|tasks\.py"
    r"|dodo\.py|pyproject\.toml|setup\.cfg|\.pre-commit-config\.yaml|pytest\.ini|\.coveragerc)$|\.(?:sh|bash)$"
)
"""Agreed files from which commands, or settings of tests, take the tools that they run."""
_PROGRAMS = frozenset(
    (
        *("make", "gmake", "just", "task", "tox", "nox", "npm", "yarn", "pnpm", "bun", "npx"),
        *("pre-commit", "invoke", "hatch", "sh", "bash", "doit", "uv", "poetry", "pdm", "rye", "pixi"),
    )
)
"""Programs that run others which the command does not name."""


@dataclass(frozen=True)
class SignSources:
    """What signs are found from."""

    plan: RoomPlan
    before: Tree = field(repr=False)
    """The files as they were before the work."""
    judges: JudgingFiles = field(repr=False)
    basis: RoomBasis
    inside: str
    """The project's folder in the repository, with a trailing slash."""
    read: Callable[[Sequence[tuple[str, str]]], Iterable[bytes]] = field(repr=False)
    """Reads contents by the names of files and of contents."""

    def texts(self, names: Iterable[str], tree: Tree) -> dict[str, str]:
        """The texts of some files of a tree; those that are no text, or too large, are left out."""
        chosen = [name for name in names if name in tree and tree[name].mode != LINK][:_MAX_FILES]
        contents = self.read([(name, tree[name].blob) for name in chosen])
        return {
            name: content.decode("utf-8", "replace")
            for name, content in zip(chosen, contents, strict=True)
            if len(content) <= _MAX_BYTES and b"\0" not in content
        }


def work_signs(sources: SignSources, allowed: Collection[str]) -> tuple[Sign, ...]:
    """The signs in the changed lines of the work, without those that were agreed to be expected. A project as a whole
    has none of its own: its jobs have."""
    if not isinstance(sources.basis.terms, JobTerms) or not sources.plan.work:
        return ()
    changed = _changed_files(sources)
    words = _Words(sources)
    around = Around(
        tests=sources.texts(_tests_of(sources), sources.before),
        tools=_tools(sources),
        own_modules=top_modules([*sources.plan.whole]),
        is_used=words.occurs_elsewhere,
    )
    signs = (*signs_of_change(changed, around), *_unreadable(sources, changed))
    return tuple(sign for sign in signs if not _is_expected(sign, sources, allowed))


def _unreadable(sources: SignSources, changed: Sequence[ChangedFile]) -> Iterator[Sign]:
    """Yield code that can't be looked at."""
    read = {file.name for file in changed if file.after is not None}
    for change in sources.plan.work:
        is_code = change.name.casefold().endswith((*_CODE, *_COMPILED))
        file = sources.plan.agreed.get(change.name)
        if is_code and file is not None and file.mode != LINK and change.name not in read:
            # Without lines, the name of the content says what is accepted.
            yield Sign("obscured", change.name, 1, change.blob, "is no text, or too large, so it can't be looked at")


def sources_of_reading(reading: RoomReading) -> SignSources:
    """What the signs in the work are found from, on disk."""
    inside = reading.agreed.place.inside
    return SignSources(reading.plan, reading.agreed_tree, reading.judges, reading.basis, inside, reading.blobs.contents)


def recorded_signs(sources: SignSources, allowed: Collection[str]) -> list[FoundSign]:
    """The signs as they are recorded."""
    signs = work_signs(sources, allowed)
    texts = sources.texts(dict.fromkeys(sign.file for sign in signs), sources.plan.agreed)
    return found_signs(signs, lambda name: texts.get(name, ""))


def found_signs(signs: Sequence[Sign], text_of: Callable[[str], str]) -> list[FoundSign]:
    """The signs as they are recorded: with a hash of their lines, and without any text of the work."""
    found: list[FoundSign] = []
    repeated: Counter[str] = Counter()
    for sign in signs:
        lines = split_lines(text_of(sign.file))
        about = [lines[line - 1].strip() for line in sorted(sign.lines) if line <= len(lines)]
        key = digest_of([sign.kind, printable(sign.file), about or [sign.text], sign.beside.partition(": ")[2]])
        # A second line with the same text is a question of its own.
        repeated[key] += 1
        name = digest_of([key, repeated[key]])[7:23]
        found.append(FoundSign(kind=sign.kind, file=printable(sign.file), line=sign.line, id=name, asks=sign.asks))
    return found


def printable(name: str) -> str:
    """A file's name as text, whatever its bytes are."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _changed_files(sources: SignSources) -> list[ChangedFile]:
    names = [change.name for change in sources.plan.work]
    before, after = sources.texts(names, sources.before), sources.texts(names, sources.plan.agreed)
    return [
        ChangedFile(name, before.get(name), after.get(name), sources.judges.is_test(name))
        for name in names
        if name in before or name in after
    ]


def _tests_of(sources: SignSources) -> Iterator[str]:
    """The tests that were visible before the work."""
    return (name for name in sources.before if name.endswith(_CODE) and sources.judges.is_test(name))


def _is_expected(sign: Sign, sources: SignSources, allowed: Collection[str]) -> bool:
    for text in allowed:
        exception = read_exception(text)
        if exception is not None and sign.kind in exception.kinds:
            area = area_of(sources.inside, sources.basis.job_folder, (exception.pattern,), ())
            if area.has(sign.file):
                return True
    return False


def _tools(sources: SignSources) -> frozenset[str]:
    """The tools that the checks run: named by the commands, or by agreed files that these take commands from."""
    commands = [*sources.basis.commands, *sources.basis.prepare]
    words = {word for command in commands for word in command}
    names = {word.rpartition("/")[2] for word in words}
    found = _named_tools(" ".join(words))
    runs_others = bool(names & _PROGRAMS) or any(word.endswith((".sh", ".bash", ".py")) for word in words)
    if runs_others:
        wrappers = [name for name in sources.before if name.startswith(sources.inside) and _is_wrapper(name, words)]
        for text in sources.texts(wrappers, sources.before).values():
            found |= _named_tools(text)
    elif "pytest" in names:
        # Coverage is often switched on in the settings of tests.
        settings = [f"{sources.inside}{name}" for name in ("pyproject.toml", "setup.cfg", "tox.ini", "pytest.ini")]
        for text in sources.texts(settings, sources.before).values():
            if "--cov" in text:
                found |= {"--cov"}
    return frozenset(found)


def _is_wrapper(name: str, words: Collection[str]) -> bool:
    return _WRAPPERS.search(name) is not None or any(
        name.endswith(word.removeprefix("./")) for word in words if "." in word
    )


def _named_tools(text: str) -> set[str]:
    return {tool for tool in TOOLS if re.search(rf"(?<![\w-]){re.escape(tool)}(?![\w])", text)}


class _Words:
    """The words of a project's files, counted when they are first asked for."""

    def __init__(self, sources: SignSources) -> None:
        self._sources = sources

    @cached_property
    def _files(self) -> dict[str, frozenset[str]]:
        tree = self._sources.plan.agreed
        texts = self._sources.texts([name for name in tree if name.endswith(_NAMING)], tree)
        return {name: frozenset(_WORD.findall(text)) for name, text in texts.items()}

    @cached_property
    def _count(self) -> Counter[str]:
        return Counter(word for words in self._files.values() for word in words)

    def occurs_elsewhere(self, word: str, name: str) -> bool:
        return self._count[word] > (word in self._files.get(name, ()))
