"""Evidence collected by the gate, for display: commands with their output, file checks, and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.evidence.records import UnusableRecord, read_ticket
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun, FileCheck, JudgeRun, Ran
from donewhen.jobs.plan.workspace import Workspace
from donewhen.judging.labels import JudgeStatement
from donewhen.review.from_jobs import judge_statement

_HEAD, _TAIL = 2000, 6000


class EvidenceView(NamedTuple):
    """One piece of evidence."""

    entry: Entry
    what: str
    """A command, a file, or a judge."""
    name: str
    passed: bool
    verdict: str
    output: str | None
    """The output of a command; None if there is none, or it is not on this machine."""
    left_out: int
    report: Mapping[str, int | float]
    statement: JudgeStatement | None
    """The judge's statement; None if no judge was asked, or it gave no answer."""
    mission: str
    model: str
    message: str
    ticket: Mapping[str, str]
    """The material that the judge saw."""
    current_state: str
    """The current state of the requirement that uses this evidence; empty if none does."""


def evidence_views(
    workspace: Workspace, entries: Sequence[Entry], statuses: Sequence[EvidenceStatus], most: int
) -> tuple[EvidenceView, ...]:
    """Return the newest evidence of a job."""
    states = {status.entry.seq: status.state for status in statuses if status.entry is not None}
    newest = [entry for entry in reversed(entries) if entry.type == "ran"][:most]
    return tuple(_evidence_view(workspace, entry, states.get(entry.seq, "")) for entry in newest)


def _evidence_view(workspace: Workspace, entry: Entry, current_state: str) -> EvidenceView:
    run = entry.read_as(Ran)
    judged = run if isinstance(run, JudgeRun) else None
    output, left_out = _output(workspace, run)
    return EvidenceView(
        entry,
        "judge" if judged else "file" if isinstance(run, FileCheck) else "command",
        run.evidence,
        run.passed,
        _verdict(run),
        output,
        left_out,
        run.report.numbers() if isinstance(run, CommandRun) and run.report is not None else {},
        judge_statement(judged) if judged and judged.votes else None,
        judged.mission or "" if judged else "",
        judged.model or "" if judged else "",
        run.told or "",
        _ticket(workspace, judged),
        current_state,
    )


def _verdict(run: Ran) -> str:
    if isinstance(run, JudgeRun) and run.needs_human:
        return "needs a person"
    if run.passed:
        return "passed"
    if isinstance(run, CommandRun) and run.ending not in ("", "exited"):
        return run.ending.replace("_", " ")
    return f"failed, exit status {run.exit_code}" if isinstance(run, CommandRun) and run.exit_code else "failed"


def _output(workspace: Workspace, run: Ran) -> tuple[str | None, int]:
    if isinstance(run, FileCheck):
        return run.told, 0
    name = run.output if isinstance(run, CommandRun) else None
    content = None if name is None else evidence_store(workspace).get(name)
    return (None, 0) if content is None else cut_middle(content.decode("utf-8", "replace"))


def cut_middle(text: str, head: int = _HEAD, tail: int = _TAIL) -> tuple[str, int]:
    """Return the beginning and the end of a long text, and the number of characters omitted between."""
    if len(text) <= head + tail:
        return text, 0
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out} characters omitted …]\n{text[-tail:]}", left_out


def _ticket(workspace: Workspace, judged: JudgeRun | None) -> dict[str, str]:
    name = judged.ticket if judged else None
    ticket = read_ticket(evidence_store(workspace), name)
    if isinstance(ticket, UnusableRecord):
        return {}
    return {part: cut_middle(content)[0] for part, content in ticket.evidence.items()}
