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
from donewhen.jobs.contract.inputs import result_manifest
from donewhen.jobs.evidence.requirements import Requirement
from donewhen.jobs.gates.evidence_status import collect_evidence, evidence_statuses, manual_requirement
from donewhen.jobs.ledger.approval import Approval, is_approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.snapshot import Snapshot
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation, writing


def project_as_job(project: Project) -> Job | None:
    """The project as a job with the criteria that have a check; None if it has none."""
    criteria = tuple(criterion for criterion in project.criteria if criterion.check is not None)
    if not criteria:
        return None
    return Job(
        id=project.id,
        title=project.title,
        status=project.status,
        depends_on=(),
        stakes="normal",
        reward_target=0,
        max_iterations=0,
        iteration=0,
        rework_count=0,
        outputs=(),
        verification_evidence=(),
        inputs=(),
        work=None,
        present=(),
        prepare=(),
        tests_may_change=(),
        truth_mode="strict",
        truth_checks=(),
        truth_required_commands=(),
        execution_log_required=False,
        lesson_capture_required=False,
        exemptions={},
        read_only=True,
        criteria=criteria,
        completion_promise=f"{project.id}-DONE",
        path=project.path,
        document=project.document,
    )


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
    """Record a sign-off: a manual criterion of the project is met by the work as it is."""
    if not reason.strip():
        raise UsageError("A decision needs a reason.", next_step='Give one with --reason "…".')
    project = workspace.project()
    job, requirement = manual_project_criterion(project, criterion)
    value = {"criterion": criterion, "text": requirement.text, "subject": result_manifest(workspace, job).hash}
    with operation(workspace), writing(workspace, project.path) as plan:
        policy = approval_policy(plan.snapshot)
        data = {"decision": "sign_off", "reason": reason.strip(), "value": value}
        entry = plan.append("decided", data, approval)
    return DecisionRecord(entry, is_approval(entry, project.id, policy), {})


def manual_project_criterion(project: Project, criterion: str) -> tuple[Job, Requirement]:
    """The project as a job, and its manual criterion; raise an error if there is none with this id."""
    job = project_as_job(project)
    if job is None:
        raise UsageError(f"No criterion of {project.id} has a check, so there is nothing to sign off.")
    return job, manual_requirement(job, criterion)
