"""`donewhen audit`: verify the ledger, the plan files and the evidence."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import ask_for_approval, find_project, not_confirmed, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.audit.accepted_heads import accept_heads, heads_gone_back
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.ledger.finding_codes import FindingCode


@click.command()
@click.option(
    "--accept-heads",
    "accept",
    is_flag=True,
    help="Accept the ledger as it ends now, if a person went back on purpose. Needs a person at a terminal.",
)
@project_option
@common_options
@click.pass_obj
def command(output: Output, accept: bool, project: Path | None) -> ExitCode:
    """Verify the hash chains, plan files, evidence hashes, labels, the committed ledger and its anchors.

    Only file contents count, so the result is the same in a fresh clone. One check is about this machine: whether the
    ledger has gone back behind where it ended here before. Warnings don't change the exit status.
    """
    if accept:
        return _accept_heads(output, Path.cwd() if project is None else project)
    workspace = find_project(project)
    with output.progress("audit"):
        found = audit_workspace(workspace)
    for finding in found.findings:
        mark, color = ("✗", "red") if finding.severity == "error" else ("!", "yellow")
        output.say(f"{mark} {finding.code}  {finding.where}", fg=color, bold=True)
        output.say(f"  {finding.message}")
        if finding.next:
            output.say(f"  next: {finding.next}", dim=True)
    counted = (
        f"{found.jobs} job(s), {found.chains} chain(s) with {found.entries} entries, "
        f"{found.evidence} piece(s) of evidence, {found.anchors} anchor(s)"
    )
    output.say(f"{counted}: {'clean.' if found.clean else 'not clean.'}", bold=True)
    data = {
        "clean": found.clean,
        "jobs": found.jobs,
        "chains": found.chains,
        "entries": found.entries,
        "evidence": found.evidence,
        "anchors": found.anchors,
        "warnings": [finding._asdict() for finding in found.findings if finding.severity == "warning"],
    }
    findings = [
        Finding(finding.code, finding.message, finding.where, finding.next)
        for finding in found.findings
        if finding.severity == "error"
    ]
    return output.finish(ExitCode.PASS if found.clean else ExitCode.GATE_FAILED, data, findings)


def _accept_heads(output: Output, root: Path) -> ExitCode:
    found = heads_gone_back(root)
    data: dict[str, object] = {"accepted": False, "chains": [*dict.fromkeys(gone.chain for gone in found.gone_back)]}
    if not found.gone_back and not found.problem:
        output.say("The ledger has not gone back: there is nothing to accept.")
        return output.finish(ExitCode.PASS, data)
    if found.problem:
        output.say(f"! {found.problem}", fg="yellow")
    for gone in found.gone_back:
        output.say(f"! {gone.message}", fg="yellow")
    approval = ask_for_approval(output, "accept the ledger as it ends now", key=None, ci=False)
    if approval is None:
        return not_confirmed(output, "Nothing was accepted.")
    if approval.by.kind != "person":
        message = f"{approval.by.name} ({approval.by.kind}) can't accept this. Nothing was changed."
        return output.finish(
            ExitCode.GATE_FAILED,
            data,
            [Finding(FindingCode.APPROVER, message, next="Have a person do it at a terminal.")],
        )
    problem = accept_heads(root)
    if problem:
        message = f"The marks can't be written: {problem}."
        return output.finish(ExitCode.INTERNAL, data, [Finding(FindingCode.RECORD_GONE_BACK, message)])
    output.say(f"The ledger is accepted as it ends now, by {approval.by.name}.", fg="green")
    return output.finish(ExitCode.PASS, data | {"accepted": True})
