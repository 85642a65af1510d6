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
    RuleMeta,
    apply_change,
    record_credit,
    seed_guidance,
)
from donewhen.learning.reflection.hypotheses import PooledHypothesis
from donewhen.learning.running.events import RunError, RunEvent

_INVALID = (LookupError, TypeError, ValueError, AttributeError)

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
        try:
            self._apply(event)
        except (*_INVALID, msgspec.ValidationError, GuidanceError, RunError) as error:
            reason = str(error).removesuffix(".")
            raise RunError(f"Event {event.number} ({event.type!r}) is invalid: {reason}.") from error

    def _apply(self, event: RunEvent) -> None:
        data = event.data
        self.spent = event.spent
        match event.type:
            case "run_started":
                self.manifest = data
                self.guidance = initial_guidance_of(data)
                self.pool = pool_at_start(data)
            case "evaluated":
                self.evaluations.setdefault(data["when"], []).extend(data["rows"])
            case "epoch_started":
                self.epochs.append(
                    EpochState(data["epoch"], data["step"], calls_before=int(event.spent.get("calls", 0)))
                )
            case "rolled":
                self._apply_rolled(data)
            case "selected":
                self.epoch.selected = True
                self.epoch.candidates = len(data["candidates"])
            case "decided" | "proposed":
                self._apply_reflection(data)
            case "closed":
                self.epoch.covered += len(data["covered"])
            case "supported":
                hypothesis = msgspec.convert(data["hypothesis"], PooledHypothesis)
                self.pool[hypothesis.signature] = hypothesis
            case "fated":
                hypothesis = msgspec.convert(data["hypothesis"], PooledHypothesis)
                self.pool[hypothesis.signature] = hypothesis
                self.epoch.promotions += hypothesis.fate == "promoted"
            case "trialled":
                self.trials.append(dict(data))
                if not data["accepted"]:
                    self.epoch.refused += 1
                    self.refused[data["before"], data["after"]] = data["reason"]
            case "guidance_changed":
                self._apply_change(data, event.at)
            case "queued":
                self._apply_queued(data)
            case "credited":
                counts = {key: (len(row["hits"]), len(row["misses"])) for key, row in data["rules"].items()}
                self.guidance = record_credit(self.guidance, counts)
                self.credited_on = data["tickets"]
            case "epoch_ended":
                self.epoch.ended = data
            case "budget_hit":
                self.status = "running" if data["limit"].endswith("_per_epoch") else "budget_exhausted"
            case "run_finished":
                self.status = data["status"]
                self.finished_at = event.at

    @property
    def counts(self) -> dict[str, tuple[int, int]]:
        """Measured hits and misses of the current rules."""
        known = self.guidance.metadata
        return {key: (known[key].hit_count, known[key].miss_count) for key in self.guidance.learned if key in known}

    @property
    def applied(self) -> tuple[GuidanceChange, ...]:
        """The changes of the guidance, in order."""
        return tuple(msgspec.convert(change["change"], GuidanceChange) for change in self.changes)

    def _apply_rolled(self, data: Mapping[str, Any]) -> None:
        for row in data["rows"]:
            self.epoch.rolled += 1
            self.epoch.wrong += row["verdict"] != row["label"]
            self.epoch.passes += row["verdict"] == "pass"
            self.epoch.failures += row["verdict"] is None
            self.votes += len(row["answers"])
            votes = [answer["vote"] for answer in row["answers"]]
            self.malformed.update(vote for vote in votes if vote not in ("pass", "fail"))
            (self.right.add if row["label_match"] else self.right.discard)(row["ticket_key"])
            unanimous = row["vote_strength"] == 1.0 and row["label_match"] is False and row["verdict"] is not None
            if unanimous:
                self.mistakes.setdefault(row["ticket_key"], set()).add(self.epoch.number)
            else:
                # The judge got it right or was divided at least once, so the label is plausible.
                self.mistakes.pop(row["ticket_key"], None)

    def _apply_reflection(self, data: Mapping[str, Any]) -> None:
        self.epoch.reflection_calls += 1
        unusable = data["unusable"] is not None
        self.unusable_answers += unusable
        self.usable_answers += not unusable
        origin = {"reflection_id": data["reflection_id"], "epoch": self.epoch.number}
        if unusable:
            self.rejections.append({"what": "answer", **data["unusable"], **origin})
        self.rejections += [{**rejection, **origin} for rejection in data["rejections"]]

    def _apply_change(self, data: Mapping[str, Any], at: str) -> None:
        before = self.guidance
        self.guidance = apply_change(before, msgspec.convert(data["change"], GuidanceChange), at)
        if self.guidance.hash != data["hash"]:
            raise RunError("The replayed guidance does not match the hash in the event.")
        removed = {key: text for key, text in before.learned.items() if key not in self.guidance.experiences}
        self.changes.append({**data, "epoch": self.epoch.number, "gone": removed})
        self.epoch.changes += 1

    def _apply_queued(self, data: Mapping[str, Any]) -> None:
        for row in data["rows"]:
            self.queue.append(row)
            self.epoch.no_evidence += row["reason_code"] == "reflection_no_evidence_after_gt"
            self.epoch.exhausted += row["reason_code"] == "budget_exhausted"


def initial_guidance_of(manifest: Mapping[str, Any]) -> Guidance:
    """The guidance that a run started with."""
    first = manifest["guidance"]
    metadata = {key: msgspec.convert(meta, RuleMeta) for key, meta in first["metadata"].items()}
    seed = seed_guidance(manifest["mission"], first["experiences"], first["updated_at"])
    return msgspec.structs.replace(seed, step=first["step"], metadata=metadata)


def pool_at_start(manifest: Mapping[str, Any]) -> dict[str, PooledHypothesis]:
    """The hypotheses that a run started with."""
    hypotheses = msgspec.convert(manifest.get("hypotheses", []), list[PooledHypothesis])
    return {hypothesis.signature: hypothesis for hypothesis in hypotheses}


def fold_events(events: Iterable[RunEvent]) -> RunState:
    """The state after the events."""
    state = RunState()
    for event in events:
        state.apply(event)
    return state
