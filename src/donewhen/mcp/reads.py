"""The read-only tools. They run no commands, and their result is no evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.board_states import survey_states
from donewhen.jobs.board.job_state import JobState
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.gates.changes_for_person import ASKED, open_files
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lifecycle.deciding_signs import open_signs_of
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.invalidation import mark_invalid_jobs
from donewhen.jobs.lifecycle.planning import find_ready_jobs, startable_jobs
from donewhen.mcp.answers import CheckAnswer, Jobs, ListedJob, NextStep, ReadyJob, ReadyJobs, ReasonView, ShownJob
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.params import JobParam, ListJobsParams, NoParams, OptionalJobParam
from donewhen.mcp.views import gate_views, job_view

_PROBLEMS = 20


def list_jobs(call: CallContext, params: ListJobsParams) -> Jobs:
    """Return one page of all jobs."""
    workspace = call.workspace()
    survey = mark_invalid_jobs(workspace, survey_jobs(workspace))
    chosen = [job for job in survey.jobs if params.status in (None, job.status)]
    end = params.offset + params.limit
    states = survey_states(survey)
    return Jobs(
        project=survey.project.id,
        title=survey.project.title,
        agreement=survey.project_agreement,
        counts=dict(Counter(job.status for job in survey.jobs)),
        jobs=[_listed(job, states[job.id]) for job in chosen[params.offset : end]],
        total=len(chosen),
        next_offset=end if end < len(chosen) else None,
        problems=[ReasonView(problem.code, problem.message, problem.where) for problem in survey.problems[:_PROBLEMS]],
        problem_count=len(survey.problems),
    )


def show_job(call: CallContext, params: JobParam) -> ShownJob:
    """Return a job with its contract, its criteria and its gates now. Runs and writes nothing."""
    workspace = call.workspace()
    job = workspace.job(params.job)
    view = view_job(workspace, job)
    changes: Collection[str] = (
        open_files(workspace, job, view.code) if view.code is not None and view.code in ASKED else {}
    )
    if view.code == GateCode.SIGNS_FOUND:
        changes = open_signs_of(workspace, job).files
    return job_view(view, agreement_proposals(workspace, [job])[-1], tuple(changes))


def check_job(call: CallContext, params: JobParam) -> CheckAnswer:
    """Return whether a job may be completed. Updates the plan's score; does not count as an iteration."""
    workspace = call.workspace()
    view = evaluate_and_record(workspace, params.job, unproved_actor(), collecting=False)
    job, evaluation = view.job, view.evaluation
    return CheckAnswer(
        job=job.id,
        status=job.status,
        state=view.word,
        code=view.code,
        done=view.done,
        may_complete=evaluation.passed and not view.done,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        score=evaluation.score.total,
        target=job.reward_target,
        gates=gate_views(evaluation),
        next=view.next,
        next_action=evaluation.next_action,
        notes=[*view.notes],
    )


def next_action_tool(call: CallContext, params: OptionalJobParam) -> NextStep:
    """Return the next action: for a job, for the job in progress, or which job to start."""
    workspace = call.workspace()
    name = params.job
    startable: tuple[str, ...] = ()
    if name is None:
        survey = mark_invalid_jobs(workspace, survey_jobs(workspace))
        startable = startable_jobs(survey)
        name = next((job.id for job in survey.jobs if job.recorded == "in_progress"), None)
    if name is None:
        step = f"donewhen start {startable[0]}" if startable else "donewhen status"
        return NextStep(None, step, "", [], list(startable))
    view = view_job(workspace, workspace.job(name))
    evaluation = view.evaluation
    return NextStep(
        view.job.id,
        view.next,
        evaluation.next_action,
        gate_views(evaluation),
        list(startable),
        view.word,
        view.code,
    )


def ready_jobs(call: CallContext, params: NoParams) -> ReadyJobs:
    """Return the jobs that can start now, the later waves, and the critical path."""
    workspace = call.workspace()
    survey = mark_invalid_jobs(workspace, survey_jobs(workspace))
    ready = find_ready_jobs(survey.jobs)
    titles = {job.id: job.title for job in survey.jobs}
    return ReadyJobs(
        ready=[ReadyJob(name, one_line(titles[name])) for name in startable_jobs(survey)],
        waves=[list(wave) for wave in ready.waves],
        critical_path=list(ready.critical_path),
        hours=ready.hours,
    )


def _listed(job: JobRecord, state: JobState) -> ListedJob:
    return ListedJob(
        id=job.id,
        title=one_line(job.title),
        status=job.status,
        state=state.word,
        code=state.code,
        agreement=job.agreement,
        stakes=job.stakes,
        depends_on=list(job.depends_on),
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        next=state.next,
        tampered=[difference.field for difference in job.tampered],
    )
