"""Weighs the evidence of a job: how strong it is by what was recorded, and whether that is as strong as agreed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreement import Seal, current_seal
from donewhen.jobs.evidence.placed_runs import placed_room
from donewhen.jobs.evidence.probe_record import ProbeRecord
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement
from donewhen.jobs.evidence.store import evidence_store
from donewhen.jobs.gates.strength import (
    CommandFacts,
    CommandsOfJob,
    FileFacts,
    JudgeFacts,
    NothingChecked,
    PersonFacts,
    Strength,
    strength_of,
)
from donewhen.jobs.judge.person_overrides import subject_of
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Agreed, CommandRun, JudgeRun, Overridden, ProbeRun, RoomRun, SignedOff
from donewhen.jobs.ledger.evidence_levels import NEEDED_BY_STAKES, NeededLevel, higher_level
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

if TYPE_CHECKING:
    from donewhen.jobs.gates.evidence_status import EvidenceStatus


def weighed(
    workspace: Workspace, job: Job, statuses: Sequence[EvidenceStatus], entries: Sequence[Entry], policy: Policy
) -> tuple[EvidenceStatus, ...]:
    """The statuses with the strength of what has passed. A criterion whose evidence is weaker than agreed waits for a
    person, unless one has accepted it for this work."""
    if placed_room() is not None or not any(status.state == "passed" for status in statuses):
        # In CI, nothing is recorded that this could be read from; verify looks at what it runs itself.
        return tuple(statuses)
    seal = current_seal(job.id, entries, policy)
    signed = (status.entry for status in statuses if status.state == "passed")
    looked = next((entry for entry in signed if entry is not None and isinstance(entry.content, SignedOff)), None)
    scale = _Scale(workspace, job, entries, policy, seal, looked.by.name if looked is not None else "")
    commands: list[Strength] = []
    found: list[EvidenceStatus] = []
    for status in statuses:
        strength = scale.strength(status, commands)
        if strength is not None and status.requirement.name == VERIFICATION:
            commands.append(strength)
        found.append(status if strength is None else scale.compared(status._replace(strength=strength)))
    return tuple(found)


def default_need(job: Job, seal: Seal | None) -> NeededLevel | None:
    """How strong the evidence for every criterion has to be, by what the agreement says about the job's stakes."""
    agreed = None if seal is None else seal.entry.content
    return agreed.needs.get(job.stakes) if isinstance(agreed, Agreed) else None


def default_need_from_now(job: Job) -> NeededLevel | None:
    """The same for an agreement that is made now."""
    return NEEDED_BY_STAKES.get(job.stakes)


def command_facts(run: CommandRun, agreed: Agreed | None, probes: ProbeRecord | None) -> CommandFacts:
    """What is recorded about a command that has passed; ``agreed`` is the agreement that counts."""
    room, controls = run.room or RoomRun(), run.controls
    baseline = None if agreed is None else agreed.baselines.get(run.evidence)
    return CommandFacts(
        in_room=run.room is not None,
        isolation=room.isolation,
        network=room.network,
        environment=bool(room.environment),
        provisional=room.provisional,
        tests=None if run.report is None else run.report.passed,
        agreed_tests=max(room.before, 0 if baseline is None else baseline.tests),
        controls="" if controls is None else controls.held,
        why_no_controls="" if controls is None else controls.why,
        probes=probes,
    )


class _Scale:
    """What is needed to weigh the evidence of one job."""

    def __init__(
        self,
        workspace: Workspace,
        job: Job,
        entries: Sequence[Entry],
        policy: Policy,
        seal: Seal | None,
        looked_at_by: str,
    ) -> None:
        self._workspace, self._job, self._entries, self._policy = workspace, job, entries, policy
        self._agreed = seal.entry.content if seal is not None and isinstance(seal.entry.content, Agreed) else None
        self._default = default_need(job, seal)
        self._looked_at_by = looked_at_by

    def strength(self, status: EvidenceStatus, commands: Sequence[Strength]) -> Strength | None:
        """How strong the evidence is; None if there is none, or nothing that could be weighed."""
        if status.state != "passed" or status.requirement.check.kind == "gate":
            return None
        if self._job.truth_mode == "off":
            return strength_of(NothingChecked())
        entry = status.entry
        if entry is not None and isinstance(entry.content, Overridden | SignedOff):
            return strength_of(PersonFacts(entry.by.name, entry.by.kind))
        match status.requirement.check.kind:
            case "verification":
                return strength_of(CommandsOfJob(tuple(commands)))
            case "file":
                reads = status.requirement.check.reads_content
                by = self._looked_at_by or (self._accepted_by(status.requirement) if reads else "")
                return strength_of(FileFacts(reads, by))
            case "judge":
                votes = entry.content.votes if entry is not None and isinstance(entry.content, JudgeRun) else {}
                return strength_of(JudgeFacts(votes.get("pass", 0), sum(votes.values())))
            case _:
                run = None if entry is None else entry.content
                facts = (
                    command_facts(run, self._agreed, self._probes(run))
                    if isinstance(run, CommandRun)
                    else CommandFacts()
                )
                return strength_of(facts)

    def _probes(self, run: CommandRun) -> ProbeRecord | None:
        """What probing the tests of a run has shown; None if nobody has."""
        if not any(isinstance(entry.content, ProbeRun) for entry in self._entries):
            return None
        # Imported late: what probes is needed by few, and this is on the way of hooks.
        from donewhen.jobs.evidence.probes import probes_of

        return probes_of(evidence_store(self._workspace), self._entries, run)

    def compared(self, status: EvidenceStatus) -> EvidenceStatus:
        """The status with what is needed; a person has to decide if the evidence is weaker."""
        requirement, strength = status.requirement, status.strength
        if requirement.name == VERIFICATION or strength is None or self._job.truth_mode == "off":
            return status
        needed = higher_level(requirement.needs, self._default)
        status = status._replace(needed=needed)
        if strength.is_at_least(needed) or needed is None:
            return status
        decided = status.entry is not None and isinstance(status.entry.content, Overridden | SignedOff)
        by = status.entry.by.name if decided and status.entry is not None else self._accepted_by(requirement)
        if by:
            return status._replace(accepted_by=by)
        why = weak_text(self._job.id, requirement, strength, needed)
        return status._replace(state="needs_human", why=(*status.why, *why), code=GateCode.EVIDENCE_WEAK)

    def _accepted_by(self, requirement: Requirement) -> str:
        """The person who signed off a criterion for exactly this work, although a check decides it."""
        signed = [
            entry
            for entry in reversed(self._entries)
            if isinstance(entry.content, SignedOff) and entry.content.value.text == requirement.text
        ]
        if not any(is_approval(entry, self._job.id, self._policy) for entry in signed):
            return ""
        try:
            subject = subject_of(self._workspace, self._job, requirement, self._entries)
        except DonewhenError:
            return ""
        return next(
            (
                entry.by.name
                for entry in signed
                if entry.read_as(SignedOff).value.subject == subject and is_approval(entry, self._job.id, self._policy)
            ),
            "",
        )


def weak_text(job: str, requirement: Requirement, strength: Strength, needed: NeededLevel) -> tuple[str, ...]:
    """Why evidence is too weak, and what helps."""
    limits = " ".join(reason.text for reason in strength.limits).rstrip(".")
    accepting = f'donewhen sign-off {job} --criterion {requirement.name} --reason "…"'
    helps = [*strength.better, f"or a person accepts it: {accepting}"]
    how = "the agent can get there" if strength.is_up_to_agent else "to get there"
    return (f"its evidence is {strength.word}, and {needed} is needed: {limits}", f"{how}: {'; '.join(helps)}")
