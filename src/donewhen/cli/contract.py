"""`donewhen contract`: show what was agreed, and what has changed since."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.cli._terms import show_changes, show_terms
from donewhen.cli._times import moment
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.jobs.contract.agreeing import AgreementProposal, agreement_proposals
from donewhen.jobs.contract.terms import terms_hash
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace


@click.group()
def command() -> None:
    """Show what was agreed."""


@command.command()
@click.argument("job", required=False)
@project_option
@common_options
@click.pass_obj
def show(output: Output, job: str | None, project: Path | None) -> ExitCode:
    """Print the sealed terms of JOB or of the project; if there are none, the terms that would be sealed."""
    workspace = find_project(project)
    proposal = _proposal(workspace, job)
    agreement = proposal.agreement
    terms = agreement.seal.terms if agreement.seal else agreement.terms
    output.say(f"{proposal.chain}  {proposal.plan.title}", bold=True)
    if agreement.seal is None:
        output.say(f"  {agreement.state}; not sealed", fg="yellow")
    else:
        entry = agreement.seal.entry
        output.say(f"  {agreement.state}; sealed {moment(entry.at, workspace.now())} by {entry.who} ({entry.by.kind})")
    output.say(f"  {terms_hash(terms)}", dim=True)
    show_terms(output, terms)
    data = {"chain": proposal.chain, "state": agreement.state, "hash": terms_hash(terms), "terms": plain_terms(terms)}
    return output.finish(ExitCode.PASS, data)


@command.command()
@click.argument("job", required=False)
@project_option
@common_options
@click.pass_obj
def diff(output: Output, job: str | None, project: Path | None) -> ExitCode:
    """Print what has changed since JOB was agreed; without JOB, for the project and all changed jobs.

    Exit status 1 if terms were loosened or removed, or were never agreed.
    """
    workspace = find_project(project)
    findings: list[Finding] = []
    chosen = (_proposal(workspace, job),) if job is not None else _all(workspace, findings)
    for unreadable in findings:
        output.say(f"✗ {unreadable.where}: {unreadable.message}", fg="red")
    data = []
    for proposal in chosen:
        agreement = proposal.agreement
        if job is None and agreement.state == "agreed" and not agreement.changes:
            continue
        color = {"agreed": "green", "voided": "red"}.get(agreement.state, "yellow")
        output.say(f"{proposal.chain}  {agreement.state}", bold=True, fg=color)
        if agreement.seal is None:
            output.say("    nothing is sealed yet", dim=True)
            findings.append(
                Finding(agreement.state, f"{proposal.chain} is not sealed.", proposal.where, "donewhen agree")
            )
        elif not agreement.changes:
            output.say("    nothing has changed", dim=True)
        show_changes(output, agreement.changes, proposal.place)
        findings += [
            Finding(
                FindingCode.VOIDED,
                f"{change.field} was {change.kind}: {change.before}.",
                proposal.place(change),
                "donewhen agree",
            )
            for change in agreement.voiding
        ]
        data.append(
            {
                "chain": proposal.chain,
                "state": agreement.state,
                "changes": [{**change._asdict(), "where": proposal.place(change)} for change in agreement.changes],
            }
        )
    if not data:
        output.say("Nothing has changed since the agreement.")
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, {"contracts": data}, findings)


def _proposal(workspace: Workspace, job: str | None) -> AgreementProposal:
    about_project = job is None or job == workspace.project().id
    return agreement_proposals(workspace, [] if about_project or job is None else [workspace.job(job)])[-1]


def _all(workspace: Workspace, findings: list[Finding]) -> tuple[AgreementProposal, ...]:
    """All readable plans. Unreadable ones are added to the findings and skipped."""
    jobs: list[Job] = []
    for place in workspace.places():
        try:
            jobs.append(workspace.job_at(place.path))
        except DonewhenError as error:
            findings.append(Finding.of(error))
    return agreement_proposals(workspace, jobs)
