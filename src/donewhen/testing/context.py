"""Builds contexts for tests of checkers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from donewhen.filesystem import InMemoryFilesystem
from donewhen.protocols import TaskCompletionContext
from donewhen.runtime import Session

if TYPE_CHECKING:
    from donewhen.protocols import ProviderAdapter, StopReason


def make_context(
    *state: object,
    files: Mapping[str, str | bytes] | None = None,
    output: Any = None,
    adapter: ProviderAdapter | None = None,
    stop_reason: StopReason = "end_turn",
) -> TaskCompletionContext:
    """Return a context with ``state`` in its session (each value in the slice of its type) and these ``files``."""
    session = Session()
    for value in state:
        session[type(value)].append(value)
    return TaskCompletionContext(
        session=session,
        tentative_output=output,
        filesystem=None if files is None else InMemoryFilesystem(files),
        adapter=adapter,
        stop_reason=stop_reason,
    )
