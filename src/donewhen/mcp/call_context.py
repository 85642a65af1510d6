"""The context of one tool call: the project folder and the progress callback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.requirements import Requirement, is_runnable, requirements_of
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace

ProgressReporter = Callable[[int, int, str], None]


class CallContext(NamedTuple):
    """What a tool gets besides its arguments. The project is always the server's."""

    folder: Path
    on_progress: ProgressReporter = lambda done, of, what: None

    def workspace(self) -> Workspace:
        """Find the project again: it may have been created after the server was started."""
        return find_workspace(self.folder)

    def progress(self, job: Job) -> Callable[[Requirement], None]:
        """Return a callback that reports progress for a job, and raises if the client has cancelled."""
        total = sum(is_runnable(requirement) for requirement in requirements_of(job))
        done = 0

        def on_progress(requirement: Requirement) -> None:
            nonlocal done
            raise_if_cancelled()
            self.on_progress(min(done, total), total, one_line(f"{requirement.name}: {requirement.evidence}"))
            done += 1

        return on_progress
