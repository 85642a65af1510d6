"""A small mission on disk, tickets for it, and a model that answers from what it is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.ticket import Ticket
from donewhen.models.roles import Binary, Completion, ReflectionRequest, RolloutRequest

RULES = {
    "S1": "Evidence counts only where it shows the whole cabinet.",
    "S2": "What can't be seen is not there.",
    "G0": "Everything that is asked for must be in the evidence.",
}
PASS = "Verdict: pass\nReason: the seal is there"
FAIL = "Verdict: fail\nReason: the seal is missing"


class Noon:
    """A clock that stands still."""

    def now(self) -> datetime:
        return datetime(2026, 2, 14, 12, tzinfo=UTC)

    def monotonic(self) -> float:
        return 0.0


class Scripted:
    """A model whose answers a function makes from the request."""

    name = "scripted"
    free = True

    def __init__(self, answer: Callable[[RolloutRequest], str | Completion]) -> None:
        self._answer = answer
        self.requests: list[RolloutRequest] = []

    async def roll(self, request: RolloutRequest) -> Completion:
        self.requests.append(request)
        said = self._answer(request)
        return said if isinstance(said, Completion) else Completion(said)

    async def decide(self, request: ReflectionRequest) -> Completion:
        raise NotImplementedError

    async def propose(self, request: ReflectionRequest) -> Completion:
        raise NotImplementedError


def ticket(group: str = "QC-1", label: Binary | None = "pass", **evidence: str) -> Ticket:
    return Ticket(group, "cabinets", label, evidence or {"image_1": "a sealed cabinet"}, group)


def many(count: int) -> Iterator[Ticket]:
    return (ticket(f"QC-{number}", image_1=f"cabinet {number}") for number in range(count))


def line(group: str = "QC-1", label: str = "pass", **fields: Any) -> dict[str, Any]:
    """A ticket as its line has it."""
    return {"group_id": group, "mission": "cabinets", "label": label, "text": "a sealed cabinet"} | fields


def write_lines(path: Path, *rows: Mapping[str, Any] | bytes | str) -> Path:
    """A file of tickets; what is no mapping is written as it is."""

    def encoded(row: Mapping[str, Any] | bytes | str) -> bytes:
        if isinstance(row, bytes):
            return row
        return row.encode() if isinstance(row, str) else json.dumps(row, ensure_ascii=False).encode()

    path.write_bytes(b"".join(encoded(row) + b"\n" for row in rows))
    return path


def write_mission(folder: Path, toml: str = "", rules: Mapping[str, str] = RULES, name: str = "cabinets") -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mission.toml").write_text(f'mission = "{name}"\n{toml}', encoding="utf-8")
    (folder / "initial_guidance.json").write_text(json.dumps(rules), encoding="utf-8")
    write_lines(folder / "tickets.jsonl", line("QC-1", "pass"), line("QC-2", "fail", text="an open cabinet"))
    return folder


def mission_in(folder: Path, toml: str = "", rules: Mapping[str, str] = RULES) -> Mission:
    return read_mission(write_mission(folder, toml, rules), clock=Noon())
