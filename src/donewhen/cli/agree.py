"""`donewhen agree`: seal what done means."""

from __future__ import annotations

from collections.abc import Sequence
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
from donewhen.cli._sealing import Sealing, batches_of
from donewhen.cli._terms import show_changes
from donewhen.foundation.errors import DonewhenError, ExitCode, UsageError
from donewhen.jobs.contract.agreeing import AgreementProposal, agreement_proposals, seal_tightened_terms
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.accepting import AcceptedKind, accept_changes, note_for_ci, open_changes
from donewhen.jobs.lifecycle.agreeing import (
    lacks_tree,
    lacks_work_area,
    propose_work_areas,
)
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--notes", default="", help="A note to store with the agreement.")
@click.option("--each", is_flag=True, help="Show one job after the other, and agree to each with one key.")
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
    each: bool,
    no_baseline: bool,
    accept: AcceptedKind | Literal["env"] | None,
    key: Path | None,
    ci: bool,
    project: Path | None,
) -> ExitCode:
    """Seal what done means: for the given JOBs, or for everything that is not agreed yet.

    Shows problems first, then the changes since the last agreement, then new jobs: criteria with their checks, what may
    change, what is unusual; and once what they have in common. Asks you to type a word. After that, terms can be
    tightened freely; loosening them needs a new agreement. `donewhen contract show JOB` prints every term of a job.

    Many jobs are shown in batches, each with its own question. With --each, you go through them one by one.

    The files are agreed to as they are now, too: whatever lies outside of the work area is checked as it is now. With
    --work or --tests, accepts changes that a job has made there; with --env, the programs and packages that the checks
    of the given JOBs, or of all open jobs, find on this machine.
    """
    workspace = find_project(project)
    if accept == "env":
        return accept_environments(output, workspace, jobs, notes, key, ci)
    if accept is not None:
        return _accept(output, workspace, jobs, accept, notes, key, ci)
    return seal_agreements(output, workspace, jobs, notes=notes, no_baseline=no_baseline, each=each, key=key, ci=ci)


def seal_agreements(
    output: Output,
    workspace: Workspace,
    jobs: tuple[str, ...] = (),
    *,
    notes: str = "",
    no_baseline: bool = False,
    each: bool = False,
    key: Path | None = None,
    ci: bool = False,
) -> ExitCode:
    """Show what is not agreed, ask, and seal it."""
    sealing = Sealing(output, workspace, notes, no_baseline, key, ci)
    chosen = [*propose_work_areas(workspace, _chosen(workspace, jobs, sealing.refused), named=bool(jobs))]
    open_proposals = [
        proposal
        for proposal in agreement_proposals(workspace, chosen)
        if _is_open(proposal) or (jobs and lacks_tree(workspace, proposal))
    ]
    sealing.refuse(
        Finding(problem.code, problem.message, problem.where, "Fix it, then: donewhen agree")
        for proposal in open_proposals
        for problem in proposal.problems
    )
    sound = [proposal for proposal in open_proposals if not proposal.problems]
    ready = [
        proposal
        for proposal in sound
        if proposal.agreement.state != "agreed" or (jobs and lacks_tree(workspace, proposal))
    ]
    tightened = [proposal for proposal in sound if proposal not in ready]
    for proposal in tightened:
        show_tightened(output, proposal)
    if tightened:
        sealed = {entry.hash for job in chosen for entry in seal_tightened_terms(workspace, job, unproved_actor())}
        output.say(f"{len(sealed)} tightened agreement(s) sealed; this needs no approval.")
    batches = batches_of(ready, by_hand=sealing.asks_person, each=each)
    if each and batches and not sealing.approve_all():
        return sealing.finish()
    for number, batch in enumerate(batches, 1):
        place = f"{number} of {len(batches)}" if len(batches) > 1 else ""
        if not sealing.seal(batch, place, each=each):
            break
    if not sealing.entries and not sealing.stopped:
        output.say("Nothing was agreed." if sealing.refused else "Everything is already agreed.", bold=True)
        _show_weaker(output, [job.id for job in chosen if not jobs and lacks_work_area(workspace, job)])
    return sealing.finish()


def show_tightened(output: Output, proposal: AgreementProposal) -> None:
    """Show what was added or tightened since the agreement."""
    output.say(f"{proposal.chain}  {proposal.plan.title}", bold=True)
    by = f"; since it was agreed by {proposal.agreement.seal.entry.who}" if proposal.agreement.seal else ""
    output.say(f"  {proposal.agreement.state}{by}:", dim=True)
    show_changes(output, proposal.agreement.changes, proposal.place)


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
