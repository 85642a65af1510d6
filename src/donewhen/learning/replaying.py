"""Do the events lead to the guidance? Fold them, ask no model, and compare with what the run left behind."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from donewhen.judging.guidance import Guidance
from donewhen.judging.guidance_store import read_guidance
from donewhen.learning.events import read_events
from donewhen.learning.runs import EVENTS
from donewhen.learning.state import folded


class Replay(NamedTuple):
    """The guidance by the events, and every way in which the run's files say something else."""

    guidance: Guidance
    events: int
    finished: bool
    differences: tuple[str, ...]


def replay(folder: Path) -> Replay:
    """Rebuild a run's guidance from its events alone, and compare."""
    events = read_events(folder / EVENTS)
    state = folded(events)
    differences: list[str] = []
    finished = bool(events) and events[-1].type == "run_finished"
    if finished and events[-1].data["hash"] != state.guidance.hash:
        differences.append("the last event names another guidance than the events lead to")
    path = folder / "guidance.json"
    if path.is_file():
        differences += _compared(read_guidance(path, state.guidance.mission), state.guidance)
    elif finished:
        differences.append("guidance.json is missing")
    return Replay(state.guidance, len(events), finished, tuple(differences))


def _compared(written: Guidance, replayed: Guidance) -> list[str]:
    found = []
    for key in dict.fromkeys((*replayed.experiences, *written.experiences)):
        there, expected = written.experiences.get(key), replayed.experiences.get(key)
        if there != expected:
            found.append(f"{key} is {there!r} in guidance.json, and {expected!r} by the events")
        elif written.metadata.get(key) != replayed.metadata.get(key) and _evidence(written, key) != _evidence(
            replayed, key
        ):
            found.append(f"the evidence of {key} in guidance.json is not what the events have")
    return found


def _evidence(guidance: Guidance, key: str) -> tuple[object, ...]:
    """What is said of a rule, but for when."""
    one = guidance.metadata.get(key)
    return () if one is None else (one.sources, one.rationale, one.hit_count, one.miss_count)
