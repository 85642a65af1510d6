"""A checker that runs the checks of a stop as CI does: what judges comes from a base branch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from donewhen.completion.composite import CompositeChecker
from donewhen.completion.from_settings import checks_for
from donewhen.config import GuardSettings
from donewhen.filesystem.host import HostFilesystem
from donewhen.foundation.errors import ConfigError
from donewhen.protocols import TaskCompletionChecker, TaskCompletionContext, TaskCompletionResult


class BaseChecker:
    """The checks that a table of the settings has on a base branch, run in a room: the work comes from the checkout,
    settings, tests and the files that commands name from the base branch. Jobs are checked where they are."""

    def __init__(self, ref: str, table: str = "stop", *, jobs: bool = False) -> None:
        self.ref = ref
        self.table = table
        self.jobs = jobs
        self.name = f"[{table}] of {ref}"

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        from donewhen.jobs.verifying.guard_rooms import guard_rooms

        root = getattr(context.filesystem, "root", None)
        with guard_rooms(root if isinstance(root, Path) else Path.cwd(), self.ref, self.table) as rooms:
            guard: GuardSettings = getattr(rooms.settings, self.table)
            checkers = self._checkers(guard)
            if not checkers:
                raise ConfigError(
                    f"{self.table}.base is {self.ref}, but there are no checks in [{self.table}] on {self.ref}.",
                    next_step="Merge the settings there first, or remove base.",
                )
            required = guard.require_job == "on"
            results = [self._jobs(context, required)] if self.jobs or guard.jobs or required else []
            for label, folder in rooms.folders:
                inside = replace(context, filesystem=HostFilesystem(folder))
                result = CompositeChecker(checkers, collect_all=True).check(inside)
                if not result.complete:
                    return replace(result, feedback=f"{label}{result.feedback}")
                results.append(result)
            return next((result for result in results if not result.complete), results[-1])

    def _checkers(self, guard: GuardSettings) -> list[TaskCompletionChecker]:
        # Without the jobs, whose state is not in the room; and without a base of the base.
        return [
            checker
            for _, checker in checks_for(replace(guard, base=None, jobs=False, require_job="off"), self.ref, self.table)
        ]

    def _jobs(self, context: TaskCompletionContext, required: bool) -> TaskCompletionResult:
        from donewhen.completion.job_checker import JobChecker

        return JobChecker(require_job="ready" if required else False).check(context)
