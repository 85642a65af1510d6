"""What a story is made of: lines, each with who does or says it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

Who = Literal["story", "person", "agent", "donewhen"]
Kind = Literal["chapter", "cheat", "note", "does", "says", "command", "answer", "types", "presses"]


class StoryLine(NamedTuple):
    """One line of the story."""

    who: Who
    kind: Kind
    text: str
    good: bool | None = None
    """Of an answer: whether it lets somebody go on, where it does one or the other."""


Tell: TypeAlias = Callable[[StoryLine], object]


class StoryBroken(Exception):  # noqa: N818 - the story, not the program, has gone wrong
    """Something in the story did not end as it always does."""
