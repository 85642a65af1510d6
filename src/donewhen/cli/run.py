"""`donewhen run`: run checks and store the results as evidence."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.cli._probes import probes_data, probes_of_entry, show_probes
from donewhen.foundation.errors import ExitCode, UsageError
from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.jobs.evidence.commands import EvidenceRun, run_as_evidence
from donewhen.jobs.evidence.flaky_runs import flaky_text
from donewhen.jobs.evidence.probe_record import ProbeRecord
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.evidence.requirements import (
    Requirement,
    is_required_evidence,
    requirement_for,
    requirements_of,
    runnable_requirements,
)
from donewhen.jobs.evidence.room_session import room_session
from donewhen.jobs.evidence.store import evidence_store
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.entry_content import CommandRun, Ran
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation

_TAIL = 15


@click.command()
@click.argument("job")
@click.argument("argv", nargs=-1, metavar="[-- CMD...]")
@click.option("--criterion", metavar="ID", help="Store the result for this criterion; without CMD, run its own check.")
@click.option("--again", is_flag=True, help="Run again even if the evidence is still fresh.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Time limit for CMD, in seconds."
)
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    job: str,
    argv: tuple[str, ...],
    criterion: str | None,
    again: bool,
    timeout: float | None,
    project: Path | None,
) -> ExitCode:
    """Run CMD as evidence for JOB; without CMD, run all checks of JOB whose evidence is not fresh.

    The command runs without a shell and with a small environment. Recorded are the program, the content hashes of the
    inputs, the exit status, the output and the test report. Evidence is reused until the program or an input changes.

    \b
    donewhen run WI-20260214-001
    donewhen run WI-20260214-001 --criterion AC-1
    donewhen run WI-20260214-001 -- python -m pytest -q
    """
    workspace = find_project(project)
    found = workspace.job(job)
    only = None if criterion is None else requirement_for(found, criterion)
    commands = any(requirement.check.kind == "run" for requirement in requirements_of(found))
    rooms = room_session(workspace, found) if commands else nullcontext()
    with operation(workspace, create=True), rooms:
        if argv:
            results = [_one_command(output, workspace, found, argv, only, again, timeout)]
        else:
            by_hand = f"Give a command after --, or: donewhen sign-off {found.id} --criterion ID --reason …"
            chosen = runnable_requirements(found, only, by_hand=by_hand)
            results = _checks(output, workspace, found, chosen, again)
            results += _judged(output, workspace, found, chosen, only, again)
    findings = [
        Finding(FindingCode.EVIDENCE_FAILED, f"The check failed: {text}.", found.id, f"donewhen why {found.id}")
        for text, ran in results
        if not ran.passed
    ]
    runs = [{**_data(text, ran), **probes_data(_probes(workspace, found, ran))} for text, ran in results]
    data = {"job": found.id, "runs": runs}
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)


def _checks(
    output: Output, workspace: Workspace, job: Job, chosen: Sequence[Requirement], again: bool
) -> list[tuple[str, EvidenceRun]]:
    """Run commands and file checks of a job."""
    results: list[tuple[str, EvidenceRun]] = []
    for requirement in chosen:
        if requirement.check.kind != "judge":
            with output.progress(requirement.evidence) as show:
                actor, probing = unproved_actor(), Probing(show)
                runs = collect_evidence(workspace, job, actor, again=again, only=requirement, probing=probing)
                results += [(requirement.evidence, run) for _, run in runs]
            _tell(output, *results[-1])
            show_probes(output, _probes(workspace, job, results[-1][1]), "  ")
    return results


def _probes(workspace: Workspace, job: Job, run: EvidenceRun) -> ProbeRecord | None:
    return probes_of_entry(evidence_store(workspace), workspace.ledger.read(job.id).entries, run.entry)


def _judged(
    output: Output,
    workspace: Workspace,
    job: Job,
    chosen: Sequence[Requirement],
    only: Requirement | None,
    again: bool,
) -> list[tuple[str, EvidenceRun]]:
    """Run judges last, and only if all other checks have passed."""
    results: list[tuple[str, EvidenceRun]] = []
    for requirement in chosen:
        if requirement.check.kind == "judge":
            text = f"judge:{requirement.check.text} {requirement.name}"
            try:
                with output.progress(text):
                    found = collect_evidence(workspace, job, unproved_actor(), again=again, only=requirement)
            except UsageError as error:
                if only is not None:
                    raise
                output.say(f"· {error.message}", fg="yellow")
                continue
            results += [(text, ran) for _, ran in found]
            _tell(output, *results[-1])
    return results


def _one_command(
    output: Output,
    workspace: Workspace,
    job: Job,
    argv: tuple[str, ...],
    requirement: Requirement | None,
    again: bool,
    timeout: float | None,
) -> tuple[str, EvidenceRun]:
    text = shlex.join(argv)
    with output.progress(text):
        ran = run_as_evidence(
            workspace,
            job,
            argv,
            unproved_actor(),
            criterion=None if requirement is None else requirement.name,
            again=again,
            timeout=timeout,
        )
    _tell(output, text, ran)
    if not is_required_evidence(job, text):
        output.say("  Stored, but no criterion of the job requires it.", fg="yellow")
    return text, ran


def _tell(output: Output, text: str, ran: EvidenceRun) -> None:
    mark, color = ("✓", "green") if ran.passed else ("✗", "red")
    reused = "  (fresh; not run again)" if ran.reused else ""
    output.say(f"{mark} {text}{reused}", fg=color, bold=True)
    run = ran.entry.read_as(Ran)
    if not isinstance(run, CommandRun):
        output.say(f"  {run.told}")
    elif not run.passed:
        for line in plain_text(ran.output).rstrip().split("\n")[-_TAIL:]:
            output.say(f"  {line}")
        output.say(f"  {run.ending}, exit status {run.exit_code}")
        if run.told:
            output.say(f"  {run.told}", fg="yellow")
    if isinstance(run, CommandRun) and run.report is not None:
        output.say("  " + ", ".join(f"{key}: {number}" for key, number in run.report.numbers().items()))
    if isinstance(run, CommandRun) and run.passed:
        if run.controls is not None and run.controls.held == "none":
            output.say(f"  No controls: {one_line(run.controls.why, 300)}.", dim=True)
        if run.room is not None and run.room.red_before:
            output.say(f"  {flaky_text(run.room.red_before).capitalize()}, so a person has to decide.", fg="yellow")
    if not ran.reused and isinstance(run, CommandRun) and run.unlogged:
        output.say(f"  Not written to the execution log: {run.unlogged}.", fg="yellow")
    # A judge that could not be asked has no key, and no inputs that could have changed.
    if not run.settled and run.key:
        output.say("  Its inputs changed while it ran, so it counts as stale.", fg="yellow")


def _data(text: str, ran: EvidenceRun) -> dict[str, object]:
    kept = (
        "what",
        "passed",
        "settled",
        "asked_for",
        "key",
        "exit_code",
        "ending",
        "record",
        "report",
        "controls",
        "unlogged",
        "told",
        "criterion",
        "mission",
        "verdict",
        "needs_human",
        "votes",
        "agreement",
        "margin",
        "reason",
        "guidance_step",
        "model",
    )
    return {"evidence": text, "reused": ran.reused, "entry": ran.entry.hash} | {
        name: ran.entry.data[name] for name in kept if name in ran.entry.data
    }
