"""Is a job that was done still done? What it was built on must be what it was, all the way up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.contract.inputs import DeclaresFiles, declared_manifest, upstream_manifest
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of

DependencyState = Literal["done", "open", "cancelled", "invalid", "missing", "cycle"]


class DependencyFact(NamedTuple):
    """A job that has to be done before, and through which others it matters."""

    id: str
    state: DependencyState
    chain: tuple[str, ...]
    why: str = ""


class Validity(NamedTuple):
    """How a job stands as a dependency; ``chain`` leads to the job at which it fails."""

    state: DependencyState
    chain: tuple[str, ...] = ()
    why: str = ""


class DependencyRecord(NamedTuple):
    """All of a job that matters to what is built on it."""

    path: Path
    depends_on: tuple[str, ...]
    outputs: tuple[str, ...]
    inputs: tuple[str, ...]
    cancelled: bool
    completed: Mapping[str, Any] | None
    """The contents that it was completed with, where that completion stands."""

    def line_of(self, field: str) -> int | None:
        """Not known: plan files are not kept."""


class ValidityChecker:
    """Answers for many jobs, each looked at once; only jobs that are asked about and those above them are read."""

    def __init__(
        self,
        workspace: Workspace,
        policy: Policy,
        *,
        places: Mapping[str, Path] | None = None,
        known: Mapping[str, DependencyRecord] | None = None,
    ) -> None:
        """By id: the plan files, where they are known (looking one up reads every folder's name), and the jobs that
        somebody has just looked at. Whoever decides gives none of the latter, and reads them."""
        self._workspace = workspace
        self._policy = policy
        self._places = places or {}
        self._jobs: dict[str, DependencyRecord] = dict(known or {})
        self._known: dict[str, Validity] = {}
        self._asking: list[str] = []

    def dependencies_of(self, job: Job) -> tuple[DependencyFact, ...]:
        """Each dependency of a job, with how it stands."""
        self._asking = [job.id]
        found = [(name, self.of(name)) for name in job.depends_on]
        self._asking = []
        return tuple(DependencyFact(name, one.state, (name, *one.chain), one.why) for name, one in found)

    def of(self, name: str) -> Validity:
        """How one job stands. Without recursion: a chain of jobs may be longer than Python's stack."""
        if name not in self._asking and name not in self._known:
            waiting = [(name, self._begin(name))]
            while waiting:
                top, above = waiting[-1]
                following = next((one for one in above if one not in self._known and one not in self._asking), None)
                if following is not None:
                    waiting.append((following, self._begin(following)))
                    continue
                self._known.setdefault(top, self._from_above(top))
                self._asking.remove(top)
                waiting.pop()
        return self._answer(name)

    def _answer(self, name: str) -> Validity:
        if name in self._asking:
            return Validity("cycle", (), " → ".join((*self._asking[self._asking.index(name) :], name)))
        return self._known[name]

    def _begin(self, name: str) -> Iterator[str]:
        """Look at a job by itself; what is above it, where that still matters."""
        self._asking.append(name)
        alone = self._alone(name)
        if alone is not None:
            self._known[name] = alone
            return iter(())
        return iter(self._job(name).depends_on)

    def _alone(self, name: str) -> Validity | None:
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

    def _from_above(self, name: str) -> Validity:
        if name in self._known:
            return self._known[name]
        for above in self._job(name).depends_on:
            found = self._answer(above)
            if found.state != "done":
                state: DependencyState = "cycle" if found.state == "cycle" else "invalid"
                return Validity(state, (above, *found.chain), found.why or f"{above} is {found.state}")
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
                history.completed.data if history.completed is not None else None,
            )
        return self._jobs[name]


def changed_since(
    workspace: Workspace,
    job: DeclaresFiles,
    completed: Mapping[str, Any],
    find: Callable[[str], DeclaresFiles] | None = None,
) -> tuple[str, ...]:
    """The declared inputs and upstream outputs that are not what they were when the job was completed."""
    return (
        *_differing(completed.get("upstream"), upstream_manifest(workspace, job, find).files),
        *_differing(completed.get("declared"), declared_manifest(workspace, job).files),
    )


def _differing(before: object, now: Mapping[str, str]) -> tuple[str, ...]:
    old = before if isinstance(before, Mapping) else {}
    return tuple(sorted(name for name in {*old, *now} if old.get(name) != now.get(name)))
