"""Boards of any size, as they would come from real projects, written as pages: for looking at them in a browser."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from donewhen.dashboard.data import (
    Board,
    EventRow,
    GateReasonRow,
    GateRow,
    JobRow,
    ProjectRow,
    ScorePoint,
    StatusChange,
    UnreadableJob,
    board_of,
    encode_board,
)
from donewhen.dashboard.page import render_dashboard
from donewhen.jobs.board.row_states import rows_in_context
from donewhen.jobs.plan.job import BUDGETS, STATUSES, TARGETS, Stakes, Status

GATES = ("agreement", "budget", "dependency", "truth", "reward")
_VERBS = ("Parse", "Show", "Send", "Keep", "Sort", "Import", "Export", "Check", "Lock", "Draw")
_THINGS = ("the price list", "receipts by mail", "an audit trail for seven years", "failed payments", "the login page",
           "orders as CSV", "a stock report", "the daily backup", "addresses abroad", "coupons")  # fmt: skip
_STATES = {
    "voided": ("voided", "agreement_voided"),
    "proposed": ("not_agreed", "not_agreed_yet"),
    "planned": ("ready", "not_started"),
    "in_progress": ("in_progress", "criterion_failed"),
    "blocked": ("asked", ""),
    "done": ("done", ""),
    "cancelled": ("cancelled", "cancelled"),
}
"""The state and code of a job by its agreement or, if that is sound, by its status."""
_STREAMS = ("Till", "Warehouse", "Accounts", "Shop window")


def record(number: int, **values: Any) -> JobRow:
    """A job that nothing has happened to, but for ``values``."""
    name = f"WI-20260214-{number:03d}"
    plain: dict[str, Any] = {
        "id": name,
        "title": f"Job {number}",
        "status": "planned",
        "stakes": "normal",
        "priority": "2",
        "wave": "",
        "depends_on": (),
        "due_date": "",
        "estimate_hours": 1.0,
        "iteration": 0,
        "max_iterations": 3,
        "rework_count": 0,
        "rework_reason": "",
        "target": 80,
        "score": None,
        "evaluated_at": "",
        "truth": "unknown",
        "next_action": "",
        "started_at": "",
        "completed_at": "",
        "updated_at": "2026-02-14T09:00:00Z",
        "gates": (),
        "state": "ready",
        "code": "not_started",
        "next_command": f"donewhen start {name}",
        "alone": None,
        "blocked_reason": "",
        "receipt": "",
        "scores": (),
        "moves": (),
        "workstream": "",
        "workstream_title": "",
        "agreement": "agreed",
        "tampered": (),
        "path": f"jobs/{name}-job/plan.md",
    }
    made = {**plain, **values}
    if "state" not in values:
        made["state"], made["code"] = _STATES.get(made["agreement"]) or _STATES[made["status"]]
    return JobRow(**made)


def board(count: int, *, title: str = "Webshop") -> Board:
    """A project of so many jobs in the middle of its work; the same each time."""
    chance = random.Random(count)
    start = datetime(2026, 2, 14, 8, tzinfo=UTC)
    jobs: dict[str, JobRow] = {}
    events: list[EventRow] = []

    def at(hours: float) -> str:
        return (start + timedelta(hours=hours)).strftime("%Y-%m-%dT%H:%M:%SZ")

    for number in range(1, count + 1):
        state: Status = chance.choices(("done", "in_progress", "blocked", "planned", "cancelled"), (45, 12, 6, 33, 4))[
            0
        ]
        stakes: Stakes = chance.choices(("low", "normal", "high", "critical"), (15, 60, 18, 7))[0]
        made = _job(number, state, stakes, chance, at, list(jobs))
        jobs[made.id] = made
        events += _events(made)
    about = ProjectRow("PJ-20260214-001", title, "in_progress", "agreed")
    return board_of(about, rows_in_context(jobs, (), "agreed"), events, (), STATUSES)


def _job(number: int, state: Status, stakes: Stakes, chance: random.Random, at: Any, before: list[str]) -> JobRow:
    begun = number * 0.7 + chance.random() * 4
    target, budget = TARGETS[stakes], BUDGETS[stakes]
    tries = chance.randint(0, 2) if state in ("done", "in_progress") else budget + 1 if state == "blocked" else 0
    tries = min(tries, budget if state != "blocked" else budget + 1)
    scores = [
        ScorePoint(at(begun + 2 * number), chance.randint(35, target + 4), "refused") for number in range(1, tries + 1)
    ]
    if state in ("in_progress", "blocked"):
        scores.append(ScorePoint(at(begun + 2 * tries + 1), chance.randint(40, 96), "evaluated"))
    moves = [] if state == "planned" else [StatusChange(at(begun), "in_progress")]
    end = begun + 2 * tries + 2
    if state == "done":
        scores.append(ScorePoint(at(end), chance.randint(target, 100), "completed"))
        moves.append(StatusChange(at(end), "done"))
    elif state in ("blocked", "cancelled"):
        moves.append(StatusChange(at(end), state))
    closed = (
        {}
        if state == "done"
        else {
            "truth": (
                GateReasonRow("criterion_failed", "AC-2 (Five failures lock it) is not met: test_lock.py failed."),
            ),
            "reward": (GateReasonRow("score_too_low", "The score is below what was agreed."),),
        }
    )
    gates = tuple(GateRow(gate, gate not in closed, closed.get(gate, ())) for gate in GATES) if scores else ()
    name = f"WI-20260214-{number:03d}"
    verb = "start" if state == "planned" else "why"
    following = "Resolve truth failures: AC-2 (Five failures lock it) is not met: test_lock.py failed."
    return record(
        number,
        title=f"{chance.choice(_VERBS)} {chance.choice(_THINGS)}",
        status=state,
        stakes=stakes,
        wave=f"WV-{1 + number // 20}",
        depends_on=tuple(sorted(chance.sample(before[-12:], min(len(before[-12:]), chance.randint(0, 2))))),
        estimate_hours=chance.choice((0.5, 1.0, 2.0, 4.0, 8.0)),
        iteration=tries,
        max_iterations=budget,
        target=target,
        score=scores[-1].score if scores else None,
        evaluated_at=scores[-1].at if scores else "",
        next_action="" if not scores else "Final check: look at it." if state == "done" else following,
        started_at=moves[0].at if moves else "",
        completed_at=at(end) if state == "done" else "",
        gates=gates,
        next_command="donewhen ready" if state in ("done", "cancelled") else f"donewhen {verb} {name}",
        blocked_reason="Which columns does the bank want, and in which order?" if state == "blocked" else "",
        receipt=f"sha256:{number:064x}" if state == "done" else "",
        scores=tuple(scores),
        moves=tuple(moves),
        workstream=f"WS-20260214-{1 + number % 4:03d}",
        workstream_title=_STREAMS[number % 4],
        agreement="proposed" if state == "planned" and number % 9 == 0 else "agreed",
    )  # fmt: skip


def _events(job: JobRow) -> list[EventRow]:
    found = [
        EventRow(move.at, job.id, 2 + at, "started", "claude", "agent", "work started")
        for at, move in enumerate(job.moves[:1])
    ]
    found += [
        EventRow(score.at, job.id, 3 + at, score.what, "claude", "agent", f"score {score.score}")
        for at, score in enumerate(job.scores)
    ]
    if job.blocked_reason:
        found.append(EventRow(job.moves[-1].at, job.id, 20, "decided", "ada", "person", f"ask: {job.blocked_reason}"))
    return found


def written(folder: Path, shown: Board) -> Path:
    """The page of a board."""
    path = folder / "dashboard.html"
    path.write_bytes(render_dashboard(shown, encode_board(shown)))
    return path


def with_jobs(
    *jobs: JobRow, title: str = "Webshop", events: tuple[EventRow, ...] = (), unread: tuple[UnreadableJob, ...] = ()
) -> Board:
    """A board of just these jobs."""
    about = ProjectRow("PJ-20260214-001", title, "in_progress", "agreed")
    return board_of(about, rows_in_context({job.id: job for job in jobs}, unread, "agreed"), events, unread, STATUSES)
