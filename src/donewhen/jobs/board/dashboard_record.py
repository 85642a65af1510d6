"""What the dashboard says of a job: from its plan, and from its chain. Whatever stands there is made harmless here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import msgspec

from donewhen.dashboard.data import (
    ChainPart,
    EventRow,
    GateReasonShown,
    GateShown,
    JobRow,
    PlanPart,
    ScorePoint,
    StatusChange,
)
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode, GateName
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import expected_fields

GATES: tuple[GateName, ...] = get_args(GateName)
_LONG = 300
_REASONS = 12
_KEPT = 200
"""So many scores and changes of status of a job are kept, the newest."""
_MOST_HOURS = 1e6
_RESTING = ("block", "ask", "dispute")
_SPENT = "The budget of iterations is spent."


class JobHome(msgspec.Struct, frozen=True):
    """Where a job belongs."""

    path: str
    workstream: str = ""
    workstream_title: str = ""


def record_of(plan: PlanPart, chain: ChainPart, place: JobHome, agreement: str, tampered: Sequence[str]) -> JobRow:
    """The parts put together."""
    parts = {**msgspec.structs.asdict(plan), **msgspec.structs.asdict(chain)}
    parts["next_command"] = _command(plan, chain, agreement)
    if plan.status != "blocked":
        parts["blocked_reason"] = ""
    return JobRow(
        **parts,
        workstream=place.workstream,
        workstream_title=place.workstream_title,
        agreement=agreement,
        tampered=tuple(tampered),
        path=place.path,
    )


def plan_part(job: Job) -> PlanPart:
    """What the plan says."""
    fields = job.document.fields
    evaluated = _text(fields.get("reward_last_eval_at"))
    score = fields.get("reward_last_score")
    known = isinstance(score, int) and not isinstance(score, bool) and (score != 0 or bool(evaluated))
    return PlanPart(
        id=job.id,
        title=one_line(job.title),
        status=job.status,
        stakes=job.stakes,
        priority=_text(fields.get("priority")) or "2",
        wave=_text(fields.get("wave_id")),
        depends_on=tuple(one_line(one, 100) for one in job.depends_on),
        due_date=_text(fields.get("due_date")),
        estimate_hours=_hours(fields.get("estimate_hours")),
        iteration=_number(job.iteration),
        max_iterations=_number(job.max_iterations),
        rework_count=_number(job.rework_count),
        rework_reason=_text(fields.get("rework_reason")),
        target=_number(job.reward_target),
        score=_number(score) if known and isinstance(score, int) else None,
        evaluated_at=evaluated,
        truth=_text(fields.get("truth_last_status")) or "unknown",
        next_action=_text(fields.get("reward_last_next_action")),
        started_at=_text(fields.get("started_at")),
        completed_at=_text(fields.get("completed_at")),
        updated_at=_text(fields.get("updated_at")),
    )


def chain_part(name: str, entries: Sequence[Entry]) -> ChainPart:
    """What the chain says. Who may approve what does not matter for it, so nobody is asked."""
    asked = next((entry for entry in reversed(entries) if isinstance(entry.data.get("gates"), Mapping)), None)
    completed = history_of(name, entries, Policy()).completed
    step = asked.data.get("next") if asked is not None else None
    return ChainPart(
        gates=() if asked is None else tuple(_gates(asked, entries)),
        next_command=_text(step),
        blocked_reason=_blocked(entries),
        receipt="" if completed is None else completed.hash,
        scores=tuple(_scores(entries))[-_KEPT:],
        moves=tuple(_moves(entries))[-_KEPT:],
    )


def event_of(chain: str, entry: Entry) -> EventRow:
    """An event for people."""
    return EventRow(
        _text(entry.at), chain, entry.seq, entry.type, _text(entry.by.name), entry.by.kind, entry_text(entry)
    )


def _gates(asked: Entry, entries: Sequence[Entry]) -> Iterator[GateShown]:
    # The truth gate's own words are in the plan, one for each of its codes; of the others, only the codes are kept.
    upto = [entry for entry in entries if entry.seq <= asked.seq]
    words = expected_fields(upto).get("truth_last_failures")
    for name in GATES:
        codes = asked.data["gates"].get(name)
        if not isinstance(codes, list):
            continue
        said = (
            words if name == "truth" and isinstance(words, list) and len(words) == len(codes) else [None] * len(codes)
        )
        reasons = tuple(
            GateReasonShown(_text(code), one_line(str(text), _LONG) if text else _meaning(code))
            for code, text in list(zip(codes, said, strict=True))[:_REASONS]
        )
        yield GateShown(name, not codes, reasons)


def _meaning(code: object) -> str:
    known = {one.value: one for one in GateCode}.get(str(code))
    return "" if known is None else GATE_REASONS[known].meaning


def _scores(entries: Sequence[Entry]) -> Iterator[ScorePoint]:
    for entry in entries:
        score = entry.data.get("score")
        if (
            entry.type in ("evaluated", "refused", "completed")
            and isinstance(score, int)
            and not isinstance(score, bool)
        ):
            yield ScorePoint(_text(entry.at), _number(score), entry.type)


def _moves(entries: Sequence[Entry]) -> Iterator[StatusChange]:
    before: object = None
    for entry in entries:
        writes = entry.data.get("writes")
        pair = writes.get("status") if isinstance(writes, Mapping) else None
        if isinstance(pair, list) and len(pair) == 2 and pair[1] != before:
            before = pair[1]
            yield StatusChange(_text(entry.at), _text(before))


def _blocked(entries: Sequence[Entry]) -> str:
    """Why the job was last set aside: by somebody who said why, or by its budget."""
    for entry in reversed(entries):
        if entry.type == "decided" and entry.data.get("decision") in _RESTING:
            return one_line(str(entry.data.get("reason", "")), _LONG)
        if entry.type == "refused" and entry.data.get("auto_blocked"):
            return _SPENT
    return ""


def _command(plan: PlanPart, chain: ChainPart, agreement: str) -> str:
    """What to type next."""
    if plan.status in ("done", "cancelled"):
        return ""
    if agreement == "voided":
        return f"donewhen contract diff {plan.id}"
    if agreement != "agreed":
        return f"donewhen agree {plan.id}"
    if plan.status == "planned":
        return f"donewhen start {plan.id}"
    return chain.next_command or f"donewhen complete {plan.id}"


def _text(value: Any) -> str:
    return "" if value is None else one_line(str(value))


def _number(value: int) -> int:
    """A plan can hold a number of any length, and readers of JSON can't."""
    return max(-(2**53), min(value, 2**53))


def _hours(value: object) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(min(value, _MOST_HOURS)) if known and isinstance(value, int | float) else 1.0
