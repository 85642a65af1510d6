"""Is a job that was done still done? What it was built on must be what it was, all the way up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.text import one_line
from donewhen.jobs.approval import Policy
from donewhen.jobs.facts import DependencyFact, DependencyState
from donewhen.jobs.history import History, history_of
from donewhen.jobs.inputs import declared_manifest, upstream_manifest
from donewhen.jobs.job import Job
from donewhen.jobs.workspace import Workspace


class Validity(NamedTuple):
    """How a job stands as a dependency; ``chain`` leads to the job at which it fails."""

    state: DependencyState
    chain: tuple[str, ...] = ()
    why: str = ""


class Validities:
    """Answers for many jobs, each looked at once; only jobs that are asked about and those above them are read."""

    def __init__(self, workspace: Workspace, policy: Policy) -> None:
        self._workspace = workspace
        self._policy = policy
        self._known: dict[str, Validity] = {}
        self._asking: list[str] = []

    def dependencies_of(self, job: Job) -> tuple[DependencyFact, ...]:
        """Each dependency of a job, with how it stands."""
        self._asking = [job.id]
        found = [(name, self.of(name)) for name in job.depends_on]
        return tuple(DependencyFact(name, one.state, (name, *one.chain), one.why) for name, one in found)

    def of(self, name: str) -> Validity:
        """How one job stands."""
        if name in self._asking:
            return Validity("cycle", (), " → ".join((*self._asking[self._asking.index(name) :], name)))
        if name not in self._known:
            self._asking.append(name)
            self._known[name] = self._looked_at(name)
            self._asking.pop()
        return self._known[name]

    def _looked_at(self, name: str) -> Validity:
        try:
            job = self._workspace.job(name)
        except UsageError:
            return Validity("missing")
        except DonewhenError as error:
            return Validity("invalid", (), one_line(str(error)))
        history = history_of(job.id, self._workspace.ledger.read(job.id).entries, self._policy)
        if history.status == "cancelled":
            return Validity("cancelled")
        if history.completed is None:
            return Validity("open")
        try:
            changed = changed_since(self._workspace, job, history)
        except DonewhenError as error:
            return Validity("invalid", (), one_line(str(error)))
        if changed:
            return Validity("invalid", (), f"{', '.join(changed)} changed after it was done")
        for above in job.depends_on:
            found = self.of(above)
            if found.state != "done":
                state: DependencyState = "cycle" if found.state == "cycle" else "invalid"
                return Validity(state, (above, *found.chain), found.why or f"{above} is {found.state}")
        return Validity("done")


def changed_since(workspace: Workspace, job: Job, history: History) -> tuple[str, ...]:
    """The declared inputs and upstream outputs that are not what they were when the job was completed."""
    if history.completed is None:
        return ()
    data = history.completed.data
    return (
        *_differing(data.get("upstream"), upstream_manifest(workspace, job).files),
        *_differing(data.get("declared"), declared_manifest(workspace, job).files),
    )


def _differing(before: object, now: Mapping[str, str]) -> tuple[str, ...]:
    old = before if isinstance(before, Mapping) else {}
    return tuple(sorted(name for name in {*old, *now} if old.get(name) != now.get(name)))
