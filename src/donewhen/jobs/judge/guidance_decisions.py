"""What people decide about the guidance of a mission: which step the gates use, and whether to go back a step."""

from __future__ import annotations

from dataclasses import dataclass

from donewhen.foundation.errors import UsageError
from donewhen.jobs.judge.missions import AcceptedGuidance, accept_guidance, accepted_guidance, gate_mission_name
from donewhen.jobs.ledger.approval import Approval, detected_agent, unproved_actor
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.judging.guidance import Guidance, GuidanceError
from donewhen.judging.guidance_choice import guidance_of_step
from donewhen.judging.guidance_diff import RuleChange, changes_between
from donewhen.judging.mission import Mission


@dataclass(frozen=True)
class GuidanceProposal:
    """Guidance that the gates could use, and the guidance that they use now."""

    workspace: Workspace
    name: str
    """The name under which the gates know the mission."""
    mission: Mission
    chosen: Guidance
    accepted: AcceptedGuidance
    before: Guidance | None
    """The accepted guidance; None if that step was edited or lost since."""

    @property
    def in_use(self) -> bool:
        """Whether the gates already use the chosen guidance."""
        return self.accepted.hash == self.chosen.hash

    @property
    def changes(self) -> tuple[RuleChange, ...]:
        """What changes for the gates; every rule if the accepted guidance is lost."""
        return () if self.in_use else tuple(changes_between(self.before, self.chosen))


@dataclass(frozen=True)
class Rollback:
    """A rollback that was recorded as a new step."""

    before: Guidance
    after: Guidance
    by: str

    @property
    def changes(self) -> tuple[RuleChange, ...]:
        return tuple(changes_between(self.before, self.after))


def propose_guidance(mission: Mission, step: int | None = None) -> GuidanceProposal:
    """Propose a step of a mission (default: the newest) to the gates of the mission's project.

    Raise UsageError if no gate uses the mission, or if nothing was learned.
    """
    workspace = find_workspace(mission.folder)
    name = gate_mission_name(workspace, mission)
    if name is None:
        folder = workspace.settings().judge.missions
        raise UsageError("No gate uses this mission.", where=str(mission.folder), next_step=f"Move it to {folder}/.")
    if not mission.store.exists:
        raise UsageError("Nothing was learned yet, so there is nothing to accept.", where=str(mission.folder))
    chosen = guidance_of_step(mission, step)
    accepted = accepted_guidance(workspace, name, mission)
    return GuidanceProposal(workspace, name, mission, chosen, accepted, _unchanged(mission, accepted))


def accept_proposal(proposal: GuidanceProposal, approval: Approval) -> bool:
    """Record the acceptance, and return whether the gates use the chosen guidance now.

    Nothing is recorded if they already do.
    """
    if proposal.in_use:
        return True
    return accept_guidance(proposal.workspace, proposal.name, proposal.mission, proposal.chosen, approval)


def guidance_in_use(mission: Mission) -> tuple[AcceptedGuidance, Guidance | None]:
    """What was accepted for the gates, and that guidance; None if that step was edited or lost since."""
    workspace = find_workspace(mission.folder)
    accepted = accepted_guidance(workspace, gate_mission_name(workspace, mission) or mission.name, mission)
    return accepted, _unchanged(mission, accepted)


def roll_back_guidance(mission: Mission, step: int) -> Rollback:
    """Restore the rules of an earlier step as a new step, under the name of whoever runs this.

    Raise UsageError if there is no earlier step.
    """
    if not mission.store.exists:
        raise UsageError("Nothing was learned yet, so there is no earlier step.", where=str(mission.folder))
    before = mission.store.read()
    if step == before.step:
        raise UsageError(f"The guidance is already at step {step}.", next_step="donewhen guidance log")
    name = unproved_actor().name
    by = name if detected_agent() is None else f"{name} (agent)"
    return Rollback(before, mission.store.rollback(step, by), by)


def _unchanged(mission: Mission, accepted: AcceptedGuidance) -> Guidance | None:
    """The accepted guidance; None if that step was edited or lost since."""
    if accepted.entry is None:
        return mission.initial_guidance()
    try:
        found = mission.store.at(accepted.step)
    except GuidanceError:
        return None
    return found if found.hash == accepted.hash else None
