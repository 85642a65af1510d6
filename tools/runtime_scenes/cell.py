"""The result of one scene with one runtime."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Result = Literal["held", "recorded", "held, recorded", "can't"]


@dataclass(frozen=True)
class Cell:
    """The result, and why, if it is not the whole story."""

    result: Result
    note: str = ""
