"""Review items from jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.recorded_state import last_evaluation
from donewhen.jobs.board.survey import JobRecord, Survey
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.evidence.commands import evidence_store, newest_run
from donewhen.jobs.evidence.conditions import evidence_inputs
from donewhen.jobs.evidence.flaky_runs import flaky_text
from donewhen.jobs.evidence.records import UnusableRecord, read_ticket
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirement_for, requirements_of
from donewhen.jobs.gates.evidence_status import EvidenceStatus, evidence_statuses
from donewhen.jobs.gates.sign_offs import sign_off_of
from donewhen.jobs.gates.signs_for_person import decisions_on_signs, open_signs
from donewhen.jobs.judge.job_ticket import job_artifacts, shown_texts
from donewhen.jobs.judge.judge_evidence import checked_requirements, judge_question
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.judge.person_overrides import newest_override, subject_of
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import (
    CommandRun,
    Decided,
    Evaluated,
    JudgeRun,
    Overridden,
    RecordedStatement,
    Unverified,
)
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History, history_of
from donewhen.judging.labels import JudgeStatement, Label, current_labels, read_label_log
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket, ticket_of
from donewhen.review.from_changes import change_items
from donewhen.review.from_signs import sign_items
from donewhen.review.from_waiting import is_ready_to_look_at, waiting_items
from donewhen.review.items import KINDS, Kind, ReviewItem

_OPEN = ("in_progress", "blocked")
_ENDING = ("unverified", "completed", "started", "decided")


class _JobContext(NamedTuple):
    """A job with its workspace and its ledger entries."""

    workspace: Workspace
    job: Job
    entries: Sequence[Entry]


def job_items(workspace: Workspace, survey: Survey) -> Iterator[ReviewItem]:
    """Yield every review item about the work on jobs."""
    policy = approval_policy(workspace)
    for record in survey.jobs:
        if record.recorded not in _OPEN and not (record.judged and record.recorded == "done"):
            continue
        try:
            yield from list(_items_of(workspace, record, policy))
        except DonewhenError as error:
            # One unreadable job must not hide the others.
            yield _unreadable(record, error)


def _items_of(workspace: Workspace, record: JobRecord, policy: Policy) -> Iterator[ReviewItem]:
    job = workspace.job_at(record.path)
    context = _JobContext(workspace, job, workspace.ledger.read(job.id).entries)
    if record.recorded in _OPEN:
        yield from waiting_items(workspace, job, context.entries, policy)
        yield from _to_look_at(context, policy)
        yield from change_items(workspace, job, context.entries, policy)
        yield from sign_items(workspace, job, context.entries, policy)
        yield from _flaky(context, policy)
        yield from _open_items(context, record, history_of(job.id, context.entries, policy))
    if record.judged:
        yield from _spot_checks(context)


def _unreadable(record: JobRecord, error: DonewhenError) -> ReviewItem:
    return ReviewItem(
        kind="unreadable",
        title=f"{record.id}  {one_line(record.title, 120)}",
        question=str(error),
        why="This job can't be read.",
        since="",
        evidence={},
        job=record.id,
        next=f"donewhen plan-check {record.id}",
    )


def judge_statement(said: JudgeRun | RecordedStatement) -> JudgeStatement:
    """Return the judge's statement that a ledger entry records."""
    return JudgeStatement(
        verdict=said.verdict,
        passes=said.votes.get("pass", 0),
        fails=said.votes.get("fail", 0),
        malformed=said.votes.get("malformed", 0),
        decided=not said.needs_human,
        margin=said.margin,
        reason=said.reason,
        guidance_step=said.guidance_step or 0,
    )


def kept_ticket(workspace: Workspace, entry: Entry) -> Ticket | None:
    """Return the ticket that the judge saw, from the evidence store; None if it is not on this machine."""
    name = entry.content.ticket if isinstance(entry.content, JudgeRun | Overridden) else None
    ticket = read_ticket(evidence_store(workspace), name)
    if isinstance(ticket, UnusableRecord):
        return None
    try:
        return ticket_of(msgspec.to_builtins(ticket), "evidence", ticket.mission, labelled=False)
    except DonewhenError:
        return None


def _open_items(context: _JobContext, record: JobRecord, history: History) -> Iterator[ReviewItem]:
    waiting = history.waiting
    decision = "" if waiting is None else waiting.read_as(Decided).decision
    last = next((entry for entry in reversed(context.entries) if entry.type in _ENDING), None)
    unverified = last if last is not None and last.type == "unverified" else None
    if decision != "dispute" and unverified is None:
        if record.judged:
            yield from _undecided(context)
        return
    statuses = [
        status
        for status in evidence_statuses(context.workspace, context.job)
        if status.requirement.name != VERIFICATION
    ]
    if waiting is not None and decision == "dispute":
        for status in statuses:
            if status.requirement.name in history.unanswered and _reviewable(status):
                yield _criterion_item(
                    context, status, "disputed", f"The agent says: {waiting.read_as(Decided).reason}", waiting
                )
    elif unverified is not None:
        for status in statuses:
            # Only a person's override settles it; an agent's does not.
            settled_by_person = (
                status.entry is not None and status.entry.type == "overridden" and status.entry.seq > unverified.seq
            )
            if _reviewable(status) and not settled_by_person:
                yield _criterion_item(context, status, "unverified", unverified.read_as(Unverified).why, unverified)


def _flaky(context: _JobContext, policy: Policy) -> Iterator[ReviewItem]:
    """Yield the criteria whose checks failed and then passed on the same files, if the work is as it was then."""
    workspace, job = context.workspace, context.job
    for criterion in job.criteria:
        if criterion.check is None or criterion.check.kind != "run":
            continue
        requirement = requirement_for(job, criterion.id)
        entry = newest_run(context.entries, requirement.evidence)
        run = None if entry is None else entry.read_as(CommandRun)
        if entry is None or run is None or run.room is None or not run.passed or not run.room.red_before:
            continue
        if open_signs(run.room.signs, decisions_on_signs(job.id, context.entries, policy)):
            # A verdict on the criterion would decide about these lines, too.
            continue
        if evidence_inputs(workspace, job).hash != run.parts.get("inputs"):
            continue
        subject = subject_of(workspace, job, requirement, context.entries)
        if newest_override(context.entries, job.id, requirement, subject, policy) is None:
            why = flaky_text(run.room.red_before)
            status = EvidenceStatus(requirement, "needs_human", (why,), entry, GateCode.RUN_FLAKY)
            yield _criterion_item(context, status, "flaky", KINDS["flaky"], entry)


def _undecided(context: _JobContext) -> Iterator[ReviewItem]:
    """Yield what a judge has left to people, if the work is unchanged and no person has decided it.

    This compares what was judged, not the state of all checks: checks also depend on the environment, and the
    reviewer's environment is seldom the agent's.
    """
    policy = approval_policy(context.workspace)
    for criterion in context.job.criteria:
        if criterion.check is None or criterion.check.kind != "judge":
            continue
        requirement = requirement_for(context.job, criterion.id)
        entry = newest_run(context.entries, requirement.evidence, "judge")
        run = None if entry is None else entry.read_as(JudgeRun)
        if entry is None or run is None or not run.needs_human:
            continue
        try:
            subject = subject_of(context.workspace, context.job, requirement, context.entries)
        except DonewhenError:
            continue
        same = run.parts.get("ticket") == subject
        if same and newest_override(context.entries, context.job.id, requirement, subject, policy) is None:
            reason = run.told or ""
            yield _criterion_item(
                context, EvidenceStatus(requirement, "needs_human", (reason,), entry), "low_agreement", reason, entry
            )


def _reviewable(status: EvidenceStatus) -> bool:
    return status.state != "passed" and status.requirement.check.kind != "manual"


def _to_look_at(context: _JobContext, policy: Policy) -> Iterator[ReviewItem]:
    """Yield the criteria that a person checks by hand, and those whose evidence is weaker than agreed, as soon as there
    is something to look at."""
    workspace, job, entries = context.workspace, context.job, context.entries
    manual = [requirement for requirement in requirements_of(job) if requirement.check.kind == "manual"]
    started = next((entry for entry in reversed(entries) if entry.type == "started"), None)
    if started is None:
        return
    if manual and is_ready_to_look_at(workspace, job, entries):
        for requirement in manual:
            signed = sign_off_of(workspace, job, requirement, entries, policy)
            if signed.state == "needs_human":
                status = EvidenceStatus(requirement, "needs_human", signed.why, signed.entry)
                why = one_line("; ".join(signed.why), 400).capitalize() + "."
                yield _criterion_item(context, status, "sign_off", why, signed.entry or started)
    last = last_evaluation(entries)
    refused = last.content if last is not None else None
    if isinstance(refused, Evaluated) and GateCode.EVIDENCE_WEAK in (refused.gates or {}).get("truth", ()):
        for status in evidence_statuses(workspace, job):
            if status.code == GateCode.EVIDENCE_WEAK:
                why = one_line("; ".join(status.why), 800)
                yield _criterion_item(context, status, "evidence_weak", why, status.entry or started)


def _criterion_item(context: _JobContext, status: EvidenceStatus, kind: Kind, why: str, since: Entry) -> ReviewItem:
    """Return the review item for a criterion, with all its evidence."""
    workspace, job, requirement = context.workspace, context.job, status.requirement
    ticket, mission, statement = None, None, None
    evidence: Mapping[str, str] = {}
    try:
        if requirement.check.kind == "judge":
            question = judge_question(workspace, job, requirement, context.entries)
            evidence = shown_texts(question.ticket.evidence)
            ticket, mission, subject = (
                question.ticket._replace(evidence=evidence),
                requirement.check.text,
                question.subject,
            )
            judged = newest_run(context.entries, requirement.evidence, "judge")
            run = None if judged is None else judged.read_as(JudgeRun)
            if run is not None and run.votes and run.parts.get("ticket") == subject:
                statement = judge_statement(run)
        else:
            subject = subject_of(workspace, job, requirement, context.entries)
            started = next((entry for entry in context.entries if entry.type == "started"), None)
            seen = checked_requirements(job, context.entries)
            evidence = shown_texts(job_artifacts(workspace, job, requirement, evidence_store(workspace), seen, started))
    except DonewhenError as error:
        subject, evidence = "", {"what is missing": str(error)}
    explanation = why
    if kind not in ("low_agreement", "sign_off", "evidence_weak") and statement is None:
        explanation += f" {requirement.name} {_STATES[status.state]}: {'; '.join(status.why)}"
    return ReviewItem(
        kind=kind,
        title=_title(job),
        question=f"{requirement.name}: {one_line(requirement.text, 300)}",
        why=one_line(explanation, 800),
        since=since.at,
        evidence=evidence,
        job=job.id,
        criteria=(requirement.name,),
        mission=mission,
        said=statement,
        labels=() if ticket is None or mission is None else labels_of(find_mission(workspace, mission), ticket),
        subject=subject,
        ticket=ticket,
        next=f"donewhen why {job.id}",
    )


_STATES = {
    "failed": "failed",
    "stale": "is stale",
    "missing": "has no evidence",
    "asserted": "is only asserted",
    "needs_human": "needs a person",
    "passed": "passed",
}


def labels_of(mission: Mission, ticket: Ticket) -> tuple[Label, ...]:
    """Return the latest label of each person for a ticket."""
    return tuple(current_labels(read_label_log(mission.folder)).get(ticket.group_id, {}).values())


def _spot_checks(context: _JobContext) -> Iterator[ReviewItem]:
    """Yield a sample of the decided verdicts; the choice depends only on what was judged."""
    for criterion in context.job.criteria:
        if criterion.check is None or criterion.check.kind != "judge":
            continue
        requirement = requirement_for(context.job, criterion.id)
        entry = newest_run(context.entries, requirement.evidence, "judge")
        run = None if entry is None else entry.read_as(JudgeRun)
        if entry is None or run is None or not run.key or run.needs_human:
            continue
        try:
            mission = find_mission(context.workspace, criterion.check.text)
            ticket = kept_ticket(context.workspace, entry)
        except DonewhenError:
            continue
        if ticket is None or not _sampled(run.key, mission.settings.manual_review.spot_check):
            continue
        if not labels_of(mission, ticket):
            yield _spot_check(context.job, requirement, entry, ticket)


def _spot_check(job: Job, requirement: Requirement, entry: Entry, ticket: Ticket) -> ReviewItem:
    run = entry.read_as(JudgeRun)
    return ReviewItem(
        kind="spot_check",
        title=_title(job),
        question=f"{requirement.name}: {one_line(requirement.text, 300)}",
        why=f"The judge decided {run.verdict}; no person has checked it yet.",
        since=entry.at,
        evidence=ticket.evidence,
        job=job.id,
        criteria=(requirement.name,),
        mission=requirement.check.text,
        said=judge_statement(run),
        subject=run.parts.get("ticket", ""),
        ticket=ticket,
    )


def _sampled(key: str, share: float) -> bool:
    return int(key.rpartition(":")[2][:8] or "0", 16) < share * 0x1_0000_0000


def _title(job: Job) -> str:
    return f"{job.id}  {one_line(job.title, 120)}"
