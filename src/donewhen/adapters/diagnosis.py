"""The result of one check by `donewhen doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Health = Literal["ok", "note", "broken"]


@dataclass(frozen=True)
class Diagnosis:
    """What was checked, the result in one sentence, and the next step."""

    name: str
    health: Health
    detail: str
    next: str | None = None
