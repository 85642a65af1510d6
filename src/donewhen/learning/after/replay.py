"""Do the events lead to the guidance? Fold them, ask no model, and compare with what the run left behind."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import msgspec

from donewhen.judging.guidance import Guidance, GuidanceError, RuleMeta
from donewhen.judging.guidance_store import GuidanceStore, read_guidance
from donewhen.learning.running.events import RunError, read_events
from donewhen.learning.running.run_folders import EVENTS
from donewhen.learning.running.run_state import RunState, initial_guidance_of


class Replay(NamedTuple):
    """The guidance by the events, and every way in which the run's files say something else."""

    guidance: Guidance
    events: int
    finished: bool
    differences: tuple[str, ...]


def replay_run(folder: Path) -> Replay:
    """Rebuild a run's guidance from its events alone, and compare."""
    events = read_events(folder / EVENTS)
    if not events:
        raise RunError("The run has not begun.", where=str(folder), next_step="donewhen learn")
    state = RunState()
    finished = events[-1].type == "run_finished"
    for event in events:
        try:
            state.apply(event)
        except RunError as error:
            message = f"event {event.number}, {event.type}, does not follow on those before. {error.message}"
            return Replay(state.guidance, len(events), finished, (message,))
    differences: list[str] = []
    if finished:
        ended = events[-1].data
        if (ended.get("step"), ended.get("hash")) != (state.guidance.step, state.guidance.hash):
            differences.append("the last event names another guidance than the events lead to")
    path = folder / "guidance.json"
    if path.is_file():
        written = read_guidance(path, state.guidance.mission)
        if finished or not _is_earlier(written, state):
            differences += _compared(written, state.guidance)
            differences += _snapshots(folder, state)
    elif finished:
        differences.append("guidance.json is missing")
    return Replay(state.guidance, len(events), finished, tuple(differences))


def _is_earlier(written: Guidance, state: RunState) -> bool:
    """Whether it is what the run had come to when it was first interrupted: it went on, and was then killed."""
    first = initial_guidance_of(state.manifest)
    hashes = [first.hash, *(change["hash"] for change in state.changes)]
    return written.hash in hashes[:-1] and hashes.index(written.hash) == written.step - first.step


def _compared(written: Guidance, replayed: Guidance) -> list[str]:
    found = []
    if written.step != replayed.step:
        found.append(f"guidance.json is at step {written.step}, and the events are at step {replayed.step}")
    for key in dict.fromkeys((*replayed.experiences, *written.experiences)):
        there, expected = written.experiences.get(key), replayed.experiences.get(key)
        if there != expected:
            found.append(f"{key} is {there!r} in guidance.json, and {expected!r} by the events")
    known = dict.fromkeys((*replayed.metadata, *written.metadata))
    message = "the evidence of {} in guidance.json is not what the events have"
    return [*found, *(message.format(key) for key in known if _evidence(written, key) != _evidence(replayed, key))]


def _snapshots(folder: Path, state: RunState) -> list[str]:
    """Every step before the last is there, as the events had it."""
    first = initial_guidance_of(state.manifest)
    store = GuidanceStore(folder / "guidance.json", first.mission)
    hashes = [first.hash, *(change["hash"] for change in state.changes)]
    found = []
    for step, expected in enumerate(hashes[:-1], first.step):
        try:
            same = store.at(step).hash == expected
        except GuidanceError:
            same = False
        if not same:
            found.append(f"the snapshot of step {step} is not what the events have")
    return found


def _evidence(guidance: Guidance, key: str) -> RuleMeta | None:
    """What is said of a rule, but for when."""
    one = guidance.metadata.get(key)
    return None if one is None else msgspec.structs.replace(one, updated_at="")
