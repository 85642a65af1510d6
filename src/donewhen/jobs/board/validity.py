"""Whether a completed job is still valid: its inputs and all its upstream jobs must be unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.contract.inputs import DeclaresFiles, declared_manifest, upstream_manifest
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Completed
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of

DependencyState = Literal["done", "open", "cancelled", "invalid", "missing", "cycle"]


class DependencyFact(NamedTuple):
    """A dependency of a job, its state, and the path of dependencies to the job that causes the state."""

    id: str
    state: DependencyState
    chain: tuple[str, ...]
    why: str = ""


@dataclass(frozen=True)
class Validity:
    """The state of a job as a dependency; ``chain`` is the path to the job that fails."""

    state: DependencyState
    chain: tuple[str, ...] = ()
    why: str = ""


class RecordedInputs(NamedTuple):
    """The files that a completed job was built on, with their hashes at that time."""

    upstream: Mapping[str, str | None]
    declared: Mapping[str, str | None]


class DependencyRecord(NamedTuple):
    """The fields of a job that matter to its dependent jobs."""

    path: Path
    depends_on: tuple[str, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    cancelled: bool
    completed: RecordedInputs | None
    """What it was built on, if its completion is still valid."""

    def line_of(self, field: str) -> int | None:
        """None: the plan file is not kept."""


class ValidityChecker:
    """Computes validity for many jobs and reads each once; only the requested jobs and their upstream jobs are read."""

    def __init__(
        self,
        workspace: Workspace,
        policy: Policy,
        *,
        places: Mapping[str, Path] | None = None,
        known: Mapping[str, DependencyRecord] | None = None,
    ) -> None:
        """``places`` are known plan files by job id (finding one reads every folder's name), ``known`` are jobs that
        were just read. A caller that decides passes no ``known`` jobs, so that they are read again."""
        self._workspace = workspace
        self._policy = policy
        self._places = places or {}
        self._jobs: dict[str, DependencyRecord] = dict(known or {})
        self._validities: dict[str, Validity] = {}
        self._in_progress: list[str] = []

    def dependencies_of(self, job: Job) -> tuple[DependencyFact, ...]:
        """Return each dependency of a job with its state."""
        self._in_progress = [job.id]
        validities = [(name, self.of(name)) for name in job.depends_on]
        self._in_progress = []
        return tuple(
            DependencyFact(name, validity.state, (name, *validity.chain), validity.why) for name, validity in validities
        )

    def of(self, name: str) -> Validity:
        """Return the validity of a job. Iterative, because a chain of jobs may be longer than Python's stack."""
        if name not in self._in_progress and name not in self._validities:
            waiting = [(name, self._enter(name))]
            while waiting:
                top, dependencies = waiting[-1]
                following = next(
                    (
                        dependency
                        for dependency in dependencies
                        if dependency not in self._validities and dependency not in self._in_progress
                    ),
                    None,
                )
                if following is not None:
                    waiting.append((following, self._enter(following)))
                    continue
                self._validities.setdefault(top, self._combined_validity(top))
                self._in_progress.remove(top)
                waiting.pop()
        return self._validity(name)

    def _validity(self, name: str) -> Validity:
        if name in self._in_progress:
            return Validity("cycle", (), " → ".join((*self._in_progress[self._in_progress.index(name) :], name)))
        return self._validities[name]

    def _enter(self, name: str) -> Iterator[str]:
        """Check a job by itself; return its dependencies if they still matter."""
        self._in_progress.append(name)
        own = self._own_validity(name)
        if own is not None:
            self._validities[name] = own
            return iter(())
        return iter(self._job(name).depends_on)

    def _own_validity(self, name: str) -> Validity | None:
        try:
            job = self._job(name)
        except UsageError:
            return Validity("missing")
        except DonewhenError as error:
            return Validity("invalid", (), one_line(str(error)))
        if job.cancelled:
            return Validity("cancelled")
        if job.completed is None:
            return Validity("open")
        try:
            changed = changed_since(self._workspace, job, job.completed, self._job)
        except DonewhenError as error:
            return Validity("invalid", (), one_line(str(error)))
        return Validity("invalid", (), f"{', '.join(changed)} changed after it was done") if changed else None

    def _combined_validity(self, name: str) -> Validity:
        if name in self._validities:
            return self._validities[name]
        for dependency in self._job(name).depends_on:
            validity = self._validity(dependency)
            if validity.state != "done":
                state: DependencyState = "cycle" if validity.state == "cycle" else "invalid"
                return Validity(
                    state, (dependency, *validity.chain), validity.why or f"{dependency} is {validity.state}"
                )
        return Validity("done")

    def _job(self, name: str) -> DependencyRecord:
        if name not in self._jobs:
            path = self._places.get(name)
            job = self._workspace.job(name) if path is None else self._workspace.job_at(path)
            history = history_of(job.id, self._workspace.ledger.read(job.id).entries, self._policy)
            self._jobs[name] = DependencyRecord(
                job.path,
                job.depends_on,
                job.outputs,
                job.inputs,
                history.status == "cancelled",
                inputs_at(history.completed),
            )
        return self._jobs[name]


def changed_since(
    workspace: Workspace,
    job: DeclaresFiles,
    completed: RecordedInputs,
    find: Callable[[str], DeclaresFiles] | None = None,
) -> tuple[str, ...]:
    """The declared inputs and upstream outputs that have changed since the job was completed."""
    return (
        *_differing(completed.upstream, upstream_manifest(workspace, job, find).files),
        *_differing(completed.declared, declared_manifest(workspace, job).files),
    )


def inputs_at(completed: Entry | None) -> RecordedInputs | None:
    """What a job was built on according to its completion."""
    if completed is None:
        return None
    completion = completed.read_as(Completed)
    return RecordedInputs(completion.upstream, completion.declared)


def _differing(before: Mapping[str, str | None], now: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in {*before, *now} if before.get(name) != now.get(name)))
