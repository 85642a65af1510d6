"""The read-only tools. They run no commands, and their result is no evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.dashboard_record import plan_part
from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.contract.agreement import agreement_proposals
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.facts import facts_of
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.completion import valid_completion
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.planning import find_ready_jobs
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mcp.answers import CheckAnswer, Jobs, ListedJob, NextStep, ReadyJob, ReadyJobs, ReasonView, ShownJob
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.params import JobParam, ListJobsParams, NoParams, OptionalJobParam
from donewhen.mcp.views import gate_views, job_view, next_command

_PROBLEMS = 20


def list_jobs(call: CallContext, params: ListJobsParams) -> Jobs:
    """Return one page of all jobs."""
    workspace = call.workspace()
    survey = survey_jobs(workspace)
    chosen = [job for job in survey.jobs if params.status in (None, job.status)]
    end = params.offset + params.limit
    startable = find_ready_jobs(survey.jobs).now
    return Jobs(
        project=survey.project.id,
        title=survey.project.title,
        agreement=survey.project_agreement,
        counts=dict(Counter(job.status for job in survey.jobs)),
        jobs=[_listed(workspace, job, startable) for job in chosen[params.offset : end]],
        total=len(chosen),
        next_offset=end if end < len(chosen) else None,
        problems=[ReasonView(problem.code, problem.message, problem.where) for problem in survey.problems[:_PROBLEMS]],
        problem_count=len(survey.problems),
    )


def show_job(call: CallContext, params: JobParam) -> ShownJob:
    """Return a job with its contract, its criteria and its gates now. Runs and writes nothing."""
    workspace = call.workspace()
    job = workspace.job(params.job)
    facts = facts_of(workspace, job)
    return job_view(facts, evaluate(facts), agreement_proposals(workspace, [job])[-1])


def check_job(call: CallContext, params: JobParam) -> CheckAnswer:
    """Return whether a job may be completed. Updates the plan's score; does not count as an iteration."""
    workspace = call.workspace()
    seen = evaluate_and_record(workspace, params.job, unproved_actor(), collecting=False)
    job, evaluation = seen.job, seen.evaluation
    done = valid_completion(workspace, job) is not None
    return CheckAnswer(
        job=job.id,
        status=job.status,
        done=done,
        may_complete=evaluation.passed and not done,
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        score=evaluation.score.total,
        target=job.reward_target,
        gates=gate_views(evaluation),
        next="donewhen ready" if done else next_command(job, evaluation),
        next_action=evaluation.next_action,
    )


def next_action_tool(call: CallContext, params: OptionalJobParam) -> NextStep:
    """Return the next action: for a job, for the job in progress, or which job to start."""
    workspace = call.workspace()
    name = params.job
    startable: tuple[str, ...] = ()
    if name is None:
        survey = survey_jobs(workspace)
        startable = find_ready_jobs(survey.jobs).now
        name = next((job.id for job in survey.jobs if job.status == "in_progress"), None)
    if name is None:
        step = f"donewhen start {startable[0]}" if startable else "donewhen status"
        return NextStep(None, step, "", [], list(startable))
    job = workspace.job(name)
    evaluation = evaluate(facts_of(workspace, job))
    return NextStep(
        job.id, next_command(job, evaluation), evaluation.next_action, gate_views(evaluation), list(startable)
    )


def ready_jobs(call: CallContext, params: NoParams) -> ReadyJobs:
    """Return the jobs that can start now, the later waves, and the critical path."""
    survey = survey_jobs(call.workspace())
    ready = find_ready_jobs(survey.jobs)
    titles = {job.id: job.title for job in survey.jobs}
    return ReadyJobs(
        ready=[ReadyJob(name, one_line(titles[name])) for name in ready.now],
        waves=[list(wave) for wave in ready.waves],
        critical_path=list(ready.critical_path),
        hours=ready.hours,
    )


def _listed(workspace: Workspace, job: JobRecord, startable: Collection[str]) -> ListedJob:
    return ListedJob(
        id=job.id,
        title=one_line(job.title),
        status=job.status,
        agreement=job.agreement,
        stakes=job.stakes,
        depends_on=list(job.depends_on),
        iteration=job.iteration,
        max_iterations=job.max_iterations,
        next=_step(workspace, job, startable),
        tampered=[difference.field for difference in job.tampered],
    )


def _step(workspace: Workspace, job: JobRecord, startable: Collection[str]) -> str:
    """Return the next step without evaluating the gates, which would read the inputs of every job."""
    match job.status:
        case "done" | "cancelled":
            return ""
        case _ if job.agreement != "agreed":
            return f"A person has to agree: donewhen agree {job.id}"
        case "planned":
            waiting = f"First: {', '.join(job.depends_on)}"
            return f"donewhen start {job.id}" if job.id in startable or not job.depends_on else waiting
        case "blocked":
            return f"Blocked, waits for a person: donewhen log {job.id}"
    try:
        noted = plan_part(workspace.job_at(job.path)).next_action
    except DonewhenError:
        noted = ""
    return noted or f"donewhen next {job.id}"
