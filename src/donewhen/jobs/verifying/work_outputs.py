"""The agreed outputs of jobs as patterns of names in the repository."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from donewhen.foundation.errors import ConfigError
from donewhen.jobs.contract.inputs import locate_path
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.base_branch import Base


@dataclass(frozen=True)
class WorkOutputs:
    """The agreed outputs of some jobs: they are work, and judge nothing."""

    patterns: tuple[tuple[str, ...], ...] = ()
    """The parts of each path, which may be patterns."""

    def has(self, name: str) -> bool:
        """Whether a file is an output, or is below one."""
        parts = tuple(name.split("/"))
        return any(_matches(parts, pattern) for pattern in self.patterns)


def outputs_of(base: Base, tree: Workspace, jobs: Iterable[Job]) -> WorkOutputs:
    """The outputs of these jobs; one that leads out of the project is left out."""
    patterns: list[tuple[str, ...]] = []
    for job in jobs:
        for output in job.outputs:
            with suppress(ConfigError):
                patterns.append(tuple(in_repository(base, tree, job, output).split("/")))
    return WorkOutputs(tuple(patterns))


def in_repository(base: Base, tree: Workspace, job: Job, path: str) -> str:
    """Convert a path of a plan file to a name in the repository."""
    return f"{base.inside}{tree.where(locate_path(tree, job, path, 'outputs'))}"


def _matches(name: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    """Whether a file matches an output pattern or is below it. ``*`` does not cross folders; ``**`` does."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_matches(name[skipped:], pattern[1:]) for skipped in range(len(name)))
    return (
        bool(name) and (name[0] == pattern[0] or fnmatchcase(name[0], pattern[0])) and _matches(name[1:], pattern[1:])
    )
