"""The review queue, most urgent first: items from jobs and from missions."""

from __future__ import annotations

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.mission_folders import mission_folders
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.plan.workspace import Workspace
from donewhen.review.from_agreements import agreement_items
from donewhen.review.from_jobs import job_items
from donewhen.review.from_missions import mission_items, second_opinions
from donewhen.review.items import KINDS, ReviewItem

_ORDER = {kind: at for at, kind in enumerate(KINDS)}


def review_queue(workspace: Workspace, *, by: str | None = None) -> tuple[ReviewItem, ...]:
    """Return the review items. With ``by``, include tickets on which that person can give a second opinion."""
    survey = survey_jobs(workspace)
    items = [*job_items(workspace, survey), *agreement_items(workspace, survey)]
    for name in mission_folders(workspace.root, workspace.settings()):
        try:
            mission = find_mission(workspace, name)
            items += mission_items(name, mission)
            if by is not None:
                items += second_opinions(name, mission, by)
        except DonewhenError as error:
            # One unreadable mission must not hide the others; `mission check` reports the details.
            items.append(_broken(name, error))
    return tuple(sorted(items, key=lambda item: (_ORDER[item.kind], item.since, item.job or "", item.id)))


def find_item(workspace: Workspace, name: str, *, by: str | None = None) -> ReviewItem:
    """Return the item with this id or unique beginning of an id."""
    matches = [item for item in review_queue(workspace, by=by) if name and item.id.startswith(name)]
    if len(matches) != 1:
        message = "matches no review item" if not matches else "matches several review items"
        raise UsageError(f"{name!r} {message}.", next_step="donewhen review --list")
    return matches[0]


def _broken(name: str, error: DonewhenError) -> ReviewItem:
    return ReviewItem(
        kind="unreadable",
        title=f"The mission {name} can't be read",
        question=str(error),
        why="Its judge can't be used.",
        since="",
        evidence={},
        mission=name,
        next=f"donewhen mission check {name}",
    )
