"""One call of a tool: where it looks, and how it says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.requirements import Requirement, requirements_of
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace

Tell = Callable[[int, int, str], None]


class CallContext(NamedTuple):
    """What a tool has besides its arguments. The project is the server's, whatever a client asks for."""

    folder: Path
    on_progress: Tell = lambda done, of, what: None

    def workspace(self) -> Workspace:
        """The project, looked for anew: it may have been made since the server was started."""
        return find_workspace(self.folder)

    def progress(self, job: Job) -> Callable[[Requirement], None]:
        """Says what is being looked at for a job, and begins nothing for a client that has given up."""
        total = sum(is_runnable(requirement) for requirement in requirements_of(job))
        done = 0

        def on_progress(requirement: Requirement) -> None:
            nonlocal done
            raise_if_cancelled()
            self.on_progress(min(done, total), total, one_line(f"{requirement.name}: {requirement.evidence}"))
            done += 1

        return on_progress


def is_runnable(requirement: Requirement) -> bool:
    """Whether the gate itself can look, rather than a person."""
    return requirement.check.kind not in ("manual", "verification")
