"""`donewhen github`: mirror jobs to GitHub issues."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.contract.agreement import project_agreement
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.plan.workspace import Workspace
from donewhen.mirror.http.client import MAX_WAIT
from donewhen.mirror.sync.enabling import enable_mirror as switch_on
from donewhen.mirror.sync.issue_map import read_map
from donewhen.mirror.sync.opening import Mirror, open_mirror
from donewhen.mirror.sync.parity import Gap, UnclearIssue, parity_gaps
from donewhen.mirror.sync.remote_issues import RemoteIssues, read_remote_issues
from donewhen.mirror.sync.sync_plan import Step
from donewhen.mirror.sync.syncing import read_and_plan
from donewhen.mirror.sync.syncing import sync as carry_out

_job_option = click.option("--job", metavar="JOB", help="Only this job (default: all).")
_wait_option = click.option(
    "--max-wait",
    type=click.FloatRange(min=0),
    default=MAX_WAIT,
    show_default=True,
    metavar="S",
    help="Maximum time to wait for GitHub's rate limits, in seconds.",
)


@click.group()
def command() -> None:
    """Mirror jobs to issues on GitHub, and compare them.

    A job becomes an issue, a wave a milestone, a status a label. Changes to issues never change jobs. The token is read
    from GH_TOKEN or GITHUB_TOKEN (on an Enterprise server, GH_ENTERPRISE_TOKEN or GITHUB_ENTERPRISE_TOKEN).

    \b
    donewhen github enable --repo owner/name
    donewhen github sync --dry-run
    donewhen github sync
    donewhen github parity --job WI-20260214-001
    """


@command.command()
@click.option("--repo", metavar="OWNER/NAME", help="The repository (default: from the git remote `origin`).")
@project_option
@common_options
@click.pass_obj
def enable(output: Output, repo: str | None, project: Path | None) -> ExitCode:
    """Enable mirroring: set github_enabled and github_repo in the project's plan. Nothing is sent.

    \b
    donewhen github enable --repo owner/name
    """
    workspace = find_project(project)
    name = switch_on(workspace, repo)
    output.say(f"✓ Jobs are mirrored to {name}.", fg="green")
    output.say("  GitHub parity now counts in the score.")
    state = project_agreement(workspace, workspace.project()).state
    if state == "agreed":
        output.say("  After the next agreement, only a person can switch it off: donewhen agree", dim=True)
    elif state == "voided":
        output.say(
            "  Another repository was agreed before; a person has to agree to this one: donewhen agree", fg="yellow"
        )
    output.say("  next: donewhen github sync --dry-run", dim=True)
    return output.finish(ExitCode.PASS, {"repo": name, "enabled": True, "agreement": state})


@command.command()
@click.option("--dry-run", is_flag=True, help="Print the planned changes without making any.")
@_job_option
@_wait_option
@project_option
@common_options
@click.pass_obj
def sync(output: Output, dry_run: bool, job: str | None, max_wait: float, project: Path | None) -> ExitCode:
    """Update the issues to match the jobs, and record the result.

    Text that people wrote around the generated part of an issue, and other labels, are not changed. An interrupted sync
    continues where it stopped.

    \b
    donewhen github sync --dry-run
    donewhen github sync --job WI-20260214-001
    donewhen github sync --max-wait 3600
    """
    workspace = find_project(project)
    job = _known(workspace, job)
    steps: tuple[Step, ...]
    with _Spinner(output) as spinner:
        mirror = open_mirror(workspace, keeping=not dry_run, on_progress=spinner.note, max_wait=max_wait)
        if dry_run:
            looked, planned = read_and_plan(mirror, mirror.known_here(read_map(workspace)), job)
            steps, left = planned.steps, planned.left
        else:
            synced = carry_out(mirror, unproved_actor(), only=job, on_progress=spinner.done)
            looked, steps, left = synced.looked, synced.done, synced.left
    if dry_run:
        for step in steps:
            output.say(f"· would {step.told}")
    findings = [
        *_unreadable(looked),
        *_nothing(looked, mirror),
        *_gaps(looked, mirror, left),
        *_doubled(looked),
    ]
    _show(output, findings)
    if not steps and not findings:
        output.say(f"✓ All {len(looked.targets)} issue(s) in {mirror.api.repo} are up to date.", fg="green")
    data = {
        "repo": mirror.api.repo,
        "dry_run": dry_run,
        "jobs": len(looked.targets),
        "steps": [{"step": type(step).__name__, "told": step.told} for step in steps],
        "gaps": [gap._asdict() for gap in left],
    }
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)


@command.command()
@_job_option
@_wait_option
@project_option
@common_options
@click.pass_obj
def parity(output: Output, job: str | None, max_wait: float, project: Path | None) -> ExitCode:
    """Compare each issue with its job, and explain each difference. Nothing is changed.

    \b
    donewhen github parity
    donewhen github parity --job WI-20260214-001 --json
    """
    workspace = find_project(project)
    job = _known(workspace, job)
    with _Spinner(output) as spinner:
        mirror = open_mirror(workspace, keeping=True, on_progress=spinner.note, max_wait=max_wait)
        looked = read_remote_issues(workspace, mirror.project, mirror.api, mirror.known_here(read_map(workspace)), job)
    found = [gap for target in looked.targets for gap in parity_gaps(target, looked.found[target.job])]
    findings = [
        *_unreadable(looked),
        *_nothing(looked, mirror),
        *_gaps(looked, mirror, found),
        *_doubled(looked),
    ]
    _show(output, findings)
    if not findings:
        output.say(f"✓ All {len(looked.targets)} issue(s) in {mirror.api.repo} are up to date.", fg="green")
    data: dict[str, Any] = {
        "repo": mirror.api.repo,
        "jobs": len(looked.targets),
        "gaps": [gap._asdict() for gap in found],
    }
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)


class _Spinner(ExitStack):
    """A spinner that disappears when the first line of progress is printed."""

    def __init__(self, output: Output) -> None:
        super().__init__()
        self._output = output
        self.enter_context(output.progress("asking GitHub"))

    def note(self, text: str) -> None:
        self.close()
        self._output.note(text)

    def done(self, step: Step) -> None:
        self.close()
        self._output.say(f"✓ {step.told}", fg="green")


def _known(workspace: Workspace, job: str | None) -> str | None:
    """The job's id. An unknown job is an error before any request is sent."""
    return None if job is None else workspace.place(job).id


def _show(output: Output, findings: Iterable[Finding]) -> None:
    for finding in findings:
        output.say(f"✗ [{finding.code}] {f'{finding.where}: ' if finding.where else ''}{finding.message}", fg="red")
        if finding.next:
            output.say(f"    next: {finding.next}", dim=True)


def _gaps(looked: RemoteIssues, mirror: Mirror, found: Iterable[Gap]) -> Iterator[Finding]:
    for gap in found:
        there = looked.found[gap.job]
        code = FindingCode.MIRROR_MISSING if gap.field == "issue" else FindingCode.MIRROR_DIFFERS
        step = there.next if isinstance(there, UnclearIssue) else FINDINGS[code].next_step
        yield Finding(code, gap.told, mirror.workspace.where(looked.jobs[gap.job].path), step)


def _unreadable(looked: RemoteIssues) -> Iterator[Finding]:
    return (Finding.of(error) for error in looked.unreadable)


def _doubled(looked: RemoteIssues) -> Iterator[Finding]:
    for job, numbers in looked.doubled.items():
        message = f"Issue {', '.join(map(str, numbers))} is also marked as {job}."
        yield Finding(FindingCode.MIRROR_DOUBLED, message, job, FINDINGS[FindingCode.MIRROR_DOUBLED].next_step)


def _nothing(looked: RemoteIssues, mirror: Mirror) -> Iterator[Finding]:
    """A finding if there are no jobs: zero checks is not a pass."""
    if not looked.targets and not looked.unreadable:
        yield Finding("no_job", "There are no jobs.", str(mirror.workspace.root), "donewhen add TITLE")
