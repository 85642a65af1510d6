"""How Copilot CLI is started for one prompt, without GitHub and with nothing but a model server on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from donewhen.adapters.agent_client import Api, ClientRoom, ClientStart, Outdated, TrustedHook, base_environment
from donewhen.adapters.diagnosis import Diagnosis


class CopilotClient:
    """Hooks are read from the files of a trusted folder, and run with ``bash``."""

    program = "copilot"
    api: Api = "messages"
    switches: tuple[str, ...] = ("disableAllHooks",)
    environment_key: str | None = None
    hook_variables: tuple[str, ...] = ()
    events_without_matcher = frozenset({"Stop", "SessionEnd"})
    run_keys = frozenset({"bash", "cwd", "env"})
    longest_timeout: int | None = None
    check_options: tuple[str, ...] = ()
    project_hooks_below = False

    def shell(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return ("bash", "-c")

    def too_old(self) -> Outdated | None:
        return None

    def start(self, program: str, room: ClientRoom, prompt: str) -> ClientStart:
        environment = base_environment(room) | {
            "COPILOT_OFFLINE": "true",
            "COPILOT_AUTO_UPDATE": "false",
            "COPILOT_PROVIDER_TYPE": "anthropic",
            "COPILOT_PROVIDER_BASE_URL": room.server,
            "COPILOT_PROVIDER_API_KEY": "dummy",
            "COPILOT_MODEL": "claude-sonnet-4.5",
        }
        # Trust is for this run only; whether the person trusts the real folder is not known here.
        options = ("--allow-all-tools", "--disable-builtin-mcps", "--no-auto-update", "--trust-folder")
        return ClientStart((program, *options, "-p", prompt), environment)

    def trust(self, hook: TrustedHook, environ: Mapping[str, str]) -> Diagnosis | None:
        if hook.is_users_own:
            return None
        home = environ.get("COPILOT_HOME")
        path = Path(home) if home else Path.home() / ".copilot"
        trusted = [Path(name) for name in _trusted_folders(path / "config.json")]
        if any(hook.root.resolve().is_relative_to(folder) for folder in trusted):
            return Diagnosis(hook.name, "ok", "Copilot CLI trusts this folder and runs its hooks")
        why = "Copilot CLI skips the hook: this folder is not trusted"
        advice = "Start copilot in this folder and trust it, or give --trust-folder."
        return Diagnosis(hook.name, "broken", why, advice)


def _trusted_folders(path: Path) -> list[str]:
    """The folders in Copilot's configuration, a JSON file with comment lines."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
        data = json.loads("\n".join(line for line in lines if not line.lstrip().startswith("//")))
    except (OSError, ValueError, RecursionError):
        return []
    found = [data.get(key) for key in ("trustedFolders", "trusted_folders")] if isinstance(data, dict) else []
    return [name for names in found if isinstance(names, list) for name in names if isinstance(name, str) and name]
