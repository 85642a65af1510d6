"""The page of a job: gates, contract, evidence, dependencies, score and ledger."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.board.survey import JobRecord
from donewhen.jobs.contract.agreeing import AgreementProposal, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.terms import TermsChange
from donewhen.jobs.gates.evidence_status import EvidenceStatus, asserted_evidence
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.gates.score import TITLES
from donewhen.jobs.gates.shown_strength import recorded_lines, strength_line, strength_sentences
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Completed
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateReason
from donewhen.jobs.lifecycle.completion import promise_on_record
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History
from donewhen.web.evidence import evidence_views
from donewhen.web.page_request import PageRequest
from donewhen.web.project_folder import PageNotFoundError
from donewhen.web.rendering import PageContent

_EVENTS = 100
_RUNS = 20


class Difference(NamedTuple):
    """A change since the agreement, with its place in the plan."""

    change: TermsChange
    place: str


class ContractView(NamedTuple):
    """The contract of a job or its project, and the changes since."""

    chain: str
    state: str
    sealed_at: str
    sealed_by: str
    differences: tuple[Difference, ...]
    problems: tuple[tuple[str, str], ...]


class EventView(NamedTuple):
    """A line of the ledger."""

    entry: Entry
    text: str


class Neighbour(NamedTuple):
    """A dependency or a dependent job; ``job`` is None if it does not exist."""

    id: str
    job: JobRecord | None
    state: str = ""
    why: str = ""


def job_page(request: PageRequest) -> PageContent:
    """Return the page of a job. Evaluates the gates now, without running commands."""
    workspace = request.place.jobs()
    survey = request.survey()
    name = request.names["job"]
    record = next((candidate for candidate in survey.jobs if candidate.id == name), None)
    if record is None:
        broken = [problem for problem in survey.problems if name in problem.where or name in problem.message]
        if broken:
            raise DonewhenError(broken[0].message, where=broken[0].where, next_step="Repair the file.")
        raise PageNotFoundError(f"There is no job {name!r}.", next_step="donewhen status")
    job = workspace.job_at(record.path)
    view = view_job(workspace, job)
    evaluation = view.evaluation
    chain = workspace.ledger.read(job.id)
    by_id = {job_record.id: job_record for job_record in survey.jobs}
    limit = len(view.entries) if request.query.get("all") else _EVENTS
    values: dict[str, Any] = {
        "job": job,
        "record": record,
        "where": workspace.where(job.path),
        "view": view,
        "evaluation": evaluation,
        "meaning": _meaning,
        "standings": view.evidence,
        "strength_line": strength_line,
        "strength_sentences": strength_sentences,
        "recorded_strength": _recorded(view.history),
        "ids": _states_by_entry(view.evidence),
        "asserted": _asserted(workspace, job),
        "components": evaluation.score.components,
        "titles": TITLES,
        "contracts": tuple(_contract(proposal) for proposal in agreement_proposals(workspace, [job])),
        "runs": evidence_views(workspace, view.entries, view.evidence, _RUNS),
        "run_count": sum(entry.type == "ran" for entry in view.entries),
        "before": [
            Neighbour(dependency.id, by_id.get(dependency.id), dependency.state, dependency.why)
            for dependency in view.facts.dependencies
        ],
        "after": [Neighbour(dependent.id, dependent) for dependent in survey.jobs if job.id in dependent.depends_on],
        "events": [EventView(entry, entry_text(entry)) for entry in reversed(view.entries[-limit:])],
        "event_count": len(view.entries),
        "breaks": chain.breaks,
        "promise": _promise(workspace, view.history, job.id),
        "waiting": view.history.waiting,
        "history": view.history,
    }
    return PageContent("job.html", f"{job.id} {job.title}", values, room="board")


def _meaning(reason: GateReason) -> str:
    """Return the general next step for a reason."""
    return GATE_REASONS[reason.code].next_step


def _states_by_entry(statuses: Sequence[EvidenceStatus]) -> dict[int, str]:
    """Return the current state by ledger entry, for entries that a requirement uses."""
    return {status.entry.seq: status.state for status in statuses if status.entry is not None}


def _asserted(workspace: Workspace, job: Any) -> tuple[str, ...]:
    with suppress(DonewhenError):
        return asserted_evidence(workspace, job)
    return ()


def _contract(proposal: AgreementProposal) -> ContractView:
    agreement = proposal.agreement
    seal = agreement.seal
    return ContractView(
        proposal.chain,
        agreement.state,
        seal.entry.at if seal else "",
        f"{seal.entry.who} ({seal.entry.by.kind})" if seal else "",
        tuple(Difference(change, proposal.place(change)) for change in agreement.changes),
        tuple((problem.message, problem.where) for problem in proposal.problems),
    )


def _recorded(history: History) -> tuple[str, ...]:
    """How strong the evidence for each criterion was when the job was completed."""
    return () if history.completed is None else tuple(recorded_lines(history.completed.read_as(Completed).strength))


def _promise(workspace: Workspace, history: History, job: str) -> dict[str, Any] | None:
    """Return the promise of a completed job, and whether it is still valid."""
    promise = promise_on_record(job, history)
    if promise is None or history.completed is None:
        return None
    checked = verify_promise(workspace, promise.text, approval_policy(workspace))
    return {"text": promise.text, "at": history.completed.at, "real": checked.real, "why": checked.why}
