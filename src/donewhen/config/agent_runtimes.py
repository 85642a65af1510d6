"""The agent runtimes that donewhen supports: how each is detected, and which project files contain its hooks."""

from __future__ import annotations

from typing import NamedTuple


class AgentRuntime(NamedTuple):
    """An agent runtime."""

    name: str
    title: str
    programs: tuple[str, ...]
    """The names of its programs, to detect it among the ancestor processes."""
    variables: tuple[str, ...]
    """Environment variables that it sets for its agents' commands; any of them identifies it."""
    project_folder: str = ""
    hook_file: str = ""
    """The shared file in ``project_folder`` that contains the hooks; empty if the runtime has none."""
    local_hook_files: tuple[str, ...] = ()
    """Files beside it with a user's local settings."""
    home_variable: str = ""
    """The variable that names the folder of the user's settings (default: ``project_folder`` in the home folder)."""
    project_variable: str | None = None
    """The variable that contains the project's folder in a hook's command line."""


AGENT_RUNTIMES = (
    AgentRuntime(
        "claude",
        "Claude Code",
        programs=("claude",),
        variables=("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"),
        project_folder=".claude",
        hook_file="settings.json",
        local_hook_files=("settings.local.json",),
        home_variable="CLAUDE_CONFIG_DIR",
        project_variable="CLAUDE_PROJECT_DIR",
    ),
    AgentRuntime(
        "codex",
        "Codex",
        programs=("codex",),
        variables=("CODEX_SANDBOX", "CODEX_THREAD_ID"),
        project_folder=".codex",
        hook_file="hooks.json",
        home_variable="CODEX_HOME",
    ),
    AgentRuntime("cursor", "Cursor", programs=("cursor-agent",), variables=("CURSOR_AGENT",)),
    AgentRuntime("gemini", "Gemini CLI", programs=("gemini",), variables=("GEMINI_CLI",)),
)

_RUNTIMES_WITH_HOOKS = tuple(runtime for runtime in AGENT_RUNTIMES if runtime.hook_file)
HOOK_RUNTIMES = tuple(runtime.name for runtime in _RUNTIMES_WITH_HOOKS)
"""The runtimes whose hooks donewhen supports."""
AGENT_VARIABLES = (*(name for runtime in AGENT_RUNTIMES for name in runtime.variables), "AI_AGENT", "DONEWHEN_AGENT")
"""Variables that show that an agent runs a command; the last two belong to no particular runtime."""
AGENT_PROGRAMS = frozenset(program for runtime in AGENT_RUNTIMES for program in runtime.programs)
PROJECT_HOOK_FILES = tuple(f"{runtime.project_folder}/{runtime.hook_file}" for runtime in _RUNTIMES_WITH_HOOKS)
"""The project files that may contain donewhen's hooks."""
LOCAL_HOOK_FILES = tuple(
    f"{runtime.project_folder}/{name}" for runtime in _RUNTIMES_WITH_HOOKS for name in runtime.local_hook_files
)


def agent_runtime(name: str) -> AgentRuntime:
    """The runtime with this name. Raise KeyError if there is none."""
    return {runtime.name: runtime for runtime in AGENT_RUNTIMES}[name]
