"""What came of judging the training tickets, as far as reflection needs it: not all of it, and not all in memory."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from typing import Any, Self

from donewhen.foundation.disk_dict import DiskDict
from donewhen.judging.verdict import Verdict
from donewhen.learning.reflection.eligibility import Signal, gradient_candidates

_STUDIED = 5000
_AT_HAND = 2000


class EpochVerdicts:
    """The verdicts of one epoch. Those that can teach something are found again, and a sample of all the others."""

    def __init__(self, keys: Sequence[str], seed: int) -> None:
        self.keys = keys
        self.studied = _sample(keys, seed)
        """The tickets that a reflector is shown before it is asked, in the order of their keys."""
        self.candidates: dict[str, tuple[Signal, ...]] = {}
        """The tickets that can teach something, with why."""
        self.count = 0
        self._found_again = frozenset(self.studied)
        self._rows = DiskDict(_AT_HAND)

    def take(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take in some verdicts, as they are on record."""
        verdicts = [Verdict.from_dict(row)._replace(answers=()) for row in rows]
        self.count += len(verdicts)
        self.candidates |= {candidate.ticket_key: candidate.signals for candidate in gradient_candidates(verdicts)}
        for verdict in verdicts:
            if verdict.ticket_key in self.candidates or verdict.ticket_key in self._found_again:
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
    return tuple(ordered if len(ordered) <= _STUDIED else sorted(random.Random(seed).sample(ordered, _STUDIED)))
