"""Which lines of a file are new or changed: pure, from both texts."""

from __future__ import annotations

from difflib import SequenceMatcher

_LONG = 5000


def changed_lines(before: str | None, after: str) -> frozenset[int]:
    """The numbers of the lines of ``after`` that ``before`` does not have; all of them if there was no file."""
    new = after.splitlines()
    if before is None:
        return frozenset(range(1, len(new) + 1))
    matcher = SequenceMatcher(None, before.splitlines(), new, autojunk=len(new) > _LONG)
    return frozenset(
        number
        for operation, _, _, start, end in matcher.get_opcodes()
        if operation in ("insert", "replace")
        for number in range(start + 1, end + 1)
    )
