"""`donewhen agree`: seal what done means."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import click

from donewhen.cli._accepted_environment import accept_environments
from donewhen.cli._app import common_options
from donewhen.cli._jobs import (
    approver_options,
    ask_for_approval,
    find_project,
    not_confirmed,
    project_option,
    uncounted_finding,
)
from donewhen.cli._output import Finding, Output
from donewhen.cli._terms import show_changes, show_files, show_terms
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.jobs.board.views import rebuild_views
from donewhen.jobs.contract.agreeing import AgreementProposal, agreement_proposals, seal_tightened_terms
from donewhen.jobs.contract.agreement_notes import agreement_notes
from donewhen.jobs.judge.missions import unread_judge_rules
from donewhen.jobs.ledger.approval import is_at_terminal, unproved_actor
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.lifecycle.accepting import AcceptedKind, accept_changes, note_for_ci, open_changes
from donewhen.jobs.lifecycle.agreeing import (
    FullProposal,
    agree_fully,
    full_proposals,
    lacks_tree,
    lacks_work_area,
    propose_work_areas,
    tree_problems,
)
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import place_of


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--notes", default="", help="A note to store with the agreement.")
@click.option("--no-baseline", is_flag=True, help="Agree even if the tests of a command can't be run now.")
@click.option("--work", "accept", flag_value="work", help="Accept the changed files outside the work area of one JOB.")
@click.option("--tests", "accept", flag_value="tests", help="Accept the changed tests of one JOB.")
@click.option("--env", "accept", flag_value="env", help="Accept the programs and packages that checks find here.")
@approver_options
@project_option
@common_options
@click.pass_obj
def command(
    output: Output,
    jobs: tuple[str, ...],
    notes: str,
    no_baseline: bool,
    accept: AcceptedKind | Literal["env"] | None,
    key: Path | None,
    ci: bool,
    project: Path | None,
) -> ExitCode:
    """Seal what done means: for the given JOBs, or for everything that is not agreed yet.

    Shows the terms (or the changes since the last agreement) and asks you to type a word. After that, terms can be
    tightened freely; loosening them needs a new agreement.

    The files are agreed to as they are now, too: whatever lies outside of the work area is checked as it is now. With
    --work or --tests, accepts changes that a job has made there; with --env, the programs and packages that the checks
    of the given JOBs, or of all open jobs, find on this machine.
    """
    workspace = find_project(project)
    if accept == "env":
        return accept_environments(output, workspace, jobs, notes, key, ci)
    if accept is not None:
        return _accept(output, workspace, jobs, accept, notes, key, ci)
    refused: list[Finding] = []
    chosen = [*propose_work_areas(workspace, _chosen(workspace, jobs, refused), named=bool(jobs))]
    open_proposals = [
        proposal
        for proposal in agreement_proposals(workspace, chosen)
        if _is_open(proposal) or (jobs and lacks_tree(workspace, proposal))
    ]
    sound = [proposal for proposal in open_proposals if not proposal.problems]
    ready = [
        proposal
        for proposal in sound
        if proposal.agreement.state != "agreed" or (jobs and lacks_tree(workspace, proposal))
    ]
    tightened = [proposal for proposal in sound if proposal not in ready]
    for proposal in tightened:
        _show(output, proposal)
    if tightened:
        sealed = {entry.hash for job in chosen for entry in seal_tightened_terms(workspace, job, unproved_actor())}
        output.say(f"{len(sealed)} tightened agreement(s) sealed; this needs no approval.")
    for proposal in ready:
        _show(output, proposal)
        if isinstance(proposal.plan, Job):
            for note in agreement_notes(workspace, proposal.plan):
                output.say(f"    ! {note}", fg="yellow")
    asked = key is not None or ci or is_at_terminal()
    full = _with_files(output, workspace, ready, tests=asked)
    unready = {found.terms.chain for found in full if any(tree_problems(found))}
    refused += [
        Finding(problem.code, problem.message, problem.where, "Commit them first, then: donewhen agree")
        for found in full
        for problem in tree_problems(found)
    ]
    full = tuple(found for found in full if found.terms.chain not in unready)
    ready = [found.terms for found in full]
    for found in full:
        show_files(output, found)
    refused += [
        Finding(problem.code, problem.message, problem.where, "Fix it, then: donewhen agree")
        for proposal in open_proposals
        for problem in proposal.problems
    ]
    for finding in refused:
        output.say(f"✗ {finding.where}: {finding.message}", fg="red")
        if finding.code == FindingCode.UNCOMMITTED:
            output.say(f"  next: {finding.next}", dim=True)
    if not ready:
        output.say("Nothing was agreed." if refused else "Everything is already agreed.", bold=True)
        _show_weaker(output, [job.id for job in chosen if not jobs and lacks_work_area(workspace, job)])
        return output.finish(ExitCode.GATE_FAILED if refused else ExitCode.PASS, {"agreed": []}, refused)
    judged = [proposal.plan for proposal in ready if isinstance(proposal.plan, Job)]
    for name, keys in unread_judge_rules(workspace, judged).items():
        message = f"its model can't read {', '.join(keys)}, so a person decides where they might change the verdict"
        output.say(f"! judge:{name}: {message}", fg="yellow")
    unknown = {name: why for found in full for name, why in found.unknown_tests.items()}
    if unknown and not no_baseline and asked and not _agreed_without(output, unknown, key=key, ci=ci):
        return _without_baseline(output, unknown)
    approval = ask_for_approval(output, "agree to this", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was agreed.", FindingCode.NOT_AGREED)
    entries = {found.terms.chain: agree_fully(workspace, found, approval, notes=notes) for found in full}
    rebuild_views(workspace)
    after = {proposal.chain: proposal.agreement.state for proposal in agreement_proposals(workspace, chosen)}
    for name in entries:
        output.say(f"{name}: {after[name]}", fg="green" if after[name] == "agreed" else "yellow")
    data = {
        "agreed": [name for name in entries if after[name] == "agreed"],
        "by": approval.by._asdict(),
        "states": {name: after[name] for name in entries},
        "entries": {name: entry.hash for name, entry in entries.items()},
        "unreachable": {found.terms.chain: list(found.unreachable) for found in full if found.unreachable},
    }
    if any(after[name] != "agreed" for name in entries):
        finding = uncounted_finding(approval, "approval", "A person has to run: donewhen agree")
        output.say(finding.message, fg="yellow")
        output.say(f"  next: {finding.next}", dim=True)
        refused.append(finding)
    elif place_of(workspace).has_git:
        files = " ".join(agreement_files(workspace))
        output.say(f"  Commit the agreement, so that others and CI have it: git add {files} && git commit", dim=True)
    return output.finish(ExitCode.GATE_FAILED if refused else ExitCode.PASS, data, refused)


def agreement_files(workspace: Workspace) -> tuple[str, ...]:
    """The folders and files in which an agreement is recorded, relative to the current folder, for a shell."""
    plans = ["jobs"] if workspace.form == "small" else [workspace.project_file.name, "workstreams"]
    names = [name for name in (*plans, workspace.folder.name) if (workspace.root / name).exists()]
    return tuple(shlex.quote(os.path.relpath(workspace.root / name)) for name in names)


def _chosen(workspace: Workspace, names: tuple[str, ...], findings: list[Finding]) -> list[Job]:
    """The chosen jobs. Unreadable jobs are added to the findings and skipped."""
    if names:
        project = workspace.project().id
        return [workspace.job(name) for name in names if name != project]
    found: list[Job] = []
    for place in workspace.places():
        try:
            found.append(workspace.job_at(place.path))
        except DonewhenError as error:
            findings.append(Finding.of(error))
    return found


def _show_weaker(output: Output, jobs: Sequence[str]) -> None:
    """Name jobs that were agreed to by an older version, without a work area."""
    if jobs:
        what = "their checks run in the work tree, where the work may change everything"
        output.say(f"{len(jobs)} job(s) have no work area, so {what}.", fg="yellow")
        output.say(f"  next: donewhen agree {jobs[0]}", dim=True)


def _with_files(
    output: Output, workspace: Workspace, ready: Sequence[AgreementProposal], *, tests: bool
) -> tuple[FullProposal, ...]:
    """Find out what else is agreed to; shows progress while tests run."""
    with ExitStack() as stack:
        shown: list[Callable[[str], None]] = []

        def show(name: str) -> None:
            text = f"Running the tests as they are now: {name}"
            if not shown:
                shown.append(stack.enter_context(output.progress(text)))
            shown[0](text)

        return full_proposals(workspace, ready, baselines=tests, on_progress=show)


def _agreed_without(output: Output, unknown: Mapping[str, str], *, key: Path | None, ci: bool) -> bool:
    """Ask whether to agree although the tests of some commands are not known; without a terminal, the answer is no."""
    if key is not None or ci:
        return False
    for name, why in unknown.items():
        output.note(f"`{name}` can't be run now: {why}. Lost tests would not be noticed.")
    typed: str = click.prompt("Type yes to agree without a baseline", default="", show_default=False, err=True)
    return typed.strip().casefold() == "yes"


def _without_baseline(output: Output, unknown: Mapping[str, str]) -> ExitCode:
    code = FindingCode.NO_BASELINE
    findings = [
        Finding(code, f"`{name}` can't be run on the agreed files: {why}.", next=FINDINGS[code].next_step)
        for name, why in unknown.items()
    ]
    for finding in findings:
        output.say(f"✗ {finding.message}", fg="red")
    output.say("Nothing was agreed.", bold=True)
    output.say(f"  next: {FINDINGS[code].next_step}", dim=True)
    return output.finish(ExitCode.GATE_FAILED, {"agreed": []}, findings)


def _accept(
    output: Output,
    workspace: Workspace,
    jobs: tuple[str, ...],
    what: AcceptedKind,
    reason: str,
    key: Path | None,
    ci: bool,
) -> ExitCode:
    """Accept changes outside the work area, or of tests."""
    if len(jobs) != 1:
        raise UsageError(f"Name the one job whose changes you accept: donewhen agree JOB --{what}")
    job = workspace.job(jobs[0])
    changes = open_changes(workspace, job, what)
    if not changes.files:
        output.say(f"{job.id} has no changes to accept.", bold=True)
        return output.finish(ExitCode.PASS, {"accepted": []})
    output.say(f"{job.id}  {job.title}", bold=True)
    for line in changes.diff.splitlines() or [*changes.files]:
        output.say(f"    {line}", fg={"+": "green", "-": "red"}.get(line[:1]))
    approval = ask_for_approval(output, f"accept {len(changes.files)} changed file(s)", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was accepted.", FindingCode.NOT_AGREED)
    record = accept_changes(workspace, job, changes, reason, approval)
    data = {"accepted": [*changes.files] if record.counts else [], "entry": record.entry.hash}
    if not record.counts:
        finding = uncounted_finding(approval, "approval", f"A person has to run: donewhen agree {job.id} --{what}")
        output.say(finding.message, fg="yellow")
        return output.finish(ExitCode.GATE_FAILED, data, [finding])
    output.say(f"{job.id}: {len(changes.files)} changed file(s) accepted", fg="green")
    if (note := note_for_ci(workspace, job.id, [what], approval)) is not None:
        output.say(f"  {note}", dim=True)
    output.say(f"  next: donewhen complete {job.id}", dim=True)
    return output.finish(ExitCode.PASS, data)


def _is_open(proposal: AgreementProposal) -> bool:
    return proposal.agreement.state != "agreed" or bool(proposal.agreement.changes)


def _show(output: Output, proposal: AgreementProposal) -> None:
    output.say(f"{proposal.chain}  {proposal.plan.title}", bold=True)
    agreement = proposal.agreement
    if agreement.seal is None:
        output.say(f"  {agreement.state}; to be agreed:", dim=True)
        show_terms(output, agreement.terms)
    else:
        output.say(f"  {agreement.state}; since it was agreed by {agreement.seal.entry.by.name}:", dim=True)
        show_changes(output, agreement.changes, proposal.place)
