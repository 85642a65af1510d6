"""Hypotheses outlive a run: those that wait are kept with the mission, and the next run goes on with them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from donewhen.foundation.files import write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.judging.mission import Mission
from donewhen.learning.reflection.hypotheses import PooledHypothesis
from donewhen.learning.running.events import RunError
from donewhen.learning.running.run_state import RunState

POOL = "hypotheses.json"


def carried_over_hypotheses(mission: Mission, train: Collection[str]) -> tuple[PooledHypothesis, ...]:
    """What waits since earlier runs, as far as tickets support it from which this run may learn.

    A ticket that is now kept back for a trial or a test is no support any more: it would no longer be unseen.
    """
    path = mission.folder / POOL
    known = frozenset(train)
    found = []
    for one in _read(path):
        evidence = tuple(key for key in one.evidence if key in known)
        if evidence:
            found.append(msgspec.structs.replace(one, evidence=evidence, tried_with=min(one.tried_with, len(evidence))))
    return tuple(found)


def save_waiting_hypotheses(mission: Mission, state: RunState, run: str) -> None:
    """Write down what a run leaves undecided. Its cycles are named after it, so that another's are others."""
    waiting = [
        msgspec.structs.replace(one, cycles=tuple(name if ":" in name else f"{run}:{name}" for name in one.cycles))
        for one in state.pool.values()
        if one.fate != "promoted"
    ]
    path = mission.folder / POOL
    if waiting or path.exists():
        _write(path, waiting)


def waiting_pool(mission: Mission) -> tuple[PooledHypothesis, ...]:
    """Everything that waits."""
    return _read(mission.folder / POOL)


def record_answer(mission: Mission, signature: str, *, right: bool, by: str) -> None:
    """What a person says of a hypothesis: one more cycle that supports it, or that it is to wait for new tickets.

    It still has to have its tickets, and to stand its trial: nobody's word makes a rule.
    """
    with locked_folder(mission.folder):
        found = []
        for one in _read(mission.folder / POOL):
            if one.signature != signature:
                found.append(one)
            elif right:
                found.append(msgspec.structs.replace(one, cycles=tuple(dict.fromkeys((*one.cycles, by)))))
            else:
                refused = f"{by} says that it is wrong"
                found.append(msgspec.structs.replace(one, fate="refused", why=refused, tried_with=len(one.evidence)))
        _write(mission.folder / POOL, found)


def _write(path: Path, pool: Iterable[PooledHypothesis]) -> None:
    text = json.dumps([msgspec.to_builtins(one) for one in pool], ensure_ascii=False, indent=2)
    write_atomically(path, text.encode() + b"\n")


def _read(path: Path) -> tuple[PooledHypothesis, ...]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=tuple[PooledHypothesis, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(
            f"The hypotheses of earlier runs can't be read: {error}.",
            where=str(path),
            next_step="Repair the file, or delete it: they will have to be found again.",
        ) from error
