"""`donewhen why`: explain the evidence of a job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from donewhen.cli._app import common_options
from donewhen.cli._gates import show_notes, show_state, show_words_of_people, state_data
from donewhen.cli._jobs import find_project, project_option
from donewhen.cli._output import Finding, Output
from donewhen.cli._probes import probes_data, probes_of_entry, show_probes
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.plain_text import plain_text
from donewhen.jobs.board.job_state import agreement_step
from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.evidence.failure_details import output_of
from donewhen.jobs.evidence.store import EvidenceStore, evidence_store
from donewhen.jobs.gates.evidence_status import EvidenceStatus, State, asserted_evidence
from donewhen.jobs.gates.job_view import JobView, view_job
from donewhen.jobs.gates.shown_strength import strength_data, strength_line, strength_sentences
from donewhen.jobs.ledger.entry_content import CommandRun
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.gate_results import GateCode, GateReason

_MARKS = {
    "passed": ("✓", "green"),
    "failed": ("✗", "red"),
    "stale": ("~", "yellow"),
    "missing": ("·", "yellow"),
    "asserted": ("?", "yellow"),
    "needs_human": ("!", "yellow"),
}

_COLORS = {"strong": "green", "fair": "green", "weak": "yellow", "asserted": "yellow"}
_CODES: dict[State, FindingCode] = {
    "failed": FindingCode.EVIDENCE_FAILED,
    "stale": FindingCode.EVIDENCE_STALE,
    "missing": FindingCode.NOT_SHOWN,
    "asserted": FindingCode.EVIDENCE_ASSERTED,
    "needs_human": FindingCode.NEEDS_HUMAN,
}


_BESIDE_CHECKS = frozenset(
    {
        GateCode.OUTPUT_MISSING,
        GateCode.OUTPUT_UNCHANGED,
        GateCode.EVIDENCE_FILE_MISSING,
        GateCode.EXECUTION_NOT_LOGGED,
        GateCode.UPSTREAM_CHANGED,
        GateCode.LESSON_NOT_CAPTURED,
    }
)
"""Reasons that are about no check, so that no row of the evidence says them."""


@click.command()
@click.argument("job")
@click.option("--output", "whole", is_flag=True, help="Also print the whole output of each check that has not passed.")
@project_option
@common_options
@click.pass_obj
def command(output: Output, job: str, whole: bool, project: Path | None) -> ExitCode:
    """Explain the evidence of JOB: passed, stale (with the changed input) or missing. Nothing is run.

    Also print its state and the next step. Exit status 0 if the job is agreed and all of its evidence has passed and
    is fresh.
    """
    workspace = find_project(project)
    found = workspace.job(job)
    agreements = agreement_proposals(workspace, [found])
    view = view_job(workspace, found)
    rows = view.evidence
    output.say(f"{found.id}  {found.title}", bold=True)
    findings: list[Finding] = []
    for agreement in agreements:
        state = agreement.agreement.state
        output.say(f"  agreement of {agreement.chain}: {state}", fg="green" if state == "agreed" else "yellow")
        if state != "agreed":
            next_step = agreement_step(state == "voided", found.id if agreement.chain == found.id else None)
            findings.append(
                Finding(state, f"The agreement of {agreement.chain} is {state}.", agreement.where, next_step)
            )
    store, entries = evidence_store(workspace), workspace.ledger.read(found.id).entries
    probes = {row.requirement: probes_of_entry(store, entries, row.entry) for row in rows if row.state == "passed"}
    for row in rows:
        _tell(output, row)
        if whole:
            _show_output(output, store, row)
        else:
            for line in row.details:
                output.say(f"        {line}", dim=True)
        show_probes(output, probes.get(row.requirement), "      ")
        if row.state != "passed":
            why = f": {'; '.join(row.why)}" if row.why else ""
            findings.append(
                Finding(_CODES[row.state], f"{row.requirement.name} is {row.state}{why}.", None, _next(found.id, row))
            )
    if not whole and any(row.details for row in rows):
        output.say(f"  all of it: donewhen why {found.id} --output", dim=True)
    notes = asserted_evidence(workspace, found)
    for path in notes:
        output.say(f"  ? {path}  asserted: a file that no check verifies", dim=True)
    for reason in _beside_checks(view):
        output.say(f"  ✗ [{reason.code}] {reason.message}", fg="red")
    show_notes(output, view.notes)
    if not rows:
        findings.append(
            Finding(
                FindingCode.CRITERIA_MISSING, f"{found.id} has no requirements.", None, "Write acceptance criteria."
            )
        )
        output.say("  The job has no requirements, so it can't be verified.", fg="red")
    show_words_of_people(output, view.words_of_people)
    show_state(output, view.state)
    if view.next == f"donewhen why {found.id}":
        output.say(f"Resolve what is listed above, then: donewhen complete {found.id}")
    data = {
        "job": found.id,
        **state_data(view.state),
        "agreement": {agreement.chain: agreement.agreement.state for agreement in agreements},
        "needs": [
            {
                "name": row.requirement.name,
                "text": row.requirement.text,
                "check": row.requirement.check.kind,
                "evidence": row.requirement.evidence,
                "state": row.state,
                "why": list(row.why),
                "entry": row.entry.hash if row.entry else None,
                "details": list(row.details),
                **({"output": _output_of(store, row)} if whole else {}),
                **probes_data(probes.get(row.requirement)),
                **_controls(row),
                **strength_data(row),
            }
            for row in rows
        ],
        "asserted": list(notes),
        "notes": list(view.notes),
        "from_people": list(view.words_of_people),
    }
    return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)


def _beside_checks(view: JobView) -> Iterator[GateReason]:
    """The reasons against a started job that are about no check, such as a missing output."""
    if view.word not in ("in_progress", "no_longer_done"):
        return
    said: set[GateCode] = set()
    for gate in view.gates:
        # Two gates look at each output; the first says it.
        yield from (reason for reason in gate.reasons if reason.code in _BESIDE_CHECKS - said)
        said.update(reason.code for reason in gate.reasons)


def _tell(output: Output, row: EvidenceStatus) -> None:
    mark, color = _MARKS[row.state]
    text = (
        row.requirement.text
        if row.requirement.check.kind != "run" or row.requirement.text == row.requirement.evidence
        else (f"{row.requirement.text} ({row.requirement.evidence})")
    )
    output.say(f"  {mark} {row.requirement.name}: {text}  {row.state}", fg=color)
    for reason in row.why:
        output.say(f"      {reason}")
    if row.strength is not None:
        output.say(f"      {strength_line(row)}", fg=_COLORS[row.strength.level])
        for sentence in strength_sentences(row):
            output.say(f"        {plain_text(sentence)}", dim=True)


def _output_of(store: EvidenceStore, row: EvidenceStatus) -> str:
    """The whole output of a check that has not passed; empty if there is none."""
    run = None if row.entry is None else row.entry.content
    return output_of(store, run) if isinstance(run, CommandRun) and row.state != "passed" else ""


def _show_output(output: Output, store: EvidenceStore, row: EvidenceStatus) -> None:
    for line in _output_of(store, row).splitlines():
        output.say(f"        {line}")


def _controls(row: EvidenceStatus) -> dict[str, object]:
    """What the controls in a run of tests said; empty if it had none to say anything."""
    run = None if row.entry is None else row.entry.content
    if not isinstance(run, CommandRun) or run.controls is None:
        return {}
    return {"controls": {"held": run.controls.held, "why": run.controls.why}}


def _next(job: str, row: EvidenceStatus) -> str:
    if row.requirement.check.kind == "manual" or row.code == GateCode.EVIDENCE_WEAK:
        return f'donewhen sign-off {job} --criterion {row.requirement.name} --reason "…"'
    if row.state == "needs_human":
        return "donewhen review"
    return f"donewhen run {job}"
