"""The board: all jobs by status, each with its last gate results and the next step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, get_args

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.board.board_states import survey_states
from donewhen.jobs.board.dashboard_record import recorded_gates
from donewhen.jobs.board.job_state import JobState
from donewhen.jobs.board.survey import JobRecord, Survey
from donewhen.jobs.contract.agreement import AgreementState, approval_policy
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entry_content import Decided, Evaluated
from donewhen.jobs.ledger.gate_results import GateName
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import STATUSES, Status
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.web.page_request import PageRequest
from donewhen.web.rendering import PageContent

GATES: tuple[GateName, ...] = get_args(GateName)
AGREEMENTS: tuple[AgreementState, ...] = get_args(AgreementState)
GateState = Literal["open", "closed", "unknown"]

_IN_A_COLUMN = 12
_ON_A_PAGE = 50
_PROBLEMS = 12


class GateMark(NamedTuple):
    """The last known state of a gate."""

    name: GateName
    state: GateState
    codes: tuple[str, ...] = ()


class Card(NamedTuple):
    """A job on the board."""

    job: JobRecord
    gates: tuple[GateMark, ...]
    asked_at: str
    """When the gates were last evaluated; empty if never."""
    score: int | None
    target: int | None
    state: JobState
    waiting: str
    """Why the job waits, or the question to a person."""


class Column(NamedTuple):
    """The jobs of one status, and the total number."""

    status: Status
    cards: tuple[Card, ...]
    total: int


def board_page(request: PageRequest) -> PageContent:
    """Return the board as columns; with a filter or a search, as a list with pages."""
    if request.place.workspace is None:
        return PageContent("no_jobs.html", "Board", {"missions": request.place.missions()}, room="board")
    workspace, survey = request.place.jobs(), request.survey()
    chosen = {name: request.query.get(name, "").strip()[:200] for name in ("status", "agreement", "q")}
    matching = [job for job in survey.jobs if _matches(job, chosen)]
    values: dict[str, Any] = {
        "project": survey.project,
        "agreement": survey.project_agreement,
        "counts": _counts(survey.jobs),
        "total": len(survey.jobs),
        "chosen": chosen,
        "statuses": STATUSES,
        "agreements": AGREEMENTS,
        "problems": _problems(workspace, survey)[:_PROBLEMS],
        "more_problems": max(0, len(_problems(workspace, survey)) - _PROBLEMS),
        "listing": any(chosen.values()),
    }
    policy = approval_policy(workspace)
    states = survey_states(survey)
    if not any(chosen.values()):
        columns = tuple(_column(workspace, policy, status, survey.jobs, states) for status in STATUSES)
        return PageContent(
            "board.html", "Board", {**values, "columns": columns, "in_a_column": _IN_A_COLUMN}, room="board"
        )
    pages = max(1, -(-len(matching) // _ON_A_PAGE))
    page = min(max(1, request.number("page")), pages)
    page_jobs = matching[(page - 1) * _ON_A_PAGE : page * _ON_A_PAGE]
    cards = tuple(card_of(workspace, policy, job, states[job.id]) for job in page_jobs)
    values |= {"cards": cards, "found": len(matching), "page": page, "pages": pages}
    return PageContent("board.html", "Board", values, room="board")


def card_of(workspace: Workspace, policy: Policy, job: JobRecord, state: JobState) -> Card:
    """Return a job as a card. Reads its ledger and evaluates nothing."""
    entries: Sequence[Entry] = ()
    target = None
    with suppress(DonewhenError, OSError):
        entries = workspace.ledger.read(job.id).entries
    with suppress(DonewhenError, OSError):
        target = workspace.job_at(job.path).reward_target
    last = next((entry for entry in reversed(entries) if recorded_gates(entry) is not None), None)
    waiting = history_of(job.id, entries, policy).waiting
    return Card(
        job,
        gates_in(last),
        last.at if last else "",
        last.read_as(Evaluated).score if last else None,
        target,
        state,
        waiting.read_as(Decided).reason if waiting is not None else "",
    )


def gates_in(entry: Entry | None) -> tuple[GateMark, ...]:
    """Return the gates recorded in an entry."""
    gates = (recorded_gates(entry) if entry is not None else None) or {}
    return tuple(
        GateMark(name, "unknown")
        if name not in gates
        else GateMark(name, "closed" if gates[name] else "open", tuple(gates[name]))
        for name in GATES
    )


def _column(
    workspace: Workspace, policy: Policy, status: Status, jobs: Iterable[JobRecord], states: Mapping[str, JobState]
) -> Column:
    matching = [job for job in jobs if job.status == status]
    # Finished jobs: newest first. Open jobs: in plan order.
    visible = matching[: -_IN_A_COLUMN - 1 : -1] if status in ("done", "cancelled") else matching[:_IN_A_COLUMN]
    return Column(status, tuple(card_of(workspace, policy, job, states[job.id]) for job in visible), len(matching))


def _matches(job: JobRecord, chosen: Mapping[str, str]) -> bool:
    words = chosen["q"].casefold().split()
    text = f"{job.id} {job.title} {job.stakes}".casefold()
    return (
        chosen["status"] in ("", job.status)
        and chosen["agreement"] in ("", job.agreement)
        and all(word in text for word in words)
    )


def _counts(jobs: Iterable[JobRecord]) -> dict[str, int]:
    counts = Counter(job.status for job in jobs)
    return {status: counts[status] for status in STATUSES}


def _problems(workspace: Workspace, survey: Survey) -> list[tuple[str, str]]:
    """Return the unreadable files and the fields that differ from the ledger, with their places."""
    lines = [(problem.message, problem.where) for problem in survey.problems]
    lines += [
        (
            f"{job.id}: {miss.field} says {miss.found!r}, but the ledger says {miss.expected!r}.",
            workspace.where(job.path),
        )
        for job in survey.jobs
        for miss in job.tampered
    ]
    lines += [
        (f"{job_id} is in progress according to the ledger, but its plan is missing or can't be read.", "")
        for job_id in survey.unseen
    ]
    return lines
