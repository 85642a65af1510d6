"""Deciding about lines of the work that a person has to look at: exactly the lines that were shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from donewhen.foundation.plain_text import one_line, shorten
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import DecisionRecord
from donewhen.jobs.gates.signs_for_person import decisions_on_signs, open_signs
from donewhen.jobs.ledger.approval import Approval, is_approval
from donewhen.jobs.ledger.entry_content import FoundSign
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import operation, writing
from donewhen.jobs.room.reading import read_rooms
from donewhen.jobs.room.work_signs import found_signs, printable, sources_of_reading, work_signs
from donewhen.signs.kinds import Sign

_AROUND = 2
_MAX_LINES = 400
_MAX_WIDTH = 300


@dataclass(frozen=True)
class OpenSigns:
    """Lines of a job's work that a person has to decide about."""

    signs: tuple[FoundSign, ...]
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)
    """For each file the lines with what is around them; the lines themselves start with a plus."""

    @property
    def files(self) -> dict[str, list[str]]:
        """The files with the ids of their signs."""
        found: dict[str, list[str]] = {}
        for sign in self.signs:
            found.setdefault(sign.file, []).append(sign.id)
        return found


def open_signs_of(workspace: Workspace, job: Job) -> OpenSigns:
    """The lines of a job's work, as it is now, that ask for a person and that nobody has accepted."""
    entries = workspace.ledger.read(job.id).entries
    decisions = decisions_on_signs(job.id, entries, approval_policy(workspace))
    with read_rooms(workspace, job) as reading:
        if reading is None:
            return OpenSigns(())
        sources = sources_of_reading(reading)
        signs = work_signs(sources, workspace.settings().jobs.signs_allowed)
        contents = sources.texts(dict.fromkeys(sign.file for sign in signs), sources.plan.agreed)
    recorded = found_signs(signs, lambda name: contents.get(name, ""))
    waiting = {id(sign) for sign in open_signs(recorded, decisions)}
    chosen = [(sign, record) for sign, record in zip(signs, recorded, strict=True) if id(record) in waiting]
    texts: dict[str, str] = {}
    for name in dict.fromkeys(sign.file for sign, _ in chosen):
        texts[printable(name)] = _shown([sign for sign, _ in chosen if sign.file == name], contents.get(name, ""))
    return OpenSigns(tuple(record for _, record in chosen), texts)


def accept_signs(workspace: Workspace, job: Job, signs: OpenSigns, reason: str, approval: Approval) -> DecisionRecord:
    """Record that these lines were looked at and are accepted. By an agent, it has no effect."""
    return _decide(workspace, job, "accept_signs", signs, reason, approval)


def refuse_signs(workspace: Workspace, job: Job, signs: OpenSigns, reason: str, approval: Approval) -> DecisionRecord:
    """Record that these lines are refused: the checks fail until they change, or a person accepts them. By an agent, it
    has no effect."""
    return _decide(workspace, job, "refuse_signs", signs, reason, approval)


def _decide(
    workspace: Workspace,
    job: Job,
    decision: Literal["accept_signs", "refuse_signs"],
    signs: OpenSigns,
    reason: str,
    approval: Approval,
) -> DecisionRecord:
    data = {"decision": decision, "reason": reason.strip(), "value": {"files": signs.files}}
    with operation(workspace), writing(workspace, job.path, job.id) as plan:
        policy = approval_policy(plan.snapshot)
        entry = plan.append("decided", data, approval)
    return DecisionRecord(entry, is_approval(entry, job.id, policy), {})


def _shown(signs: Sequence[Sign], text: str) -> str:
    """The lines of a file that signs are about, each with its reason and what is around it."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    shown: list[str] = []
    for sign in signs:
        shown.append(f"@@ line {sign.line}, {sign.kind}: {one_line(sign.why, 200)}")
        if sign.beside:
            shown.append(f"@@ beside {one_line(sign.beside, 300)}")
        numbers = sorted(sign.lines) or [sign.line]
        near = {line for number in numbers for line in range(number - _AROUND, number + _AROUND + 1)}
        for line in sorted(near):
            if 1 <= line <= len(lines) and sign.lines:
                mark = "+" if line in sign.lines else " "
                shown.append(f"{mark}{line:5}  {shorten(lines[line - 1], _MAX_WIDTH)}")
        shown.append("")
    rest = [f"[… {len(shown) - _MAX_LINES} more lines]"] if len(shown) > _MAX_LINES else []
    return "\n".join([*shown[:_MAX_LINES], *rest]).rstrip()
