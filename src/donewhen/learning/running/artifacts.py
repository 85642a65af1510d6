"""Write the files of a run. All of them are derived from its events and can be rebuilt."""

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
from donewhen.learning.running.event_content import TicketsRolled
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
    """Write all files except the report."""
    with ExitStack() as stack:
        # Streamed from file to file, because the trajectories of many tickets are long.
        files = {name: stack.enter_context(_replace_file(folder / name)) for name in (*_LINES, _TRAJECTORIES)}
        for event in events:
            for name, kinds in _LINES.items():
                if event.type in kinds:
                    files[name].write(_json_line({"event": event.number, "type": event.type, **event.data}))
            if event.type == "rolled":
                for row in event.data["rows"]:
                    files[_TRAJECTORIES].write(_json_line({"epoch": event.read_as(TicketsRolled).epoch, **row}))
    write_atomically(folder / "stop_gradient.jsonl", b"".join(map(_json_line, state.queue)))
    pool = [msgspec.to_builtins(hypothesis) for hypothesis in state.pool.values()]
    write_atomically(folder / "hypotheses.json", _json_page(pool))
    write_atomically(folder / "manifest.json", _json_page(dict(state.manifest)))
    write_atomically(folder / "metrics.json", _json_page(_metrics(state)))
    _write_guidance(folder, state, clock)


@contextmanager
def _replace_file(path: Path) -> Iterator[IO[bytes]]:
    """Open a temporary file that replaces ``path`` when it is complete."""
    part = path.with_name(f".{path.name}.part")
    with part.open("wb") as file:
        yield file
    part.replace(path)


def _write_guidance(folder: Path, state: RunState, clock: Clock) -> None:
    """Write the run's guidance and its snapshots, up to the current step."""
    first = initial_guidance_of(state.manifest)
    store = GuidanceStore(folder / "guidance.json", first.mission, clock=clock)
    current = store.seed(first)
    for change in state.applied[current.step - first.step :]:
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


def _json_line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _json_page(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
