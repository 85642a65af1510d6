"""The project as a job: its own criteria that have a check need evidence, like those of a job."""

from __future__ import annotations

from donewhen.jobs.plan.job import Job, Project


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
        network="own",
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
