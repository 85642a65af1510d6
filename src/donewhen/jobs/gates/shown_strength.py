"""How the strength of evidence is shown and recorded: the same words everywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.requirements import VERIFICATION
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.ledger.entry_content import RecordedStrength
from donewhen.jobs.ledger.evidence_levels import LEVEL_WORDS

_MAX_TEXT = 600


def strength_data(status: EvidenceStatus) -> dict[str, Any]:
    """The strength of a status, and what is needed, as JSON data; null if there is nothing to weigh, or to reach."""
    strength = status.strength
    shown = None
    if strength is not None:
        shown = {
            "level": strength.level,
            "reasons": [reason._asdict() for reason in strength.reasons],
            "better": [*strength.better],
            "accepted_by": status.accepted_by or None,
        }
    return {"strength": shown, "needs": status.needed}


def strength_line(status: EvidenceStatus) -> str:
    """The level in words, and what is needed, if anything is; empty if there is nothing to weigh."""
    if status.strength is None:
        return ""
    return _line(status.strength.word, status.needed, status.accepted_by)


def strength_sentences(status: EvidenceStatus) -> tuple[str, ...]:
    """Why the evidence is as strong as it is: what limits it first."""
    return () if status.strength is None else status.strength.sentences


def recorded_strength(statuses: Iterable[EvidenceStatus]) -> dict[str, Any]:
    """What a completion records about each criterion, as plain values."""
    return {
        status.requirement.name: msgspec.to_builtins(
            RecordedStrength(
                level=status.strength.level,
                reasons=[one_line(sentence, _MAX_TEXT) for sentence in status.strength.sentences],
                needed=status.needed,
                accepted_by=status.accepted_by,
            )
        )
        for status in statuses
        if status.strength is not None and status.requirement.name != VERIFICATION
    }


def recorded_lines(recorded: Mapping[str, RecordedStrength]) -> Iterator[str]:
    """A line for each criterion of a completion."""
    for name, strength in recorded.items():
        why = f": {strength.reasons[0]}" if strength.reasons and strength.level != "strong" else ""
        line = _line(LEVEL_WORDS[strength.level], strength.needed, strength.accepted_by)
        yield one_line(f"{name}: {line}{why}", _MAX_TEXT)


def _line(word: str, needed: str | None, accepted_by: str) -> str:
    accepted = f", accepted by {one_line(accepted_by, 80)}" if accepted_by else ""
    return f"{word} evidence{f' ({needed} is needed{accepted})' if needed else ''}"
