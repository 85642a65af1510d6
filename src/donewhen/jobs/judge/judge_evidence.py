"""A judge's verdict as evidence: the gate asks it about the actual artifacts, with frozen guidance.

A judge never decides alone. It is asked only when every other check has passed, and if its votes don't agree, a
person decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.evidence.commands import (
    EvidenceRun,
    append_run,
    evidence_name,
    evidence_names,
    evidence_store,
    find_fresh_run,
    newest_run,
)
from donewhen.jobs.evidence.records import StoredTicket, put_record
from donewhen.jobs.evidence.requirements import Requirement, is_required_evidence
from donewhen.jobs.judge.job_ticket import (
    CheckedRequirement,
    job_ticket,
    machine_checked_requirements,
    redacted_runs,
    shown_texts,
    uncut_artifacts,
)
from donewhen.jobs.judge.missions import find_mission, gate_guidance
from donewhen.jobs.judge.verdict_record import verdict_data
from donewhen.jobs.judge.withheld import why_withheld
from donewhen.jobs.ledger.approval import is_approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import JudgeRun
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

if TYPE_CHECKING:
    from donewhen.judging.guidance import Guidance
    from donewhen.judging.mission import Mission
    from donewhen.judging.ticket import Ticket
    from donewhen.judging.two_readings import TwoReadings

_BUDGET = "budget_exhausted"
NOTHING_TO_JUDGE = "there is nothing to judge: no output, no change, no evidence collected by the gate"


class JudgeQuestion(NamedTuple):
    """The question for a judge, and everything that its answer depends on."""

    mission: Mission
    guidance: Guidance
    ticket: Ticket
    parts: Mapping[str, str]
    redacted: tuple[str, ...] = ()
    """The commands whose output in the ticket lacks what looked like a secret."""

    @property
    def key(self) -> str:
        return digest_of(dict(self.parts))

    @property
    def subject(self) -> str:
        """The hash of what is judged, independent of the judge."""
        return self.parts["ticket"]


class NothingToJudgeError(DonewhenError):
    """There is no artifact to judge."""

    code = "nothing_to_judge"


def judge_question(workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry]) -> JudgeQuestion:
    """Build the question from the current state; raise DonewhenError if that is impossible."""
    from donewhen.judging.labels import ticket_hash
    from donewhen.judging.mission_terms import terms_of_mission

    name = requirement.check.text
    mission = find_mission(workspace, name)
    guidance = gate_guidance(workspace, name, mission)
    started = next((entry for entry in entries if entry.type == "started"), None)
    checked = checked_requirements(job, entries)
    ticket = job_ticket(workspace, job, requirement, mission, evidence_store(workspace), checked, started)
    if ticket is None:
        raise NothingToJudgeError(f"{requirement.name}: {NOTHING_TO_JUDGE}.")
    parts = {
        "ticket": ticket_hash(ticket),
        "guidance": guidance.hash,
        "judge": digest_of([name, terms_of_mission(mission), *_unread_guidance(mission, guidance)]),
    }
    redacted = redacted_runs(checked) if "evidence" in mission.settings.from_job.parts else ()
    return JudgeQuestion(mission, guidance, ticket, parts, redacted)


def _unread_guidance(mission: Mission, guidance: Guidance) -> tuple[str, ...]:
    """The guidance rules that the model can't read.

    Part of the question, so that a pass from a version that ignored such rules is not reused. For all other judges the
    question is the same as before.
    """
    from donewhen.judging.competence import unread_by_default_model

    return tuple(rule.key for rule in unread_by_default_model(mission, guidance) if not rule.scaffold)


def checked_requirements(job: Job, entries: Sequence[Entry]) -> tuple[CheckedRequirement, ...]:
    """Return the newest run for each requirement that the gate checks itself."""
    by_evidence = {
        requirement.evidence: CheckedRequirement(requirement, entry)
        for requirement in machine_checked_requirements(job)
        if (entry := _newest_check(requirement, entries)) is not None
    }
    return tuple(by_evidence.values())


def ask_judge(
    workspace: Workspace, job: Job, requirement: Requirement, by: Actor, *, again: bool = False
) -> EvidenceRun:
    """Ask the judge of a criterion and record the answer; the recorded answer to the same question is reused.

    A judge that can't be asked is recorded as not passed.
    """
    entries = workspace.ledger.read(job.id).entries
    try:
        question = judge_question(workspace, job, requirement, entries)
        fresh_run = None if again else find_fresh_run(entries, requirement.evidence, question.key, "judge")
        if fresh_run is not None:
            return EvidenceRun(fresh_run, reused=True, output=fresh_run.read_as(JudgeRun).told or "")
    except DonewhenError as error:
        return _not_asked(workspace, job, requirement, error, by)
    withheld = _why_not_sent(workspace, job, requirement, entries, question)
    if withheld is not None:
        return _not_sent(workspace, job, requirement, question, withheld, entries, by)
    from donewhen.judging.two_readings import judge_both_readings

    try:
        readings = judge_both_readings(question.ticket, question.mission, question.guidance)
    except DonewhenError as error:
        reachable = error.code == _BUDGET
        return _not_asked(workspace, job, requirement, error, by, None if reachable else GateCode.JUDGE_UNREACHABLE)
    if (silence := _no_answer(readings)) is not None:
        return _not_asked(workspace, job, requirement, silence, by, GateCode.JUDGE_UNREACHABLE)
    try:
        now = judge_question(workspace, job, requirement, entries).key
    except DonewhenError:
        # What was judged no longer exists, which counts as a change.
        now = ""
    policy = approval_policy(workspace)
    refusals = count_refusals(entries, requirement, lambda entry: is_approval(entry, job.id, policy))
    data = {
        **_run_fields(job, requirement),
        "key": question.key,
        "parts": dict(question.parts),
        "settled": now == question.key,
        **_limit_retries(refusals, job, readings_data(readings, question)),
        "model": readings.model,
        "guidance_step": question.guidance.step,
        "ticket": put_record(evidence_store(workspace), stored_ticket(question.ticket)),
    }
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=str(data["told"]))


def _why_not_sent(
    workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry], question: JudgeQuestion
) -> str | None:
    def uncut() -> Mapping[str, str]:
        settings = question.mission.settings.from_job
        started = next((entry for entry in entries if entry.type == "started"), None)
        checked = checked_requirements(job, entries)
        return uncut_artifacts(
            *(workspace, job, requirement, evidence_store(workspace), checked, started),
            parts=settings.parts,
            most=settings.max_chars,
        )

    return why_withheld(question.mission, question.ticket.evidence, uncut)


def _not_sent(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    question: JudgeQuestion,
    why: str,
    entries: Sequence[Entry],
    by: Actor,
) -> EvidenceRun:
    """Leave the criterion to a person, without asking the judge."""
    # Never the key of a verdict: the judge is asked as soon as nothing is in the way.
    key = digest_of([question.key, "not sent", why])
    fresh_run = find_fresh_run(entries, requirement.evidence, key, "judge")
    if fresh_run is not None:
        return EvidenceRun(fresh_run, reused=True, output=why)
    told = redact_secrets(f"{why}; a person must decide")
    data = {
        **_run_fields(job, requirement),
        "key": key,
        "parts": dict(question.parts),
        "settled": True,
        "passed": False,
        "needs_human": True,
        "told": told,
        "model": question.mission.settings.model,
        "guidance_step": question.guidance.step,
        "ticket": put_record(evidence_store(workspace), stored_ticket(question.ticket)),
    }
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=told)


def _not_asked(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    error: DonewhenError,
    by: Actor,
    hindrance: GateCode | None = None,
) -> EvidenceRun:
    """Record why a judge could not be asked; ``hindrance`` if that says nothing about the work."""
    # The ledger is shared, so it must not contain the project's path on this machine.
    message = redact_secrets(str(error)).replace(f"{workspace.root}/", "")
    data = {**_run_fields(job, requirement), "key": "", "settled": False, "passed": False, "told": message}
    if hindrance is not None:
        data["hindrance"] = hindrance.value
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=str(error))


def _no_answer(readings: TwoReadings) -> DonewhenError | None:
    """The error if the model answered nothing at all; a single answer, even an unusable one, is a verdict."""
    from donewhen.models.roles import ModelError

    for verdict in filter(None, (readings.verdict, readings.second)):
        silent = all(kind == "no_answer" for kind, _ in verdict.answers)
        if verdict.overridden_by is None and verdict.answers and silent:
            return ModelError(f"The model {readings.model} does not answer: {one_line(verdict.answers[0][1], 400)}")
    return None


def count_refusals(
    entries: Sequence[Entry],
    requirement: Requirement,
    counts: Callable[[Entry], bool] = lambda entry: entry.by.kind == "person",
) -> int:
    """Count the versions of the work that the judge did not pass since the last decision by an entitled person."""
    names = evidence_names(requirement.evidence)
    tickets: set[str] = set()
    for entry in reversed(entries):
        if entry.type in ("decided", "overridden", "agreed") and counts(entry):
            break
        run = entry.content
        # Without votes, the judge was not asked.
        if isinstance(run, JudgeRun) and run.evidence in names and run.votes and run.parts and not run.passed:
            tickets.add(run.parts.get("ticket", ""))
    return len(tickets)


def _limit_retries(refusals: int, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    """Leave a pass to a person after more refused versions than the job has iterations: retrying wears a judge down."""
    if not data["passed"] or refusals <= job.max_iterations:
        return data
    message = f"{data['told']}; the judge did not pass {refusals} earlier versions, so a person must decide"
    return {**data, "passed": False, "needs_human": True, "told": message}


def readings_data(readings: TwoReadings, question: JudgeQuestion) -> dict[str, Any]:
    """Return the ledger data of a verdict about a job."""
    redacted = f"the output of {one_line(', '.join(question.redacted), 200)}" if question.redacted else ""
    unseen = f"{redacted}, in which secrets were redacted" if redacted else ""
    return verdict_data(readings, question.mission, question.guidance, question.ticket, unseen=unseen)


def stored_ticket(ticket: Ticket) -> StoredTicket:
    """Return a ticket as the evidence store keeps it: without secrets. The entry has the hash of the exact text."""
    evidence = shown_texts(ticket.evidence)
    return StoredTicket(group_id=ticket.group_id, mission=ticket.mission, cluster=ticket.cluster, evidence=evidence)


def _run_fields(job: Job, requirement: Requirement) -> dict[str, Any]:
    return {
        "what": "judge",
        "evidence": evidence_name(requirement.evidence),
        "criterion": requirement.name,
        "asked_for": is_required_evidence(job, requirement.evidence, "judge"),
        "mission": requirement.check.text,
    }


def _newest_check(requirement: Requirement, entries: Sequence[Entry]) -> Entry | None:
    return newest_run(entries, requirement.evidence, "file" if requirement.check.kind == "file" else "command")
