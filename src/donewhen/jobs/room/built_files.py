"""Files that `make` builds, by the rules of agreed makefiles.

`make` takes a target for finished if it is there and no source of it is newer. An agent could write the target itself,
and what checks the work would not run. So changed targets look older than everything else in a room, and a new file
that a rule without sources would make is no work.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

_MAKEFILES = frozenset({"makefile", "gnumakefile", "bsdmakefile"})
_VARIABLE = re.compile(r"^\s*(?:export\s+|override\s+)*([\w.-]+)\s*(?:::?:?|\?|\+)?=\s*(.*)$")
_RULE = re.compile(r"^([^\s#:=][^:=#]*?)\s*&?::?(?!=)\s*([^=#;]*)")
_REFERENCE = re.compile(r"\$(?:\(([^()]*)\)|\{([^{}]*)\}|(\w))")
_UNKNOWN = "*"
_MAX_BYTES, _MAX_LINES, _MAX_RULES, _MAX_WORDS, _DEEPEST = 1 << 18, 5_000, 500, 200, 5
_LONG_AGO = 631_152_000
"""1990: archives can't store times before 1980."""


@dataclass(frozen=True)
class _Rule:
    """How one target is built."""

    target: re.Pattern[str]
    sources: tuple[str, ...]
    """Names in the repository; `%` is what the target has in its place."""

    def has_source(self, found: re.Match[str], exists: Callable[[str], bool]) -> bool:
        stem = found.groupdict().get("stem")
        if stem is None:
            return bool(self.sources)
        # A pattern is used only if there is something to build the file from.
        return any(exists(source.replace("%", stem, 1)) for source in self.sources)


@dataclass(frozen=True)
class BuiltFiles:
    """The rules of all agreed makefiles."""

    rules: tuple[_Rule, ...] = ()

    def built_path(self, name: str, exists: Callable[[str], bool]) -> str | None:
        """The target that a file is, or that it lies in; None if no rule with sources makes it."""
        for path in _with_folders(name) if self.rules else ():
            for rule in self.rules:
                found = rule.target.fullmatch(path)
                if found is not None and rule.has_source(found, exists):
                    return path
        return None

    def prevents_building(self, name: str, agreed_folders: Collection[str]) -> bool:
        """Whether a new file is all that a rule without sources asks for."""
        return any(
            not rule.sources and rule.target.fullmatch(path) is not None
            for path in (_with_folders(name) if self.rules else ())
            if path not in agreed_folders
            for rule in self.rules
        )


def built_files(inside: str, agreed: Collection[str], read: Callable[[str], bytes | None]) -> BuiltFiles:
    """The files that agreed makefiles build; ``read`` returns an agreed file's content."""
    rules: list[_Rule] = []
    for name in sorted(filter(_is_makefile, agreed), key=lambda name: (name.count("/"), name))[:_MAX_WORDS]:
        text = (read(name) or b"")[:_MAX_BYTES].decode("utf-8", "replace")
        folder, slash, _ = name.rpartition("/")
        for start in dict.fromkeys((inside, f"{folder}{slash}")):
            rules += _rules_in(text, start)
    return BuiltFiles(tuple(rules[:_MAX_RULES]))


def age_files(folder: Path, changed: Iterable[str], built: BuiltFiles, tree: Collection[str]) -> None:
    """Make changed files the newest in a room, and those that `make` has to build older than everything else."""
    if not built.rules:
        return
    now = time.time_ns()
    old: set[str] = set()
    for name in changed:
        path = built.built_path(name, tree.__contains__)
        if path is None:
            _set_time(folder / name, now)
        else:
            old |= {name, path}
    for name in old:
        _set_time(folder / name, _LONG_AGO * 1_000_000_000)


def _set_time(path: Path, nanoseconds: int) -> None:
    with suppress(OSError):
        os.utime(path, ns=(nanoseconds, nanoseconds), follow_symlinks=False)


def _is_makefile(name: str) -> bool:
    last = name.rpartition("/")[2].casefold()
    return last in _MAKEFILES or last.endswith((".mk", ".mak", ".make"))


def _with_folders(name: str) -> Iterator[str]:
    """A name, and the folders that it lies in."""
    yield name
    while "/" in name:
        name = name.rpartition("/")[0]
        yield name


def _rules_in(text: str, start: str) -> Iterator[_Rule]:
    lines = [line for line in text.replace("\\\n", " ").splitlines()[:_MAX_LINES] if not line.startswith("\t")]
    variables = {found[1]: found[2].partition("#")[0] for line in lines if (found := _VARIABLE.match(line))}
    parsed = [_parsed(line, variables) for line in lines]
    phony = {word for targets, sources in filter(None, parsed) if targets == [".PHONY"] for word in sources}
    for targets, sources in filter(None, parsed):
        for target in targets:
            if target not in phony and not target.startswith(".") and target.strip("*%./"):
                yield _Rule(_target_form(_place(start, target)), tuple(_place(start, source) for source in sources))


def _parsed(line: str, variables: Mapping[str, str]) -> tuple[list[str], list[str]] | None:
    """The targets and the sources of a rule; None if a line is none."""
    found = _RULE.match(_expanded(line, variables)) if not _VARIABLE.match(line) else None
    if found is None:
        return None
    # Static patterns have a second colon; what follows `|` only has to exist.
    patterns, colon, sources = found[2].partition(":")
    words = (sources if colon else patterns).partition("|")[0].split()
    targets = found[1].split()
    if colon and "%" in patterns:
        words = [word.replace("%", _UNKNOWN) for word in words]
    return targets[:_MAX_WORDS], words[:_MAX_WORDS]


def _expanded(text: str, variables: Mapping[str, str]) -> str:
    for _ in range(_DEEPEST):
        if "$" not in text:
            break
        text = _REFERENCE.sub(lambda found: variables.get(found[1] or found[2] or found[3], _UNKNOWN), text)
    return text


def _place(start: str, word: str) -> str:
    return os.path.normpath(f"{start}{word}")


def _target_form(target: str) -> re.Pattern[str]:
    before, percent, after = target.partition("%")
    parts = [translate(part).removeprefix("(?s:").removesuffix(")\\Z") for part in (before, after)]
    return re.compile(f"{parts[0]}(?P<stem>.+){parts[1]}" if percent else parts[0], re.DOTALL)
