"""Replay a run: rebuild its guidance from the events without a model, and compare it with the run's files."""

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
    """The guidance rebuilt from the events, and the differences to the run's files."""

    guidance: Guidance
    events: int
    finished: bool
    differences: tuple[str, ...]


def replay_run(folder: Path) -> Replay:
    """Rebuild a run's guidance from its events, and compare it with its files."""
    events = read_events(folder / EVENTS)
    if not events:
        raise RunError("The run has not started.", where=str(folder), next_step="donewhen learn")
    state = RunState()
    finished = events[-1].type == "run_finished"
    for event in events:
        try:
            state.apply(event)
        except RunError as error:
            return Replay(state.guidance, len(events), finished, (error.message,))
    differences: list[str] = []
    if finished:
        ended = events[-1].data
        if (ended.get("step"), ended.get("hash")) != (state.guidance.step, state.guidance.hash):
            differences.append("the last event names a different guidance than the replay produces")
    path = folder / "guidance.json"
    if path.is_file():
        written = read_guidance(path, state.guidance.mission)
        if finished or not _is_earlier(written, state):
            differences += _guidance_differences(written, state.guidance)
            differences += _snapshot_differences(folder, state)
    elif finished:
        differences.append("guidance.json is missing")
    return Replay(state.guidance, len(events), finished, tuple(differences))


def _is_earlier(written: Guidance, state: RunState) -> bool:
    """Whether the file is from an earlier interruption: the run was resumed and then killed before it was rewritten."""
    first = initial_guidance_of(state.manifest)
    hashes = [first.hash, *(change["hash"] for change in state.changes)]
    return written.hash in hashes[:-1] and hashes.index(written.hash) == written.step - first.step


def _guidance_differences(written: Guidance, replayed: Guidance) -> list[str]:
    differences = []
    if written.step != replayed.step:
        differences.append(f"guidance.json is at step {written.step}, but the events are at step {replayed.step}")
    for key in dict.fromkeys((*replayed.experiences, *written.experiences)):
        actual, expected = written.experiences.get(key), replayed.experiences.get(key)
        if actual != expected:
            differences.append(f"{key} is {actual!r} in guidance.json, but {expected!r} in the events")
    known = dict.fromkeys((*replayed.metadata, *written.metadata))
    differences += [
        f"the evidence of {key} in guidance.json differs from the events"
        for key in known
        if _evidence(written, key) != _evidence(replayed, key)
    ]
    return differences


def _snapshot_differences(folder: Path, state: RunState) -> list[str]:
    """The snapshots of earlier steps that are missing or differ from the events."""
    first = initial_guidance_of(state.manifest)
    store = GuidanceStore(folder / "guidance.json", first.mission)
    hashes = [first.hash, *(change["hash"] for change in state.changes)]
    differences = []
    for step, expected in enumerate(hashes[:-1], first.step):
        try:
            same = store.at(step).hash == expected
        except GuidanceError:
            same = False
        if not same:
            differences.append(f"the snapshot of step {step} differs from the events")
    return differences


def _evidence(guidance: Guidance, key: str) -> RuleMeta | None:
    """The metadata of a rule without its time."""
    meta = guidance.metadata.get(key)
    return None if meta is None else msgspec.structs.replace(meta, updated_at="")
