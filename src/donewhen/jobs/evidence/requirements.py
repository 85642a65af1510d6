"""The requirements of a job: each verification command and each criterion, with the check that decides it."""

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
    """Something that needs evidence. ``name`` is a criterion's id, or ``verification`` for a command of the job."""

    name: str
    text: str
    """The text of the criterion, or the command."""
    check: Check
    evidence: str
    """The name under which evidence is recorded: a command or file check in its normal form."""


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
    return Requirement(VERIFICATION, command, Check("run", command, argv), text)


def _criterion_requirement(job: Job, criterion: Criterion) -> Requirement:
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
