"""Choose the guidance that a judge uses: the current one, an earlier step, or a file."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from donewhen.judging.guidance import Guidance, GuidanceError
from donewhen.judging.guidance_store import read_guidance, read_initial
from donewhen.judging.mission import Mission


def guidance_of_step(mission: Mission, step: int | None) -> Guidance:
    """The guidance at a step, or the current guidance; before any learning there is only step 0."""
    if step is None:
        return mission.guidance()
    if mission.store.exists:
        return mission.store.at(step)
    if step:
        raise GuidanceError(f"There is no step {step}: nothing was learned yet.", where=str(mission.folder))
    return mission.initial_guidance()


def choose_guidance(mission: Mission, choice: str | None) -> Guidance:
    """The guidance at a step (``"3"``), in a file (a path), or as it is now (None)."""
    if choice is None or choice.isdecimal():
        return guidance_of_step(mission, None if choice is None else int(choice))
    path = Path(choice)
    guidance = read_initial(path, mission.name)
    with suppress(GuidanceError):
        guidance = read_guidance(path, mission.name)
    return guidance
