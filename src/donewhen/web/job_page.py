"""One job: what its gates say now, why, what was agreed, what was shown, and everything that happened."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.board.survey import JobRecord
from donewhen.jobs.contract.agreement import AgreementProposal, agreement_proposals, approval_policy
from donewhen.jobs.contract.terms import TermsChange
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.evidence_status import EvidenceStatus, asserted_evidence
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.gates.score import TITLES
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateReason
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.lifecycle.completion import promise_on_record
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History
from donewhen.web.evidence import shown_evidence
from donewhen.web.page_request import PageRequest
from donewhen.web.project_folder import PageNotFoundError
from donewhen.web.rendering import PageContent

_EVENTS = 100
_RUNS = 20


class Difference(NamedTuple):
    """A change since the agreement, with the place at which it can be seen."""

    change: TermsChange
    place: str


class ContractShown(NamedTuple):
    """What was agreed about a job or its project, and what has changed since."""

    chain: str
    state: str
    sealed_at: str
    sealed_by: str
    differences: tuple[Difference, ...]
    problems: tuple[tuple[str, str], ...]


class EventShown(NamedTuple):
    """A line of the ledger."""

    entry: Entry
    told: str


class Neighbour(NamedTuple):
    """A job before or after this one; ``job`` is None where there is none of that name."""

    id: str
    job: JobRecord | None
    state: str = ""
    why: str = ""


def job_page(asked: PageRequest) -> PageContent:
    """The page of a job. Nothing is run; the gates are asked about what is there now."""
    workspace = asked.place.jobs()
    seen = asked.survey()
    name = asked.names["job"]
    record = next((one for one in seen.jobs if one.id == name), None)
    if record is None:
        broken = [problem for problem in seen.problems if name in problem.where or name in problem.message]
        if broken:
            raise DonewhenError(broken[0].message, where=broken[0].where, next_step="Repair the file.")
        raise PageNotFoundError(f"There is no job {name!r}.", next_step="donewhen status")
    job = workspace.job_at(record.path)
    facts = facts_of(workspace, job)
    evaluation = evaluate(facts)
    chain = workspace.ledger.read(job.id)
    by_id = {one.id: one for one in seen.jobs}
    limit = len(chain.entries) if asked.query.get("all") else _EVENTS
    values: dict[str, Any] = {
        "job": job,
        "record": record,
        "where": workspace.where(job.path),
        "evaluation": evaluation,
        "meaning": _meaning,
        "standings": facts.evidence,
        "ids": _marks(facts.evidence),
        "asserted": _asserted(workspace, job),
        "components": evaluation.score.components,
        "titles": TITLES,
        "contracts": tuple(_contract(proposal) for proposal in agreement_proposals(workspace, [job])),
        "runs": shown_evidence(workspace, chain.entries, facts.evidence, _RUNS),
        "run_count": sum(entry.type == "ran" for entry in chain.entries),
        "before": [
            Neighbour(dependency.id, by_id.get(dependency.id), dependency.state, dependency.why)
            for dependency in facts.dependencies
        ],
        "after": [Neighbour(one.id, one) for one in seen.jobs if job.id in one.depends_on],
        "events": [EventShown(entry, entry_text(entry)) for entry in reversed(chain.entries[-limit:])],
        "event_count": len(chain.entries),
        "breaks": chain.breaks,
        "promise": _promise(workspace, facts.history, job.id),
        "waiting": facts.history.waiting,
        "history": facts.history,
    }
    return PageContent("job.html", f"{job.id} {job.title}", values, room="board")


def _meaning(reason: GateReason) -> str:
    """What to do about it, in general."""
    return GATE_REASONS[reason.code].next_step


def _marks(statuses: Sequence[EvidenceStatus]) -> dict[int, str]:
    """For each run that a need rests on, how that stands now."""
    return {status.entry.seq: status.state for status in statuses if status.entry is not None}


def _asserted(workspace: Workspace, job: Any) -> tuple[str, ...]:
    with suppress(DonewhenError):
        return asserted_evidence(workspace, job)
    return ()


def _contract(proposal: AgreementProposal) -> ContractShown:
    agreement = proposal.agreement
    seal = agreement.seal
    return ContractShown(
        proposal.chain,
        agreement.state,
        seal.entry.at if seal else "",
        f"{seal.entry.by.name} ({seal.entry.by.kind})" if seal else "",
        tuple(Difference(change, proposal.place(change)) for change in agreement.changes),
        tuple((problem.message, problem.where) for problem in proposal.problems),
    )


def _promise(workspace: Workspace, history: History, job: str) -> dict[str, Any] | None:
    """The promise of a job that is done, and whether it still holds."""
    promise = promise_on_record(job, history)
    if promise is None or history.completed is None:
        return None
    checked = verify_promise(workspace, promise.text, approval_policy(workspace))
    return {"text": promise.text, "at": history.completed.at, "real": checked.real, "why": checked.why}
