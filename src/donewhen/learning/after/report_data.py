"""The data of a report on a run or an audit. All views are rendered from this."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import RUN_REPORT
from donewhen.learning.measuring.metrics import Estimate, McNemar, Measures, PairedResult
from donewhen.learning.reflection.unlearnable import ReasonCode
from donewhen.learning.running.run_folders import REPORT

SCHEMA = "donewhen/learning-report/v1"

Status = Literal["finished", "budget_exhausted", "no_usable_reflection", "interrupted", "audit"]
BaselineName = Literal["majority", "word_counts"]
HypothesisState = Literal["waiting", "promoted", "refused"]
NoteCode = Literal[
    "stopped_early",
    "no_usable_reflection",
    "nothing_held_out",
    "few_labels",
    "few_held_out",
    "unbalanced",
    "one_label",
    "clustered",
    "opened_again",
    "learned_from",
    "invalid_verdicts",
    "malformed_votes",
    "tpr_low",
    "tnr_low",
    "below_majority",
    "below_word_counts",
    "got_worse",
    "more_false_releases",
    "not_significant",
    "nothing_learned",
    "not_adopted",
    "trial_off",
    "idle_rules",
    "label_noise",
    "policy",
    "unpinned_model",
    "unread_scaffold",
    "unread_guidance",
]


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    pass


class PartSizes(_Record, frozen=True, kw_only=True):
    """The size of one split."""

    passes: int = 0
    fails: int = 0
    clusters: int = 0
    hash: str = ""

    @property
    def tickets(self) -> int:
        return self.passes + self.fails


class SplitSizes(_Record, frozen=True, kw_only=True):
    """The sizes of the splits. An audit has all tickets in ``test``, because it learns from none."""

    train: PartSizes = PartSizes()
    validation: PartSizes = PartSizes()
    test: PartSizes = PartSizes()
    test_openings: int = 1
    """How many runs have evaluated this test split, including this run."""
    test_learned_from: int = 0
    """How many test tickets are evidence of the initial rules, from an earlier run with another split."""

    @property
    def tickets(self) -> int:
        return self.train.tickets + self.validation.tickets + self.test.tickets


class Prevalence(_Record, frozen=True, kw_only=True):
    """The share of good work among the training tickets, which the judge's error rates were not measured on."""

    tickets: int
    judged_pass: int
    corrected: Estimate | None = None
    """Rogan-Gladen estimate from TPR and TNR on the test split; None if the judge is no better than chance."""


class Baseline(_Record, frozen=True, kw_only=True):
    """A baseline without a judge, on the same test tickets."""

    name: BaselineName
    measures: Measures
    against: McNemar | None = None
    """Compares the baseline with the current judge: ``better`` counts tickets that only the judge has right."""


class EpochRow(_Record, frozen=True, kw_only=True):
    """One pass over the training tickets."""

    number: int
    train_accuracy: float | None = None
    validation_before: float | None = None
    validation_after: float | None = None
    accepted: int = 0
    refused: int = 0
    calls: int = 0


class RuleRow(_Record, frozen=True, kw_only=True):
    """A rule at the end of the run."""

    key: str
    text: str
    evidence: tuple[str, ...] = ()
    rationale: str = ""
    hits: int = 0
    misses: int = 0
    confidence: float | None = None
    measured_on: int = 0
    """Number of tickets on which the rule's effect was measured; 0 if it was not."""

    @property
    def scaffold(self) -> bool:
        return self.key.startswith("S")

    @property
    def effect(self) -> int | None:
        """How many more tickets are right with the rule than without it."""
        return self.hits - self.misses if self.measured_on else None


class RemovedRow(_Record, frozen=True, kw_only=True):
    """A rule that was removed during the run."""

    key: str
    text: str
    why: str
    epoch: int = 0


class HypothesisRow(_Record, frozen=True, kw_only=True):
    """A hypothesis of the pool."""

    text: str
    falsifier: str
    state: HypothesisState
    cycles: int
    evidence: tuple[str, ...]
    dimension: str = ""
    why: str = ""
    """The missing support, or why it was refused."""
    became: str = ""
    """The key of the promoted rule."""


class TrialRow(_Record, frozen=True, kw_only=True):
    """A change that was tried on unseen tickets."""

    change: str
    text: str
    accepted: bool
    tickets: int
    errors_before: int = 0
    errors_after: int = 0
    false_releases_before: int = 0
    false_releases_after: int = 0
    share_lower: float | None = None
    why: str = ""
    epoch: int = 0


class DroppedRow(_Record, frozen=True, kw_only=True):
    """The proposals that were rejected for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...] = ()


class QueueRow(_Record, frozen=True, kw_only=True):
    """A row of the stop-gradient queue: a ticket that nothing is learned from, with the reason."""

    ticket_key: str
    reason_code: ReasonCode
    label: Binary
    verdict: Binary | None = None
    note: str = ""
    epoch: int = 0
    right_since: bool = False
    """Whether the judge has the ticket right by now, because of rules from other tickets."""


class BudgetRow(_Record, frozen=True, kw_only=True):
    """The limits of the budget; None means no limit."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class Cost(_Record, frozen=True, kw_only=True):
    """What was spent."""

    rollout_calls: int = 0
    reflection_calls: int = 0
    reused: int = 0
    """Cached answers, which are free."""
    errors: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0
    budget: BudgetRow = BudgetRow()

    @property
    def calls(self) -> int:
        return self.rollout_calls + self.reflection_calls

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class VerdictRow(_Record, frozen=True, kw_only=True):
    """The verdict on one ticket of an audit."""

    ticket_key: str
    label: Binary
    verdict: Binary | None = None
    score: float | None = None
    """The margin of the verdict, positive for pass; None if the model has none."""
    vote_strength: float = 0.0
    needs_manual_review: bool = False


class ReportNote(_Record, frozen=True, kw_only=True):
    """A remark on the report. A serious one means that the judge or the report is not reliable yet."""

    code: NoteCode
    text: str
    serious: bool = False


class LearningReport(_Record, frozen=True, kw_only=True):
    """The report on a run or an audit."""

    schema: str = SCHEMA
    mission: str
    run: str
    model: str
    status: Status
    finished_at: str
    seed: int
    splits: SplitSizes
    before: Measures
    """On the test split, with the initial guidance."""
    after: Measures | None = None
    """The same tickets with the final guidance; None in an audit, or if the run did not get that far."""
    comparison: McNemar | None = None
    difference: PairedResult | None = None
    guidance_before: int = 0
    guidance_after: int | None = None
    baselines: tuple[Baseline, ...] = ()
    prevalence: Prevalence | None = None
    not_adopted: str | None = None
    """Why the learned guidance was not adopted; None if it was, or if there was none."""
    trial_off: bool = False
    epochs: tuple[EpochRow, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    removed: tuple[RemovedRow, ...] = ()
    hypotheses: tuple[HypothesisRow, ...] = ()
    trials: tuple[TrialRow, ...] = ()
    dropped: tuple[DroppedRow, ...] = ()
    queue: tuple[QueueRow, ...] = ()
    votes: int = 0
    """Number of answers to tickets, malformed ones included."""
    malformed: Mapping[str, int] = {}
    """Number of malformed answers by kind."""
    cost: Cost = Cost()
    verdicts: tuple[VerdictRow, ...] = ()
    """The verdict on each ticket, in the file that an audit writes."""
    notes: tuple[ReportNote, ...] = ()
    """Added by ``with_notes``, for readers of the file."""

    @property
    def now(self) -> Measures:
        """The metrics of the current judge."""
        return self.before if self.after is None else self.after

    def baseline(self, name: BaselineName) -> Baseline | None:
        return next((baseline for baseline in self.baselines if baseline.name == name), None)

    def queued(self, reason: ReasonCode) -> tuple[QueueRow, ...]:
        return tuple(row for row in self.queue if row.reason_code == reason)


def report_to_json(report: LearningReport) -> bytes:
    """Encode a report as JSON."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1)


def report_from_json(data: bytes | str) -> LearningReport:
    """Decode a report; raise msgspec.DecodeError if it is invalid."""
    return msgspec.json.decode(data, type=LearningReport)


def read_report(folder: Path) -> LearningReport | None:
    """Read the report of a run; None if it is missing or unreadable."""
    try:
        return report_from_json(read_limited(folder / REPORT, RUN_REPORT))
    except (OSError, msgspec.DecodeError):
        return None
