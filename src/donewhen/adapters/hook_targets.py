"""The hook files of each runtime, and our hooks in them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from donewhen.adapters.command_hooks import HookKind
from donewhen.adapters.hook_files import HookEntry
from donewhen.config.agent_runtimes import AgentRuntime, agent_runtime

Scope = Literal["user", "project"]

HOOK_TIMEOUT = 1800
"""In seconds. If a hook takes longer, the runtime lets the agent stop, so our own limit must be lower."""


@dataclass(frozen=True)
class HookTarget:
    """The data about a runtime that is needed to install hooks."""

    about: AgentRuntime
    events: tuple[tuple[str, HookKind, str | None], ...]
    """For each hook: the runtime's event, our name for it, and the tool that it is limited to."""
    positions_matter: bool = False

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def title(self) -> str:
        return self.about.title

    def path(self, scope: Scope, root: Path, environ: Mapping[str, str]) -> Path:
        """Return the settings file of this scope."""
        if scope == "project":
            return root / self.about.project_folder / self.about.hook_file
        home = environ.get(self.about.home_variable)
        return (Path(home) if home else Path.home() / self.about.project_folder) / self.about.hook_file

    def entries(self, scope: Scope, root: Path) -> tuple[HookEntry, ...]:
        """Return our hooks for the settings file of this scope."""
        return self.entries_for(self._program(scope, root))

    def entries_for(self, program: str) -> tuple[HookEntry, ...]:
        """Return our hooks, with ``program`` as the command for donewhen."""
        return tuple(
            HookEntry(event, _command_line(program, kind, self.name), HOOK_TIMEOUT, matcher)
            for event, kind, matcher in self.events
        )

    def _program(self, scope: Scope, root: Path) -> str:
        """Return the command for donewhen. A project's file is shared, so paths of one machine are avoided in it."""
        program = _this_program()
        if program is None:
            return f"{shlex.quote(sys.executable)} -m donewhen"
        if scope == "project":
            if self.about.project_variable is not None and program.is_relative_to(root):
                return f'"${self.about.project_variable}"/{shlex.quote(program.relative_to(root).as_posix())}'
            if shutil.which("donewhen") is not None:
                return "donewhen"
        return shlex.quote(str(program))


def _command_line(program: str, kind: str, runtime: str) -> str:
    # If a hook can't be run at all (status 127, a crash), runtimes let the agent stop. Status 2 with a reason holds it
    # back; only once, for users who have the settings but no working program.
    missing = "donewhen could not be run, so this stop is not verified. Install it, or remove its hooks."
    held = """printf %s "$e" | grep -q '"stop_hook_active": *true'"""
    answer = f'printf %s "$e" | {program} hook {kind} --runtime {runtime}'
    return f'e=$(cat); {answer} || {{ {held} && exit 0; echo "{missing}" >&2; exit 2; }}'


def _this_program() -> Path | None:
    """Return the program next to this Python or on the PATH; None if donewhen is only available as a module."""
    beside = Path(sys.executable).parent / "donewhen"
    if beside.is_file():
        return beside
    on_path = shutil.which("donewhen")
    return Path(on_path) if on_path else None


HOOK_TARGETS: dict[str, HookTarget] = {
    "claude": HookTarget(
        agent_runtime("claude"),
        events=(
            ("Stop", "stop", None),
            ("SubagentStop", "subagent-stop", None),
            ("TaskCompleted", "task-completed", None),
            ("PreToolUse", "pre-tool-use", "StructuredOutput"),
        ),
    ),
    "codex": HookTarget(
        agent_runtime("codex"),
        events=(("Stop", "stop", None), ("SubagentStop", "subagent-stop", None)),
        positions_matter=True,
    ),
}
