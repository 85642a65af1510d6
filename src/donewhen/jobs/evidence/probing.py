"""The wish to probe tests that have passed. Callers that have to be quick, such as hooks, never have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Probing:
    """Tests are probed after they have passed; ``on_progress`` gets a line about what is done now."""

    on_progress: Callable[[str], None] = lambda _: None
