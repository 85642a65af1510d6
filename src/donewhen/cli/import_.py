"""`donewhen import`: create jobs from other tools' files."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.views import update_views
from donewhen.jobs.imports.importing import ImportedJob, ImportResult, Watch, import_jobs
from donewhen.jobs.imports.items import KIND_LABELS, KINDS, Kind
from donewhen.jobs.imports.selecting import Selection
from donewhen.jobs.ledger.finding_codes import FINDINGS

_MOST_ROWS = 40
_MOST_FINDINGS = 40


@click.command()
@click.argument("source", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "kind",
    type=click.Choice(KINDS),
    help="Source format (default: detect).",
)
@click.option(
    "--run",
    "commands",
    multiple=True,
    metavar="CMD",
    help="A command that must succeed for every created job. It runs without a shell.",
)
@click.option("--workstream", metavar="NAME", help="The workstream of the jobs; created if it does not exist.")
@click.option("--open", "only_open", is_flag=True, help="Only items that the source does not call done.")
@click.option("--status", "statuses", multiple=True, metavar="NAME", help="Only items with this status.")
@click.option("--milestone", "milestones", multiple=True, metavar="NAME", help="Only items of this milestone.")
@click.option("--dry-run", is_flag=True, help="Show what would be created, and write nothing.")
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    source: Path,
    kind: Kind | None,
    commands: tuple[str, ...],
    workstream: str | None,
    only_open: bool,
    statuses: tuple[str, ...],
    milestones: tuple[str, ...],
    dry_run: bool,
    project: Path | None,
) -> ExitCode:
    """Create jobs from SOURCE, a file or folder of another tool.

    Imported jobs always start as planned and not agreed, even if the source says that they are done. Importing again
    creates new jobs and reports changed ones.

    \b
    donewhen import .                            # detect: backlog/, specs/, openspec/, feature_list.json
    donewhen import backlog --dry-run
    donewhen import backlog --open --milestone v2
    donewhen import feature_list.json --run "python -m pytest -q"
    donewhen import openspec/changes/add-search --from openspec
    """
    workspace = find_project(project)
    selection = Selection(only_open, statuses, milestones)
    with _bar(output) as watch:
        done = import_jobs(
            workspace,
            source,
            kind,
            commands=commands,
            workstream=workstream,
            selection=selection,
            dry_run=dry_run,
            watch=watch,
        )
        if not dry_run:
            update_views(workspace)
    _show(output, done, dry_run)
    data = {
        "kind": done.kind,
        "source": str(done.root),
        "dry_run": dry_run,
        "made": 0 if dry_run else done.new,
        "would_be_made": done.new if dry_run else 0,
        "claimed_done": done.claimed,
        "taken_on_trust": 0,
        "items": [_row(imported) for imported in done.made],
    }
    findings = [
        Finding(finding.code, finding.message, finding.where, FINDINGS[finding.code].next_step)
        for finding in done.findings
    ]
    return output.finish(ExitCode.PASS if done.complete else ExitCode.GATE_FAILED, data, findings)


def _row(job: ImportedJob) -> dict[str, object]:
    return {
        "from": job.item.key,
        "where": job.item.where,
        "job": job.job,
        "state": job.state,
        "title": job.item.title,
        "criteria": len(job.item.criteria),
        "depends_on": list(job.item.depends_on),
        "claim": job.item.claim.told,
        "claimed_done": job.item.claim.done,
    }


def _show(output: Output, done: ImportResult, dry_run: bool) -> None:
    output.say(f"{KIND_LABELS[done.kind]} in {done.root}", bold=True)
    width = min(40, max(len(imported.item.name) for imported in done.made[:_MOST_ROWS]))
    for imported in done.made[:_MOST_ROWS]:
        output.say(f"  {_line(imported, width, dry_run)}")
    if len(done.made) > _MOST_ROWS:
        output.say(f"  … and {len(done.made) - _MOST_ROWS:,} more; --json has all of them", dim=True)
    for finding in done.findings[:_MOST_FINDINGS]:
        output.say(f"  ! {finding.message}", fg="yellow")
        output.say(f"    {finding.where}", dim=True)
    if len(done.findings) > _MOST_FINDINGS:
        output.say(f"  … and {len(done.findings) - _MOST_FINDINGS:,} more; --json has all of them", dim=True)
    verb = "would be created" if dry_run else "created"
    there = len(done.made) - done.new
    output.say(f"{_jobs(done.new)} {verb}" + (f", {there:,} already imported" if there else "") + ".", bold=True)
    if done.claimed:
        output.say(f"{done.claimed:,} of {len(done.made):,} claimed done; claims are not trusted.")
    if done.new and not dry_run:
        output.say("  next: read the plans, then: donewhen agree", dim=True)


def _line(imported_job: ImportedJob, width: int, dry_run: bool) -> str:
    item = imported_job.item
    waits = [key.partition(":")[2] for key in item.depends_on]
    after = f"  after {one_line(', '.join(waits), 60)}" if waits else ""
    criteria = f"{len(item.criteria)} {'criterion' if len(item.criteria) == 1 else 'criteria'}"
    job = imported_job.job or ("a new job" if dry_run else "")
    state = (
        ""
        if imported_job.state == "new"
        else "  (already imported)"
        if imported_job.state == "there"
        else "  (changed in the source)"
    )
    says = "" if item.claim.told == "nothing" else f'  says "{item.claim.told}"'
    return f"{one_line(item.name, width):<{width}} → {job}  {one_line(item.title, 60)}: {criteria}{after}{says}{state}"


def _jobs(count: int) -> str:
    return "1 job" if count == 1 else f"{count:,} jobs"


@contextmanager
def _bar(output: Output) -> Iterator[Watch]:
    """A progress bar on a terminal."""
    if output.json or not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, no_color=not output.color)
    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("jobs", total=None)
        yield lambda done, every: bar.update(task, completed=done, total=every)
