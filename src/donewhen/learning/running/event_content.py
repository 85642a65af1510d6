"""The typed content of run events: one struct for each kind of event, decoded once when an event is read or written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.judging.guidance import GuidanceChange, RuleMeta
from donewhen.learning.reflection.hypotheses import PooledHypothesis


class EventContent(msgspec.Struct, frozen=True, kw_only=True):
    """What an event is about."""


class StartingGuidance(msgspec.Struct, frozen=True):
    """The guidance with which a run started."""

    experiences: dict[str, str]
    step: int
    updated_at: str
    metadata: dict[str, RuleMeta] = {}


class SplitSummary(msgspec.Struct, frozen=True):
    """The sizes of the splits, and the hashes of their tickets."""

    hashes: dict[str, str] = {}
    sizes: dict[str, int] = {}


class RunStarted(EventContent, frozen=True, kw_only=True):
    """The manifest of a run. What is only shown is left to the raw data."""

    mission: str
    guidance: StartingGuidance
    hypotheses: list[PooledHypothesis] = []
    splits: SplitSummary = SplitSummary()


class TestEvaluated(EventContent, frozen=True, kw_only=True):
    """Tickets of the test split were judged."""

    __test__ = False

    when: str
    rows: list[list[Any]]


class GuidanceAssessed(EventContent, frozen=True, kw_only=True):
    """The validation tickets under the guidance before and after the run: key, label, both verdicts and the score."""

    rows: list[list[Any]]


class EpochStarted(EventContent, frozen=True, kw_only=True):
    """An epoch started under a guidance step."""

    epoch: int
    step: int


class VoteCast(msgspec.Struct, frozen=True):
    """One answer of the judge."""

    vote: str


class RolledTicket(msgspec.Struct, frozen=True):
    """The verdict on a training ticket."""

    ticket_key: str
    label: Binary
    verdict: Binary | None
    label_match: bool | None
    vote_strength: float
    answers: list[VoteCast]


class TicketsRolled(EventContent, frozen=True, kw_only=True):
    """A part of the training tickets was judged."""

    rows: list[RolledTicket]
    epoch: int
    cut: bool = False


class CandidatesSelected(EventContent, frozen=True, kw_only=True):
    """The tickets to reflect on were selected."""

    candidates: list[dict[str, Any]]


class ReflectionAnswered(EventContent, frozen=True, kw_only=True):
    """The reflection model answered."""

    reflection_id: str
    unusable: dict[str, Any] | None
    rejections: list[dict[str, Any]]


class CasesDecided(ReflectionAnswered, frozen=True, kw_only=True):
    """The decision pass answered: which cases can't be learned from."""

    no_evidence: list[str]
    analysis: str


class ProposedHypothesis(msgspec.Struct, frozen=True):
    """A rule that might be true."""

    text: str
    falsifier: str
    evidence: tuple[str, ...]
    dimension: str


class ChangesProposed(ReflectionAnswered, frozen=True, kw_only=True):
    """The ops pass answered: which changes and hypotheses it proposes."""

    operations: list[GuidanceChange]
    hypotheses: list[ProposedHypothesis]
    covered: list[str]
    answer: str = ""
    """Identifies the question and its answer, so that support from a repeated answer is counted once."""


class CasesClosed(EventContent, frozen=True, kw_only=True):
    """What became of the cases of a reflection."""

    covered: list[str]


class HypothesisChanged(EventContent, frozen=True, kw_only=True):
    """A hypothesis has new support (``supported``) or was decided on (``fated``)."""

    hypothesis: PooledHypothesis


class ChangeTried(EventContent, frozen=True, kw_only=True):
    """A change was tried on tickets, and accepted or not."""

    accepted: bool
    before: str
    after: str
    reason: str
    tickets: int


class GuidanceChanged(EventContent, frozen=True, kw_only=True):
    """A change was applied to the guidance."""

    change: GuidanceChange
    hash: str
    key: str
    step: int


class QueuedTicket(msgspec.Struct, frozen=True):
    """A ticket that people should look at."""

    reason_code: str


class TicketsQueued(EventContent, frozen=True, kw_only=True):
    """Tickets were put into the queue for people."""

    rows: list[QueuedTicket]


class CreditRow(msgspec.Struct, frozen=True):
    """The tickets that a rule got right, and those that it got wrong."""

    hits: list[str]
    misses: list[str]


class RulesCredited(EventContent, frozen=True, kw_only=True):
    """The credit of the rules was measured."""

    rules: dict[str, CreditRow]
    tickets: int


class EpochEnded(EventContent, frozen=True, kw_only=True):
    """An epoch ended."""

    epoch: int
    train_accuracy: float | None = None
    validation_before: float | None = None
    validation_after: float | None = None


class BudgetHit(EventContent, frozen=True, kw_only=True):
    """A budget was used up."""

    limit: str
    allowed: float


class RunFinished(EventContent, frozen=True, kw_only=True):
    """The run ended."""

    status: Literal["running", "finished", "budget_exhausted", "no_usable_reflection"]
    step: int | None = None
    hash: str = ""


CONTENTS: Mapping[str, type[EventContent]] = {
    "run_started": RunStarted,
    "evaluated": TestEvaluated,
    "epoch_started": EpochStarted,
    "rolled": TicketsRolled,
    "selected": CandidatesSelected,
    "decided": CasesDecided,
    "proposed": ChangesProposed,
    "closed": CasesClosed,
    "supported": HypothesisChanged,
    "trialled": ChangeTried,
    "guidance_changed": GuidanceChanged,
    "fated": HypothesisChanged,
    "queued": TicketsQueued,
    "credited": RulesCredited,
    "epoch_ended": EpochEnded,
    "assessed": GuidanceAssessed,
    "budget_hit": BudgetHit,
    "run_finished": RunFinished,
}
"""The struct of each kind of event."""


def decode_content(kind: str, data: Mapping[str, Any]) -> EventContent:
    """The typed content of an event. Raise msgspec.ValidationError if a field is missing or has the wrong type."""
    return msgspec.convert(data, CONTENTS[kind])
