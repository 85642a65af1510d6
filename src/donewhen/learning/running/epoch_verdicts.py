"""The verdicts of an epoch that reflection needs, kept on disk."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, Self

from donewhen.foundation.disk_dict import DiskDict
from donewhen.judging.verdict import Verdict
from donewhen.learning.reflection.eligibility import Signal, gradient_candidates

_SAMPLE_SIZE = 5000
_CACHED_ROWS = 2000


class EpochVerdicts:
    """The verdicts of one epoch: those of the gradient candidates, and a sample of the others."""

    def __init__(self, keys: Sequence[str], seed: int) -> None:
        self.keys = keys
        self.studied = _sample(keys, seed)
        """The sample of tickets that a model may study before its first call, sorted by key."""
        self.candidates: dict[str, tuple[Signal, ...]] = {}
        """The gradient candidates with their signals."""
        self.count = 0
        self._sampled = frozenset(self.studied)
        self._rows = DiskDict(_CACHED_ROWS)

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add verdicts from rows of a ``rolled`` event."""
        verdicts = [Verdict.from_dict(row)._replace(answers=()) for row in rows]
        self.count += len(verdicts)
        self.candidates |= {candidate.ticket_key: candidate.signals for candidate in gradient_candidates(verdicts)}
        for verdict in verdicts:
            if verdict.ticket_key in self.candidates or verdict.ticket_key in self._sampled:
                self._rows[verdict.ticket_key] = json.dumps(verdict.as_dict())

    def __getitem__(self, key: str) -> Verdict:
        row = self._rows.get(key)
        if row is None:
            raise KeyError(key)
        return Verdict.from_dict(json.loads(row))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()


def _sample(keys: Sequence[str], seed: int) -> tuple[str, ...]:
    ordered = sorted(keys)
    return tuple(ordered if len(ordered) <= _SAMPLE_SIZE else sorted(random.Random(seed).sample(ordered, _SAMPLE_SIZE)))
