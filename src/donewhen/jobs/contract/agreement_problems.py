"""What prevents agreeing to a job: no criteria, placeholders, paths and commands that can't be what is meant."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath

from donewhen.config.settings import Settings
from donewhen.foundation.errors import ConfigError, DonewhenError
from donewhen.foundation.git import repository_root
from donewhen.foundation.hidden_characters import HiddenCharacter, find_hidden_character
from donewhen.foundation.process import split_command
from donewhen.jobs.contract.agreement import AgreementProblem
from donewhen.jobs.contract.inputs import is_generated, locate_path
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.criteria import Criterion, find_section
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.own_commands import shadowed_script
from donewhen.jobs.plan.placeholders import describes_verification
from donewhen.jobs.plan.workspace import Workspace

_LINE_BREAKS = re.compile("[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")


def problems_of_job(workspace: Workspace, job: Job, where: str, settings: Settings) -> Iterator[AgreementProblem]:
    """Everything that prevents agreeing to a job."""
    yield from _content_problems(job, where)
    yield from hidden_character_problems(job, where)
    yield from _hidden_in_fields(job, where)
    yield from _path_problems(workspace, job)
    yield from _shadowed_scripts(workspace, job)
    yield from _judge_problems(workspace, job, where, settings)


def _content_problems(job: Job, where: str) -> Iterable[AgreementProblem]:
    if not job.criteria:
        yield AgreementProblem(FindingCode.CRITERIA_MISSING, "The job has no acceptance criteria.", where)
    yield from placeholder_problems(job.criteria, where)
    yield from _plan_problems(job, where)
    for field, commands in (("truth_required_commands", job.truth_required_commands), ("prepare", job.prepare)):
        for command in commands:
            try:
                split_command(command)
            except DonewhenError as error:
                message = f"{error.message} {error.next_step or ''}".strip()
                yield AgreementProblem(FindingCode.COMMAND, message, f"{where}:{job.document.line_of(field)}")


def _plan_problems(job: Job, where: str) -> Iterable[AgreementProblem]:
    """A verification plan that is still the text of a template. It may be empty, or a command or file check instead."""
    section = find_section(job.document.body, "Verification", job.document.first_body_line)
    runs = any(criterion.check is not None and criterion.check.kind in ("run", "file") for criterion in job.criteria)
    if section and section.text and not (runs or job.truth_required_commands or describes_verification(section.text)):
        message = "The verification plan is a placeholder: say how the criteria are verified, or give them checks."
        yield AgreementProblem(FindingCode.PLACEHOLDER, message, f"{where}:{section.line}")


def _path_problems(workspace: Workspace, job: Job) -> Iterable[AgreementProblem]:
    declared = {"outputs": job.outputs, "verification_evidence": job.verification_evidence, "inputs": job.inputs}
    for field, paths in declared.items():
        for path in paths:
            try:
                locate_path(workspace, job, path, field)
            except ConfigError as error:
                yield AgreementProblem(FindingCode.PATH_OUTSIDE, error.message, error.where or "")
                continue
            if field == "outputs":
                yield from _output_problems(workspace, job, path)
    areas = {"work": job.work or (), "present": job.present, "tests_may_change": job.tests_may_change}
    for field, patterns in areas.items():
        line = job.document.line_of(field)
        where = f"{workspace.where(job.path)}:{line}" if line else workspace.where(job.path)
        for pattern in patterns:
            if (problem := _pattern_problem(workspace, pattern)) is not None:
                message = f"The pattern {pattern!r} in {field} {problem}."
                yield AgreementProblem(FindingCode.PATH_OUTSIDE, message, where)


def _pattern_problem(workspace: Workspace, pattern: str) -> str | None:
    """What is wrong with a pattern of the work area; None if nothing is."""
    parts = PurePosixPath(pattern.lstrip("/")).parts
    if not parts or ".." in parts or "\0" in pattern:
        return "names no place in the project"
    if pattern.startswith("//") and repository_root(workspace.root) is None:
        return "begins with //, which is the repository, but the project is in none"
    return None


def _output_problems(workspace: Workspace, job: Job, path: str) -> Iterable[AgreementProblem]:
    """An output that can never be there as agreed, or that says nothing about the work."""
    file = locate_path(workspace, job, path, "outputs")
    line = job.document.line_of("outputs")
    where = f"{workspace.where(job.path)}:{line}" if line else workspace.where(job.path)
    if is_generated(workspace, file):
        message = f"The output {path!r} is a file that donewhen writes itself, so it says nothing about the work."
        yield AgreementProblem(FindingCode.OUTPUT_UNUSABLE, message, where)
    elif path.endswith("/") or file.is_dir():
        message = (
            f"The output {path!r} is a folder. Name the files that the job makes, or a pattern such as /dist/*.js."
        )
        yield AgreementProblem(FindingCode.OUTPUT_UNUSABLE, message, where)


def hidden_character_problems(plan: Job | Project, where: str) -> Iterable[AgreementProblem]:
    """Criteria with characters that a person can't see, and so can't agree to."""
    for criterion in plan.criteria:
        check = criterion.check.normal if criterion.check is not None else ""
        hidden = find_hidden_character(criterion.text) or find_hidden_character(check)
        if hidden is not None and not criterion.placeholder:
            yield _hidden(f"The criterion {criterion.id}", hidden, f"{where}:{criterion.line}")
    # These count as spaces where a criterion is read, so they are in no text of one.
    section = find_section(plan.document.body, "Acceptance Criteria", plan.document.first_body_line)
    for number, line in () if section is None else section.lines:
        if (found := _LINE_BREAKS.search(line)) is not None:
            hidden = find_hidden_character(found[0])
            if hidden is not None:
                yield _hidden("A line of the acceptance criteria", hidden, f"{where}:{number}")


def _hidden_in_fields(job: Job, where: str) -> Iterable[AgreementProblem]:
    fields = {
        "outputs": job.outputs,
        "verification_evidence": job.verification_evidence,
        "inputs": job.inputs,
        "truth_required_commands": job.truth_required_commands,
        "work": job.work or (),
        "present": job.present,
        "prepare": job.prepare,
        "tests_may_change": job.tests_may_change,
        **{name: (reason,) for name, reason in job.exemptions.items()},
    }
    for field, texts in fields.items():
        hidden = next(filter(None, map(find_hidden_character, texts)), None)
        if hidden is not None:
            line = job.document.line_of(field)
            yield _hidden(f"The field {field}", hidden, f"{where}:{line}" if line else where)


def _hidden(what: str, hidden: HiddenCharacter, where: str) -> AgreementProblem:
    message = f"{what} has a character that can't be seen: {hidden.name}. Remove it: you agree to what you can see."
    return AgreementProblem(FindingCode.HIDDEN_CHARACTER, message, where)


def _shadowed_scripts(workspace: Workspace, job: Job) -> Iterable[AgreementProblem]:
    """Commands of which a person would expect that they run a script of the project, which they don't."""
    for command in job.truth_required_commands:
        with suppress(ValueError):
            script = shadowed_script(command, workspace.root)
            if script is not None:
                message = (
                    f"{script} is in this project, but `{command}` would not run it: the gates answer for scripts "
                    f"with this name. To run it, write ./{script} instead."
                )
                line = job.document.line_of("truth_required_commands")
                yield AgreementProblem(FindingCode.COMMAND, message, f"{workspace.where(job.path)}:{line}")


def _judge_problems(workspace: Workspace, job: Job, where: str, settings: Settings) -> Iterable[AgreementProblem]:
    """Missing missions: adding one needs no agreement, so its author could choose the judge later."""
    judged = [
        criterion for criterion in job.criteria if criterion.check is not None and criterion.check.kind == "judge"
    ]
    known = mission_folders(workspace.root, settings) if judged else {}
    for criterion in judged:
        if criterion.check is not None and criterion.check.text not in known:
            message = f"The criterion {criterion.id} names the mission {criterion.check.text!r}, which does not exist."
            yield AgreementProblem(FindingCode.MISSION_MISSING, message, f"{where}:{criterion.line}")


def placeholder_problems(criteria: Iterable[Criterion], where: str) -> Iterable[AgreementProblem]:
    """The criteria that are still placeholders."""
    for criterion in criteria:
        if criterion.placeholder:
            yield AgreementProblem(
                FindingCode.PLACEHOLDER,
                f"The criterion {criterion.id} is a placeholder: {criterion.text!r}.",
                f"{where}:{criterion.line}",
            )
