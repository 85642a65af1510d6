"""How Claude Code is started for one prompt, with nothing but a model server on loopback."""

from __future__ import annotations

from collections.abc import Mapping

from donewhen.adapters.agent_client import Api, ClientRoom, ClientStart, Outdated, TrustedHook, base_environment
from donewhen.adapters.claude_code.version import KNOWS_EVERY_EVENT, too_old_version
from donewhen.adapters.diagnosis import Diagnosis


class ClaudeCodeClient:
    """Hooks are read from three files, and run with ``sh``; there is no trust in print mode."""

    program = "claude"
    api: Api = "messages"
    switches: tuple[str, ...] = ("disableAllHooks",)
    environment_key: str | None = "env"
    hook_variables: tuple[str, ...] = (
        "CLAUDE_CODE_SIMPLE",
        "CLAUDE_CODE_SAFE_MODE",
        "CLAUDE_CODE_SHELL",
        "CLAUDE_CODE_SHELL_PREFIX",
    )
    events_without_matcher = frozenset({"Stop"})
    run_keys = frozenset({"args", "shell"})
    longest_timeout: int | None = None
    check_options: tuple[str, ...] = ("--bare",)
    project_hooks_below = False

    def shell(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return ("/bin/sh", "-c")

    def too_old(self) -> Outdated | None:
        version = too_old_version()
        if version is None:
            return None
        needed = ".".join(map(str, KNOWS_EVERY_EVENT))
        return Outdated(
            f"Claude Code {version} does not know all events, so it ignores the whole file: no hook in it runs.",
            f"Update Claude Code to {needed} or later.",
        )

    def start(self, program: str, room: ClientRoom, prompt: str) -> ClientStart:
        environment = base_environment(room) | {
            "ANTHROPIC_API_KEY": "sk-ant-dummy",
            "ANTHROPIC_BASE_URL": room.server,
            "CLAUDE_CODE_MAX_RETRIES": "0",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_ERROR_REPORTING": "1",
            "DISABLE_AUTOUPDATER": "1",
            # It refuses to work for root outside of a sandbox.
            "IS_SANDBOX": "1",
        }
        return ClientStart((program, "-p", prompt), environment)

    def trust(self, hook: TrustedHook, environ: Mapping[str, str]) -> Diagnosis | None:
        return None
