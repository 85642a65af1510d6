"""guidance.json and its history: atomic writes, a snapshot before each change and a history line for each change."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from donewhen.foundation.clock import SYSTEM_CLOCK, Clock
from donewhen.foundation.files import read_limited, read_text_limited, write_atomically
from donewhen.foundation.json_parsing import parse_json
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.size_limits import GUIDANCE
from donewhen.judging.guidance import (
    KEY,
    Guidance,
    GuidanceChange,
    GuidanceError,
    RuleMeta,
    apply_change,
    record_credit,
    roll_back,
    seed_guidance,
)


class Revision(NamedTuple):
    """One line of the history."""

    step: int
    at: str
    by: str
    change: GuidanceChange
    hash: str


class GuidanceStore:
    """Reads and writes a guidance file. Only ``judging.guidance`` decides which changes are allowed."""

    def __init__(self, path: Path, mission: str, *, clock: Clock = SYSTEM_CLOCK) -> None:
        self.path = path
        self._mission = mission
        self._clock = clock

    @property
    def exists(self) -> bool:
        return self.path.is_file()

    def read(self) -> Guidance:
        """The current guidance."""
        return read_guidance(self.path, self._mission)

    def seed(self, guidance: Guidance) -> Guidance:
        """Write the first guidance, unless there is one already; return the current guidance."""
        with self._locked():
            if not self.exists:
                rules = seed_guidance(self._mission, guidance.experiences, "").experiences
                at = guidance.updated_at or self._now()
                self._write(msgspec.structs.replace(guidance, mission=self._mission, experiences=rules, updated_at=at))
            return self.read()

    def apply(self, change: GuidanceChange, by: str) -> Guidance:
        """Apply a change and write it as a new step."""
        return self._write_step(lambda current: apply_change(current, change, self._now()), change, by)

    def rollback(self, step: int, by: str) -> Guidance:
        """Write the guidance of an earlier step as a new step."""
        change = GuidanceChange(op="rollback", rationale=f"back to step {step}")
        return self._write_step(lambda current: roll_back(current, self.at(step), self._now()), change, by)

    def credit(self, counts: Mapping[str, tuple[int, int]]) -> Guidance:
        """Write the measured hits and misses of rules to the metadata."""
        with self._locked():
            after = record_credit(self.read(), counts)
            self._write(after)
        return after

    def at(self, step: int) -> Guidance:
        """The guidance at a step."""
        current = self.read()
        if step == current.step:
            return current
        path = self._snapshot(step)
        if not 0 <= step < current.step or not path.is_file():
            raise GuidanceError(
                f"There is no step {step}; the newest is {current.step}.", next_step="donewhen guidance log"
            )
        return read_guidance(path, self._mission)

    def history(self) -> tuple[Revision, ...]:
        """Every change that took effect, oldest first."""
        newest = self.read().step
        revisions: dict[int, Revision] = {}
        for number, line in enumerate(self._history_lines(), 1):
            try:
                data = json.loads(line)
                change = msgspec.convert(data["change"], GuidanceChange)
                row = Revision(int(data["step"]), str(data["at"]), str(data["by"]), change, str(data["hash"]))
            except (ValueError, KeyError, TypeError, msgspec.ValidationError) as error:
                raise GuidanceError(
                    f"The line is not a revision: {error}.", where=f"{self._history}:{number}"
                ) from error
            # A writer that was killed may have logged a step without writing it; the later line of that step counts.
            revisions[row.step] = row
        return tuple(revisions[step] for step in sorted(revisions) if step <= newest)

    def _write_step(self, make: Callable[[Guidance], Guidance], change: GuidanceChange, by: str) -> Guidance:
        with self._locked():
            current = self.read()
            after = make(current)
            self._snapshot(current.step).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self._snapshot(current.step), _encoded(current))
            self._append_history(after, change, by)
            self._write(after)
        return after

    def _append_history(self, after: Guidance, change: GuidanceChange, by: str) -> None:
        row = {
            "step": after.step,
            "at": after.updated_at,
            "by": by,
            "change": msgspec.to_builtins(change),
            "hash": after.hash,
        }
        lines = [*self._history_lines(), json.dumps(row, ensure_ascii=False)]
        write_atomically(self._history, ("\n".join(lines) + "\n").encode())

    def _history_lines(self) -> list[str]:
        try:
            return [line for line in read_text_limited(self._history, GUIDANCE).split("\n") if line.strip()]
        except FileNotFoundError:
            return []
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise GuidanceError(f"The history can't be read: {reason}.", where=str(self._history)) from error

    @property
    def _history(self) -> Path:
        return self.path.with_name(f"{self.path.stem}.history.jsonl")

    def _snapshot(self, step: int) -> Path:
        return self.path.parent / "snapshots" / f"{self.path.stem}-{step:05d}.json"

    def _write(self, guidance: Guidance) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, _encoded(guidance))

    def _now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # Locks the folder itself: a lock file might be committed by accident.
        with locked_folder(self.path.parent):
            yield


def read_guidance(path: Path, mission: str) -> Guidance:
    """Read and validate a guidance file."""
    data = _require_object(_read_json(path), path)
    if mission not in data:
        raise GuidanceError(f"The file has no guidance for the mission {mission!r}.", where=str(path))
    if len(data) > 1:
        others = ", ".join(repr(name) for name in data if name != mission)
        # The store rewrites the whole file, so another mission's guidance would be lost at the first change.
        raise GuidanceError(f"The file also has guidance for other missions: {others}.", where=str(path))
    return _parse_guidance(mission, _require_object(data[mission], path), path)


def read_initial(path: Path, mission: str, at: str = "") -> Guidance:
    """Read the initial guidance: in the format of guidance.json, or an object that maps keys to rules."""
    data = _require_object(_read_json(path), path)
    data = _require_object(data.get(mission, data), path)
    rules = _require_object(data.get("experiences", data), path)
    return seed_guidance(mission, rules, at, str(path))


def _parse_guidance(mission: str, data: Mapping[str, Any], path: Path) -> Guidance:
    rules = seed_guidance(mission, _require_object(data.get("experiences"), path), "", str(path)).experiences
    step, at = data.get("step"), data.get("updated_at")
    if not isinstance(step, int) or isinstance(step, bool) or step < 0 or not isinstance(at, str):
        raise GuidanceError("step must be an integer of 0 or more, and updated_at a string.", where=str(path))
    try:
        metadata = msgspec.convert(data.get("metadata", {}), dict[str, RuleMeta])
    except msgspec.ValidationError as error:
        raise GuidanceError(f"The metadata is invalid: {error}.", where=str(path)) from error
    return Guidance(mission, step, at, rules, {key: meta for key, meta in metadata.items() if KEY.fullmatch(key)})


def _read_json(path: Path) -> Any:
    try:
        return parse_json(read_limited(path, GUIDANCE).decode().removeprefix("\ufeff"), allow_nan=True)
    except OSError as error:
        raise GuidanceError(f"The guidance can't be read: {error.strerror}.", where=str(path)) from error
    except (ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise GuidanceError(f"The guidance is not JSON: {error}.", where=f"{path}{line}") from error


def _require_object(data: Any, path: Path) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise GuidanceError("Expected a JSON object with rules.", where=str(path))
    return data


def _encoded(guidance: Guidance) -> bytes:
    return (json.dumps(guidance.as_file(), ensure_ascii=False, indent=2) + "\n").encode()
