"""The states of dependencies by the records of many jobs. No gates are evaluated and no files of the jobs are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from donewhen.jobs.ledger.gate_results import GateCode

RecordedDependency = Literal["done", "open", "invalid", "missing", "unreadable"]

_CODES: dict[RecordedDependency, GateCode] = {
    "open": GateCode.DEPENDENCY_OPEN,
    "invalid": GateCode.DEPENDENCY_INVALID,
    "unreadable": GateCode.DEPENDENCY_INVALID,
    "missing": GateCode.DEPENDENCY_MISSING,
}


class RecordedJob(NamedTuple):
    """What other jobs need to know about a job."""

    done: bool
    depends_on: tuple[str, ...]
    invalid: bool = False
    """Whether it was done and is no longer, as far as that is known."""


class RecordedDependencies:
    """Finds out by the records which dependencies are done, each job once.

    A job that is done on a job that is not done is invalid. Whether the files that it was done on have changed is not
    checked here: that needs their content (``validity.py``).
    """

    def __init__(self, find: Callable[[str], RecordedJob | None], unreadable: Iterable[str] = ()) -> None:
        self._find = find
        self._unreadable = frozenset(unreadable)
        self._states: dict[str, RecordedDependency] = {}

    def code(self, job: str, depends_on: tuple[str, ...]) -> GateCode | None:
        """The reason of the first dependency that is not done; None if all are."""
        for name in depends_on:
            if name == job:
                return GateCode.DEPENDENCY_CYCLE
            state = self._states.get(name) or self._state(name)
            if state != "done":
                return _CODES[state]
        return None

    def _state(self, name: str) -> RecordedDependency:
        """Iterative, because a chain of jobs may be longer than Python's stack."""
        path: list[tuple[str, tuple[str, ...], Iterator[str]]] = []
        following = None if name in self._states else name
        while following is not None or path:
            if following is not None:
                depends_on = self._enter(following)
                path.append((following, depends_on, iter(depends_on)))
            top, depends_on, rest = path[-1]
            following = next((dependency for dependency in rest if dependency not in self._states), None)
            if following is not None:
                continue
            path.pop()
            if any(self._states[dependency] != "done" for dependency in depends_on):
                self._states[top] = "invalid"
        return self._states[name]

    def _enter(self, name: str) -> tuple[str, ...]:
        """Note the state of a job by itself; return the dependencies that can make it invalid."""
        record = self._find(name)
        if record is None:
            self._states[name] = "unreadable" if name in self._unreadable else "missing"
            return ()
        if record.invalid:
            self._states[name] = "invalid"
            return ()
        self._states[name] = "done" if record.done else "open"
        return record.depends_on if record.done else ()
