"""Exceptions that were agreed: files in which some kinds of signs are expected, such as a plug-in of a test framework.

One is written as ``/src/plugin/**: test-machinery, frames``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from donewhen.signs.kinds import KINDS

SignExceptions: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class SignException:
    """Kinds of signs that no person is asked about in some files."""

    pattern: str
    kinds: frozenset[str]


def read_exception(text: str) -> SignException | None:
    """The exception that a text is; None if it is none."""
    pattern, colon, listed = text.rpartition(":")
    kinds = [kind.strip() for kind in listed.split(",")]
    if not colon or not pattern.strip() or not all(kind in KINDS for kind in kinds):
        return None
    return SignException(pattern.strip(), frozenset(kinds))
