"""A checker that requires the agent's jobs to be done or set aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    from donewhen.jobs.gates.job_view import JobView
    from donewhen.jobs.plan.job import Job
    from donewhen.jobs.plan.workspace import Workspace
    from donewhen.jobs.record.head_watch import GoneBack

READING = 60.0
"""Time limit in seconds for reading plans and chains, far above what it takes."""


class JobChecker:
    """Complete when every job of the agent is done, blocked with a reason, waiting for a person, or out of budget.

    It checks the jobs in progress, or the named ones. No job in progress is complete, unless ``require_job``; with
    ``"ready"`` it is also complete if no job can start.
    The check runs no commands and never counts as an iteration; the agent has to renew stale evidence itself.

        JobChecker()                                  # the jobs in progress in the folder of the context's filesystem
        JobChecker(jobs=["WI-20260214-001"], root=".")
    """

    def __init__(
        self,
        *,
        jobs: Sequence[str] = (),
        root: str | Path | None = None,
        require_job: bool | Literal["ready"] = False,
    ) -> None:
        if isinstance(jobs, str):
            raise TypeError("jobs must be a list of ids, not one string")
        self.jobs = tuple(jobs)
        self.root = None if root is None else Path(root)
        self.require_job = require_job

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        from donewhen.foundation.deadline import within

        # Nothing here takes long, but any of the files may be on a mount that hangs.
        return within(READING, self._check, self._root(context), context.session_id, what="reading the jobs")

    def _check(self, root: Path, session: str) -> TaskCompletionResult:
        from donewhen.jobs.board.open_jobs import find_open_jobs, own_jobs
        from donewhen.jobs.plan.workspace import WorkspaceError, find_workspace

        try:
            workspace = find_workspace(root)
        except WorkspaceError as error:
            if any((root / ".donewhen" / "ledger").glob("WI-*.jsonl")):
                raise  # The ledger shows that there were jobs here.
            gone = vanished_jobs(root)
            if gone is not None:
                return gone
            if self.jobs or self.require_job is True:
                return TaskCompletionResult.incomplete(str(error), code=ReasonCode.NO_JOB)
            return TaskCompletionResult.ok("There are no jobs here.")
        if self.jobs:
            return self._check_named(workspace)
        found = find_open_jobs(workspace)
        held = _held_for_record(found.gone_back, found.problem)
        if held is not None:
            return held
        jobs = own_jobs(workspace, found.names, session)
        if not jobs.own:
            step = _step_to_a_job(workspace) if self.require_job else ""
            if step or self.require_job is True:
                return TaskCompletionResult.incomplete(
                    f"No job is in progress. Start the one that you work on. Next: {step or 'donewhen ready'}",
                    code=ReasonCode.NO_JOB,
                )
            elsewhere = _of_others(jobs.others) or _on_other_branches(found.gone_back)
            return TaskCompletionResult.ok(f"No job is in progress.{elsewhere}")
        return _resting(workspace, (_job_in_progress(workspace, name) for name in jobs.own))

    def _check_named(self, workspace: Workspace) -> TaskCompletionResult:
        from donewhen.jobs.record.gone_back import chains_gone_back
        from donewhen.jobs.record.head_watch import watch

        jobs = [workspace.job(name) for name in self.jobs]
        gone = chains_gone_back(workspace, [job.id for job in jobs])
        held = _held_for_record(gone, watch(workspace).kept.problem)
        return _resting(workspace, jobs) if held is None else held

    def _root(self, context: TaskCompletionContext) -> Path:
        if self.root is not None:
            return self.root
        root = getattr(context.filesystem, "root", None)
        return root if isinstance(root, Path) else Path.cwd()


def _resting(workspace: Workspace, jobs: Iterable[Job]) -> TaskCompletionResult:
    """Whether all of these jobs let the agent stop, or what the first that does not is missing."""
    lines: list[str] = []
    for job in jobs:
        state = _resting_state(workspace, job)
        if isinstance(state, TaskCompletionResult):
            return state
        lines.append(state)
    return TaskCompletionResult.ok(" ".join(lines))


def _resting_state(workspace: Workspace, job: Job) -> TaskCompletionResult | str:
    """Return why this job does not hold the agent back, or an incomplete result that says what is missing."""
    from donewhen.jobs.gates.job_view import view_job
    from donewhen.jobs.record.words_of_people import sentences

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
    said = "".join(f" {words}" for words in sentences(view.words_of_people))
    return TaskCompletionResult.incomplete(
        f"{job.id} is not done: {message}{said} State: {about}. Next: {view.next}.{then} "
        f"(or, if you can't go on: donewhen block {job.id} --reason …, donewhen ask {job.id} --question …)."
        f"{_what_checks_said(view)}",
        code=ReasonCode.JOB_NOT_DONE,
    )


def _what_checks_said(view: JobView) -> str:
    """What the failed checks said, below the reason that the state is about."""
    lines: list[str] = []
    for reason in view.reasons:
        if reason.details:
            lines += [reason.message, *(f"  {line}" for line in reason.details)]
    return "".join(f"\n{line}" for line in lines)


def _job_in_progress(workspace: Workspace, name: str) -> Job:
    """Read a job in progress according to the ledger, so that editing or deleting a plan releases no agent."""
    from donewhen.foundation.errors import DonewhenError
    from donewhen.jobs.plan.workspace import WorkspaceError

    try:
        return workspace.job_with_id(name)
    except DonewhenError as error:
        raise WorkspaceError(
            f"The plan of {name}, which is in progress, is gone or can't be read: {error.message}", where=error.where
        ) from error


def vanished_jobs(root: Path, *, guarded_only: bool = False) -> TaskCompletionResult | None:
    """The refusal for a folder without jobs in which there were some; None if none is missing.

    ``guarded_only``: only if a stop hook has looked after them.
    """
    from donewhen.jobs.plan.workspace import Workspace
    from donewhen.jobs.record.head_watch import watch

    seen = watch(Workspace(root, "small"))
    if guarded_only and not seen.kept.guarded:
        return None
    return _held_for_record(seen.vanished(), seen.kept.problem)


def agreed_setting(root: Path, setting: str) -> object:
    """The value of a setting, such as ``stop.jobs``, in the last agreement to the project; None by default."""
    from donewhen.jobs.contract.agreement import project_seal
    from donewhen.jobs.ledger.terms_content import ProjectTerms
    from donewhen.jobs.plan.workspace import find_workspace

    workspace = find_workspace(root)
    seal = project_seal(workspace, workspace.project())
    return seal.terms.settings.get(setting) if seal is not None and isinstance(seal.terms, ProjectTerms) else None


def _held_for_record(gone: Sequence[GoneBack], problem: str) -> TaskCompletionResult | None:
    """The refusal because the record has gone back behind where it ended before."""
    from donewhen.jobs.record.gone_back import summary
    from donewhen.jobs.record.head_watch import ACCEPT

    if problem:
        return TaskCompletionResult.incomplete(
            f"The marks of where the ledger ended can't be read: {problem}. Next: a person looks at the file and says "
            f"at a terminal that the ledger is right: {ACCEPT}",
            code=ReasonCode.RECORD_GONE_BACK,
        )
    # Jobs first: what is missing of the project follows from them.
    holding = sorted((each for each in gone if each.holds), key=lambda each: each.chain.startswith(("PJ-", "WS-")))
    if not holding:
        return None
    return TaskCompletionResult.incomplete(
        f"{summary(holding)} Next: {holding[0].next_step}", code=ReasonCode.RECORD_GONE_BACK
    )


def _step_to_a_job(workspace: Workspace) -> str:
    """The command that starts a job, or that says why none can start any more; empty if there is none to start."""
    from donewhen.jobs.board.board_states import survey_states
    from donewhen.jobs.board.survey import survey_jobs
    from donewhen.jobs.lifecycle.planning import startable_jobs

    survey = survey_jobs(workspace)
    ready = startable_jobs(survey)
    if ready:
        return f"donewhen start {ready[0]}"
    # An agent could make the agreement void, so that nothing is ready.
    return next((state.next for state in survey_states(survey).values() if state.word == "voided"), "")


def _of_others(others: Mapping[str, str]) -> str:
    """The jobs in progress that are somebody else's."""
    where = {"clone": "in another clone", "session": "in the session of another agent"}
    return "".join(f" {name} is in progress {where[other]}." for name, other in others.items())


def _on_other_branches(gone: Sequence[GoneBack]) -> str:
    """The jobs that are in progress on another branch, which keeps nobody here."""
    left = [each for each in gone if not each.lost and each.mark.status == "in_progress"]
    if not left:
        return ""
    branch = left[0].elsewhere.removeprefix("refs/heads/").removeprefix("refs/")
    return f" {left[0].chain} is in progress on {branch}, which is not checked out."
