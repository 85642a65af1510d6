"""The signs of a change: everything in its new lines that a person should look at."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from donewhen.signs.changed_lines import Change, split_lines
from donewhen.signs.kinds import ChangedFile, Sign
from donewhen.signs.python_detours import detours
from donewhen.signs.python_equality import comparing
from donewhen.signs.python_module import PythonModule
from donewhen.signs.python_reach import Finding, reaching
from donewhen.signs.python_swallowing import swallowing
from donewhen.signs.python_watching import watching
from donewhen.signs.script_reach import script_reaching
from donewhen.signs.special_cases import ExpectedValues, script_special_cases, special_cases
from donewhen.signs.suppressions import silencing, weakening
from donewhen.signs.test_words import names_framework
from donewhen.signs.uncalled import uncalled

_PYTHON = (".py", ".pyw")
_SCRIPTS = (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx", ".vue", ".svelte")
_SETTINGS = (".toml", ".cfg", ".ini", ".json", ".yml", ".yaml")
_MAX_BYTES = 1 << 20
_WORD = re.compile(r"\w+")
_DEFINED = re.compile(r"\b(?:def|class|function|const|let|var)\s+(\w+)")
_UNREADABLE = re.compile(r"\b(?:_getframe|settrace|_exit|f_locals|get_objects|exec|eval)\b")


@dataclass(frozen=True)
class Around:
    """What signs need to know besides the changed files."""

    tests: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The visible tests: names with their texts."""
    tools: frozenset[str] = frozenset()
    """The tools that are part of the checks."""
    own_modules: frozenset[str] = frozenset()
    """The top-level Python modules of the project."""
    is_used: Callable[[str, str], bool] = lambda _word, _file: False
    """Whether a word occurs in a file of the project other than this one."""


def signs_of_change(files: Sequence[ChangedFile], around: Around) -> tuple[Sign, ...]:
    """The signs in the new lines of a change, in the order of files and lines."""
    readable = [file for file in files if _size(file) <= _MAX_BYTES]
    change, with_comments = Change(readable), Change(readable, comments=True)
    tests = ExpectedValues(_tests_about(readable, around.tests))
    found: list[Sign] = []
    for file in change.files:
        if file.after is None or not with_comments.new_lines(file.name):
            continue
        lines = split_lines(file.after)
        seen: set[tuple[str, int]] = set()
        for sign, beside, asks in _findings(file, file.after, around, tests):
            lines_of = with_comments if sign.kind == "suppressions" else change
            if (sign.kind, sign.line) in seen or not lines_of.is_new(file.name, sign.lines):
                continue
            seen.add((sign.kind, sign.line))
            text = lines[sign.line - 1].strip() if sign.line <= len(lines) else ""
            found.append(Sign(sign.kind, file.name, sign.line, text, sign.why, sign.lines, beside, asks))
    return tuple(sorted(found, key=lambda sign: (sign.file, sign.line, sign.kind)))


def _tests_about(files: Sequence[ChangedFile], tests: Mapping[str, str]) -> Mapping[str, str]:
    """The tests that name something of the changed files."""
    names = {PurePosixPath(file.name).stem for file in files}
    names |= {name for file in files if not file.is_test for name in _DEFINED.findall(file.after or "")}
    return {name: text for name, text in tests.items() if not names.isdisjoint(_WORD.findall(text))}


def _findings(
    file: ChangedFile, text: str, around: Around, tests: ExpectedValues
) -> Iterator[tuple[Finding, str, bool]]:
    suffix = PurePosixPath(file.name).suffix.lower()
    for silenced, asks in silencing(file.name, text, around.tools):
        yield silenced, "", asks
    if file.is_test or suffix in _SETTINGS:
        for weaker in weakening(file.name, file.before, text):
            yield weaker, "", True
    if file.is_test:
        return
    if suffix in _PYTHON:
        yield from _python_findings(file, text, around, tests)
    elif suffix in _SCRIPTS:
        for reached in script_reaching(text):
            yield reached, "", True
        for case, beside in script_special_cases(text, tests):
            yield case, beside, True


def _python_findings(
    file: ChangedFile, text: str, around: Around, tests: ExpectedValues
) -> Iterator[tuple[Finding, str, bool]]:
    try:
        module = PythonModule(text)
        findings = [(found, "") for found in _in_module(file, text, module, around)]
        findings += special_cases(module, tests)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # Code for another version of Python, or made so that it can't be read: only words are known.
        for number, line in enumerate(split_lines(text), 1):
            if names_framework(line.strip()) or _UNREADABLE.search(line):
                why = "could not be read as Python, and names what tests are made of"
                yield Finding("obscured", number, frozenset({number}), why), "", True
        return
    for found, beside in findings:
        yield found, beside, True


def _in_module(file: ChangedFile, text: str, module: PythonModule, around: Around) -> Iterator[Finding]:
    path = PurePosixPath(file.name)
    is_program = path.name == "__main__.py" or (text.startswith("#!") and not around.is_used(path.stem, file.name))
    yield from reaching(module, lambda name: name in around.own_modules, is_program=is_program)
    yield from watching(module)
    yield from comparing(module)
    yield from swallowing(module)
    yield from detours(module, lambda name: name in around.own_modules)
    yield from uncalled(module, text, lambda word: around.is_used(word, file.name))


def top_modules(names: Collection[str]) -> frozenset[str]:
    """The top-level Python modules of a project: below its own folder and those where sources usually are."""
    packages = {str(PurePosixPath(name).parent) for name in names if name.endswith("/__init__.py")}
    tops = {PurePosixPath(package).name for package in packages if str(PurePosixPath(package).parent) not in packages}
    singles = {
        PurePosixPath(name).stem
        for name in names
        if name.endswith(_PYTHON) and str(PurePosixPath(name).parent) not in packages
    }
    return frozenset(tops | singles)


def _size(file: ChangedFile) -> int:
    return max(len(file.before or ""), len(file.after or ""))
