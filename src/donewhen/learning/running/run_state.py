"""The state of a run, folded from its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from donewhen.judging.guidance import (
    Guidance,
    GuidanceChange,
    GuidanceError,
    apply_change,
    record_credit,
    seed_guidance,
)
from donewhen.learning.reflection.hypotheses import PooledHypothesis, settle_adopted
from donewhen.learning.running.event_content import (
    BudgetHit,
    CandidatesSelected,
    CasesClosed,
    ChangeTried,
    EpochEnded,
    EpochStarted,
    GuidanceAssessed,
    GuidanceChanged,
    HypothesisChanged,
    QueuedTicket,
    ReflectionAnswered,
    RolledTicket,
    RulesCredited,
    RunFinished,
    RunStarted,
    TestEvaluated,
    TicketsQueued,
    TicketsRolled,
)
from donewhen.learning.running.events import EventType, RunError, RunEvent

_IN_EPOCH: frozenset[EventType] = frozenset(
    (
        *("rolled", "selected", "decided", "proposed", "closed", "supported", "fated", "trialled"),
        *("guidance_changed", "queued", "epoch_ended"),
    )
)

RunStatus = Literal["running", "finished", "budget_exhausted", "no_usable_reflection"]


@dataclass
class EpochState:
    """The state of one epoch."""

    number: int
    step: int = 0
    """The guidance step under which its tickets are judged."""
    rolled: int = 0
    wrong: int = 0
    passes: int = 0
    failures: int = 0
    selected: bool = False
    """Whether all tickets were judged, so that the candidates are known."""
    candidates: int = 0
    covered: int = 0
    no_evidence: int = 0
    exhausted: int = 0
    changes: int = 0
    refused: int = 0
    promotions: int = 0
    reflection_calls: int = 0
    calls_before: int = 0
    ended: Mapping[str, Any] | None = None


@dataclass
class RunState:
    """The state of a run. Only ``apply`` changes it."""

    manifest: Mapping[str, Any] = field(default_factory=dict)
    guidance: Guidance = field(default_factory=lambda: Guidance("", 0, "", {"G0": ""}))
    epochs: list[EpochState] = field(default_factory=list)
    pool: dict[str, PooledHypothesis] = field(default_factory=dict)
    queue: list[dict[str, Any]] = field(default_factory=list)
    rejections: list[dict[str, Any]] = field(default_factory=list)
    trials: list[dict[str, Any]] = field(default_factory=list)
    refused: dict[tuple[str, str], str] = field(default_factory=dict)
    """Rejected changes by the hashes before and after, with the reason."""
    changes: list[dict[str, Any]] = field(default_factory=list)
    evaluations: dict[str, list[list[Any]]] = field(default_factory=dict)
    assessed: list[list[Any]] = field(default_factory=list)
    """The validation tickets: key, label, the verdicts before and after the run, and the score after it."""
    credited_on: int = 0
    """Number of tickets on which the credit of rules was last measured."""
    usable_answers: int = 0
    unusable_answers: int = 0
    malformed: Counter[str] = field(default_factory=Counter)
    votes: int = 0
    mistakes: dict[str, set[int]] = field(default_factory=dict)
    """Tickets that all votes contradict, with the epochs in which they did."""
    right: set[str] = field(default_factory=set)
    """Tickets whose newest verdict equals their label."""
    status: RunStatus = "running"
    spent: Mapping[str, float] = field(default_factory=dict)
    finished_at: str = ""

    @property
    def epoch(self) -> EpochState:
        return self.epochs[-1]

    def apply(self, event: RunEvent) -> None:
        """Apply an event; raise RunError if it can't follow the earlier ones."""
        if not self.manifest and event.type != "run_started":
            raise RunError(f"Event {event.number} ({event.type!r}) is invalid: the run has not started.")
        if not self.epochs and event.type in _IN_EPOCH:
            raise RunError(f"Event {event.number} ({event.type!r}) is invalid: no epoch has started.")
        try:
            self._apply(event)
        except (GuidanceError, RunError) as error:
            reason = error.message.removesuffix(".")
            raise RunError(f"Event {event.number} ({event.type!r}) is invalid: {reason}.") from error

    def _apply(self, event: RunEvent) -> None:
        self.spent = event.spent
        match event.content:
            case RunStarted() as start:
                self.manifest = event.data
                self.guidance = _starting_guidance(start)
                self.pool = _pool(start)
            case TestEvaluated() as evaluated:
                self.evaluations.setdefault(evaluated.when, []).extend(evaluated.rows)
            case EpochStarted() as epoch:
                self.epochs.append(EpochState(epoch.epoch, epoch.step, calls_before=int(event.spent.get("calls", 0))))
            case TicketsRolled() as rolled:
                self._apply_rolled(rolled.rows)
            case CandidatesSelected() as selected:
                self.epoch.selected = True
                self.epoch.candidates = len(selected.candidates)
            case ReflectionAnswered() as answer:
                self._apply_reflection(answer)
            case CasesClosed() as closed:
                self.epoch.covered += len(closed.covered)
            case HypothesisChanged(hypothesis=hypothesis):
                self.pool[hypothesis.signature] = settle_adopted(hypothesis, self.guidance.rules)
                self.epoch.promotions += event.type == "fated" and hypothesis.fate == "promoted"
            case ChangeTried() as trial:
                self.trials.append(dict(event.data))
                if not trial.accepted:
                    self.epoch.refused += 1
                    self.refused[trial.before, trial.after] = trial.reason
            case GuidanceChanged() as changed:
                self._apply_change(changed, event)
            case TicketsQueued() as queued:
                self._apply_queued(queued.rows, event.data["rows"])
            case RulesCredited() as credited:
                counts = {key: (len(row.hits), len(row.misses)) for key, row in credited.rules.items()}
                self.guidance = record_credit(self.guidance, counts)
                self.credited_on = credited.tickets
            case GuidanceAssessed() as assessed:
                self.assessed = assessed.rows
            case EpochEnded():
                self.epoch.ended = event.data
            case BudgetHit() as hit:
                self.status = "running" if hit.limit.endswith("_per_epoch") else "budget_exhausted"
            case RunFinished() as finished:
                self.status = finished.status
                self.finished_at = event.at
            case _:
                raise AssertionError(f"{event.type!r} is not handled.")

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """Measured hits and misses of the current rules."""
        known = self.guidance.metadata
        return {key: (known[key].hit_count, known[key].miss_count) for key in self.guidance.learned if key in known}

    @property
    def applied(self) -> tuple[GuidanceChange, ...]:
        """The changes of the guidance, in order."""
        return tuple(msgspec.convert(change["change"], GuidanceChange) for change in self.changes)

    def _apply_rolled(self, rows: Iterable[RolledTicket]) -> None:
        for row in rows:
            self.epoch.rolled += 1
            self.epoch.wrong += row.verdict != row.label
            self.epoch.passes += row.verdict == "pass"
            self.epoch.failures += row.verdict is None
            self.votes += len(row.answers)
            self.malformed.update(answer.vote for answer in row.answers if answer.vote not in ("pass", "fail"))
            (self.right.add if row.label_match else self.right.discard)(row.ticket_key)
            if row.vote_strength == 1.0 and row.label_match is False and row.verdict is not None:
                self.mistakes.setdefault(row.ticket_key, set()).add(self.epoch.number)
            else:
                # The judge got it right or was divided at least once, so the label is plausible.
                self.mistakes.pop(row.ticket_key, None)

    def _apply_reflection(self, answer: ReflectionAnswered) -> None:
        self.epoch.reflection_calls += 1
        self.unusable_answers += answer.unusable is not None
        self.usable_answers += answer.unusable is None
        origin = {"reflection_id": answer.reflection_id, "epoch": self.epoch.number}
        if answer.unusable is not None:
            self.rejections.append({"what": "answer", **answer.unusable, **origin})
        self.rejections += [{**rejection, **origin} for rejection in answer.rejections]

    def _apply_change(self, changed: GuidanceChanged, event: RunEvent) -> None:
        before = self.guidance
        self.guidance = apply_change(before, changed.change, event.at)
        if self.guidance.hash != changed.hash:
            raise RunError("The replayed guidance does not match the hash in the event.")
        removed = {key: text for key, text in before.learned.items() if key not in self.guidance.experiences}
        self.changes.append({**event.data, "epoch": self.epoch.number, "gone": removed})
        self.epoch.changes += 1
        rules = self.guidance.rules
        self.pool = {signature: settle_adopted(hypothesis, rules) for signature, hypothesis in self.pool.items()}

    def _apply_queued(self, rows: Iterable[QueuedTicket], as_written: Iterable[dict[str, Any]]) -> None:
        self.queue += as_written
        for row in rows:
            self.epoch.no_evidence += row.reason_code == "reflection_no_evidence_after_gt"
            self.epoch.exhausted += row.reason_code == "budget_exhausted"


def pool_at_start(manifest: Mapping[str, Any]) -> dict[str, PooledHypothesis]:
    """The hypotheses that a run started with."""
    return _pool(msgspec.convert(manifest, RunStarted))


def _pool(start: RunStarted) -> dict[str, PooledHypothesis]:
    return {hypothesis.signature: hypothesis for hypothesis in start.hypotheses}


def initial_guidance_of(manifest: Mapping[str, Any]) -> Guidance:
    """The guidance that a run started with."""
    return _starting_guidance(msgspec.convert(manifest, RunStarted))


def _starting_guidance(start: RunStarted) -> Guidance:
    first = start.guidance
    seed = seed_guidance(start.mission, first.experiences, first.updated_at)
    return msgspec.structs.replace(seed, step=first.step, metadata=first.metadata)


def fold_events(events: Iterable[RunEvent]) -> RunState:
    """The state after the events."""
    state = RunState()
    for event in events:
        state.apply(event)
    return state
