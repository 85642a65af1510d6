"""Whether the settings of the project can be used by the hooks."""

from __future__ import annotations

from pathlib import Path

from donewhen.adapters.diagnosis import Diagnosis
from donewhen.adapters.hook_targets import HOOK_TIMEOUT
from donewhen.completion.from_settings import checker_for
from donewhen.config import GuardSettings, load


def settings() -> Diagnosis:
    settings = load(Path.cwd())
    for table in ("stop", "subagent_stop", "task_completed"):
        guard: GuardSettings = getattr(settings, table)
        checker_for(guard, str(settings.source), table)
        if guard.check_timeout >= HOOK_TIMEOUT:
            return Diagnosis(
                "settings",
                "broken",
                f"check_timeout {guard.check_timeout:g} is not below the hooks' timeout {HOOK_TIMEOUT}: a runtime "
                "releases the agent when its hook times out",
                f"Lower check_timeout in {settings.source}.",
            )
    if not settings.stop.has_checks:
        return Diagnosis(
            "settings", "note", f"no checks for a stop are set up in {settings.root}", "Write a [stop] table."
        )
    return Diagnosis("settings", "ok", f"{settings.source} has checks for a stop")
