"""What a verification reports although it does not count against the branch."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from donewhen.config.settings import Settings
from donewhen.foundation.git import git
from donewhen.foundation.plain_text import join_limited
from donewhen.isolation.levels import LEVELS
from donewhen.isolation.usable import usable_levels
from donewhen.jobs.ledger.entry_content import Completed
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.verifying.agreed_jobs import AgreedJob
from donewhen.jobs.verifying.base_branch import Base, is_shallow
from donewhen.jobs.verifying.cases import CaseReason
from donewhen.jobs.verifying.run_trees import RunTrees

_MAX_LISTED = 5
_SAYS_CHANGES = (GateCode.OUTSIDE_WORK_AREA, GateCode.TESTS_CHANGED)


def notes_on_base(base: Base) -> Iterator[CaseReason]:
    """Yield how the branch and the base are related."""
    if not base.fork and is_shallow(base):
        message = f"This is a shallow clone, so it is unknown whether the branch contains all commits of {base.ref}."
        yield CaseReason(FindingCode.GIT, message, "", "git fetch --unshallow")
    elif base.is_behind:
        message = f"The branch lacks commits of {base.ref}; files that it did not change were taken from there."
        yield CaseReason(FindingCode.GIT, message, "", f"git merge {base.ref}")


def notes_on_changes(base: Base, trees: RunTrees | None, reasons: Collection[CaseReason]) -> Iterator[CaseReason]:
    """Yield which changes of the branch the work was also judged without; ``reasons`` are against the branch."""
    if trees is None:
        return
    if not trees.is_planned:
        for file in trees.changed:
            if file.kind != "removed":
                message = f"{file.name} was {file.kind} on the branch; the work was also judged without that change."
                yield CaseReason(FindingCode.JUDGING_CHANGED, message, file.name.removeprefix(base.inside))
        return
    if trees.changed and not any(reason.code in _SAYS_CHANGES for reason in reasons):
        names = [file.name for file in trees.changed]
        message = f"The work was also judged without the changes of the branch in: {join_limited(names, _MAX_LISTED)}."
        yield CaseReason(FindingCode.JUDGING_CHANGED, message, names[0].removeprefix(base.inside))


def notes_on_jobs(base: Base, jobs: Sequence[AgreedJob]) -> Iterator[CaseReason]:
    """Yield which jobs are verified more weakly than others, and which were completed on other files."""
    older = [job.job.id for job in jobs if not job.done and job.basis is None and job.seal is not None]
    if older:
        code = FindingCode.NO_WORK_AREA
        message = (
            "Agreed without a work area, so the branch may change everything but files whose names are known to "
            f"judge: {join_limited(older, _MAX_LISTED)}."
        )
        yield CaseReason(code, message, "", FINDINGS[code].next_step)
    for job in jobs:
        commit = _completed_on(job)
        if commit is not None and git(base.top, "merge-base", "--is-ancestor", commit, base.commit) is None:
            code = FindingCode.ROOM_NOT_ON_BASE
            message = (
                f"{job.job.id} was completed with the agreed files of commit {commit[:12]}, which is not on "
                f"{base.ref}. It was verified with those of {base.ref}."
            )
            next_step = FINDINGS[code].next_step.replace("JOB", job.job.id)
            yield CaseReason(code, message, job.claim.where, next_step)


def notes_on_settings(settings: Settings) -> Iterator[CaseReason]:
    """Yield which settings are obsolete."""
    if "verify.from_base" in settings.given:
        message = "verify.from_base is obsolete. Its patterns are added to the default and never replace it."
        where = settings.source.name if settings.source is not None else ""
        next_step = "Remove it once every job has a work area: everything outside of it is taken from the base branch."
        yield CaseReason(FindingCode.SETTING_OBSOLETE, message, where, next_step)


def notes_on_isolation(jobs: Sequence[AgreedJob]) -> Iterator[CaseReason]:
    """Yield that checks were kept apart less than they could be, and why."""
    agreed = [job.basis.environment for job in jobs if job.basis is not None and job.basis.environment is not None]
    if not agreed:
        return
    problems = usable_levels("host" if agreed[0].network == "host" else "own")
    best = next(level for level in LEVELS if not problems[level])
    if best != LEVELS[0]:
        code = FindingCode.ISOLATION_WEAK
        message = f"Checks were kept apart by {best} only: {problems[LEVELS[0]]}."
        yield CaseReason(code, message, "", FINDINGS[code].next_step)


def _completed_on(job: AgreedJob) -> str | None:
    """The commit whose files a job was completed with on the branch, by its receipt."""
    completed = job.claim.completed
    room = completed.read_as(Completed).room if completed is not None else None
    return None if room is None else room.commit
