"""`donewhen agree`: seal what done means."""

from __future__ import annotations

from pathlib import Path

import click

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
from donewhen.cli._terms import show_changes, show_terms
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.jobs.board.views import rebuild_views
from donewhen.jobs.contract.agreeing import AgreementProposal, agree, agreement_proposals, seal_tightened_terms
from donewhen.jobs.contract.agreement_notes import agreement_notes
from donewhen.jobs.judge.missions import unread_judge_rules
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace


@click.command()
@click.argument("jobs", nargs=-1, metavar="[JOB]...")
@click.option("--notes", default="", help="A note to store with the agreement.")
@approver_options
@project_option
@common_options
@click.pass_obj
def command(
    output: Output, jobs: tuple[str, ...], notes: str, key: Path | None, ci: bool, project: Path | None
) -> ExitCode:
    """Seal what done means: for the given JOBs, or for everything that is not agreed yet.

    Shows the terms (or the changes since the last agreement) and asks you to type a word. After that, terms can be
    tightened freely; loosening them needs a new agreement.
    """
    workspace = find_project(project)
    refused: list[Finding] = []
    chosen = _chosen(workspace, jobs, refused)
    open_proposals = [proposal for proposal in agreement_proposals(workspace, chosen) if _is_open(proposal)]
    ready = [proposal for proposal in open_proposals if not proposal.problems and proposal.agreement.state != "agreed"]
    tightened = [
        proposal for proposal in open_proposals if not proposal.problems and proposal.agreement.state == "agreed"
    ]
    for proposal in tightened:
        _show(output, proposal)
        if isinstance(proposal.plan, Job) and proposal.agreement.seal is None:
            for note in agreement_notes(workspace, proposal.plan):
                output.say(f"    ! {note}", fg="yellow")
    if tightened:
        sealed = {entry.hash for job in chosen for entry in seal_tightened_terms(workspace, job, unproved_actor())}
        output.say(f"{len(sealed)} tightened agreement(s) sealed; this needs no approval.")
    for proposal in ready:
        _show(output, proposal)
    refused += [
        Finding(problem.code, problem.message, problem.where, "Fix it, then: donewhen agree")
        for proposal in open_proposals
        for problem in proposal.problems
    ]
    for finding in refused:
        output.say(f"✗ {finding.where}: {finding.message}", fg="red")
    if not ready:
        output.say("Nothing was agreed." if refused else "Everything is already agreed.", bold=True)
        return output.finish(ExitCode.GATE_FAILED if refused else ExitCode.PASS, {"agreed": []}, refused)
    judged = [proposal.plan for proposal in ready if isinstance(proposal.plan, Job)]
    for name, keys in unread_judge_rules(workspace, judged).items():
        message = f"its model can't read {', '.join(keys)}, so a person decides where they might change the verdict"
        output.say(f"! judge:{name}: {message}", fg="yellow")
    approval = ask_for_approval(output, "agree to this", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was agreed.", FindingCode.NOT_AGREED)
    entries = {proposal.chain: agree(workspace, proposal, approval, notes=notes) for proposal in ready}
    rebuild_views(workspace)
    after = {proposal.chain: proposal.agreement.state for proposal in agreement_proposals(workspace, chosen)}
    for name in entries:
        output.say(f"{name}: {after[name]}", fg="green" if after[name] == "agreed" else "yellow")
    data = {
        "agreed": [name for name in entries if after[name] == "agreed"],
        "by": approval.by._asdict(),
        "states": {name: after[name] for name in entries},
        "entries": {name: entry.hash for name, entry in entries.items()},
    }
    if any(after[name] != "agreed" for name in entries):
        finding = uncounted_finding(approval.by, "approval", "A person has to run: donewhen agree")
        output.say(finding.message, fg="yellow")
        output.say(f"  next: {finding.next}", dim=True)
        refused.append(finding)
    return output.finish(ExitCode.GATE_FAILED if refused else ExitCode.PASS, data, refused)


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
