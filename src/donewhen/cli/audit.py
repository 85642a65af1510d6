"""`donewhen audit`: verify the ledger, the plan files and the evidence."""

from __future__ import annotations

from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.audit.audit import audit_workspace


@click.command()
@project_option
@common_options
@click.pass_obj
def command(output: Output, project: Path | None) -> ExitCode:
    """Verify the hash chains, plan files, evidence hashes, labels, the committed ledger and its anchors.

    Only file contents count, so the result is the same in a fresh clone. Warnings don't change the exit status.
    """
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
