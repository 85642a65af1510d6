"""A judge's verdict as evidence: asked by the gate itself, about what is really there, by guidance that is frozen.

It never decides alone. It is asked only when every check that needs no judge has passed, and where its votes don't
agree, a person decides.
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
from donewhen.jobs.evidence.requirements import Requirement, is_required_evidence
from donewhen.jobs.judge.job_ticket import ShownRequirement, hard_requirements, job_ticket, outputs_not_shown
from donewhen.jobs.judge.missions import find_mission, gate_guidance
from donewhen.jobs.ledger.approval import is_approval
from donewhen.jobs.ledger.ledger import Actor, Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

if TYPE_CHECKING:
    from donewhen.judging.guidance import Guidance
    from donewhen.judging.mission import Mission
    from donewhen.judging.ticket import Ticket
    from donewhen.judging.verdict import Verdict

TICKET = "donewhen/ticket/v1"
NOTHING_TO_JUDGE = "there is nothing to judge but words: no output, no change, nothing that the gate saw"


class JudgeQuestion(NamedTuple):
    """What a judge would be asked now, and everything that its answer depends on."""

    mission: Mission
    guidance: Guidance
    ticket: Ticket
    parts: Mapping[str, str]

    @property
    def key(self) -> str:
        return digest_of(dict(self.parts))

    @property
    def subject(self) -> str:
        """The name of what is judged, whoever judges it."""
        return self.parts["ticket"]


class NothingToJudgeError(DonewhenError):
    """There is no artifact that a judge could look at."""

    code = "nothing_to_judge"


def judge_question(workspace: Workspace, job: Job, requirement: Requirement, entries: Sequence[Entry]) -> JudgeQuestion:
    """The question, put together from what is there now; an error where it can't be."""
    from donewhen.judging.labels import ticket_hash
    from donewhen.judging.mission_terms import terms_of_mission

    name = requirement.check.text
    mission = find_mission(workspace, name)
    guidance = gate_guidance(workspace, name, mission)
    started = next((entry for entry in entries if entry.type == "started"), None)
    ticket = job_ticket(
        workspace, job, requirement, mission, evidence_store(workspace), shown_requirements(job, entries), started
    )
    if ticket is None:
        raise NothingToJudgeError(f"{requirement.name}: {NOTHING_TO_JUDGE}.")
    parts = {
        "ticket": ticket_hash(ticket),
        "guidance": guidance.hash,
        "judge": digest_of([name, terms_of_mission(mission)]),
    }
    return JudgeQuestion(mission, guidance, ticket, parts)


def shown_requirements(job: Job, entries: Sequence[Entry]) -> tuple[ShownRequirement, ...]:
    """What the gate itself ran and saw last, for each thing that it can decide."""
    found = {
        requirement.evidence: ShownRequirement(requirement, entry)
        for requirement in hard_requirements(job)
        if (entry := _newest(requirement, entries)) is not None
    }
    return tuple(found.values())


def ask_judge(
    workspace: Workspace, job: Job, requirement: Requirement, by: Actor, *, again: bool = False
) -> EvidenceRun:
    """Ask the judge of a criterion and write down what it said; the same question is not asked twice.

    A judge that can't be asked is on record, too, and shows nothing.
    """
    entries = workspace.ledger.read(job.id).entries
    try:
        question = judge_question(workspace, job, requirement, entries)
        known = None if again else find_fresh_run(entries, requirement.evidence, question.key, "judge")
        if known is not None:
            return EvidenceRun(known, reused=True, output=str(known.data.get("told", "")))
        verdict, model = judge_ticket(question.ticket, question.mission, question.guidance)
    except DonewhenError as error:
        # The ledger is read on other machines, too: where the project lies on this one is nobody's business there.
        told = redact_secrets(str(error)).replace(f"{workspace.root}/", "")
        data = {**_about(job, requirement), "key": "", "settled": False, "passed": False, "told": told}
        return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=str(error))
    try:
        now = judge_question(workspace, job, requirement, entries).key
    except DonewhenError:
        # What was judged is gone, which is a change like others.
        now = ""
    policy = approval_policy(workspace)
    tries = count_refusals(entries, requirement, lambda entry: is_approval(entry, job.id, policy))
    data = {
        **_about(job, requirement),
        "key": question.key,
        "parts": dict(question.parts),
        "settled": now == question.key,
        **_after(tries, job, verdict_data(verdict, question.mission, question.guidance, question.ticket)),
        "model": model,
        "guidance_step": question.guidance.step,
        "ticket": evidence_store(workspace).put_json(ticket_data(question.ticket)),
    }
    return EvidenceRun(append_run(workspace, job, data, by), reused=False, output=str(data["told"]))


def count_refusals(
    entries: Sequence[Entry],
    requirement: Requirement,
    counts: Callable[[Entry], bool] = lambda entry: entry.by.kind == "person",
) -> int:
    """How many versions of the work the judge did not pass since somebody whose word counts last said something."""
    name = evidence_name(requirement.evidence)
    seen: set[str] = set()
    for entry in reversed(entries):
        if entry.type in ("decided", "overridden", "agreed") and counts(entry):
            break
        if entry.type == "ran" and (entry.data.get("what"), entry.data.get("evidence")) == ("judge", name):
            parts = entry.data.get("parts")
            if isinstance(parts, Mapping) and entry.data.get("passed") is not True:
                seen.add(str(parts.get("ticket")))
    return len(seen)


def _after(refused: int, job: Job, data: dict[str, Any]) -> dict[str, Any]:
    """A pass after more versions than the job may take tries says that the judge gave in, not that the work is good."""
    if not data["passed"] or refused <= job.max_iterations:
        return data
    message = f"{data['told']}; it did not pass {refused} versions before this one, so a person decides"
    return {**data, "passed": False, "needs_human": True, "told": message}


def verdict_data(verdict: Verdict, mission: Mission, guidance: Guidance, ticket: Ticket) -> dict[str, Any]:
    """What is kept of a verdict, and whether it is one: a person decides where too few votes agree, and where the judge
    is not able to, or has not seen what it passes."""
    from donewhen.judging.competence import reason_not_competent

    unable = None
    if verdict.verdict == "pass":
        unseen = outputs_not_shown(ticket.evidence)
        told = f"the judge was not shown all of {one_line(', '.join(unseen), 200)}" if unseen else None
        unable = reason_not_competent(mission, guidance) or told
    votes = verdict.passes + verdict.fails + verdict.malformed
    # Malformed votes count, too: one good answer among three is no agreement.
    agreement = max(verdict.passes, verdict.fails) / votes if votes else 0.0
    decided = verdict.overridden_by is not None or (
        verdict.verdict is not None
        and unable is None
        and agreement >= mission.settings.manual_review.min_verdict_agreement
    )
    reason = redact_secrets(one_line(verdict.reason, 400))
    counted = f"{verdict.passes}:{verdict.fails}" + (f", {verdict.malformed} unusable" if verdict.malformed else "")
    by = f"guidance step {verdict.guidance_step}"
    said = f"the judge says {verdict.verdict}" if decided else "the judge's votes don't agree"
    if unable is not None and not decided:
        said = unable
    if verdict.verdict is None:
        said = "the judge gave no usable answer"
    return {
        "passed": decided and verdict.verdict == "pass",
        "needs_human": not decided,
        "verdict": verdict.verdict,
        "votes": {"pass": verdict.passes, "fail": verdict.fails, "malformed": verdict.malformed},
        "agreement": round(agreement, 4),
        "margin": None if verdict.margin is None else round(verdict.margin, 4),
        "reason": reason,
        "overridden_by": verdict.overridden_by,
        "told": f"{said} ({counted}, {by})" + (f": {reason.rstrip('.')}" if reason else ""),
    }


def ticket_data(ticket: Ticket) -> dict[str, Any]:
    """A ticket as the evidence store keeps it."""
    return {
        "schema": TICKET,
        "group_id": ticket.group_id,
        "mission": ticket.mission,
        "cluster": ticket.cluster,
        "evidence": dict(ticket.evidence),
    }


def _about(job: Job, requirement: Requirement) -> dict[str, Any]:
    return {
        "what": "judge",
        "evidence": evidence_name(requirement.evidence),
        "criterion": requirement.name,
        "asked_for": is_required_evidence(job, requirement.evidence, "judge"),
        "mission": requirement.check.text,
    }


def _newest(requirement: Requirement, entries: Sequence[Entry]) -> Entry | None:
    return newest_run(entries, requirement.evidence, "file" if requirement.check.kind == "file" else "command")


def judge_ticket(ticket: Ticket, mission: Mission, guidance: Guidance) -> tuple[Verdict, str]:
    """The judge's verdict and the name of its model, within the mission's budget; also where a loop is running."""
    from donewhen.judging.judge import Judge
    from donewhen.judging.mission_budget import spending_limits
    from donewhen.models import executors
    from donewhen.models.metered import Meter, MeteredModel

    model = executors.InProcessExecutor().open(mission.settings.model)
    began = mission.clock.monotonic()
    meter = Meter(spending_limits(mission, model), elapsed=lambda: mission.clock.monotonic() - began)
    # Without the answers that are kept beside the mission: anybody can write there. The ledger knows what was asked.
    judge = Judge(mission.able_to_judge(), guidance, MeteredModel(model, meter))
    return _in_a_loop_of_its_own(judge, ticket), model.name


def _in_a_loop_of_its_own(judge: Any, ticket: Ticket) -> Verdict:
    verdict: Verdict
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        verdict = judge.judge(ticket)
        return verdict
    with ThreadPoolExecutor(1, thread_name_prefix="donewhen-judge") as pool:
        verdict = pool.submit(judge.judge, ticket).result()
    return verdict
