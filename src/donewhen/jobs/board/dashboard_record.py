"""Build the dashboard's record of a job from its plan and its chain. All text is sanitised here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, get_args

import msgspec

from donewhen.dashboard.data import (
    ChainPart,
    EventRow,
    GateReasonRow,
    GateRow,
    JobRow,
    PlanPart,
    ScorePoint,
    StatusChange,
)
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.board.job_state import JobState
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Decided, Evaluated, Refused
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode, GateName
from donewhen.jobs.plan.job import Job
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import expected_fields

GATES: tuple[GateName, ...] = get_args(GateName)
_MAX_LENGTH = 300
_MAX_REASONS = 12
_MAX_HISTORY = 200
"""Number of newest scores and status changes kept per job."""
_MAX_HOURS = 1e6
_BLOCKING_DECISIONS = ("block", "ask", "dispute")
_BUDGET_SPENT = "All iterations are used up."


class JobHome(msgspec.Struct, frozen=True):
    """The workstream and the plan file of a job."""

    path: str
    workstream: str = ""
    workstream_title: str = ""


def record_of(
    plan: PlanPart, chain: ChainPart, place: JobHome, agreement: str, tampered: Sequence[str], own: JobState
) -> JobRow:
    """Combine the plan part and the chain part into one row, with the state of the job by itself."""
    parts = {**msgspec.structs.asdict(plan), **msgspec.structs.asdict(chain)}
    if plan.status != "blocked":
        parts["blocked_reason"] = ""
    return JobRow(
        **parts,
        workstream=place.workstream,
        workstream_title=place.workstream_title,
        agreement=agreement,
        tampered=tuple(tampered),
        path=place.path,
        state=own.word,
        code=own.code or "",
        next_command=_line(own.next),
        alone=None,
    )


def plan_part(job: Job) -> PlanPart:
    """Return the fields that come from the plan."""
    fields = job.document.fields
    evaluated = _line(fields.get("reward_last_eval_at"))
    score = fields.get("reward_last_score")
    known = isinstance(score, int) and not isinstance(score, bool) and (score != 0 or bool(evaluated))
    return PlanPart(
        id=job.id,
        title=one_line(job.title),
        status=job.status,
        stakes=job.stakes,
        priority=_line(fields.get("priority")) or "2",
        wave=_line(fields.get("wave_id")),
        depends_on=tuple(one_line(dependency, 100) for dependency in job.depends_on),
        due_date=_line(fields.get("due_date")),
        estimate_hours=_hours(fields.get("estimate_hours")),
        iteration=_clamp_number(job.iteration),
        max_iterations=_clamp_number(job.max_iterations),
        rework_count=_clamp_number(job.rework_count),
        rework_reason=_line(fields.get("rework_reason")),
        target=_clamp_number(job.reward_target),
        score=_clamp_number(score) if known and isinstance(score, int) else None,
        evaluated_at=evaluated,
        truth=_line(fields.get("truth_last_status")) or "unknown",
        next_action=_line(fields.get("reward_last_next_action")),
        started_at=_line(fields.get("started_at")),
        completed_at=_line(fields.get("completed_at")),
        updated_at=_line(fields.get("updated_at")),
    )


def chain_part(name: str, entries: Sequence[Entry]) -> ChainPart:
    """Return the fields that come from the chain. They do not depend on the approval policy."""
    newest = next((entry for entry in reversed(entries) if recorded_gates(entry) is not None), None)
    completed = history_of(name, entries, Policy()).completed
    return ChainPart(
        gates=() if newest is None else tuple(_gate_rows(newest, entries)),
        blocked_reason=_blocked_reason(entries),
        receipt="" if completed is None else completed.hash,
        scores=tuple(islice(_scores_newest_first(entries), _MAX_HISTORY))[::-1],
        moves=tuple(_status_changes(entries))[-_MAX_HISTORY:],
    )


def recorded_gates(entry: Entry) -> dict[str, list[str]] | None:
    """The reason codes of each gate, if the entry is about an evaluation."""
    return entry.content.gates if isinstance(entry.content, Evaluated) else None


def event_of(chain: str, entry: Entry) -> EventRow:
    """Return a ledger entry as a row of the event list."""
    return EventRow(_line(entry.at), chain, entry.seq, entry.type, _line(entry.who), entry.by.kind, entry_text(entry))


def _gate_rows(evaluated: Entry, entries: Sequence[Entry]) -> Iterator[GateRow]:
    # The plan holds one sentence per code of the truth gate; for the other gates only the codes are stored.
    is_last = bool(entries) and entries[-1].seq <= evaluated.seq
    upto = entries if is_last else [entry for entry in entries if entry.seq <= evaluated.seq]
    failures = expected_fields(upto).get("truth_last_failures")
    for name in GATES:
        codes = (recorded_gates(evaluated) or {}).get(name)
        if codes is None:
            continue
        sentences = (
            failures
            if name == "truth" and isinstance(failures, list) and len(failures) == len(codes)
            else [None] * len(codes)
        )
        reasons = tuple(
            GateReasonRow(_line(code), one_line(str(text), _MAX_LENGTH) if text else _meaning(code))
            for code, text in list(zip(codes, sentences, strict=True))[:_MAX_REASONS]
        )
        yield GateRow(name, not codes, reasons)


def _meaning(code: object) -> str:
    known = {gate_code.value: gate_code for gate_code in GateCode}.get(str(code))
    return "" if known is None else GATE_REASONS[known].meaning


def _scores_newest_first(entries: Sequence[Entry]) -> Iterator[ScorePoint]:
    for entry in reversed(entries):
        if isinstance(entry.content, Evaluated) and entry.content.score is not None:
            yield ScorePoint(_line(entry.at), _clamp_number(entry.content.score), entry.type)


def _status_changes(entries: Sequence[Entry]) -> Iterator[StatusChange]:
    before: object = None
    for entry in entries:
        pair = entry.content.writes.get("status")
        if pair is not None and pair[1] != before:
            before = pair[1]
            yield StatusChange(_line(entry.at), _line(before))


def _blocked_reason(entries: Sequence[Entry]) -> str:
    """The reason of the last block: the one given with the decision, or the exhausted budget."""
    for entry in reversed(entries):
        content = entry.content
        if isinstance(content, Decided) and content.decision in _BLOCKING_DECISIONS:
            return one_line(content.reason, _MAX_LENGTH)
        if isinstance(content, Refused) and content.auto_blocked:
            return _BUDGET_SPENT
    return ""


def _line(value: Any) -> str:
    return "" if value is None else one_line(str(value))


def _clamp_number(value: int) -> int:
    """Limit an integer to what every JSON reader can represent; a plan can hold any number."""
    return max(-(2**53), min(value, 2**53))


def _hours(value: object) -> float:
    known = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(min(value, _MAX_HOURS)) if known and isinstance(value, int | float) else 1.0
