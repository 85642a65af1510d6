"""The states of many jobs by their records. No gates are evaluated and no files of the jobs are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Literal, NamedTuple

from donewhen.jobs.board.job_state import JobState, in_context, own_state
from donewhen.jobs.board.survey import JobRecord, Survey
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
            state = self._state(name)
            if state != "done":
                return _CODES[state]
        return None

    def _state(self, name: str) -> RecordedDependency:
        """Iterative, because a chain of jobs may be longer than Python's stack."""
        path: list[tuple[str, Iterator[str]]] = []
        if name not in self._states:
            path.append((name, self._enter(name)))
        while path:
            top, rest = path[-1]
            following = next((dependency for dependency in rest if dependency not in self._states), None)
            if following is not None:
                path.append((following, self._enter(following)))
                continue
            path.pop()
            record = self._find(top)
            if self._states[top] == "done" and record is not None:
                sound = all(self._states[dependency] == "done" for dependency in record.depends_on)
                self._states[top] = "done" if sound else "invalid"
        return self._states[name]

    def _enter(self, name: str) -> Iterator[str]:
        """Note the state of a job by itself; return the dependencies that still matter."""
        record = self._find(name)
        if record is None:
            self._states[name] = "unreadable" if name in self._unreadable else "missing"
            return iter(())
        self._states[name] = "done" if record.done else "open"
        return iter(record.depends_on if record.done else ())


def survey_states(survey: Survey) -> dict[str, JobState]:
    """The state of every job of a survey, as far as it is recorded (see ``recorded_state``)."""
    by_id = {job.id: job for job in survey.jobs}

    def find(name: str) -> RecordedJob | None:
        job = by_id.get(name)
        return None if job is None else RecordedJob(job.known.completed, job.depends_on)

    dependencies = RecordedDependencies(find, survey.unreadable)
    return {
        job.id: in_context(
            job.id, survey_own_state(job), survey.project_agreement, dependencies.code(job.id, job.depends_on)
        )
        for job in survey.jobs
    }


def survey_own_state(job: JobRecord) -> JobState:
    """The state of a surveyed job by itself."""
    return own_state(job.id, job.known, job.max_iterations, job.agreement, tampered=bool(job.tampered))
