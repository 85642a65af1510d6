"""Evidence collected by the gate, for display: commands with their output, file checks, and judges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.jobs.evidence.commands import evidence_store
from donewhen.jobs.gates.evidence_status import EvidenceStatus
from donewhen.jobs.ledger.ledger import Entry
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
    report: Mapping[str, Any]
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
    data = entry.data
    what = str(data.get("what", "command"))
    output, left_out = _output(workspace, data)
    report = data.get("report")
    return EvidenceView(
        entry,
        what,
        str(data.get("evidence", "")),
        data.get("passed") is True,
        _verdict(data),
        output,
        left_out,
        report if isinstance(report, Mapping) else {},
        _statement(data) if what == "judge" else None,
        str(data.get("mission", "")) if what == "judge" else "",
        str(data.get("model", "")),
        str(data.get("told", "")),
        _ticket(workspace, data),
        current_state,
    )


def _statement(data: Mapping[str, Any]) -> JudgeStatement | None:
    if not data.get("votes"):
        return None
    try:
        return judge_statement(data)
    except (TypeError, ValueError, AttributeError):
        # A hand-written entry may be malformed; the rest of it is still shown.
        return None


def _verdict(data: Mapping[str, Any]) -> str:
    if data.get("needs_human"):
        return "needs a person"
    if data.get("passed") is True:
        return "passed"
    if data.get("what") == "command" and data.get("ending") not in (None, "exited"):
        return str(data["ending"]).replace("_", " ")
    code = data.get("exit_code")
    return f"failed, exit status {code}" if data.get("what") == "command" and code else "failed"


def _output(workspace: Workspace, data: Mapping[str, Any]) -> tuple[str | None, int]:
    if isinstance(data.get("told"), str) and data.get("what") == "file":
        return str(data["told"]), 0
    name = data.get("output")
    content = evidence_store(workspace).get(name) if isinstance(name, str) else None
    return (None, 0) if content is None else cut_middle(content.decode("utf-8", "replace"))


def cut_middle(text: str, head: int = _HEAD, tail: int = _TAIL) -> tuple[str, int]:
    """Return the beginning and the end of a long text, and the number of characters omitted between."""
    if len(text) <= head + tail:
        return text, 0
    left_out = len(text) - head - tail
    return f"{text[:head]}\n[… {left_out} characters omitted …]\n{text[-tail:]}", left_out


def _ticket(workspace: Workspace, data: Mapping[str, Any]) -> dict[str, str]:
    name = data.get("ticket")
    stored = evidence_store(workspace).get_json(name) if isinstance(name, str) else None
    evidence = stored.get("evidence") if isinstance(stored, dict) else None
    if not isinstance(evidence, dict):
        return {}
    return {str(part): cut_middle(str(content))[0] for part, content in evidence.items()}
