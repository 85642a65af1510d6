"""Tell an agent that works without a job, once in a session, which agreed job it could start."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line

if TYPE_CHECKING:
    from donewhen.adapters.command_hooks import HookRequest
    from donewhen.config import GuardSettings


def job_to_start(request: HookRequest, guard: GuardSettings, root: Path, asked: str) -> str | None:
    """What to tell the agent; None if there is nothing to tell, or it was told before. ``asked`` names its session.

    It is no check: whatever goes wrong here holds nobody.
    """
    wanted = guard.jobs and guard.require_job == "ask" and request.kind == "stop"
    # A loop has given it a job, and what was held before had one.
    if not wanted or request.retried or CALLER_VARIABLES.get("DONEWHEN_JOB"):
        return None
    place = root / FOLDER / "state" / f"{asked}-asked.json"
    if os.path.lexists(place):
        return None
    try:
        found = _ready_job(root, request.session_id)
        if found is None:
            return None
        place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        place.touch(exist_ok=False)
    except (OSError, DonewhenError):
        return None
    return found


def _ready_job(root: Path, session: str) -> str | None:
    from donewhen.jobs.board.open_jobs import find_open_jobs, own_jobs
    from donewhen.jobs.board.survey import survey_jobs
    from donewhen.jobs.lifecycle.planning import startable_jobs
    from donewhen.jobs.plan.workspace import find_workspace
    from donewhen.jobs.record.workers import has_started_a_job, this_worker

    workspace = find_workspace(root)
    if has_started_a_job(workspace.root, this_worker(workspace.root, session)):
        return None
    if own_jobs(workspace, find_open_jobs(workspace).names, session).own:
        return None
    survey = survey_jobs(workspace)
    ready = startable_jobs(survey)
    if not ready:
        return None
    title = next(one_line(job.title, 80) for job in survey.jobs if job.id == ready[0])
    more = f" {len(ready) - 1} more can start, too: donewhen ready." if len(ready) > 1 else ""
    return (
        f"No job is in progress, and {ready[0]} ({title}) is agreed and ready. If you work on it, start it, and do "
        f"what its plan says: donewhen start {ready[0]}.{more} If what you did belongs to no job, stop again: you are "
        "told this once."
    )
