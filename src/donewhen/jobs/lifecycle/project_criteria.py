"""What is checked before the promise of a project is given: its own criteria, and jobs with outputs that have changed.

A criterion with a check of its own needs evidence, like that of a job. One without a check is met when the jobs are:
they are what a person has agreed to do for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import DecisionRecord
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.gates.evidence_status import (
    collect_evidence,
    evidence_statuses,
    requirement_to_sign_off,
    signed_value,
)
from donewhen.jobs.ledger.approval import Approval, is_approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.project_job import project_as_job
from donewhen.jobs.plan.snapshot import Snapshot
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation, writing


def has_checks(project: Project) -> bool:
    """Whether a criterion of the project has a check of its own."""
    return project_as_job(project) is not None


def check_project(
    workspace: Workspace, by: Actor, on_progress: Callable[[Requirement], None] = lambda _: None
) -> tuple[str, ...]:
    """Run the checks of the project's own criteria that are not fresh; return why each that is not met is not met."""
    job = project_as_job(workspace.project())
    if job is None:
        return ()
    try:
        collect_evidence(workspace, job, by, lenient=True, on_progress=on_progress)
        if isinstance(workspace, Snapshot):
            workspace.forget_changed()
        return tuple(unmet_project_criteria(workspace))
    except ConfigError as error:
        # The last job is done all the same, and its promise must not get lost.
        return (f"a criterion of the project can't be checked: {one_line(error.message, 200).rstrip('.')}",)


def unmet_project_criteria(workspace: Workspace) -> Iterator[str]:
    """Why each criterion of the project that is not met is not met."""
    job = project_as_job(workspace.project())
    for status in evidence_statuses(workspace, job) if job is not None else ():
        if status.state != "passed":
            text = one_line(status.requirement.text, 100).rstrip(".")
            why = one_line(", ".join(status.why), 200) or status.state
            yield f"{status.requirement.name} of the project ({text}) is not met: {why}"


def unmet_after_changes(
    workspace: Workspace, jobs: Iterable[str], by: Actor, on_progress: Callable[[Requirement], None]
) -> tuple[str, ...]:
    """Check these done jobs again, because others have gone on with their outputs; return what is not met any more.

    What a command, a judge or a person has shown about an output says nothing about its content now.
    """
    unmet: list[str] = []
    for name in jobs:
        job = workspace.job_with_id(name)
        collect_evidence(workspace, job, by, lenient=True, on_progress=on_progress)
        if isinstance(workspace, Snapshot):
            workspace.forget_changed()
        for status in evidence_statuses(workspace, job):
            if status.state != "passed":
                why = one_line(", ".join(status.why), 200) or status.state
                unmet.append(f"{status.requirement.name} of {name} is not met any more: {why}")
    return tuple(unmet)


def sign_off_project(workspace: Workspace, criterion: str, reason: str, approval: Approval) -> DecisionRecord:
    """Record a sign-off: a criterion of the project is met by the work as it is, because a person has looked."""
    if not reason.strip():
        raise UsageError("A decision needs a reason.", next_step='Give one with --reason "…".')
    project = workspace.project()
    value = signed_value(workspace, *project_criterion_to_sign_off(workspace, criterion))
    with operation(workspace), writing(workspace, project.path) as plan:
        policy = approval_policy(plan.snapshot)
        data = {"decision": "sign_off", "reason": reason.strip(), "value": value}
        entry = plan.append("decided", data, approval)
    return DecisionRecord(entry, is_approval(entry, project.id, policy), {})


def project_criterion_to_sign_off(workspace: Workspace, criterion: str) -> tuple[Job, Requirement]:
    """The project as a job, and a criterion that a person decides: a manual one, or one with evidence that is weaker
    than needed; raise an error if it is neither."""
    project = workspace.project()
    job = project_as_job(project)
    if job is None:
        raise UsageError(f"No criterion of {project.id} has a check, so there is nothing to sign off.")
    return job, requirement_to_sign_off(workspace, job, criterion)
