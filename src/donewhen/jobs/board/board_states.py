"""The states of all jobs of a survey. No gates are evaluated and no files of the jobs are read."""

from __future__ import annotations

from donewhen.jobs.board.job_state import JobState, in_context, own_state
from donewhen.jobs.board.recorded_dependencies import RecordedDependencies, RecordedJob
from donewhen.jobs.board.survey import JobRecord, Survey


def survey_states(survey: Survey) -> dict[str, JobState]:
    """The state of every job of a survey, as far as it is recorded (see ``recorded_state``). For done jobs that are no
    longer true, see ``mark_invalid_jobs``."""
    by_id = {job.id: job for job in survey.jobs}

    def find(name: str) -> RecordedJob | None:
        job = by_id.get(name)
        return None if job is None else RecordedJob(job.known.completed, job.depends_on, job.known.invalid)

    dependencies = RecordedDependencies(find, survey.unreadable)
    return {
        job.id: in_context(
            job.id, survey_own_state(job), survey.project_agreement, dependencies.code(job.id, job.depends_on)
        )
        for job in survey.jobs
    }


def survey_own_state(job: JobRecord) -> JobState:
    """The state of a surveyed job by itself."""
    return own_state(job.id, job.known, job.max_iterations, job.agreement, tampered=bool(job.tampered))
