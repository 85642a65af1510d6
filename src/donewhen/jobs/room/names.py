"""Names of files in a tree: which two names mean the same path, and which patterns match a name."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from fnmatch import fnmatchcase

_PATTERN = frozenset("*?[")


def folded(name: str) -> str:
    """A name as file systems compare it that ignore case and the form of accents."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", name).casefold())


def is_pattern(path: str) -> bool:
    """Whether a path of a plan is a pattern and not a name."""
    return bool(_PATTERN.intersection(path))


def matches_pattern(name: str, pattern: str, *, below: bool = True) -> bool:
    """Whether a name matches a pattern; ``*`` does not cross folders, ``**`` does.

    With ``below``, what lies in a folder that matches does, too.
    """
    return _matches(
        unicodedata.normalize("NFC", name).split("/"), unicodedata.normalize("NFC", pattern).split("/"), below
    )


def _matches(name: list[str], pattern: list[str], below: bool) -> bool:
    if not pattern:
        return below or not name
    if pattern[0] == "**":
        # A trailing ** is everything below the folder, not the folder's name itself.
        return any(_matches(name[skipped:], pattern[1:], below) for skipped in range(len(name) + (len(pattern) > 1)))
    return (
        bool(name)
        and (name[0] == pattern[0] or fnmatchcase(name[0], pattern[0]))
        and _matches(name[1:], pattern[1:], below)
    )


class SamePaths:
    """Maps names to those of a tree that mean the same path on some file system: another case, another form of an
    accent. A new name keeps its last part, but lies in the folder of the tree."""

    def __init__(self, names: Iterable[str]) -> None:
        self._known: dict[str, str] = {}
        self._names = frozenset(names)
        for name in sorted(self._names, reverse=True):
            parts = name.split("/")
            for end in range(len(parts), 0, -1):
                part = "/".join(parts[:end])
                key = folded(part)
                if end < len(parts) and self._known.get(key) == part:
                    break
                self._known[key] = part

    def same_as(self, name: str) -> str:
        """The name in the tree, or else the name below its folder in the tree."""
        if name in self._names:
            return name
        parts = name.split("/")
        for end in range(len(parts), 0, -1):
            known = self._known.get(folded("/".join(parts[:end])))
            if known is not None:
                return "/".join((known, *parts[end:]))
        return name
