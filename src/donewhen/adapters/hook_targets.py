"""The hook files of each runtime, and our hooks in them."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from donewhen.adapters.agent_client import AgentClient
from donewhen.adapters.claude_code.client import ClaudeCodeClient
from donewhen.adapters.codex.client import CodexClient
from donewhen.adapters.command_hooks import END_KINDS, HookKind
from donewhen.adapters.copilot_cli.client import CopilotClient
from donewhen.adapters.gemini_cli.client import GeminiClient
from donewhen.adapters.hook_files import HookEntry
from donewhen.config.agent_runtimes import HOOK_SCRIPT, AgentRuntime, agent_runtime
from donewhen.config.hook_line import (
    HookLine,
    answering_hook_line,
    careful_hook_line,
    hook_line,
    hook_line_once_a_session,
    nearest_hook_line,
    program_in_project,
    script_below,
)
from donewhen.config.hook_script import script_for

Scope = Literal["user", "project"]

HOOK_TIMEOUT = 1800
"""In seconds. If a hook takes longer, the runtime lets the agent stop, so our own limit must be lower."""


@dataclass(frozen=True)
class HookTarget:
    """The data about a runtime that is needed to install hooks."""

    about: AgentRuntime
    events: tuple[tuple[str, HookKind, str | None], ...]
    """For each hook: the runtime's event, our name for it, and the tool that it is limited to."""
    client: AgentClient
    positions_matter: bool = False
    end_timeout: int = 60
    """In seconds, for the hooks that record an end: the runtime waits for them before it exits."""
    line: HookLine = hook_line
    """How the command line is written: what happens without a script depends on the runtime."""
    header: Mapping[str, Any] = field(default_factory=dict)
    """What the runtime expects in the file besides the hooks."""
    notice: str = ""
    """What a person has to do after the installation."""
    project_notice: str = ""
    """The same, only for a project's hooks."""

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
        about = self.about
        home = environ.get(about.home_variable)
        folder = Path(home, about.below_home_variable) if home else Path.home() / about.folder_in_home
        return folder / about.hook_file

    def script(self, scope: Scope, root: Path, environ: Mapping[str, str]) -> Path:
        """Return the script that the hooks of this scope start."""
        return self.path(scope, root, environ).parent / HOOK_SCRIPT

    def script_content(self, scope: Scope, root: Path) -> bytes:
        """Return the content of that script."""
        folder = self._script_in_project.removesuffix(f"/{HOOK_SCRIPT}") if scope == "project" else None
        return script_for(_program(scope, root), folder).encode()

    def entries(self, scope: Scope, root: Path, environ: Mapping[str, str]) -> tuple[HookEntry, ...]:
        """Return our hooks for the settings file of this scope."""
        if scope == "user":
            return self.entries_for(shlex.quote(str(self.script(scope, root, environ))))
        variable = self.about.project_variable
        if variable is None:
            return self._entries(nearest_hook_line, self._script_in_project)
        return self.entries_for(script_below(variable, self._script_in_project))

    def entries_for(self, script: str) -> tuple[HookEntry, ...]:
        """Return our hooks that start ``script``, a path in shell syntax."""
        return self._entries(self.line, script)

    def _entries(self, line: HookLine, script: str) -> tuple[HookEntry, ...]:
        units = self.about.timeouts_per_second
        return tuple(
            HookEntry(
                event,
                line(script, kind, self.name),
                units * (self.end_timeout if kind in END_KINDS else HOOK_TIMEOUT),
                tool,
            )
            for event, kind, tool in self.events
        )

    @property
    def _script_in_project(self) -> str:
        return self.path("project", Path(), {}).parent.joinpath(HOOK_SCRIPT).as_posix()


def _program(scope: Scope, root: Path) -> str:
    """Return the command for donewhen. A project's script is shared, so paths of one machine are avoided in it."""
    program = _this_program()
    if program is None:
        return f"{shlex.quote(sys.executable)} -m donewhen"
    if scope == "project":
        if program.is_relative_to(root):
            return program_in_project(program.relative_to(root).as_posix())
        if shutil.which("donewhen") is not None:
            return "donewhen"
    return shlex.quote(str(program))


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
            ("StopFailure", "stop-failure", None),
            ("SessionEnd", "session-end", None),
            ("SessionStart", "session-start", None),
        ),
        client=ClaudeCodeClient(),
    ),
    "codex": HookTarget(
        agent_runtime("codex"),
        events=(
            ("Stop", "stop", None),
            ("SubagentStop", "subagent-stop", None),
            ("SessionEnd", "session-end", None),
        ),
        client=CodexClient(),
        positions_matter=True,
        # Codex allows no more.
        end_timeout=3,
        # It has no cap of its own, and no variable with the project's folder.
        line=careful_hook_line,
        notice="Codex runs a hook only after you have trusted it: start `codex` once, choose to review the hooks, and "
        "trust this one. Until then it is skipped silently. `donewhen doctor` asks Codex whether it is trusted.",
        project_notice="A project's hooks also need the project itself to be trusted by Codex.",
    ),
    "gemini": HookTarget(
        agent_runtime("gemini"),
        events=(("AfterAgent", "stop", None), ("SessionEnd", "session-end", None)),
        client=GeminiClient(),
        # It would ask for ever: `stop_hook_active` is false again as soon as a tool ran.
        line=hook_line_once_a_session("GEMINI_SESSION_ID"),
    ),
    "copilot": HookTarget(
        agent_runtime("copilot"),
        events=(
            ("Stop", "stop", None),
            ("SubagentStop", "subagent-stop", None),
            ("SessionEnd", "session-end", None),
        ),
        client=CopilotClient(),
        line=answering_hook_line,
        header={"version": 1},
        project_notice="Copilot CLI runs a project's hooks only in a folder that you trust: start `copilot` here once "
        "and trust it, or give --trust-folder. Until then they are skipped silently.",
    ),
}
