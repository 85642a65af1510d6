"""Whether the gates of a project use what a run has learned.

They do at once if people agreed to that (``judge.trial_accepts``) and the trials of the run cover all of the guidance.
Otherwise a person has to accept it.
"""

from __future__ import annotations

from dataclasses import dataclass

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreement import project_agreement
from donewhen.jobs.judge.missions import accept_guidance, accepted_guidance, gate_mission_name
from donewhen.jobs.ledger.approval import Approval, unproved_actor
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.judging.guidance import Guidance
from donewhen.judging.mission import Mission, read_mission
from donewhen.learning.running.run_folders import PreparedRun
from donewhen.learning.running.run_state import initial_guidance_of


@dataclass(frozen=True)
class GatesAfterRun:
    """The guidance that the gates use after a run."""

    workspace: Workspace
    step: int
    newest: bool
    """Whether that is the newest guidance of the mission."""
    recorded: bool
    """Whether the ledger has a new entry: the acceptance by the trials of this run."""


def update_gates(mission: Mission, prepared: PreparedRun, guidance: Guidance | None) -> GatesAfterRun | None:
    """Let the gates use the guidance that a run has learned, if they may; None if no gate uses the mission.

    ``guidance`` is None if the run has learned nothing that became the mission's guidance.
    """
    try:
        workspace = find_workspace(mission.folder)
        name = gate_mission_name(workspace, mission)
    except DonewhenError:
        return None
    if name is None:
        return None
    accepts = (
        guidance is not None and workspace.settings().judge.trial_accepts and _was_tried(workspace, name, prepared)
    )
    if guidance is not None and accepts:
        # Without an agreed `judge.trial_accepts`, the entry has no effect.
        accept_guidance(workspace, name, mission, guidance, Approval(unproved_actor()), run=prepared.id)
    used = accepted_guidance(workspace, name, mission)
    return GatesAfterRun(workspace, used.step, used.hash == mission.guidance().hash, recorded=accepts)


def _was_tried(workspace: Workspace, name: str, prepared: PreparedRun) -> bool:
    """Whether the trials of a run cover all of its guidance.

    They do if it started from the guidance that the gates use, and used the agreed model and trial settings.
    """
    agreed = read_mission(prepared.mission.folder, code=False)
    ran = prepared.mission.settings
    began = initial_guidance_of(prepared.manifest)
    return (
        ran.trial != "off"
        and (ran.model, ran.trial) == (agreed.settings.model, agreed.settings.trial)
        and began.hash == accepted_guidance(workspace, name, agreed).hash
        and project_agreement(workspace, workspace.project()).state == "agreed"
    )
