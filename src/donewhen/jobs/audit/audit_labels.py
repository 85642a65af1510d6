"""Audit of missions: labels must match the ledger, and the gates' guidance must be the accepted one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.judge.missions import find_mission, gate_guidance
from donewhen.jobs.ledger.approval import is_approval
from donewhen.jobs.ledger.entries import Chain, Entry
from donewhen.jobs.ledger.entry_content import Overridden, Reviewed, ReviewedItem
from donewhen.jobs.plan.workspace import Workspace

_VERDICT_TYPES = ("overridden", "decided")


class LabelProblem(NamedTuple):
    """A mismatch between a mission and the ledger."""

    code: str
    message: str
    where: str
    next: str


def label_problems(workspace: Workspace, chains: Mapping[str, Chain]) -> Iterator[LabelProblem]:
    """Yield the labels and guidance in the project's missions that don't match the ledger."""
    folders = mission_folders(workspace.root, workspace.settings())
    entries = _verdict_entries(workspace, chains) if folders else {}
    for name, folder in folders.items():
        try:
            mission = find_mission(workspace, name)
            yield from _unproved_labels(workspace, folder, mission.name, entries)
            yield from _edited_labels(workspace, folder, mission.name)
            gate_guidance(workspace, name, mission)
        except DonewhenError as error:
            yield LabelProblem(error.code, error.message, error.where or workspace.where(folder), error.next_step or "")


def _verdict_entries(workspace: Workspace, chains: Mapping[str, Chain]) -> dict[str, Entry]:
    """Return the valid verdicts of people, by the hash of the entry."""
    policy = approval_policy(workspace)
    return {
        entry.hash: entry
        for name, chain in chains.items()
        for entry in chain.entries
        if entry.type in _VERDICT_TYPES and is_approval(entry, name, policy)
    }


def _unproved_labels(
    workspace: Workspace, folder: Path, mission: str, entries: Mapping[str, Entry]
) -> Iterator[LabelProblem]:
    from donewhen.judging.labels import LOG, Label, read_label_log, ticket_hash
    from donewhen.judging.ticket import Ticket

    def is_recorded(label: Label) -> bool:
        entry = entries.get(label.entry)
        if entry is None or entry.by.name != label.by:
            return False
        recorded = entry.content.value if isinstance(entry.content, Reviewed) else entry.content
        if not isinstance(recorded, Overridden | ReviewedItem):
            return False
        # The verdict must be about exactly this work.
        subject = ticket_hash(Ticket(label.group_id, mission, None, label.evidence, label.cluster))
        return recorded.verdict == label.label and subject in (recorded.subject, recorded.stored)

    for number, label in enumerate(read_label_log(folder), 1):
        if not is_recorded(label):
            message = f"The label {label.label} of {label.group_id} by {label.by} is not in the ledger."
            yield LabelProblem("unproved", message, f"{workspace.where(folder / LOG)}:{number}", "Remove the line.")


def _edited_labels(workspace: Workspace, folder: Path, mission: str) -> Iterator[LabelProblem]:
    from donewhen.judging.labels import LABELLED, LOG, read_label_log, render_tickets

    path = folder / LABELLED
    content = path.read_bytes() if path.is_file() else b""
    if content != render_tickets(read_label_log(folder), mission):
        message = f"{LABELLED} does not match {LOG}."
        yield LabelProblem("edited", message, workspace.where(path), "Restore it; the next review rewrites it.")
