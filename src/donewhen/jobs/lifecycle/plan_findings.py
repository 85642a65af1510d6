"""What a check of the plan finds in single jobs, workstreams and the project, from plans and ledger. Runs nothing."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.board.survey import JobRecord, Survey
from donewhen.jobs.contract.agreement import AgreementProblem
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.document import Document
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.job import read_status, unknown_format
from donewhen.jobs.plan.workspace import PLAN, Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import parent_mismatches

_CLOSED = ("done", "cancelled")
_MAX_LISTED = 5


def job_findings(job: JobRecord, survey: Survey, where: str) -> Iterator[AgreementProblem]:
    """The problems of a job by itself."""
    if job.unknown_format:
        yield AgreementProblem(FindingCode.UNKNOWN_FORMAT, job.unknown_format, where)
    for found, meant in job.misspelled:
        message = f"{job.id}: the field {one_line(found, 60)} has no effect. Was {meant} meant?"
        yield AgreementProblem(FindingCode.FIELD_MISSPELLED, message, where)
    if "in_progress" in (job.status, job.recorded):
        yield from _work_without_agreement(job, survey, where)
    iteration = max(job.iteration, job.known.iteration)
    if job.status not in ("blocked", "cancelled") and iteration > job.max_iterations and not job.known.unblocked:
        message = f"{job.id} is {job.status}, but it has used {iteration} of {job.max_iterations} iterations."
        yield AgreementProblem(FindingCode.OVER_BUDGET, message, where)
    if job.status == "done":
        yield from _recorded_results(job, where)


def parent_findings(workspace: Workspace, survey: Survey) -> Iterator[AgreementProblem]:
    """The problems of the project and its workstreams: done too early, or in an unknown format."""
    folders = [] if workspace.form == "small" else sorted(workspace.workstream_folders())
    workstreams = {id_in(folder.name) or folder.name for folder in folders}
    for kind, path in (("project", workspace.project_file), *(("workstream", folder / PLAN) for folder in folders)):
        where = workspace.where(path)
        try:
            document = survey.project.document if kind == "project" else workspace.read(path)
            status = str(read_status(document, where))
        except DonewhenError as error:
            yield AgreementProblem(error.code, error.message, error.where or where)
            continue
        unknown = unknown_format(document, kind)
        if unknown:
            yield AgreementProblem(FindingCode.UNKNOWN_FORMAT, unknown, where)
        name = _name(document, path)
        if kind == "workstream":
            yield from _unknown_workstreams(name, document, workstreams, where)
        entries = workspace.ledger.read(name).entries
        if entries:
            status = history_of(name, entries, Policy()).status
        yield from _edited_fields(name, document, entries, where)
        if status == "done":
            problems = [*_open_jobs(name, _jobs_below(path, survey), where)]
            if not (problems or entries):
                message = f"{name} says done, but the ledger has no record of it."
                problems.append(AgreementProblem(FindingCode.UNSEALED, message, where))
            yield from problems


def missing_jobs(workspace: Workspace, survey: Survey) -> Iterator[AgreementProblem]:
    """The jobs that were agreed to, but have no plan any more."""
    for name in survey.missing:
        message = f"The ledger has a chain for {name}, but its plan file is missing."
        where = workspace.where(workspace.folder / "ledger" / f"{name}.jsonl")
        yield AgreementProblem(FindingCode.JOB_MISSING, message, where)


def _unknown_workstreams(
    name: str, document: Document, workstreams: Container[str], where: str
) -> Iterator[AgreementProblem]:
    """The dependencies of a workstream that don't exist. They tell people an order; the gates look at those of jobs."""
    depends_on = document.fields.get("depends_on")
    for other in depends_on if isinstance(depends_on, list) else ():
        if other not in workstreams:
            message = f"{name} depends on {one_line(str(other), 100)}, which does not exist."
            yield AgreementProblem(FindingCode.DEPENDENCY_DANGLING, message, where)


def _edited_fields(name: str, document: Document, entries: Sequence[Entry], where: str) -> Iterator[AgreementProblem]:
    """The fields of a project or workstream that don't say what the ledger says."""
    for mismatch in parent_mismatches(document.fields, entries) if entries else ():
        found, expected = one_line(repr(mismatch.found), 100), one_line(repr(mismatch.expected), 100)
        message = f"{name}: {mismatch.field} says {found}, but the ledger says {expected}."
        yield AgreementProblem(FindingCode.TAMPERED, message, where)


def _work_without_agreement(job: JobRecord, survey: Survey, where: str) -> Iterator[AgreementProblem]:
    whose, state = "its agreement", job.agreement
    if survey.project_agreement != "agreed":
        whose, state = "the agreement of the project", survey.project_agreement
    if state != "agreed":
        code = FindingCode.VOIDED if state == "voided" else FindingCode.WORK_NOT_AGREED
        described = "void" if state == "voided" else "missing" if state == "proposed" else "not in the ledger"
        yield AgreementProblem(code, f"{job.id} is in progress, but {whose} is {described}.", where)


def _recorded_results(job: JobRecord, where: str) -> Iterator[AgreementProblem]:
    """What the plan of a done job shows as the result of its last evaluation."""
    truth = str(job.shown.get("truth_last_status") or "unknown")
    failures = job.shown.get("truth_last_failures")
    if truth != "pass" or failures:
        first = f": {one_line(str(failures[0]), 200)}" if isinstance(failures, list) and failures else ""
        message = f"{job.id} is done, but its truth is recorded as {one_line(truth, 40)}{first}"
        yield AgreementProblem(FindingCode.DONE_UNTRUE, f"{message.rstrip('.')}.", where)
    score, target = job.shown.get("reward_last_score"), job.reward_target
    if not isinstance(score, int | float) or score < target:
        shown = f"its score is recorded as {score:g}" if isinstance(score, int | float) else "no score is recorded"
        message = f"{job.id} is done, but {shown}; its target is {target}."
        yield AgreementProblem(FindingCode.DONE_BELOW_TARGET, message, where)


def _open_jobs(name: str, jobs: Mapping[str, JobRecord], where: str) -> Iterator[AgreementProblem]:
    still_open = [job.id for job in jobs.values() if not {job.status, job.recorded} <= {*_CLOSED}]
    if still_open:
        message = f"{name} is done, but these of its jobs are not: {join_limited(still_open, _MAX_LISTED)}."
        yield AgreementProblem(FindingCode.DONE_TOO_EARLY, message, where)
    elif not any(job.status == "done" for job in jobs.values()):
        yield AgreementProblem(FindingCode.DONE_TOO_EARLY, f"{name} is done, but none of its jobs is.", where)


def _jobs_below(path: Path, survey: Survey) -> dict[str, JobRecord]:
    return {job.id: job for job in survey.jobs if job.path.is_relative_to(path.parent)}


def _name(document: Document, path: Path) -> str:
    return one_line(str(document.fields.get("id") or path.parent.name), 100)
