"""What a job has to show: each criterion with how it is decided, and each of its verification commands."""

from __future__ import annotations

import shlex
from typing import NamedTuple

from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.process import split_command
from donewhen.jobs.contract.terms import normal_command
from donewhen.jobs.plan.criteria import Check, CheckKind, Criterion
from donewhen.jobs.plan.job import Job

VERIFICATION = "verification"


class Requirement(NamedTuple):
    """One thing to show. ``name`` is a criterion's id, or ``verification`` for a command of the job itself."""

    name: str
    text: str
    """What is asked for: a criterion's words, or the command."""
    check: Check
    evidence: str
    """What evidence for it is filed under: a command or a probe in its normal form."""


def requirements_of(job: Job) -> tuple[Requirement, ...]:
    """Everything that a job has to show, commands first."""
    commands = tuple(_command_need(job, command) for command in job.truth_required_commands)
    return commands + tuple(_criterion_need(job, criterion) for criterion in job.criteria)


def requirement_for(job: Job, criterion: str) -> Requirement:
    """What one criterion asks for."""
    for one in job.criteria:
        if one.id == criterion:
            return _criterion_need(job, one)
    known = ", ".join(one.id for one in job.criteria) or "none"
    raise ConfigError(f"{job.id} has no criterion {criterion!r}; there are: {known}.", where=str(job.path))


def is_required_evidence(job: Job, evidence: str, kind: CheckKind = "run") -> bool:
    """Whether some need of the job is met by evidence of this name; a command may be called ``file``, too."""
    return any(
        requirement.evidence == evidence and requirement.check.kind == kind for requirement in requirements_of(job)
    )


def _command_need(job: Job, command: str) -> Requirement:
    try:
        argv = split_command(command)
    except DonewhenError as error:
        line = job.document.line_of("truth_required_commands")
        raise ConfigError(error.message, where=f"{job.path}:{line}", next_step=error.next_step) from error
    text = normal_command(command)
    return Requirement(VERIFICATION, command, Check("run", command, argv), text)


def _criterion_need(job: Job, criterion: Criterion) -> Requirement:
    check = criterion.check
    if check is None:
        check = Check("verification") if job.truth_required_commands else Check("manual")
    match check.kind:
        case "run":
            evidence = shlex.join(check.argv)
        case "file":
            evidence = check.normal
        case _:
            evidence = f"{check.kind} {criterion.text}"
    return Requirement(criterion.id, criterion.text, check, evidence)
