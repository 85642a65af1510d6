"""One call of a tool: where it looks, and how it says how far it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.cancellation import go_on
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.evidence.requirements import Need, needs
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace

Tell = Callable[[int, int, str], None]


class Call(NamedTuple):
    """What a tool has besides its arguments. The project is the server's, whatever a client asks for."""

    folder: Path
    tell: Tell = lambda done, of, what: None

    def workspace(self) -> Workspace:
        """The project, looked for anew: it may have been made since the server was started."""
        return find_workspace(self.folder)

    def progress(self, job: Job) -> Callable[[Need], None]:
        """Says what is being looked at for a job, and begins nothing for a client that has given up."""
        total = sum(can_be_run(one) for one in needs(job))
        done = 0

        def tell(need: Need) -> None:
            nonlocal done
            go_on()
            self.tell(min(done, total), total, one_line(f"{need.name}: {need.evidence}"))
            done += 1

        return tell


def can_be_run(need: Need) -> bool:
    """Whether the gate itself can look, rather than a person."""
    return need.check.kind not in ("manual", "verification")
