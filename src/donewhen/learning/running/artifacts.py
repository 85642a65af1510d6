"""What a run leaves behind, in files that others can read. All of it is made from the events, and can be made again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec

from donewhen.foundation.clock import Clock
from donewhen.foundation.files import write_atomically
from donewhen.judging.guidance_store import GuidanceStore
from donewhen.learning.running.events import RunEvent
from donewhen.learning.running.run_state import RunState, initial_guidance_of

_TRAJECTORIES = "trajectories.jsonl"
_LINES: dict[str, tuple[str, ...]] = {
    "selections.jsonl": ("selected",),
    "reflections.jsonl": ("decided", "proposed", "closed"),
    "hypothesis_events.jsonl": ("supported", "fated"),
    "trials.jsonl": ("trialled",),
}


def write_artifacts(folder: Path, events: Iterable[RunEvent], state: RunState, clock: Clock) -> None:
    """Write everything but the report."""
    with ExitStack() as stack:
        # Trajectories of many tickets are long: they go from file to file.
        files = {name: stack.enter_context(_replaced(folder / name)) for name in (*_LINES, _TRAJECTORIES)}
        for event in events:
            for name, kinds in _LINES.items():
                if event.type in kinds:
                    files[name].write(_line({"event": event.number, "type": event.type, **event.data}))
            if event.type == "rolled":
                for row in event.data["rows"]:
                    files[_TRAJECTORIES].write(_line({"epoch": event.data["epoch"], **row}))
    write_atomically(folder / "stop_gradient.jsonl", b"".join(map(_line, state.queue)))
    write_atomically(folder / "hypotheses.json", _page([msgspec.to_builtins(one) for one in state.pool.values()]))
    write_atomically(folder / "manifest.json", _page(dict(state.manifest)))
    write_atomically(folder / "metrics.json", _page(_metrics(state)))
    _write_guidance(folder, state, clock)


@contextmanager
def _replaced(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of another when it is complete."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        yield file
    part.replace(path)


def _write_guidance(folder: Path, state: RunState, clock: Clock) -> None:
    """The run's own guidance with its snapshots, as far as it has come."""
    first = initial_guidance_of(state.manifest)
    store = GuidanceStore(folder / "guidance.json", first.mission, clock=clock)
    now = store.seed(first)
    for change in state.applied[now.step - first.step :]:
        store.apply(change, f"run {folder.name}")
    if state.counts:
        store.credit(state.counts)


def _metrics(state: RunState) -> dict[str, Any]:
    epochs = [
        {
            "epoch": epoch.number,
            "rolled": epoch.rolled,
            "wrong": epoch.wrong,
            "failures": epoch.failures,
            "candidates": epoch.candidates,
            "covered": epoch.covered,
            "no_evidence": epoch.no_evidence,
            "budget_exhausted": epoch.exhausted,
            "changes": epoch.changes,
            "refused": epoch.refused,
            "promotions": epoch.promotions,
            "reflection_calls": epoch.reflection_calls,
            **{name: value for name, value in (epoch.ended or {}).items() if name.startswith(("train", "validation"))},
        }
        for epoch in state.epochs
    ]
    return {"status": state.status, "epochs": epochs, "spent": dict(state.spent), "malformed": dict(state.malformed)}


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _page(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
