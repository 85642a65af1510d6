"""The agent runtimes that donewhen knows: how each is recognised, and in which files of a project its hooks stand."""

from __future__ import annotations

from typing import NamedTuple


class AgentRuntime(NamedTuple):
    """One agent runtime."""

    name: str
    title: str
    programs: tuple[str, ...]
    """The names of its programs, by which an ancestor process is recognised."""
    variables: tuple[str, ...]
    """It sets one of these for the commands that its agents run."""
    project_folder: str = ""
    hook_file: str = ""
    """The file in ``project_folder`` that a project shares and that holds its hooks; empty where none is installed."""
    local_hook_files: tuple[str, ...] = ()
    """Files beside it that one person keeps for themselves."""
    home_variable: str = ""
    """The variable that names the folder of a user's own settings; by default it is ``project_folder`` at home."""
    project_variable: str | None = None
    """The variable by which a hook's command line can name the project's folder."""


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

_HOOKED = tuple(runtime for runtime in AGENT_RUNTIMES if runtime.hook_file)
HOOK_RUNTIMES = tuple(runtime.name for runtime in _HOOKED)
"""The runtimes whose hooks donewhen can answer."""
AGENT_VARIABLES = (*(name for runtime in AGENT_RUNTIMES for name in runtime.variables), "AI_AGENT", "DONEWHEN_AGENT")
"""Variables that tell a command that an agent runs it; the last two belong to no runtime in particular."""
AGENT_PROGRAMS = frozenset(program for runtime in AGENT_RUNTIMES for program in runtime.programs)
PROJECT_HOOK_FILES = tuple(f"{runtime.project_folder}/{runtime.hook_file}" for runtime in _HOOKED)
"""The files of a project in which hooks of ours may stand."""
LOCAL_HOOK_FILES = tuple(f"{runtime.project_folder}/{name}" for runtime in _HOOKED for name in runtime.local_hook_files)


def agent_runtime(name: str) -> AgentRuntime:
    """The runtime of this name; KeyError where there is none."""
    return {runtime.name: runtime for runtime in AGENT_RUNTIMES}[name]
