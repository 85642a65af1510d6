"""Waiting hypotheses, stored with the mission so that the next run continues with them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from pathlib import Path

import msgspec

from donewhen.foundation.files import read_limited, write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.size_limits import HYPOTHESES
from donewhen.judging.mission import Mission
from donewhen.learning.reflection.hypotheses import PooledHypothesis, key_of_rule
from donewhen.learning.running.events import RunError
from donewhen.learning.running.run_state import RunState

POOL = "hypotheses.json"


def carried_over_hypotheses(mission: Mission, train: Collection[str]) -> tuple[PooledHypothesis, ...]:
    """The waiting hypotheses of earlier runs that training tickets of this run support.

    Tickets in this run's validation or test split don't count as support: they must stay unseen.
    """
    path = mission.folder / POOL
    known = frozenset(train)
    carried_over = []
    for hypothesis in _not_adopted(mission, _read(path)):
        evidence = tuple(key for key in hypothesis.evidence if key in known)
        if evidence:
            tried_with = min(hypothesis.tried_with, len(evidence))
            carried_over.append(msgspec.structs.replace(hypothesis, evidence=evidence, tried_with=tried_with))
    return tuple(carried_over)


def save_waiting_hypotheses(mission: Mission, state: RunState, run: str) -> None:
    """Write a run's undecided hypotheses. Cycle names get the run's name as prefix, to be unique across runs."""
    waiting = [
        msgspec.structs.replace(
            hypothesis, cycles=tuple(name if ":" in name else f"{run}:{name}" for name in hypothesis.cycles)
        )
        for hypothesis in state.pool.values()
        if hypothesis.fate != "promoted"
    ]
    path = mission.folder / POOL
    if waiting or path.exists():
        _write(path, waiting)


def waiting_pool(mission: Mission) -> tuple[PooledHypothesis, ...]:
    """All waiting hypotheses of a mission."""
    return _not_adopted(mission, _read(mission.folder / POOL))


def record_answer(mission: Mission, signature: str, *, right: bool, by: str) -> None:
    """Record a person's answer about a hypothesis: ``right`` adds a supporting cycle, otherwise it is refused.

    The hypothesis still needs enough tickets and must pass its trial; an answer alone does not make a rule.
    """
    with locked_folder(mission.folder):
        pool = []
        for hypothesis in _read(mission.folder / POOL):
            if hypothesis.signature != signature:
                pool.append(hypothesis)
            elif right:
                cycles = tuple(dict.fromkeys((*hypothesis.cycles, by)))
                pool.append(msgspec.structs.replace(hypothesis, cycles=cycles))
            else:
                why, count = f"{by} says that it is wrong", len(hypothesis.evidence)
                pool.append(msgspec.structs.replace(hypothesis, fate="refused", why=why, tried_with=count))
        _write(mission.folder / POOL, pool)


def _not_adopted(mission: Mission, pool: tuple[PooledHypothesis, ...]) -> tuple[PooledHypothesis, ...]:
    """The hypotheses that no rule of the mission says already."""
    if not pool:
        return ()
    rules = mission.guidance().rules
    return tuple(hypothesis for hypothesis in pool if key_of_rule(hypothesis.text, rules) is None)


def _write(path: Path, pool: Iterable[PooledHypothesis]) -> None:
    text = json.dumps([msgspec.to_builtins(hypothesis) for hypothesis in pool], ensure_ascii=False, indent=2)
    write_atomically(path, text.encode() + b"\n")


def _read(path: Path) -> tuple[PooledHypothesis, ...]:
    try:
        return msgspec.json.decode(read_limited(path, HYPOTHESES), type=tuple[PooledHypothesis, ...])
    except FileNotFoundError:
        return ()
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(
            f"The hypotheses of earlier runs can't be read: {error}.",
            where=str(path),
            next_step="Repair the file, or delete it to start without them.",
        ) from error
