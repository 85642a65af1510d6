"""Failed checks: why a run failed, and which checks of a done job fail now, so that it is no longer true."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.commands import evidence_names
from donewhen.jobs.evidence.file_checks import checked_files, run_file_check
from donewhen.jobs.evidence.requirements import VERIFICATION, Requirement, requirements_of
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun, FileCheck, JudgeRun, Overridden, Ran
from donewhen.jobs.plan.criteria import CheckKind
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import failed_again, history_of

_KINDS: dict[CheckKind, type[Ran]] = {"run": CommandRun, "file": FileCheck, "judge": JudgeRun}


def failed_checks(job: Job, entries: Sequence[Entry], policy: Policy) -> Iterator[str]:
    """Why the completion of a job is no longer true: its checks that were run again since, and failed."""
    completed = history_of(job.id, entries, policy).completed
    failed = failed_again(entries, completed) if completed is not None else ()
    for requirement in requirements_of(job) if failed else ():
        kind, names = _KINDS.get(requirement.check.kind), evidence_names(requirement.evidence)
        for entry in failed:
            same = type(entry.content) is kind and entry.read_as(Ran).evidence in names
            if same and not _accepted_since(job, requirement, entry, entries, policy):
                why = one_line(failure_text(entry.read_as(Ran)), 200)
                yield f"{_name(requirement)} was checked again and fails{f': {why}' if why else ''}"


def failed_file_checks(
    workspace: Workspace, job: Job, requirements: Iterable[Requirement], names: AbstractSet[str] | None = None
) -> Iterator[str]:
    """Why a job is no longer true: which file checks among these requirements fail now; with ``names``, only those
    about these files."""
    for requirement in requirements:
        if requirement.check.kind != "file":
            continue
        # A check that can't be run now, because a package is missing for example, says nothing about the work.
        with suppress(DonewhenError):
            if names is None or names & checked_files(workspace, job, requirement.check).keys():
                found = run_file_check(workspace, job, requirement.check)
                if not found.passed:
                    yield f"{_name(requirement)} fails now ({requirement.check.path}: {found.detail})"


def failure_text(run: Ran) -> str:
    """Why a run failed, in a few words."""
    if run.told is not None or not isinstance(run, CommandRun):
        return run.told or ""
    detail = f"exit status {run.exit_code}" if run.ending == "exited" else run.ending.replace("_", " ")
    if run.report is not None and run.report.failed:
        detail = f"{detail}, {run.report.failed} test(s) failed"
    elif run.report is not None and run.report.passed == 0:
        detail = f"{detail}, no test passed"
    only_whole = run.room is not None and run.room.failed_in == "whole"
    return (
        f"{detail}, with the changes of tests or outside the work area; without them it passes"
        if only_whole
        else detail
    )


def _name(requirement: Requirement) -> str:
    return f"`{requirement.evidence}`" if requirement.name == VERIFICATION else requirement.name


def _accepted_since(
    job: Job, requirement: Requirement, failed: Entry, entries: Sequence[Entry], policy: Policy
) -> bool:
    """Whether a person has accepted the criterion after the check failed."""
    return any(
        isinstance(entry.content, Overridden)
        and entry.seq > failed.seq
        and entry.content.criterion == requirement.name
        and entry.content.verdict == "pass"
        and is_approval(entry, job.id, policy)
        for entry in entries
    )
