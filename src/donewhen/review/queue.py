"""Everything that needs a person, the most urgent first: from the jobs, and from the missions whose judges they ask."""

from __future__ import annotations

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.from_jobs import job_items
from donewhen.review.from_missions import mission_items, second_opinions
from donewhen.review.items import KINDS, ReviewItem

_ORDER = {kind: at for at, kind in enumerate(KINDS)}


def review_queue(workspace: Workspace, *, by: str | None = None) -> tuple[ReviewItem, ...]:
    """What needs a person now. With ``by``, also what that person might give a second opinion on."""
    found = list(job_items(workspace))
    for name in mission_folders(workspace.root, workspace.settings()):
        try:
            mission = find_mission(workspace, name)
            found += mission_items(name, mission)
            if by is not None:
                found += second_opinions(name, mission, by)
        except DonewhenError as error:
            # One mission that can't be read keeps nobody from the others; it is told where missions are checked.
            found.append(_broken(name, error))
    return tuple(sorted(found, key=lambda one: (_ORDER[one.kind], one.since, one.job or "", one.id)))


def find_item(workspace: Workspace, name: str, *, by: str | None = None) -> ReviewItem:
    """An item by its id, or by the beginning of it."""
    found = [one for one in review_queue(workspace, by=by) if name and one.id.startswith(name)]
    if len(found) != 1:
        message = "is nothing that needs a person" if not found else "fits several"
        raise UsageError(f"{name!r} {message}.", next_step="donewhen review --list")
    return found[0]


def _broken(name: str, error: DonewhenError) -> ReviewItem:
    return ReviewItem(
        kind="asked",
        title=f"The mission {name} can't be read",
        question=str(error),
        why="Its judge can't be asked.",
        since="",
        evidence={},
        mission=name,
        next=f"donewhen mission check {name}",
    )
