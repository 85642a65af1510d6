"""Which lines of a change are new. Lines that were only moved, or indented differently, are not."""

from __future__ import annotations

import io
import tokenize
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from difflib import SequenceMatcher
from functools import cached_property

from donewhen.signs.kinds import ChangedFile

_MAX_COMPARED = 20_000


class Change:
    """All files of a change."""

    def __init__(self, files: Sequence[ChangedFile], *, comments: bool = False) -> None:
        """With ``comments``, a line is new if only a comment in it is."""
        self.files = files
        read = _stripped if comments else _code_lines
        self._before = {file.name: read(file.name, file.before) for file in files}
        self._after = {file.name: read(file.name, file.after) for file in files}
        self._new = {name: frozenset(_new_lines(self._before[name], after)) for name, after in self._after.items()}

    def new_lines(self, name: str) -> frozenset[int]:
        """The numbers of the lines that the file did not have in this place; they may come from elsewhere."""
        return self._new[name]

    def is_new(self, name: str, lines: Collection[int]) -> bool:
        """Whether lines that follow each other are new, and don't come from another place together."""
        texts = self._after[name]
        for block in _blocks(line for line in lines if line <= len(texts)):
            text = "\n".join(texts[line - 1] for line in block)
            is_touched = not self._new[name].isdisjoint(block)
            if is_touched and _count(self._pool_after, text) > _count(self._pool_before, text):
                return True
        return False

    @cached_property
    def _pool_before(self) -> Sequence[str]:
        return ["\n".join(("", *lines, "")) for lines in self._before.values()]

    @cached_property
    def _pool_after(self) -> Sequence[str]:
        return ["\n".join(("", *lines, "")) for lines in self._after.values()]


def split_lines(text: str) -> list[str]:
    """The lines of a text as compilers count them."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _stripped(_name: str, text: str | None) -> list[str]:
    return [] if text is None else [line.strip() for line in split_lines(text)]


def _code_lines(name: str, text: str | None) -> list[str]:
    """The lines without indentation, and without comments where these are known."""
    if text is None or not name.endswith(".py"):
        return _stripped(name, text)
    lines = split_lines(text)
    with suppress(tokenize.TokenError, SyntaxError, ValueError, RecursionError, MemoryError):
        for token in tokenize.generate_tokens(io.StringIO("\n".join(lines)).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    return [line.strip() for line in lines]


def _new_lines(before: Sequence[str], after: Sequence[str]) -> Sequence[int]:
    if not before or max(len(before), len(after)) > _MAX_COMPARED:
        known = {*before}
        return [number for number, line in enumerate(after, 1) if line not in known or not before]
    matcher = SequenceMatcher(None, before, after, autojunk=len(after) > 5000)
    changed = [op for op in matcher.get_opcodes() if op[0] in ("insert", "replace")]
    return [number for _, _, _, start, end in changed for number in range(start + 1, end + 1)]


def _blocks(lines: Iterable[int]) -> list[list[int]]:
    """The lines in groups of those that follow each other."""
    blocks: list[list[int]] = []
    for line in sorted(lines):
        if blocks and line == blocks[-1][-1] + 1:
            blocks[-1].append(line)
        else:
            blocks.append([line])
    return blocks


def _count(texts: Sequence[str], block: str) -> int:
    """How often these lines follow each other."""
    found, needle = 0, f"\n{block}\n"
    for text in texts:
        at = text.find(needle)
        while at >= 0:
            found += 1
            at = text.find(needle, at + 1)
    return found
