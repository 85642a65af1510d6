"""`donewhen verify`: run the contract of the base branch on this branch."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.foundation.files import write_atomically
from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.gate_program import this_gate
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode
from donewhen.jobs.verifying import Verification, VerificationCase, verify_branch
from donewhen.reports.verification_github import annotation_lines, escape_runner_commands, summary
from donewhen.reports.verification_junit import junit
from donewhen.reports.verification_sarif import sarif

_FILE = click.Path(dir_okay=False, path_type=Path)
_MARKS = {"passed": ("✓", "green"), "failed": ("✗", "red"), "error": ("✗", "red"), "skipped": ("·", "yellow")}


@click.command()
@click.option("--base", metavar="REF", help="Branch with the contract (default in a pull request on GitHub: its base).")
@click.option("--commit", metavar="REV", default="HEAD", show_default=True, help="Commit to verify.")
@click.option(
    "--job",
    "jobs",
    multiple=True,
    metavar="JOB",
    help="Verify this job and its dependencies, even if not claimed done.",
)
@click.option(
    "--junit", "junit_file", type=_FILE, metavar="FILE", help="Write JUnit XML, with one case per gate and criterion."
)
@click.option(
    "--sarif", "sarif_file", type=_FILE, metavar="FILE", help="Write SARIF, with each reason at its job file."
)
@click.option(
    "--summary",
    "summary_file",
    type=_FILE,
    metavar="FILE",
    help="Append a Markdown summary (default on GitHub: the step summary).",
)
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    base: str | None,
    commit: str,
    jobs: tuple[str, ...],
    junit_file: Path | None,
    sarif_file: Path | None,
    summary_file: Path | None,
    project: Path | None,
) -> ExitCode:
    """Verify a commit against the contract of the base branch.

    Plans, agreements, settings and judges come from the base branch, and so does every file outside the agreed work
    areas, and what judges in them. If the branch changed such files, its checks are run again with everything as the
    branch has it, which must also pass and include every test of the base branch. Ledger, receipts and evidence on the
    branch are not trusted; false ones are reported.

    Only what is committed is judged. Uncommitted changes and ignored files are left out and reported; installed
    environments (virtual environments, node_modules) are used. Your folder is not changed.

    Every job that the branch claims to be done is verified; other jobs are reported as skipped, not as passed. In
    GitHub Actions, reasons are also shown as annotations in the pull request.

    \b
    donewhen verify --base origin/main
    donewhen verify --base main --junit verify.xml --sarif verify.sarif
    """
    on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    found, status = _verified(output, base or _base_on_github(), commit, jobs, project)
    place = summary_file or (Path(os.environ["GITHUB_STEP_SUMMARY"]) if os.environ.get("GITHUB_STEP_SUMMARY") else None)
    failed = [
        *_written(junit_file, lambda file: write_atomically(file, junit(found))),
        *_written(sarif_file, lambda file: write_atomically(file, sarif(found, status))),
        *_written(place, lambda file: _add(file, summary(found))),
    ]
    _show(output, found)
    for line in annotation_lines(found) if on_github else ():
        click.echo(line, err=output.json)
    for finding in failed:
        output.note(f"donewhen: {finding.where}: {finding.message}")
    findings = [Finding(reason.code, reason.message, reason.where or None, reason.next) for reason in found.reasons]
    return output.finish(status if not failed or status else ExitCode.USAGE, _data(found), [*findings, *failed])


def _written(file: Path | None, write: Callable[[Path], None]) -> list[Finding]:
    """Write a report file; return findings if that fails, so that the others are still written."""
    try:
        if file is not None:
            write(file)
    except OSError as error:
        return [Finding("usage", f"The report can't be written: {error.strerror}.", str(file))]
    return []


def _add(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8", errors="replace") as opened:
        opened.write(text)


def _verified(
    output: Output, base: str, commit: str, jobs: tuple[str, ...], project: Path | None
) -> tuple[Verification, ExitCode]:
    """The verification; an error has the same form, so that a missing report can't be taken for a pass."""
    try:
        if not base:
            raise UsageError("Name the base branch.", next_step="donewhen verify --base origin/main")
        workspace = find_project(project)
        with output.progress("verify") as on_progress:
            found = verify_branch(workspace, base, commit=commit, jobs=jobs, on_progress=on_progress)
            return found, _status(found)
    except DonewhenError as error:
        if error.exit_code != ExitCode.USAGE and os.environ.get("DONEWHEN_DEBUG"):
            raise
        verification = Verification.of_error(base, error.code, error.message, error.where or "", error.next_step)
        return verification, error.exit_code
    except Exception as error:
        if os.environ.get("DONEWHEN_DEBUG"):
            raise
        code = GateCode.GATE_ERROR
        message = one_line(f"Internal error during verification: {type(error).__name__}: {error}", 400)
        verification = Verification.of_error(base, code, message, "", GATE_REASONS[code].next_step)
        return verification, ExitCode.INTERNAL


def _base_on_github() -> str:
    branch = os.environ.get("GITHUB_BASE_REF")
    return f"origin/{branch}" if branch else ""


def _status(found: Verification) -> ExitCode:
    if found.passed:
        return ExitCode.PASS
    return ExitCode.INTERNAL if found.broken else ExitCode.GATE_FAILED


def _show(output: Output, found: Verification) -> None:
    groups = [("project", "", found.project), *((job.id, job.title, job.cases) for job in found.jobs)]
    for name, title, cases in groups:
        output.say(escape_runner_commands(f"{name}  {title}".rstrip()), bold=True)
        for case in cases:
            _show_case(output, case)
    for note in found.notes:
        output.say(escape_runner_commands(f"! {note.message}"), fg="yellow")
    if not found.commit:
        output.say("Not verified.", bold=True)
        return
    claimed = [job for job in found.jobs if job.claimed]
    good = sum(job.passed for job in claimed)
    word = "passed." if found.passed else "failed."
    message = f"{good} of {len(claimed)} job(s) verified against the contract of {found.base}: {word}"
    output.say(escape_runner_commands(message), bold=True)


def _show_case(output: Output, case: VerificationCase) -> None:
    mark, color = _MARKS[case.outcome]
    text = f"  {case.text}" if case.text else ""
    output.say(escape_runner_commands(f"  {mark} {case.name}{text}"), fg=color)
    for reason in case.reasons:
        output.say(escape_runner_commands(f"      [{reason.code}] {reason.message}"))
        if reason.where:
            output.say(escape_runner_commands(f"      {reason.where}"), dim=True)
        if reason.next and (case.outcome == "error" or reason.code == FindingCode.NOT_ON_BASE):
            output.say(escape_runner_commands(f"      next: {reason.next}"), dim=True)
    for line in plain_text(case.output).splitlines():
        output.say(escape_runner_commands(f"      {line}"), dim=True)


def _data(found: Verification) -> dict[str, Any]:
    return {
        "passed": found.passed,
        "base": found.base,
        "commit": found.commit,
        "judged": found.head,
        "gate": msgspec.to_builtins(this_gate()),
        "project": [_case_data(case) for case in found.project],
        "jobs": [
            {
                "job": job.id,
                "title": job.title,
                "claimed": job.claimed,
                "passed": job.passed,
                "cases": [_case_data(case) for case in job.cases],
            }
            for job in found.jobs
        ],
        "notes": [note._asdict() for note in found.notes],
    }


def _case_data(case: VerificationCase) -> dict[str, Any]:
    return {**case._asdict(), "reasons": [reason._asdict() for reason in case.reasons]}
