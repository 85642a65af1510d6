"""Nobody is silently dropped: every learnable ticket is covered, or asked about again, or put on record as given up."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple


class ClosureResult(NamedTuple):
    """What becomes of the tickets of one question."""

    covered: tuple[str, ...]
    retry: tuple[str, ...]
    exhausted: tuple[str, ...]


def close_batch(
    asked: Sequence[str], covered: Collection[str], attempts: Mapping[str, int], budget: int
) -> ClosureResult:
    """Divide the tickets of a question. ``attempts`` are the questions that each was part of, this one included."""
    left = [one for one in asked if one not in covered]
    return ClosureResult(
        tuple(one for one in asked if one in covered),
        tuple(one for one in left if attempts[one] <= budget),
        tuple(one for one in left if attempts[one] > budget),
    )


def retry_batch_size(size: int, attempt: int) -> int:
    """How many tickets a question has at the nth try."""
    return max(1, size >> attempt)


def split_batches(keys: Sequence[str], size: int) -> tuple[tuple[str, ...], ...]:
    """Keys in groups of at most ``size``."""
    return tuple(tuple(keys[at : at + size]) for at in range(0, len(keys), size))


def mix_labels(passes: Sequence[str], fails: Sequence[str]) -> tuple[str, ...]:
    """Both labels in turn, in proportion, so that every batch has something to compare."""
    total = len(passes) + len(fails)
    placed = [((at + 0.5) * total / len(kind), key) for kind in (passes, fails) for at, key in enumerate(kind)]
    return tuple(key for _, key in sorted(placed))
