"""Record a person's verdict: a ledger entry, a labelled ticket, an override of a gate."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from donewhen.foundation.binary import Binary
from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.evidence.records import put_record
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.judge.person_overrides import override_gate
from donewhen.jobs.ledger.approval import Approval, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Overridden
from donewhen.jobs.lifecycle.invalidation import invalidate_jobs
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import writing
from donewhen.judging.labels import JudgeStatement, add_label, label_for, read_label_log, ticket_hash, update_tickets
from donewhen.judging.ticket import Ticket
from donewhen.learning.running.pool_store import record_answer
from donewhen.review.decisions import ABOUT_WAITING, decide_waiting
from donewhen.review.from_changes import decide_changes
from donewhen.review.from_jobs import judge_statement, kept_ticket
from donewhen.review.from_missions import PERSON
from donewhen.review.from_signs import decide_signs
from donewhen.review.items import Choice, ReviewItem

REVIEWED = "reviewed"
Verdict: TypeAlias = Binary


class RecordedVerdict(NamedTuple):
    """The effect of a verdict."""

    entry: Entry
    counts: bool
    ticket: str | None
    """The key of the labelled ticket, if one was written."""
    told: str


def record_verdict(
    workspace: Workspace, item: ReviewItem, choice: Choice, approval: Approval, reason: str = ""
) -> RecordedVerdict:
    """Record an answer and apply it. An agent's answer is recorded as such and has no effect."""
    if choice not in item.settles:
        raise UsageError(f"This item can't be settled with the answer {choice!r}.", next_step=item.next or None)
    if item.kind in ABOUT_WAITING:
        done = decide_waiting(workspace, item, choice, approval, reason)
        effect = done.effect if done.counts else "it is recorded, but does not count."
        about = f" {item.criterion}" if item.criterion else ""
        return RecordedVerdict(done.entry, done.counts, None, f"{item.job}{about}: {effect}")
    verdict: Verdict = "pass" if choice == "pass" else "fail"
    if item.about_changes and item.job is not None:
        return _record_on_changes(workspace, item, item.job, verdict, approval, reason)
    if item.mission is not None:
        # Fail on an unreadable label log before the verdict is recorded, not after.
        read_label_log(find_mission(workspace, item.mission).folder)
    if item.job is not None and item.criterion is not None:
        return _record_on_job(workspace, item, item.job, item.criterion, verdict, approval, reason)
    return _record_on_mission(workspace, item, verdict, approval, reason)


def write_missing_labels(workspace: Workspace) -> int:
    """Write the labels of verdicts that were recorded in the ledger only, because the review was interrupted."""
    made = 0
    policy = approval_policy(workspace)
    logs: dict[str, set[str]] = {}
    for job in survey_jobs(workspace).jobs:
        if not job.judged:
            continue
        overrides = [
            (entry, entry.content.mission)
            for entry in workspace.ledger.read(job.id).entries
            if isinstance(entry.content, Overridden) and entry.content.mission and is_approval(entry, job.id, policy)
        ]
        for at, (entry, name) in enumerate(overrides):
            if name not in logs:
                logs[name] = _labelled_entries(workspace, name)
            # A later verdict of the same person on the same subject must stay the latest.
            later = any(_is_later(entry, other) and other.hash in logs[name] for other, _ in overrides[at + 1 :])
            if entry.hash not in logs[name] and not later:
                made += _label_from_entry(workspace, entry)
    return made


def _labelled_entries(workspace: Workspace, name: str) -> set[str]:
    """Update a mission's tickets, and return the ledger entries that already have a label."""
    try:
        mission = find_mission(workspace, name)
        update_tickets(mission.folder, mission.name)
        return {label.entry for label in read_label_log(mission.folder)}
    except DonewhenError:
        return set()


def _is_later(entry: Entry, other: Entry) -> bool:
    return other.by.name == entry.by.name and other.read_as(Overridden).subject == entry.read_as(Overridden).subject


def _record_on_job(
    workspace: Workspace, item: ReviewItem, name: str, criterion: str, verdict: Verdict, approval: Approval, reason: str
) -> RecordedVerdict:
    job = workspace.job(name)
    about: dict[str, Any] = {"asked": item.kind}
    if item.ticket is not None and item.mission is not None:
        from donewhen.jobs.judge.judge_evidence import stored_ticket

        ticket = put_record(evidence_store(workspace), stored_ticket(item.ticket))
        about |= {"mission": item.mission, "ticket": ticket, **_stored_hash(item)}
        if item.said is not None:
            about["said"] = _statement_data(item.said)
    # A spot check is about what was judged, which may have changed since.
    seen = None if item.kind == "spot_check" else item.subject
    past = item.kind == "spot_check" and not _is_current(workspace, item, name, criterion)
    if past:
        entry = _record_on_project(workspace, item, verdict, approval, reason)
        counts = is_approval(entry, workspace.project().id, approval_policy(workspace))
    else:
        done = job.status == "done"
        entry, counts = override_gate(workspace, job, criterion, verdict, reason, approval, seen=seen, about=about)
        if done and counts and verdict == "fail":
            # Jobs that depend on it are invalidated too.
            invalidate_jobs(workspace, approval_policy(workspace), approval.by)
    key = _label_ticket(workspace, item, verdict, approval, reason, entry) if counts else None
    effect = "it is recorded, but does not count." if not counts else _effect(item, verdict, job.id, past=past)
    return RecordedVerdict(entry, counts, key, f"{job.id} {criterion}: {verdict}; {effect}")


def _record_on_changes(
    workspace: Workspace, item: ReviewItem, name: str, verdict: Verdict, approval: Approval, reason: str
) -> RecordedVerdict:
    accepted = verdict == "pass"
    signs = item.kind == "signs_found"
    decide = decide_signs if signs else decide_changes
    entry, counts = decide(workspace, item, workspace.job(name), approval, reason, accepted=accepted)
    what = f"{'lines of ' if signs else ''}{len(item.files)} changed file(s) {'accepted' if accepted else 'refused'}"
    if not counts:
        effect = "it is recorded, but does not count."
    elif accepted:
        effect = f"next: donewhen complete {name}"
    else:
        effect = f"the check fails until they change; next: donewhen why {name}"
    return RecordedVerdict(entry, counts, None, f"{name}: {what}; {effect}")


def _is_current(workspace: Workspace, item: ReviewItem, name: str, criterion: str) -> bool:
    from donewhen.jobs.evidence.requirements import requirement_for
    from donewhen.jobs.judge.person_overrides import subject_of

    job = workspace.job(name)
    try:
        subject = subject_of(workspace, job, requirement_for(job, criterion), workspace.ledger.read(job.id).entries)
    except DonewhenError:
        return False
    return subject == item.subject


def _effect(item: ReviewItem, verdict: Verdict, job: str, *, past: bool) -> str:
    agreed = item.said is not None and item.said.decided and item.said.verdict == verdict
    if item.kind == "spot_check" and agreed:
        return "the judge was right."
    if past:
        return "the judge was wrong about an earlier state of the work; the job is unchanged."
    if verdict == "pass":
        return f"the criterion counts as met for the current work; next: donewhen complete {job}"
    return f"the criterion counts as not met for the current work; next: donewhen why {job}"


def _record_on_mission(
    workspace: Workspace, item: ReviewItem, verdict: Verdict, approval: Approval, reason: str
) -> RecordedVerdict:
    entry = _record_on_project(workspace, item, verdict, approval, reason)
    if not is_approval(entry, workspace.project().id, approval_policy(workspace)):
        return RecordedVerdict(entry, False, None, "It is recorded, but does not count.")
    if item.kind == "hypothesis":
        mission = find_mission(workspace, str(item.mission))
        record_answer(mission, item.subject, right=verdict == "pass", by=f"{PERSON}{approval.by.name}")
        message = (
            "the rule has one more cycle of support"
            if verdict == "pass"
            else "the rule is not tried again without new tickets"
        )
        return RecordedVerdict(entry, True, None, f"{verdict}: {message}.")
    key = _label_ticket(workspace, item, verdict, approval, reason, entry)
    return RecordedVerdict(entry, True, key, f"Labelled {verdict}: {key}.")


def _record_on_project(
    workspace: Workspace, item: ReviewItem, verdict: Verdict, approval: Approval, reason: str
) -> Entry:
    path = workspace.project_file
    with writing(workspace, path) as plan:
        value = {"asked": item.kind, "mission": item.mission, "key": item.key, "subject": item.subject}
        value |= _stored_hash(item)
        data = {"decision": REVIEWED, "reason": reason.strip() or item.kind, "value": {**value, "verdict": verdict}}
        return plan.append("decided", data, approval)


def _stored_hash(item: ReviewItem) -> dict[str, str]:
    """The hash of the ticket as it is stored, if that is not the text that was judged."""
    stored = "" if item.ticket is None else ticket_hash(item.ticket)
    return {"stored": stored} if item.subject and stored not in ("", item.subject) else {}


def _label_ticket(
    workspace: Workspace, item: ReviewItem, verdict: Verdict, approval: Approval, reason: str, entry: Entry
) -> str | None:
    if item.ticket is None or item.mission is None:
        return None
    mission = find_mission(workspace, item.mission)
    return _write_label(
        workspace, mission.folder, item.ticket, verdict, approval.by.name, entry, item.said, item.kind, reason
    )


def _label_from_entry(workspace: Workspace, entry: Entry) -> bool:
    override = entry.read_as(Overridden)
    try:
        mission = find_mission(workspace, override.mission or "")
    except DonewhenError:
        return False
    ticket = kept_ticket(workspace, entry)
    if ticket is None:
        return False
    statement = None if override.said is None else judge_statement(override.said)
    verdict: Verdict = "pass" if override.verdict == "pass" else "fail"
    _write_label(
        workspace, mission.folder, ticket, verdict, entry.by.name, entry, statement, override.asked, override.reason
    )
    return True


def _write_label(
    workspace: Workspace,
    folder: Path,
    ticket: Ticket,
    verdict: Verdict,
    by: str,
    entry: Entry,
    statement: JudgeStatement | None,
    asked: str,
    reason: str,
) -> str:
    label = label_for(ticket, verdict, by, entry.at, reason=reason, asked=asked, said=statement, entry=entry.hash)
    add_label(folder, ticket.mission, label)
    return f"{ticket.group_id}::{verdict}"


def _statement_data(statement: JudgeStatement) -> dict[str, Any]:
    """Return the statement in the form of a judge's ledger entry."""
    return {
        "verdict": statement.verdict,
        "votes": {"pass": statement.passes, "fail": statement.fails, "malformed": statement.malformed},
        "needs_human": not statement.decided,
        "margin": statement.margin,
        "reason": statement.reason,
        "guidance_step": statement.guidance_step,
    }
