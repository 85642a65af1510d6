"""Are the jobs done that the agent works on?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    from donewhen.jobs.job import Job
    from donewhen.jobs.workspace import Workspace


class JobChecker:
    """Complete when every job of the agent is done, blocked with a reason, waiting for a person, or out of budget.

    Its jobs are those in progress, or those named. None in progress is complete, and says so, unless ``require_job``.
    Looking never counts as an iteration, and nothing is run: what is stale is the agent's to show.

        JobChecker()                                  # the jobs in progress, in the folder of the context's filesystem
        JobChecker(jobs=["WI-20260214-001"], root=".")
    """

    def __init__(self, *, jobs: Sequence[str] = (), root: str | Path | None = None, require_job: bool = False) -> None:
        if isinstance(jobs, str):
            raise TypeError("jobs must be a list of ids, not one string")
        self.jobs = tuple(jobs)
        self.root = None if root is None else Path(root)
        self.require_job = require_job

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        from donewhen.jobs.survey import survey
        from donewhen.jobs.workspace import WorkspaceError, find_workspace

        try:
            workspace = find_workspace(self._root(context))
        except WorkspaceError as error:
            if self.jobs or self.require_job:
                return TaskCompletionResult.incomplete(str(error), code=ReasonCode.NO_JOB)
            return TaskCompletionResult.ok("There are no jobs here.")
        names = self.jobs or [one.id for one in survey(workspace).jobs if one.status == "in_progress"]
        if not names:
            if self.require_job:
                return TaskCompletionResult.incomplete(
                    "No job is in progress. Start one: donewhen ready", code=ReasonCode.NO_JOB
                )
            return TaskCompletionResult.ok("No job is in progress.")
        told: list[str] = []
        for name in names:
            rest = _looked_at(workspace, workspace.job(name))
            if isinstance(rest, TaskCompletionResult):
                return rest
            told.append(rest)
        return TaskCompletionResult.ok(" ".join(told))

    def _root(self, context: TaskCompletionContext) -> Path:
        if self.root is not None:
            return self.root
        root = getattr(context.filesystem, "root", None)
        return root if isinstance(root, Path) else Path.cwd()


def _looked_at(workspace: Workspace, job: Job) -> TaskCompletionResult | str:
    """Why the agent may rest as far as this job goes, or what is missing."""
    from donewhen.jobs.collecting import facts_of
    from donewhen.jobs.completion import still_done
    from donewhen.jobs.evaluating import evaluate

    if still_done(workspace, job) is not None:
        return f"{job.id} is done."
    facts = facts_of(workspace, job)
    history = facts.history
    if history.status == "cancelled":
        return f"{job.id} was cancelled."
    if history.auto_blocked and not history.decided_since_block:
        return f"{job.id} is out of its budget and waits for a decision."
    if history.waiting is not None:
        return f"{job.id} waits: {history.waiting.data.get('reason')}"
    evaluation = evaluate(facts)
    reason = next((one.message for gate in evaluation.gates for one in gate.reasons), "every gate is open")
    return TaskCompletionResult.incomplete(
        f"{job.id} is not done: {reason} Do what is missing, then run: donewhen complete {job.id} "
        f"(or, if you can't go on: donewhen block {job.id} --reason …, donewhen ask {job.id} --question …).",
        code=ReasonCode.JOB_NOT_DONE,
    )


def leave_unverified(root: Path, why: str) -> None:
    """Put on record that an agent was let go although its jobs are not shown to be done."""
    from donewhen.jobs.approval import somebody
    from donewhen.jobs.survey import survey
    from donewhen.jobs.workspace import find_workspace

    workspace = find_workspace(root)
    for one in survey(workspace).jobs:
        if one.status == "in_progress":
            with workspace.locked(one.path):
                workspace.ledger.append(one.id, "unverified", {"why": why}, somebody())
