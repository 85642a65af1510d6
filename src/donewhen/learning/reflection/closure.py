"""Closure: every learnable ticket is covered, retried, or recorded as exhausted; none is dropped silently."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class ClosureResult(NamedTuple):
    """The tickets of one question, by what happens to them next."""

    covered: tuple[str, ...]
    retry: tuple[str, ...]
    exhausted: tuple[str, ...]


def close_batch(
    asked: Sequence[str], covered: Collection[str], attempts: Mapping[str, int], budget: int
) -> ClosureResult:
    """Classify the tickets of a question. ``attempts`` counts the questions about each, including this one."""
    uncovered = [key for key in asked if key not in covered]
    return ClosureResult(
        tuple(key for key in asked if key in covered),
        tuple(key for key in uncovered if attempts[key] <= budget),
        tuple(key for key in uncovered if attempts[key] > budget),
    )


def retry_batch_size(size: int, attempt: int) -> int:
    """The batch size at the nth attempt: halved each time."""
    return max(1, size >> attempt)


def split_batches(keys: Sequence[str], size: int) -> tuple[tuple[str, ...], ...]:
    """Split keys into batches of at most ``size``."""
    return tuple(tuple(keys[start : start + size]) for start in range(0, len(keys), size))


def mix_labels(passes: Sequence[str], fails: Sequence[str]) -> tuple[str, ...]:
    """Interleave both labels in proportion, so that every batch has both."""
    total = len(passes) + len(fails)
    ranked = [((rank + 0.5) * total / len(keys), key) for keys in (passes, fails) for rank, key in enumerate(keys)]
    return tuple(key for _, key in sorted(ranked))
