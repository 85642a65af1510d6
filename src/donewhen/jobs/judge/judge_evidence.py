"""A judge's verdict as evidence: the gate asks it about the actual artifacts, with frozen guidance.

A judge never decides alone. It is asked only when every other check has passed, and if its votes don't agree, a
person decides.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
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
    outputs_not_shown,
)
from donewhen.jobs.judge.missions import find_mission, gate_guidance
from donewhen.jobs.ledger.approval import is_approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.entry_content import JudgeRun
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

if TYPE_CHECKING:
    from donewhen.judging.guidance import Guidance
    from donewhen.judging.mission import Mission
    from donewhen.judging.ticket import Ticket
    from donewhen.judging.verdict import Verdict

NOTHING_TO_JUDGE = "there is nothing to judge: no output, no change, no evidence collected by the gate"


class JudgeQuestion(NamedTuple):
    """The question for a judge, and everything that its answer depends on."""

    mission: Mission
    guidance: Guidance
    ticket: Ticket
    parts: Mapping[str, str]

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
    ticket = job_ticket(
        workspace, job, requirement, mission, evidence_store(workspace), checked_requirements(job, entries), started
    )
    if ticket is None:
        raise NothingToJudgeError(f"{requirement.name}: {NOTHING_TO_JUDGE}.")
    parts = {
        "ticket": ticket_hash(ticket),
        "guidance": guidance.hash,
        "judge": digest_of([name, terms_of_mission(mission), *_unread_guidance(mission, guidance)]),
    }
    return JudgeQuestion(mission, guidance, ticket, parts)


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
        verdict, model = judge_ticket(question.ticket, question.mission, question.guidance)
    except DonewhenError as error:
        # The ledger is shared, so it must not contain the project's path on this machine.
        message = redact_secrets(str(error)).replace(f"{workspace.root}/", "")
        data = {**_run_fields(job, requirement), "key": "", "settled": False, "passed": False, "told": message}
        return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=str(error))
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
        **_limit_retries(refusals, job, verdict_data(verdict, question.mission, question.guidance, question.ticket)),
        "model": model,
        "guidance_step": question.guidance.step,
        "ticket": put_record(evidence_store(workspace), stored_ticket(question.ticket)),
    }
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=str(data["told"]))


def count_refusals(
    entries: Sequence[Entry],
    requirement: Requirement,
    counts: Callable[[Entry], bool] = lambda entry: entry.by.kind == "person",
) -> int:
    """Count the versions of the work that the judge did not pass since the last decision by an entitled person."""
    name = evidence_name(requirement.evidence)
    tickets: set[str] = set()
    for entry in reversed(entries):
        if entry.type in ("decided", "overridden", "agreed") and counts(entry):
            break
        run = entry.content
        if isinstance(run, JudgeRun) and run.evidence == name and run.parts and not run.passed:
            tickets.add(run.parts.get("ticket", ""))
    return len(tickets)


def _limit_retries(refusals: int, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    """Leave a pass to a person after more refused versions than the job has iterations: retrying wears a judge down."""
    if not data["passed"] or refusals <= job.max_iterations:
        return data
    message = f"{data['told']}; the judge did not pass {refusals} earlier versions, so a person must decide"
    return {**data, "passed": False, "needs_human": True, "told": message}


def verdict_data(verdict: Verdict, mission: Mission, guidance: Guidance, ticket: Ticket) -> dict[str, Any]:
    """Return the ledger data of a verdict.

    A person decides if too few votes agree, the judge is not competent, it can't read a rule that might change its
    verdict, or it passes work that it has not fully seen.
    """
    from donewhen.judging.competence import reason_not_competent

    doubt = None
    if verdict.verdict == "pass":
        unseen = outputs_not_shown(ticket.evidence)
        omission = f"the judge did not see all of {one_line(', '.join(unseen), 200)}" if unseen else None
        doubt = reason_not_competent(mission, guidance) or omission
    if verdict.unread_rules:
        doubt = f"the judge can't read {', '.join(verdict.unread_rules)}, which might change its verdict"
    votes = verdict.passes + verdict.fails + verdict.malformed
    # Malformed votes count, too: a single good answer among three is no agreement.
    agreement = max(verdict.passes, verdict.fails) / votes if votes else 0.0
    decided = verdict.overridden_by is not None or (
        verdict.verdict is not None
        and doubt is None
        and agreement >= mission.settings.manual_review.min_verdict_agreement
    )
    reason = redact_secrets(one_line(verdict.reason, 400))
    counted = f"{verdict.passes}:{verdict.fails}" + (f", {verdict.malformed} unusable" if verdict.malformed else "")
    by = f"guidance step {verdict.guidance_step}"
    summary = f"the judge says {verdict.verdict}" if decided else "the judge's votes don't agree"
    if doubt is not None and not decided:
        summary = doubt
    if verdict.verdict is None:
        summary = "the judge gave no usable answer"
    return {
        "passed": decided and verdict.verdict == "pass",
        "needs_human": not decided,
        "verdict": verdict.verdict,
        "votes": {"pass": verdict.passes, "fail": verdict.fails, "malformed": verdict.malformed},
        "agreement": round(agreement, 4),
        "margin": None if verdict.margin is None else round(verdict.margin, 4),
        "reason": reason,
        "overridden_by": verdict.overridden_by,
        "told": f"{summary} ({counted}, {by})" + (f": {reason.rstrip('.')}" if reason else ""),
    }


def stored_ticket(ticket: Ticket) -> StoredTicket:
    """Return a ticket as the evidence store keeps it."""
    return StoredTicket(
        group_id=ticket.group_id, mission=ticket.mission, cluster=ticket.cluster, evidence=dict(ticket.evidence)
    )


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


def judge_ticket(ticket: Ticket, mission: Mission, guidance: Guidance) -> tuple[Verdict, str]:
    """Return the judge's verdict and the name of its model, within the mission's budget.

    Also works inside a running event loop.
    """
    from donewhen.judging.judge import Judge
    from donewhen.judging.mission_budget import spending_limits
    from donewhen.models import executors
    from donewhen.models.metered import Meter, MeteredModel

    model = executors.InProcessExecutor().open(mission.settings.model)
    began = mission.clock.monotonic()
    meter = Meter(spending_limits(mission, model), elapsed=lambda: mission.clock.monotonic() - began)
    # No answer cache: anybody can write to the cache in the mission's folder. The ledger records what was asked.
    judge = Judge(mission.able_to_judge(), guidance, MeteredModel(model, meter))
    return _judge_outside_loop(judge, ticket), model.name


def _judge_outside_loop(judge: Any, ticket: Ticket) -> Verdict:
    verdict: Verdict
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        verdict = judge.judge(ticket)
        return verdict
    with ThreadPoolExecutor(1, thread_name_prefix="donewhen-judge") as pool:
        verdict = pool.submit(judge.judge, ticket).result()
    return verdict
