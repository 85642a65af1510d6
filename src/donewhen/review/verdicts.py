"""A person's verdict, and what becomes of it: an entry in the ledger, a labelled ticket, a gate that is overruled."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.board.views import update_views
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.judge.person_overrides import override_gate
from donewhen.jobs.ledger.approval import Approval, is_approval
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.lifecycle.invalidation import invalidate_jobs
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import finish_interrupted_write, record_and_project
from donewhen.judging.labels import JudgeStatement, add_label, label_for, read_label_log, update_tickets
from donewhen.judging.ticket import Ticket
from donewhen.learning.running.pool_store import record_answer
from donewhen.review.from_jobs import judge_statement, kept_ticket
from donewhen.review.from_missions import PERSON
from donewhen.review.items import ReviewItem

REVIEWED = "reviewed"
Verdict = Literal["pass", "fail"]


class RecordedVerdict(NamedTuple):
    """What became of a verdict."""

    entry: Entry
    counts: bool
    ticket: str | None
    """The key of the labelled ticket that it became."""
    told: str


def record_verdict(
    workspace: Workspace, item: ReviewItem, verdict: Verdict, approval: Approval, reason: str = ""
) -> RecordedVerdict:
    """Put a verdict on record, and let it have its effect. An agent's is recorded as what it is, and has none."""
    if verdict not in item.settles:
        raise UsageError(f"It can't be settled by {verdict}.", next_step=item.next or None)
    if item.mission is not None:
        # Nobody is to be told that it went wrong after it was put on record.
        read_label_log(find_mission(workspace, item.mission).folder)
    if item.job is not None and item.criterion is not None:
        return _about_job(workspace, item, item.job, item.criterion, verdict, approval, reason)
    return _about_mission(workspace, item, verdict, approval, reason)


def write_missing_labels(workspace: Workspace) -> int:
    """Make the tickets of verdicts that are in the ledger and nowhere else: whoever gave them was cut off."""
    made = 0
    policy = approval_policy(workspace)
    logs: dict[str, set[str]] = {}
    for job in survey_jobs(workspace).jobs:
        if not job.judged:
            continue
        words = [entry for entry in workspace.ledger.read(job.id).entries if entry.type == "overridden"]
        words = [entry for entry in words if entry.data.get("mission") and is_approval(entry, job.id, policy)]
        for at, entry in enumerate(words):
            name = str(entry.data["mission"])
            if name not in logs:
                logs[name] = _known(workspace, name)
            # What they said later about the same must stay their last word.
            later = any(_is_later(entry, other) and other.hash in logs[name] for other in words[at + 1 :])
            if entry.hash not in logs[name] and not later:
                made += _made_up(workspace, entry)
    return made


def _known(workspace: Workspace, name: str) -> set[str]:
    """The entries of which a mission has a label, and its tickets up to date with them."""
    try:
        mission = find_mission(workspace, name)
        update_tickets(mission.folder, mission.name)
        return {one.entry for one in read_label_log(mission.folder)}
    except DonewhenError:
        return set()


def _is_later(entry: Entry, other: Entry) -> bool:
    return other.by.name == entry.by.name and other.data.get("subject") == entry.data.get("subject")


def _about_job(
    workspace: Workspace, item: ReviewItem, name: str, criterion: str, verdict: Verdict, approval: Approval, reason: str
) -> RecordedVerdict:
    job = workspace.job(name)
    about: dict[str, Any] = {"asked": item.kind}
    if item.ticket is not None and item.mission is not None:
        from donewhen.jobs.judge.judge_evidence import ticket_data

        about |= {"mission": item.mission, "ticket": evidence_store(workspace).put_json(ticket_data(item.ticket))}
        if item.said is not None:
            about["said"] = _said_data(item.said)
    # A spot check is about what was judged, which may be history by now.
    seen = None if item.kind == "spot_check" else item.subject
    past = item.kind == "spot_check" and not _is_current(workspace, item, name, criterion)
    if past:
        entry = _on_project(workspace, item, verdict, approval, reason)
        counts = is_approval(entry, workspace.project().id, approval_policy(workspace))
    else:
        done = job.status == "done"
        entry, counts = override_gate(workspace, job, criterion, verdict, reason, approval, seen=seen, about=about)
        if done and counts and verdict == "fail":
            # With it, what was built on it.
            invalidate_jobs(workspace, approval_policy(workspace), approval.by)
    update_views(workspace, workspace.job_at(job.path))
    key = _labelled(workspace, item, verdict, approval, reason, entry) if counts else None
    effect = "it is on record, and does not count" if not counts else _effect(item, verdict, job.id, past=past)
    return RecordedVerdict(entry, counts, key, f"{job.id} {criterion}: {verdict}; {effect}.")


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
        return "the judge was right"
    if past:
        return "the judge was wrong, about work that has changed since; the job is as it was"
    if verdict == "pass":
        return f"the criterion counts as met for the work as it is; next: donewhen complete {job}"
    return f"the criterion counts as not met for the work as it is; next: donewhen why {job}"


def _about_mission(
    workspace: Workspace, item: ReviewItem, verdict: Verdict, approval: Approval, reason: str
) -> RecordedVerdict:
    entry = _on_project(workspace, item, verdict, approval, reason)
    update_views(workspace)
    if not is_approval(entry, workspace.project().id, approval_policy(workspace)):
        return RecordedVerdict(entry, False, None, "It is on record, and does not count.")
    if item.kind == "hypothesis":
        mission = find_mission(workspace, str(item.mission))
        record_answer(mission, item.subject, right=verdict == "pass", by=f"{PERSON}{approval.by.name}")
        message = (
            "it is supported by one cycle more" if verdict == "pass" else "it is not tried again without new tickets"
        )
        return RecordedVerdict(entry, True, None, f"{verdict}: {message}.")
    key = _labelled(workspace, item, verdict, approval, reason, entry)
    return RecordedVerdict(entry, True, key, f"Labelled {verdict}: {key}.")


def _on_project(workspace: Workspace, item: ReviewItem, verdict: Verdict, approval: Approval, reason: str) -> Entry:
    path = workspace.project_file
    with workspace.locked(path):
        project = workspace.project()
        document = finish_interrupted_write(
            workspace, workspace.read(path), path, workspace.ledger.read(project.id).entries
        )
        value = {"asked": item.kind, "mission": item.mission, "key": item.key, "subject": item.subject}
        data = {"decision": REVIEWED, "reason": reason.strip() or item.kind, "value": {**value, "verdict": verdict}}
        return record_and_project(workspace, project.id, document, path, "decided", data, approval, {})[0]


def _labelled(
    workspace: Workspace, item: ReviewItem, verdict: Verdict, approval: Approval, reason: str, entry: Entry
) -> str | None:
    if item.ticket is None or item.mission is None:
        return None
    mission = find_mission(workspace, item.mission)
    return _label(
        workspace, mission.folder, item.ticket, verdict, approval.by.name, entry, item.said, item.kind, reason
    )


def _made_up(workspace: Workspace, entry: Entry) -> bool:
    data = entry.data
    try:
        mission = find_mission(workspace, str(data["mission"]))
    except DonewhenError:
        return False
    ticket = kept_ticket(workspace, entry)
    if ticket is None:
        return False
    said = judge_statement(data["said"]) if isinstance(data.get("said"), dict) else None
    verdict: Verdict = "pass" if data.get("verdict") == "pass" else "fail"
    reason, asked = str(data.get("reason", "")), str(data.get("asked", ""))
    _label(workspace, mission.folder, ticket, verdict, entry.by.name, entry, said, asked, reason)
    return True


def _label(
    workspace: Workspace,
    folder: Path,
    ticket: Ticket,
    verdict: Verdict,
    by: str,
    entry: Entry,
    said: JudgeStatement | None,
    asked: str,
    reason: str,
) -> str:
    label = label_for(ticket, verdict, by, entry.at, reason=reason, asked=asked, said=said, entry=entry.hash)
    add_label(folder, ticket.mission, label)
    return f"{ticket.group_id}::{verdict}"


def _said_data(said: JudgeStatement) -> dict[str, Any]:
    """As the entries of judges have it."""
    return {
        "verdict": said.verdict,
        "votes": {"pass": said.passes, "fail": said.fails, "malformed": said.malformed},
        "needs_human": not said.decided,
        "margin": said.margin,
        "reason": said.reason,
        "guidance_step": said.guidance_step,
    }
