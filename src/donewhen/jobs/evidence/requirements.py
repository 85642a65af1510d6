"""The requirements of a job: each verification command and each criterion, with the check that decides it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from donewhen.foundation.errors import ConfigError, DonewhenError, UsageError
from donewhen.foundation.process import split_command
from donewhen.jobs.contract.terms import normal_command
from donewhen.jobs.ledger.evidence_levels import NeededLevel
from donewhen.jobs.plan.criteria import Check, CheckKind, Criterion
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.own_commands import checking_commands, own_command

VERIFICATION = "verification"


class Requirement(NamedTuple):
    """Something that needs evidence. ``name`` is a criterion's id, or ``verification`` for a command of the job."""

    name: str
    text: str
    """The text of the criterion, or the command."""
    check: Check
    evidence: str
    """The name under which evidence is recorded: a command or file check in its normal form."""
    needs: NeededLevel | None = None
    """How strong the evidence has to be, if the criterion says it."""


def requirements_of(job: Job) -> tuple[Requirement, ...]:
    """Return all requirements of a job, commands first."""
    commands = tuple(_command_requirement(job, command) for command in job.truth_required_commands)
    return commands + tuple(_criterion_requirement(job, criterion) for criterion in job.criteria)


def requirement_for(job: Job, name: str) -> Requirement:
    """Return the requirement of the criterion with this id; raise ConfigError if there is none."""
    for criterion in job.criteria:
        if criterion.id == name:
            return _criterion_requirement(job, criterion)
    known = ", ".join(criterion.id for criterion in job.criteria) or "none"
    raise ConfigError(f"{job.id} has no criterion {name!r}. Its criteria: {known}.", where=str(job.path))


def is_runnable(requirement: Requirement) -> bool:
    """Whether a check decides it, rather than a person, the commands of the job or the gates themselves."""
    return requirement.check.kind not in ("manual", "verification", "gate")


def runnable_requirements(job: Job, only: Requirement | None = None, *, by_hand: str) -> tuple[Requirement, ...]:
    """Return the requirements that can be run, of all or of ``only`` one.

    Raise UsageError if there are none, because zero checks is not a pass; ``by_hand`` is the next step if a person has
    to decide.
    """
    chosen = tuple(filter(is_runnable, requirements_of(job) if only is None else (only,)))
    if chosen:
        return chosen
    if only is None:
        raise UsageError(f"{job.id} has no check that can be run.", next_step=by_hand)
    if only.check.kind == "verification":
        raise UsageError(
            f"{only.name} has no check of its own: the job's verification decides it.",
            next_step=f"donewhen run {job.id}",
        )
    raise UsageError(f"{only.name} is checked by hand.", next_step=by_hand)


def refuse_other_command(job: Job, requirement: Requirement, argv: Sequence[str]) -> None:
    """Raise UsageError if a command is run for a requirement that another check decides."""
    text = shlex.join(argv)
    if is_runnable(requirement) and requirement.evidence != text:
        raise UsageError(
            f"{requirement.name} is decided by `{requirement.evidence}`, not by `{text}`.",
            next_step=f"donewhen run {job.id} --criterion {requirement.name}",
        )


def is_required_evidence(job: Job, evidence: str, kind: CheckKind = "run") -> bool:
    """Whether a requirement of the job has this evidence name and kind; a command may itself be called ``file``."""
    return any(
        requirement.evidence == evidence and requirement.check.kind == kind for requirement in requirements_of(job)
    )


def _command_requirement(job: Job, command: str) -> Requirement:
    try:
        argv = split_command(command)
    except DonewhenError as error:
        line = job.document.line_of("truth_required_commands")
        raise ConfigError(error.message, where=f"{job.path}:{line}", next_step=error.next_step) from error
    text = normal_command(command)
    kind: CheckKind = "run" if own_command(text) is None else "gate"
    return Requirement(VERIFICATION, command, Check(kind, command, argv), text)


def _criterion_requirement(job: Job, criterion: Criterion) -> Requirement:
    check = criterion.check
    if check is None:
        # A command of the tool itself says nothing about the work, so it decides no criterion.
        covered = checking_commands(job.truth_required_commands)
        check = Check("verification") if covered else Check("manual")
    match check.kind:
        case "run":
            evidence = shlex.join(check.argv)
        case "file":
            evidence = check.normal
        case _:
            evidence = f"{check.kind} {criterion.text}"
    return Requirement(criterion.id, criterion.text, check, evidence, criterion.needs)
