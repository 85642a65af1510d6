"""A checker that requires the agent's jobs to be done or set aside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    from donewhen.jobs.board.survey import Survey
    from donewhen.jobs.plan.job import Job
    from donewhen.jobs.plan.workspace import Workspace


class JobChecker:
    """Complete when every job of the agent is done, blocked with a reason, waiting for a person, or out of budget.

    It checks the jobs in progress, or the named ones. No job in progress is complete, unless ``require_job``.
    The check runs no commands and never counts as an iteration; the agent has to renew stale evidence itself.

        JobChecker()                                  # the jobs in progress in the folder of the context's filesystem
        JobChecker(jobs=["WI-20260214-001"], root=".")
    """

    def __init__(self, *, jobs: Sequence[str] = (), root: str | Path | None = None, require_job: bool = False) -> None:
        if isinstance(jobs, str):
            raise TypeError("jobs must be a list of ids, not one string")
        self.jobs = tuple(jobs)
        self.root = None if root is None else Path(root)
        self.require_job = require_job

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        from donewhen.jobs.board.survey import survey_jobs
        from donewhen.jobs.plan.workspace import WorkspaceError, find_workspace

        root = self._root(context)
        try:
            workspace = find_workspace(root)
        except WorkspaceError as error:
            if any((root / ".donewhen" / "ledger").glob("WI-*.jsonl")):
                raise  # The ledger shows that there were jobs here.
            if self.jobs or self.require_job:
                return TaskCompletionResult.incomplete(str(error), code=ReasonCode.NO_JOB)
            return TaskCompletionResult.ok("There are no jobs here.")
        names = self.jobs or _in_progress(survey_jobs(workspace))
        if not names:
            if self.require_job:
                return TaskCompletionResult.incomplete(
                    "No job is in progress. Start one: donewhen ready", code=ReasonCode.NO_JOB
                )
            return TaskCompletionResult.ok("No job is in progress.")
        lines: list[str] = []
        for name in names:
            state = _resting_state(workspace, workspace.job(name))
            if isinstance(state, TaskCompletionResult):
                return state
            lines.append(state)
        return TaskCompletionResult.ok(" ".join(lines))

    def _root(self, context: TaskCompletionContext) -> Path:
        if self.root is not None:
            return self.root
        root = getattr(context.filesystem, "root", None)
        return root if isinstance(root, Path) else Path.cwd()


def _resting_state(workspace: Workspace, job: Job) -> TaskCompletionResult | str:
    """Return why this job does not hold the agent back, or an incomplete result that says what is missing."""
    from donewhen.jobs.gates.job_view import view_job

    view = view_job(workspace, job)
    match view.rest:
        case "done":
            return f"{job.id} is done."
        case "cancelled":
            return f"{job.id} was cancelled."
        case "out_of_budget":
            return f"{job.id} is out of budget and waits for a person's decision."
        case "set_aside":
            return f"{job.id} waits: {view.pause.reason if view.pause else ''}"
        case "needs_person":
            return f"{job.id} waits for a person: {view.evaluation.truth.reasons[0].message}"
    about = view.word if view.code is None else f"{view.word} [{view.code}]"
    message = "it has not been completed yet." if view.reason is None else view.reason.message
    complete = f"donewhen complete {job.id}"
    then = "" if view.next == complete else f" Then run: {complete}"
    return TaskCompletionResult.incomplete(
        f"{job.id} is not done: {message} State: {about}. Next: {view.next}.{then} "
        f"(or, if you can't go on: donewhen block {job.id} --reason …, donewhen ask {job.id} --question …).",
        code=ReasonCode.JOB_NOT_DONE,
    )


def _in_progress(survey: Survey) -> list[str]:
    """Return the jobs in progress according to the ledger, so that editing or deleting a plan releases no agent; also
    those of which the ledger can't say it, so that damage to it releases none either."""
    from donewhen.jobs.plan.workspace import WorkspaceError

    if survey.unseen:
        raise WorkspaceError(f"The plan of {survey.unseen[0]}, which is in progress, is gone or can't be read.")
    return [
        job.id
        for job in survey.jobs
        if "in_progress" in (job.recorded, job.status)
        or (job.id in survey.damaged and job.recorded not in ("done", "cancelled"))
    ]
