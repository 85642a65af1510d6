"""The agent runtimes that donewhen supports: how each is detected, and which project files contain its hooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

HOOK_SCRIPT = "donewhen/hook"
"""The script that hooks start, relative to the folder of the settings file: runtimes protect that folder."""


class AgentRuntime(NamedTuple):
    """An agent runtime."""

    name: str
    title: str
    programs: tuple[str, ...]
    """The names of its programs, to detect it among the ancestor processes."""
    variables: tuple[str, ...]
    """Environment variables that it sets for its agents' commands; any of them identifies it."""
    session_variable: str = ""
    """The one of them that has the id of the session."""
    project_folder: str = ""
    hook_file: str = ""
    """The shared file in ``project_folder`` that contains the hooks; empty if the runtime has none."""
    local_hook_files: tuple[str, ...] = ()
    """Files beside it with a user's local settings."""
    home_variable: str = ""
    """The variable that names the folder of the user's settings (default: ``project_folder`` in the home folder)."""
    project_variable: str | None = None
    """The variable that contains the project's folder in a hook's command line."""
    user_folder: str = ""
    """The folder of the user's hook file in the home folder (default: ``project_folder``)."""
    below_home_variable: str = ""
    """The same in the folder that ``home_variable`` names."""
    timeouts_per_second: int = 1
    """The unit of a hook's timeout in the file: 1000 for milliseconds."""
    off_switches: tuple[tuple[str, bool], ...] = (("disableAllHooks", True),)
    """Settings that switch all hooks off: the path of the key, and the value that does it."""
    switch_files: tuple[str, ...] = ()
    """Other project files in which these settings have an effect."""
    disabled_hooks: str | None = None
    """The path of a key with the names or the command lines of hooks that are disabled."""
    managed_files: tuple[str, ...] = ()
    """Patterns of the files with the settings of this machine's administrator."""
    managed_switches: tuple[tuple[str, bool], ...] = ()
    """Further settings that switch a project's or a person's hooks off, in those files only."""

    @property
    def folder_in_home(self) -> str:
        return self.user_folder or self.project_folder


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
        managed_files=tuple(
            f"{folder}/{name}"
            for folder in ("/etc/claude-code", "/Library/Application Support/ClaudeCode")
            for name in ("managed-settings.json", "managed-settings.d/*.json")
        ),
        managed_switches=(("allowManagedHooksOnly", True),),
    ),
    AgentRuntime(
        "codex",
        "Codex",
        programs=("codex",),
        variables=("CODEX_SANDBOX", "CODEX_THREAD_ID"),
        session_variable="CODEX_THREAD_ID",
        project_folder=".codex",
        hook_file="hooks.json",
        home_variable="CODEX_HOME",
    ),
    AgentRuntime(
        "gemini",
        "Gemini CLI",
        programs=("gemini",),
        variables=("GEMINI_CLI",),
        project_folder=".gemini",
        hook_file="settings.json",
        home_variable="GEMINI_CLI_HOME",
        below_home_variable=".gemini",
        project_variable="GEMINI_PROJECT_DIR",
        timeouts_per_second=1000,
        off_switches=(("hooksConfig.enabled", False),),
        disabled_hooks="hooksConfig.disabled",
        managed_files=("/etc/gemini-cli/settings.json", "/Library/Application Support/GeminiCli/settings.json"),
    ),
    AgentRuntime(
        "copilot",
        "Copilot CLI",
        programs=("copilot",),
        variables=("COPILOT_CLI",),
        project_folder=".github/hooks",
        hook_file="donewhen.json",
        home_variable="COPILOT_HOME",
        project_variable="COPILOT_PROJECT_DIR",
        user_folder=".copilot/hooks",
        below_home_variable="hooks",
        switch_files=(
            ".github/copilot/settings.json",
            ".github/copilot/settings.local.json",
            ".claude/settings.json",
            ".claude/settings.local.json",
        ),
    ),
    AgentRuntime("cursor", "Cursor", programs=("cursor-agent",), variables=("CURSOR_AGENT",)),
)

RUNTIMES_WITH_HOOKS = tuple(runtime for runtime in AGENT_RUNTIMES if runtime.hook_file)
HOOK_RUNTIMES = tuple(runtime.name for runtime in RUNTIMES_WITH_HOOKS)
"""The runtimes whose hooks donewhen supports."""
AGENT_VARIABLES = (*(name for runtime in AGENT_RUNTIMES for name in runtime.variables), "AI_AGENT", "DONEWHEN_AGENT")
"""Variables that show that an agent runs a command; the last two belong to no particular runtime."""
AGENT_PROGRAMS = frozenset(program for runtime in AGENT_RUNTIMES for program in runtime.programs)
PROJECT_HOOK_FILES = tuple(f"{runtime.project_folder}/{runtime.hook_file}" for runtime in RUNTIMES_WITH_HOOKS)
"""The project files that may contain donewhen's hooks."""
TIMEOUTS_PER_SECOND = {
    f"{runtime.project_folder}/{runtime.hook_file}": runtime.timeouts_per_second for runtime in RUNTIMES_WITH_HOOKS
}
"""The unit of the timeouts in each of these files."""
PROJECT_HOOK_SCRIPTS = tuple(f"{file.rpartition('/')[0]}/{HOOK_SCRIPT}" for file in PROJECT_HOOK_FILES)
"""The scripts that those hooks start."""
LOCAL_HOOK_FILES = tuple(
    f"{runtime.project_folder}/{name}" for runtime in RUNTIMES_WITH_HOOKS for name in runtime.local_hook_files
)


def files_with_switches(runtime: AgentRuntime) -> tuple[str, ...]:
    """The project files in which a runtime's hooks can be switched off."""
    own = (runtime.hook_file, *runtime.local_hook_files)
    return (*(f"{runtime.project_folder}/{name}" for name in own), *runtime.switch_files)


def agent_runtime(name: str) -> AgentRuntime:
    """The runtime with this name. Raise KeyError if there is none."""
    return {runtime.name: runtime for runtime in AGENT_RUNTIMES}[name]


def off_switches(data: Mapping[str, Any], runtime: AgentRuntime) -> tuple[str, ...]:
    """The settings in a file that switch all hooks of a runtime off. Any other value than the harmless one counts."""
    return _switched(data, runtime.off_switches)


def managed_off_switches(data: Mapping[str, Any], runtime: AgentRuntime) -> tuple[str, ...]:
    """The same in a file of the machine's administrator."""
    return _switched(data, (*runtime.off_switches, *runtime.managed_switches))


def _switched(data: Mapping[str, Any], switches: tuple[tuple[str, bool], ...]) -> tuple[str, ...]:
    return tuple(path for path, off in switches if value_at(data, path) not in (None, not off))


def value_at(data: Mapping[str, Any], path: str) -> object:
    """The value at a path of keys, such as ``a.b``; None if there is none."""
    value: object = data
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return value
