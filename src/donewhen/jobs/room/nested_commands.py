"""Files that agreed files have run or loaded: recipes of a makefile, scripts of a manifest, shell scripts, settings."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from heapq import nsmallest

from donewhen.jobs.room.judging_names import NamedFile, executed_files, is_settings
from donewhen.jobs.room.loaded_files import loaded_by
from donewhen.jobs.room.script_mentions import mentioned_by_scripts

_SHELL = (".sh", ".bash", ".mk")
_RECIPES = frozenset({"makefile", "gnumakefile", "justfile", "taskfile.yml", "taskfile.yaml", "tox.ini"})
_SEPARATORS = re.compile(r"&&|\|\||[;|&]")
_SHELL_WORDS = frozenset({"exec", "command", "if", "elif", "then", "else", "do", "while", "until", "!", "{", "("})
_ASSIGNMENT = re.compile(r"\w+=.*", re.DOTALL)
_SHEBANG = re.compile(r"#!.*\b(?:ba|da|z|k)?sh\b")
_MAX_BYTES, _MAX_LINES, _DEEPEST = 1 << 20, 5_000, 4
_MAX_SETTINGS = 300
_READABLE = (
    *(".toml", ".json", ".yml", ".yaml", ".ini", ".cfg", ".js", ".cjs", ".mjs", ".ts", ".cts", ".mts", ".xml", ".dist"),
    *("rc", ".flake8", "conftest.py"),
)


def with_nested(
    named: Iterable[Sequence[NamedFile]], inside: str, agreed: Collection[str], read: Callable[[str], bytes | None]
) -> list[tuple[NamedFile, ...]]:
    """The files that checks name, those that these run, include or load in turn, and those that settings have loaded;
    ``read`` returns an agreed file's content."""
    every = run_in_turn(named, inside, agreed, read)
    return [*every, mentioned_by_scripts(every, inside, agreed, read), tuple(_named_by_settings(agreed, read))]


def run_in_turn(
    named: Iterable[Sequence[NamedFile]], inside: str, agreed: Collection[str], read: Callable[[str], bytes | None]
) -> list[tuple[NamedFile, ...]]:
    """The files that checks name, and those that these run in turn."""
    every = [tuple(files) for files in named]
    level = [file for files in every for file in files]
    seen: set[str] = set()
    for _ in range(_DEEPEST):
        found: list[NamedFile] = []
        for file in level:
            name = os.path.normpath(f"{inside}{file.name}")
            if name in seen or name not in agreed or not _may_run_others(name):
                continue
            seen.add(name)
            found += [inner for command in commands_in(name, read(name) or b"") for inner in executed_files(command)]
        if not found:
            break
        every.append(tuple(found))
        level = found
    return every


def _named_by_settings(agreed: Collection[str], read: Callable[[str], bytes | None]) -> Iterator[NamedFile]:
    """The files that settings of tools have loaded."""
    for name in nsmallest(_MAX_SETTINGS, filter(_may_load_others, agreed), key=lambda name: (name.count("/"), name)):
        folder = name.rpartition("/")[0]
        for path in loaded_by(name, read(name) or b""):
            yield NamedFile(path, whole_folder=False, loaded=True, beside=folder)


def _may_load_others(name: str) -> bool:
    folders, _, last = name.rpartition("/")
    if folders.startswith(".") or "/." in folders or "node_modules" in folders:
        return False
    return last.casefold().endswith(_READABLE) and is_settings(last) and is_settings(name)


def commands_in(name: str, content: bytes) -> Iterator[tuple[str, ...]]:
    """The commands in a file, as far as they can be read; its name says what kind of file it is."""
    last = name.rpartition("/")[2].casefold()
    text = content[:_MAX_BYTES].decode("utf-8", "replace")
    lines: Iterable[str] = ()
    if last == "package.json":
        lines = _scripts(text)
    elif last in _RECIPES or last.endswith(_SHELL) or _SHEBANG.match(text):
        lines = text.replace("\\\n", " ").splitlines()[:_MAX_LINES]
    for line in lines:
        for part in _SEPARATORS.split(line.strip().lstrip("@-+ ").removeprefix("cmd:")):
            if words := _words(part):
                yield words


def _may_run_others(name: str) -> bool:
    last = name.rpartition("/")[2].casefold()
    return last == "package.json" or last in _RECIPES or last.endswith(_SHELL) or "." not in last


def _scripts(text: str) -> Iterator[str]:
    try:
        scripts = json.loads(text).get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return
    yield from (script for script in (scripts.values() if isinstance(scripts, dict) else ()) if isinstance(script, str))


def _words(part: str) -> tuple[str, ...]:
    try:
        words = shlex.split(part, comments=True)
    except ValueError:
        return ()
    # Words and variables of the shell before the program.
    while words and (words[0] in _SHELL_WORDS or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    return ("sh", *words[1:]) if words and words[0] in (".", "source") else tuple(words)
