"""The lines of the demo: who does or says what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

Who = Literal["story", "person", "agent", "donewhen"]
Kind = Literal["chapter", "cheat", "note", "does", "says", "command", "answer", "types", "presses"]


class StoryLine(NamedTuple):
    """One line of the demo."""

    who: Who
    kind: Kind
    text: str
    good: bool | None = None
    """For an answer: whether it is a pass or a refusal; None if it is neither."""


Tell: TypeAlias = Callable[[StoryLine], object]


class StoryBroken(Exception):  # noqa: N818 - not an error of the program
    """A step of the demo had an unexpected result."""
