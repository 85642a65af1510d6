"""What a report shows: a run, or an audit, in numbers and lists. The views are made from this and from nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec

from donewhen.learning.measuring.metrics import Estimate, McNemar, Measures, PairedResult
from donewhen.learning.reflection.unlearnable import ReasonCode
from donewhen.learning.running.run_folders import REPORT
from donewhen.models.roles import Binary

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
    "trial_off",
    "idle_rules",
    "label_noise",
    "policy",
    "unpinned_model",
]


class _Record(msgspec.Struct, frozen=True, kw_only=True):
    pass


class PartSizes(_Record, frozen=True, kw_only=True):
    """One part of the tickets."""

    passes: int = 0
    fails: int = 0
    clusters: int = 0
    hash: str = ""

    @property
    def tickets(self) -> int:
        return self.passes + self.fails


class SplitSizes(_Record, frozen=True, kw_only=True):
    """How the tickets were divided. An audit has all of them in ``test``: nothing is learned from any."""

    train: PartSizes = PartSizes()
    validation: PartSizes = PartSizes()
    test: PartSizes = PartSizes()
    test_openings: int = 1
    """How many runs have looked at this test split so far, with this one."""
    test_learned_from: int = 0
    """How many test tickets are evidence of the rules that are measured: by an earlier run, under another split."""

    @property
    def tickets(self) -> int:
        return self.train.tickets + self.validation.tickets + self.test.tickets


class Prevalence(_Record, frozen=True, kw_only=True):
    """How many pass, on tickets that the judge's errors were not measured on."""

    tickets: int
    judged_pass: int
    corrected: Estimate | None = None
    """By Rogan and Gladen, from TPR and TNR on the test split; None where the judge is no better than chance."""


class Baseline(_Record, frozen=True, kw_only=True):
    """What is reached without a judge, on the same test tickets."""

    name: BaselineName
    measures: Measures
    against: McNemar | None = None
    """From the baseline to the judge as it is now: ``better`` are tickets that only the judge has right."""


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
    """A rule as it stands at the end."""

    key: str
    text: str
    evidence: tuple[str, ...] = ()
    rationale: str = ""
    hits: int = 0
    misses: int = 0
    confidence: float | None = None
    measured_on: int = 0
    """On so many tickets it was left out; 0 where nobody looked."""

    @property
    def scaffold(self) -> bool:
        return self.key.startswith("S")

    @property
    def effect(self) -> int | None:
        """How many tickets more are right with the rule than without it."""
        return self.hits - self.misses if self.measured_on else None


class RemovedRow(_Record, frozen=True, kw_only=True):
    """A rule that was there and went."""

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
    """What is missing, or why it was refused."""
    became: str = ""
    """The key of the rule that it was promoted to."""


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
    """What was rejected for one reason."""

    reason: str
    count: int
    examples: tuple[str, ...] = ()


class QueueRow(_Record, frozen=True, kw_only=True):
    """A row of the stop-gradient queue: nothing is learned from this ticket, and here is why."""

    ticket_key: str
    reason_code: ReasonCode
    label: Binary
    verdict: Binary | None = None
    note: str = ""
    epoch: int = 0
    right_since: bool = False
    """Whether the judge has it right by now, through what it learned from others."""


class BudgetRow(_Record, frozen=True, kw_only=True):
    """What was allowed; None is no limit."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    seconds: float | None = None


class Cost(_Record, frozen=True, kw_only=True):
    """What was spent."""

    rollout_calls: int = 0
    reflection_calls: int = 0
    reused: int = 0
    """Answers that were known already, and cost nothing."""
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


class ReportNote(_Record, frozen=True, kw_only=True):
    """An honest remark. A serious one says that the judge, or the report, is not to be relied on yet."""

    code: NoteCode
    text: str
    serious: bool = False


class LearningReport(_Record, frozen=True, kw_only=True):
    """A run, or an audit."""

    schema: str = SCHEMA
    mission: str
    run: str
    model: str
    status: Status
    finished_at: str
    seed: int
    splits: SplitSizes
    before: Measures
    """On the test split, by the guidance that the run began with."""
    after: Measures | None = None
    """The same tickets by the guidance at the end; None in an audit, or where it did not come to that."""
    comparison: McNemar | None = None
    difference: PairedResult | None = None
    guidance_before: int = 0
    guidance_after: int | None = None
    baselines: tuple[Baseline, ...] = ()
    prevalence: Prevalence | None = None
    trial_off: bool = False
    epochs: tuple[EpochRow, ...] = ()
    rules: tuple[RuleRow, ...] = ()
    removed: tuple[RemovedRow, ...] = ()
    hypotheses: tuple[HypothesisRow, ...] = ()
    trials: tuple[TrialRow, ...] = ()
    dropped: tuple[DroppedRow, ...] = ()
    queue: tuple[QueueRow, ...] = ()
    votes: int = 0
    """Answers that were asked for on tickets, well formed or not."""
    malformed: Mapping[str, int] = {}
    """How many answers were no vote, by what was wrong with them."""
    cost: Cost = Cost()
    notes: tuple[ReportNote, ...] = ()
    """As ``noted`` puts them there, for those who read the file."""

    @property
    def now(self) -> Measures:
        """The judge as it is now."""
        return self.before if self.after is None else self.after

    def baseline(self, name: BaselineName) -> Baseline | None:
        return next((one for one in self.baselines if one.name == name), None)

    def queued(self, reason: ReasonCode) -> tuple[QueueRow, ...]:
        return tuple(one for one in self.queue if one.reason_code == reason)


def report_to_json(report: LearningReport) -> bytes:
    """The report as a file."""
    return msgspec.json.format(msgspec.json.encode(report), indent=1)


def report_from_json(data: bytes | str) -> LearningReport:
    """Read a report; msgspec.DecodeError where it is none."""
    return msgspec.json.decode(data, type=LearningReport)


def read_report(folder: Path) -> LearningReport | None:
    """The report of a run; None where there is none yet, or none that can be read."""
    try:
        return report_from_json((folder / REPORT).read_bytes())
    except (OSError, msgspec.DecodeError):
        return None
