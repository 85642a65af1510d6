"""`donewhen agree --env`: accept the programs and packages that checks find on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from donewhen.cli._jobs import ask_for_approval, not_confirmed, uncounted_finding
from donewhen.cli._output import Output
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.jobs.evidence.environment import EnvironmentNow, listing_once
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.accepting import accept_environment, environment_differences
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace


def accept_environments(
    output: Output, workspace: Workspace, names: Sequence[str], reason: str, key: Path | None, ci: bool
) -> ExitCode:
    """Show how the programs and packages differ from the accepted ones, and accept them if a person says so."""
    jobs = [workspace.job(name) for name in names] if names else [*_jobs_in_progress(workspace)]
    waiting: list[tuple[Job, EnvironmentNow]] = []
    with output.progress("Comparing programs and packages …") as show, listing_once():
        for job in jobs:
            show(f"Comparing programs and packages for {job.id} …")
            found = environment_differences(workspace, job)
            if found is not None and found.differs:
                waiting.append((job, found))
    if not waiting:
        output.say("The programs and packages here are the accepted ones.", bold=True)
        return output.finish(ExitCode.PASS, {"accepted": []})
    shown: set[tuple[str, ...]] = set()
    for job, found in waiting:
        output.say(f"{job.id}  {job.title}", bold=True)
        if found.differs not in shown:
            for line in found.differs:
                output.say(f"    {line}", fg="yellow")
        else:
            output.say("    the same", dim=True)
        shown.add(found.differs)
        output.say(f"    {found.cost}", dim=True)
    approval = ask_for_approval(output, "accept these programs and packages", key=key, ci=ci)
    if approval is None:
        return not_confirmed(output, "Nothing was accepted.", FindingCode.NOT_AGREED)
    records = [accept_environment(workspace, job, found.places, reason, approval) for job, found in waiting]
    accepted = [job.id for (job, _), record in zip(waiting, records, strict=True) if record.counts]
    data = {"accepted": accepted, "entries": [record.entry.hash for record in records]}
    if len(accepted) < len(waiting):
        finding = uncounted_finding(approval, "approval", "A person has to run: donewhen agree --env")
        output.say(finding.message, fg="yellow")
        return output.finish(ExitCode.GATE_FAILED, data, [finding])
    output.say(f"Accepted on this machine for {len(accepted)} job(s).", fg="green")
    output.say(f"  next: donewhen complete {accepted[0]}", dim=True)
    return output.finish(ExitCode.PASS, data)


def _jobs_in_progress(workspace: Workspace) -> Iterator[Job]:
    for place in workspace.places():
        with suppress(DonewhenError):
            job = workspace.job_at(place.path)
            if job.status == "in_progress":
                yield job
