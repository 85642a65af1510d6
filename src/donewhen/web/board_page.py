"""The board: all jobs by their status, each with its gates as last asked, and what to do next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, NamedTuple, get_args

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.board.survey import JobRecord, Survey
from donewhen.jobs.contract.agreement import AgreementState, approval_policy
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.gate_results import GateName
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import STATUSES, Status
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import expected_fields
from donewhen.web.page_request import PageRequest
from donewhen.web.rendering import PageContent

GATES: tuple[GateName, ...] = get_args(GateName)
AGREEMENTS: tuple[AgreementState, ...] = get_args(AgreementState)
GateState = Literal["open", "closed", "unknown"]

_IN_A_COLUMN = 12
_ON_A_PAGE = 50
_PROBLEMS = 12


class GateShown(NamedTuple):
    """A gate as it was when somebody last asked it."""

    name: GateName
    state: GateState
    codes: tuple[str, ...] = ()


class Card(NamedTuple):
    """What the board says of a job."""

    job: JobRecord
    gates: tuple[GateShown, ...]
    asked_at: str
    """When the gates were last asked; empty where they never were."""
    score: int | None
    target: int | None
    next: str
    waiting: str
    """Why it rests, or what a person is asked."""


class Column(NamedTuple):
    """The jobs of one status, and how many more there are than are shown."""

    status: Status
    cards: tuple[Card, ...]
    total: int


def board_page(asked: PageRequest) -> PageContent:
    """The board as columns; with a filter or a search, a list in pages."""
    if asked.place.workspace is None:
        return PageContent("no_jobs.html", "Board", {"missions": asked.place.missions()}, room="board")
    workspace, seen = asked.place.jobs(), asked.survey()
    chosen = {name: asked.query.get(name, "").strip()[:200] for name in ("status", "agreement", "q")}
    found = [job for job in seen.jobs if _fits(job, chosen)]
    values: dict[str, Any] = {
        "project": seen.project,
        "agreement": seen.project_agreement,
        "counts": _counts(seen.jobs),
        "total": len(seen.jobs),
        "chosen": chosen,
        "statuses": STATUSES,
        "agreements": AGREEMENTS,
        "problems": _problems(workspace, seen)[:_PROBLEMS],
        "more_problems": max(0, len(_problems(workspace, seen)) - _PROBLEMS),
        "listing": any(chosen.values()),
    }
    policy = approval_policy(workspace)
    open_jobs = frozenset(job.id for job in seen.jobs if job.status not in ("done", "cancelled"))
    if not any(chosen.values()):
        columns = tuple(_column(workspace, policy, status, seen.jobs, open_jobs) for status in STATUSES)
        return PageContent(
            "board.html", "Board", {**values, "columns": columns, "in_a_column": _IN_A_COLUMN}, room="board"
        )
    pages = max(1, -(-len(found) // _ON_A_PAGE))
    page = min(max(1, asked.number("page")), pages)
    shown = found[(page - 1) * _ON_A_PAGE : page * _ON_A_PAGE]
    cards = tuple(card_of(workspace, policy, one, open_jobs) for one in shown)
    values |= {"cards": cards, "found": len(found), "page": page, "pages": pages}
    return PageContent("board.html", "Board", values, room="board")


def card_of(workspace: Workspace, policy: Policy, job: JobRecord, open_jobs: frozenset[str]) -> Card:
    """A job as a card. Its chain is read, and nothing is evaluated."""
    entries: Sequence[Entry] = ()
    target = None
    with suppress(DonewhenError, OSError):
        entries = workspace.ledger.read(job.id).entries
    with suppress(DonewhenError, OSError):
        target = workspace.job_at(job.path).reward_target
    last = next((entry for entry in reversed(entries) if isinstance(entry.data.get("gates"), Mapping)), None)
    waiting = history_of(job.id, entries, policy).waiting
    score = last.data.get("score") if last else None
    return Card(
        job,
        gates_in(last),
        last.at if last else "",
        score if isinstance(score, int) else None,
        target,
        _next(job, open_jobs, str(expected_fields(entries)["reward_last_next_action"] or "") if last else ""),
        str(waiting.data.get("reason", "")) if waiting is not None else "",
    )


def gates_in(entry: Entry | None) -> tuple[GateShown, ...]:
    """The gates as an entry has them."""
    told = entry.data["gates"] if entry is not None else {}
    return tuple(
        GateShown(name, "unknown")
        if not isinstance(told.get(name), list)
        else GateShown(name, "closed" if told[name] else "open", tuple(map(str, told[name])))
        for name in GATES
    )


def _next(job: JobRecord, open_jobs: frozenset[str], told: str) -> str:
    """The next step: what the gates said last, or what comes before anybody asks them."""
    if job.status in ("done", "cancelled"):
        return ""
    if job.agreement != "agreed":
        return (
            "Agree on it: donewhen agree" if job.agreement != "voided" else "See what changed: donewhen contract diff"
        )
    before = [one for one in job.depends_on if one in open_jobs]
    if before:
        return f"Waits for {', '.join(before[:3])}{' and more' if len(before) > 3 else ''}"
    if told:
        return told
    return f"donewhen start {job.id}" if job.status == "planned" else f"donewhen complete {job.id}"


def _column(
    workspace: Workspace, policy: Policy, status: Status, jobs: Iterable[JobRecord], open_jobs: frozenset[str]
) -> Column:
    found = [job for job in jobs if job.status == status]
    # What was finished last is what people look for; what is open comes in its own order.
    shown = found[: -_IN_A_COLUMN - 1 : -1] if status in ("done", "cancelled") else found[:_IN_A_COLUMN]
    return Column(status, tuple(card_of(workspace, policy, one, open_jobs) for one in shown), len(found))


def _fits(job: JobRecord, chosen: Mapping[str, str]) -> bool:
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


def _problems(workspace: Workspace, seen: Survey) -> list[tuple[str, str]]:
    """What can't be read or is not what the ledger says, with its place."""
    lines = [(problem.message, problem.where) for problem in seen.problems]
    lines += [
        (
            f"{job.id}: {miss.field} says {miss.found!r}, but the ledger says {miss.expected!r}.",
            workspace.where(job.path),
        )
        for job in seen.jobs
        for miss in job.tampered
    ]
    lines += [
        (f"{one} is in progress by the ledger, but its plan is gone or can't be read.", "") for one in seen.unseen
    ]
    return lines
