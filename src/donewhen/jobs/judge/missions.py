"""The missions whose judges the gates ask, and the accepted guidance that the gates use."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from donewhen.foundation.errors import ConfigError, DonewhenError, UsageError
from donewhen.jobs.contract.agreement import Seal, project_seal
from donewhen.jobs.contract.mission_folders import mission_folders, missions_folder
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import GuidanceAccepted
from donewhen.jobs.ledger.terms_content import ProjectTerms
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.writing import writing

if TYPE_CHECKING:
    from donewhen.judging.guidance import Guidance
    from donewhen.judging.mission import Mission

ACCEPTED = "accept_guidance"


@dataclass(frozen=True)
class AcceptedGuidance:
    """The guidance that the gates use: a step of a mission, and the hash of what a judge sees of it."""

    step: int
    hash: str
    entry: Entry | None
    """None if nothing was accepted yet: the gates use the mission's initial guidance, which was agreed to."""


def find_mission(workspace: Workspace, name: str) -> Mission:
    """Return the mission in the folder with this name, without running any of its code."""
    from donewhen.judging.mission import MISSION_FILE, read_mission

    settings = workspace.settings()
    folder = missions_folder(workspace.root, settings) / name
    if not (folder / MISSION_FILE).is_file():
        known = ", ".join(mission_folders(workspace.root, settings)) or "none"
        raise ConfigError(
            f"There is no mission {name!r}. Known missions: {known}.",
            where=workspace.where(folder),
            next_step=f"donewhen mission new {workspace.where(folder)}",
        )
    return read_mission(folder, clock=workspace.clock, code=False)


def gate_mission_name(workspace: Workspace, mission: Mission) -> str | None:
    """Return the name under which gates know a mission; None if it is not in the project."""
    folders = mission_folders(workspace.root, workspace.settings())
    target = mission.folder.resolve()
    return next((name for name, folder in folders.items() if folder.resolve() == target), None)


def accepted_guidance(workspace: Workspace, name: str, mission: Mission) -> AcceptedGuidance:
    """Return which guidance of a mission the gates use."""
    project = workspace.project()
    seal = project_seal(workspace, project)
    trusted = _trusts_trials(seal)
    policy = Policy.of(seal.terms if seal else None)
    for entry in reversed(workspace.ledger.read(project.id).entries):
        if not isinstance(entry.content, GuidanceAccepted):
            continue
        accepted = entry.content.value
        by_trial = trusted and accepted.by_trial
        if accepted.mission == name and (by_trial or is_approval(entry, project.id, policy)):
            return AcceptedGuidance(accepted.step, accepted.hash, entry)
    return AcceptedGuidance(0, mission.initial_guidance().hash, None)


def gate_guidance(workspace: Workspace, name: str, mission: Mission) -> Guidance:
    """Return the guidance that the gates use; raise GuidanceError if it differs from what was accepted."""
    from donewhen.judging.guidance import GuidanceError

    accepted = accepted_guidance(workspace, name, mission)
    if accepted.entry is None:
        return mission.initial_guidance()
    guidance = mission.store.at(accepted.step)
    if guidance.hash != accepted.hash:
        raise GuidanceError(
            f"The guidance of {name} at step {accepted.step} differs from the accepted version.",
            where=workspace.where(mission.store.path),
            next_step=f"Undo the edit, or let a person accept it: donewhen guidance accept {name}",
        )
    return guidance


def unread_judge_rules(workspace: Workspace, jobs: Iterable[Job]) -> dict[str, tuple[str, ...]]:
    """The rules that the judges of jobs can't read, by mission. A mission that can't be read is reported elsewhere."""
    checks = (requirement.check for job in jobs for requirement in requirements_of(job))
    unread: dict[str, tuple[str, ...]] = {}
    for name in sorted({check.text for check in checks if check.kind == "judge"}):
        from donewhen.judging.competence import unread_by_default_model

        with suppress(DonewhenError):
            mission = find_mission(workspace, name)
            rules = unread_by_default_model(mission, gate_guidance(workspace, name, mission))
            if rules:
                unread[name] = tuple(rule.key for rule in rules)
    return unread


def accept_guidance(
    workspace: Workspace, name: str, mission: Mission, guidance: Guidance, approval: Approval, *, run: str | None = None
) -> bool:
    """Record that the gates should use this guidance; return whether the acceptance counts.

    ``run`` is the run whose trial supports it.
    """
    if not mission.store.exists or mission.store.at(guidance.step).hash != guidance.hash:
        raise UsageError(
            f"{name} has no such guidance at step {guidance.step}.", next_step=f"donewhen guidance log {name}"
        )
    path = workspace.project_file
    with writing(workspace, path) as plan:
        value: dict[str, Any] = {"mission": name, "step": guidance.step, "hash": guidance.hash}
        if run is not None:
            # An acceptance that does not count now must not count later, when trials become trusted.
            seal = project_seal(plan.snapshot, plan.snapshot.project())
            value |= {"run": run, "by_trial": _trusts_trials(seal)}
        message = f"guidance step {guidance.step} of {name}"
        data = {"decision": ACCEPTED, "reason": message, "value": value}
        entry = plan.append("decided", data, approval)
    accepted = accepted_guidance(workspace, name, mission)
    return accepted.entry is not None and accepted.entry.hash == entry.hash


def _trusts_trials(seal: Seal | None) -> bool:
    """Whether the sealed settings accept guidance that has passed its trial."""
    return (
        seal is not None
        and isinstance(seal.terms, ProjectTerms)
        and seal.terms.settings.get("judge.trial_accepts") is True
    )
