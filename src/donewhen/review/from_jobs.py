"""What needs a person about jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.evidence.commands import evidence_store, newest_run
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirement_for
from donewhen.jobs.gates.evidence_status import EvidenceStatus, evidence_statuses
from donewhen.jobs.judge.job_ticket import job_artifacts
from donewhen.jobs.judge.judge_evidence import judge_question, shown_requirements
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.judge.person_overrides import newest_override, subject_of
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History, history_of
from donewhen.judging.labels import JudgeStatement, Label, current_labels, read_label_log
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket, ticket_of
from donewhen.models.roles import Binary
from donewhen.review.items import Kind, ReviewItem

_OPEN = ("in_progress", "blocked")
_ENDING = ("unverified", "completed", "started", "decided")


class _Looked(NamedTuple):
    """A job that is looked at."""

    workspace: Workspace
    job: Job
    entries: Sequence[Entry]


def job_items(workspace: Workspace) -> Iterator[ReviewItem]:
    """Everything about jobs that needs a person."""
    policy = approval_policy(workspace)
    for record in survey_jobs(workspace).jobs:
        if record.recorded not in _OPEN and not (record.judged and record.recorded == "done"):
            continue
        try:
            yield from list(_items_of(workspace, record, policy))
        except DonewhenError as error:
            # One job that can't be looked at keeps nobody from the others.
            yield _unreadable(record, error)


def _items_of(workspace: Workspace, record: JobRecord, policy: Policy) -> Iterator[ReviewItem]:
    job = workspace.job_at(record.path)
    looked = _Looked(workspace, job, workspace.ledger.read(job.id).entries)
    if record.recorded in _OPEN:
        yield from _open_items(looked, record, history_of(job.id, looked.entries, policy))
    if record.judged:
        yield from _spot_checks(looked)


def _unreadable(record: JobRecord, error: DonewhenError) -> ReviewItem:
    return ReviewItem(
        kind="asked",
        title=f"{record.id}  {one_line(record.title, 120)}",
        question=str(error),
        why="What it needs of a person can't be told.",
        since="",
        evidence={},
        job=record.id,
        next=f"donewhen plan-check {record.id}",
    )


def judge_statement(data: Mapping[str, Any]) -> JudgeStatement:
    """What a judge said, from the entry that has it on record."""
    votes = data.get("votes", {})
    return JudgeStatement(
        verdict=data.get("verdict"),
        passes=int(votes.get("pass", 0)),
        fails=int(votes.get("fail", 0)),
        malformed=int(votes.get("malformed", 0)),
        decided=not data.get("needs_human"),
        margin=data.get("margin"),
        reason=str(data.get("reason", "")),
        guidance_step=int(data.get("guidance_step", 0)),
    )


def kept_ticket(workspace: Workspace, entry: Entry) -> Ticket | None:
    """The ticket that a judge was shown, as the gate has kept it; None where it is not on this machine."""
    data = evidence_store(workspace).get_json(str(entry.data.get("ticket")))
    if not isinstance(data, dict):
        return None
    try:
        return ticket_of(data, "evidence", str(data.get("mission")), labelled=False)
    except DonewhenError:
        return None


def _open_items(looked: _Looked, record: JobRecord, history: History) -> Iterator[ReviewItem]:
    waiting = history.waiting
    decision = "" if waiting is None else str(waiting.data.get("decision"))
    last = next((entry for entry in reversed(looked.entries) if entry.type in _ENDING), None)
    unverified = last if last is not None and last.type == "unverified" else None
    if waiting is not None and decision == "ask":
        yield _asked(looked, waiting)
    if decision != "dispute" and unverified is None:
        if record.judged:
            yield from _undecided(looked)
        return
    found = [
        status for status in evidence_statuses(looked.workspace, looked.job) if status.requirement.name != VERIFICATION
    ]
    if waiting is not None and decision == "dispute":
        for one in found:
            if one.requirement.name in history.unanswered and _arguable(one):
                yield _about(looked, one, "disputed", f"The agent says: {waiting.data.get('reason')}", waiting)
    elif unverified is not None:
        for one in found:
            # A person's word settles it; an agent's is no standing.
            said = one.entry is not None and one.entry.type == "overridden" and one.entry.seq > unverified.seq
            if _arguable(one) and not said:
                yield _about(looked, one, "unverified", str(unverified.data.get("why", "")), unverified)


def _undecided(looked: _Looked) -> Iterator[ReviewItem]:
    """What a judge has left to people, as long as it is what it was, and nobody has said anything.

    By what is judged, not by the standing of all checks: those depend on the environment too, and that of the person
    who looks is seldom that of the agent who worked.
    """
    policy = approval_policy(looked.workspace)
    for criterion in looked.job.criteria:
        if criterion.check is None or criterion.check.kind != "judge":
            continue
        requirement = requirement_for(looked.job, criterion.id)
        entry = newest_run(looked.entries, requirement.evidence, "judge")
        if entry is None or not entry.data.get("needs_human"):
            continue
        try:
            subject = subject_of(looked.workspace, looked.job, requirement, looked.entries)
        except DonewhenError:
            continue
        same = entry.data.get("parts", {}).get("ticket") == subject
        if same and newest_override(looked.entries, looked.job.id, requirement, subject, policy) is None:
            told = str(entry.data.get("told", ""))
            yield _about(
                looked, EvidenceStatus(requirement, "needs_human", (told,), entry), "low_agreement", told, entry
            )


def _arguable(standing: EvidenceStatus) -> bool:
    return standing.state != "passed" and standing.requirement.check.kind != "manual"


def _asked(looked: _Looked, waiting: Entry) -> ReviewItem:
    return ReviewItem(
        kind="asked",
        title=_title(looked.job),
        question=str(waiting.data.get("reason", "")),
        why="An agent asks, and rests until it is answered.",
        since=waiting.at,
        evidence={},
        job=looked.job.id,
        subject=waiting.hash,
        next=f"donewhen start {looked.job.id}",
    )


def _about(looked: _Looked, standing: EvidenceStatus, kind: Kind, why: str, since: Entry) -> ReviewItem:
    """A criterion with all that there is to look at."""
    workspace, job, requirement = looked.workspace, looked.job, standing.requirement
    ticket, mission, said = None, None, None
    evidence: Mapping[str, str] = {}
    try:
        if requirement.check.kind == "judge":
            question = judge_question(workspace, job, requirement, looked.entries)
            ticket, mission, subject = question.ticket, requirement.check.text, question.subject
            evidence = ticket.evidence
            judged = newest_run(looked.entries, requirement.evidence, "judge")
            if judged is not None and judged.data.get("parts", {}).get("ticket") == subject:
                said = judge_statement(judged.data)
        else:
            subject = subject_of(workspace, job, requirement, looked.entries)
            started = next((entry for entry in looked.entries if entry.type == "started"), None)
            seen = shown_requirements(job, looked.entries)
            evidence = job_artifacts(workspace, job, requirement, evidence_store(workspace), seen, started)
    except DonewhenError as error:
        subject, evidence = "", {"what is missing": str(error)}
    told = why
    if kind != "low_agreement" and said is None:
        told += f" {requirement.name} {_STATES[standing.state]}: {'; '.join(standing.why)}"
    return ReviewItem(
        kind=kind,
        title=_title(job),
        question=f"{requirement.name}: {one_line(requirement.text, 300)}",
        why=one_line(told, 800),
        since=since.at,
        evidence=evidence,
        job=job.id,
        criteria=(requirement.name,),
        mission=mission,
        said=said,
        labels=() if ticket is None or mission is None else labels_of(find_mission(workspace, mission), ticket),
        subject=subject,
        ticket=ticket,
        next=f"donewhen why {job.id}",
    )


_STATES = {
    "failed": "failed",
    "stale": "is stale",
    "missing": "was not shown",
    "asserted": "is only asserted",
    "needs_human": "needs a person",
    "passed": "passed",
}


def labels_of(mission: Mission, ticket: Ticket) -> tuple[Label, ...]:
    """What people say of a ticket, the last word of each."""
    return tuple(current_labels(read_label_log(mission.folder)).get(ticket.group_id, {}).values())


def _spot_checks(looked: _Looked) -> Iterator[ReviewItem]:
    """Of the verdicts that need nobody, a few, chosen by what was judged and by nothing else."""
    for criterion in looked.job.criteria:
        if criterion.check is None or criterion.check.kind != "judge":
            continue
        requirement = requirement_for(looked.job, criterion.id)
        entry = newest_run(looked.entries, requirement.evidence, "judge")
        if entry is None or not entry.data.get("key") or entry.data.get("needs_human"):
            continue
        try:
            mission = find_mission(looked.workspace, criterion.check.text)
            ticket = kept_ticket(looked.workspace, entry)
        except DonewhenError:
            continue
        if ticket is None or not _chosen(str(entry.data["key"]), mission.settings.manual_review.spot_check):
            continue
        if not labels_of(mission, ticket):
            yield _spot_check(looked.job, requirement, entry, ticket)


def _spot_check(job: Job, requirement: Requirement, entry: Entry, ticket: Ticket) -> ReviewItem:
    verdict: Binary | None = entry.data.get("verdict")
    return ReviewItem(
        kind="spot_check",
        title=_title(job),
        question=f"{requirement.name}: {one_line(requirement.text, 300)}",
        why=f"The judge says {verdict}, and nobody has looked at it.",
        since=entry.at,
        evidence=ticket.evidence,
        job=job.id,
        criteria=(requirement.name,),
        mission=requirement.check.text,
        said=judge_statement(entry.data),
        subject=str(entry.data.get("parts", {}).get("ticket", "")),
        ticket=ticket,
    )


def _chosen(key: str, share: float) -> bool:
    return int(key.rpartition(":")[2][:8] or "0", 16) < share * 0x1_0000_0000


def _title(job: Job) -> str:
    return f"{job.id}  {one_line(job.title, 120)}"
