"""Are the labels that people gave the ones that the ledger has, and the guidance that gates follow the accepted one?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.judge.missions import find_mission, gate_guidance
from donewhen.jobs.ledger.approval import is_approval
from donewhen.jobs.ledger.ledger import Chain, Entry
from donewhen.jobs.plan.workspace import Workspace

_SAID = ("overridden", "decided")


class LabelProblem(NamedTuple):
    """Something about a mission that the ledger does not bear out."""

    code: str
    message: str
    where: str
    next: str


def label_problems(workspace: Workspace, chains: Mapping[str, Chain]) -> Iterator[LabelProblem]:
    """Everything in the project's missions that nobody has said, by the ledger."""
    folders = mission_folders(workspace.root, workspace.settings())
    entries = _words(workspace, chains) if folders else {}
    for name, folder in folders.items():
        try:
            mission = find_mission(workspace, name)
            yield from _unproved(workspace, folder, mission.name, entries)
            yield from _edited(workspace, folder, mission.name)
            gate_guidance(workspace, name, mission)
        except DonewhenError as error:
            yield LabelProblem(error.code, error.message, error.where or workspace.where(folder), error.next_step or "")


def _words(workspace: Workspace, chains: Mapping[str, Chain]) -> dict[str, Entry]:
    """Everything that was said by somebody whose word counts, by its hash."""
    policy = approval_policy(workspace)
    said = ((name, entry) for name, chain in chains.items() for entry in chain.entries)
    return {one.hash: one for name, one in said if one.type in _SAID and is_approval(one, name, policy)}


def _unproved(workspace: Workspace, folder: Path, mission: str, entries: Mapping[str, Entry]) -> Iterator[LabelProblem]:
    from donewhen.judging.labels import LOG, Label, read_label_log, ticket_hash
    from donewhen.judging.ticket import Ticket

    def said(label: Label) -> bool:
        entry = entries.get(label.entry)
        if entry is None or entry.by.name != label.by:
            return False
        value = entry.data.get("value")
        stated = entry.data if entry.type == "overridden" else value if isinstance(value, dict) else {}
        # About just this: the same word under another work is nobody's.
        subject = ticket_hash(Ticket(label.group_id, mission, None, label.evidence, label.cluster))
        return (stated.get("verdict"), stated.get("subject")) == (label.label, subject)

    for number, one in enumerate(read_label_log(folder), 1):
        if not said(one):
            told = f"{one.by} is said to have labelled {one.group_id} {one.label}, and the ledger has nothing of it."
            yield LabelProblem("unproved", told, f"{workspace.where(folder / LOG)}:{number}", "Take the line out.")


def _edited(workspace: Workspace, folder: Path, mission: str) -> Iterator[LabelProblem]:
    from donewhen.judging.labels import LABELLED, LOG, read_label_log, render_tickets

    path = folder / LABELLED
    found = path.read_bytes() if path.is_file() else b""
    if found != render_tickets(read_label_log(folder), mission):
        message = f"{LABELLED} is not what {LOG} comes to."
        yield LabelProblem("edited", message, workspace.where(path), "Restore it; the next review writes it anew.")
