"""How Gemini CLI is started for one prompt, with nothing but a model server on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from donewhen.adapters.agent_client import Api, ClientRoom, ClientStart, Outdated, TrustedHook, base_environment
from donewhen.adapters.diagnosis import Diagnosis

_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
    "privacy": {"usageStatisticsEnabled": False},
    "telemetry": {"enabled": False},
    "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
}


class GeminiClient:
    """Hooks are read from two files, and run with ``bash``."""

    program = "gemini"
    api: Api = "gemini"
    switches: tuple[str, ...] = ("hooksConfig",)
    environment_key: str | None = None
    hook_variables: tuple[str, ...] = ()
    events_without_matcher: frozenset[str] = frozenset()
    run_keys = frozenset({"env"})
    # The longest timer of its JavaScript engine, in milliseconds.
    longest_timeout: int | None = 2**31 - 1
    check_options: tuple[str, ...] = ()
    project_hooks_below = False

    def shell(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return ("bash", "-c")

    def too_old(self) -> Outdated | None:
        return None

    def start(self, program: str, room: ClientRoom, prompt: str) -> ClientStart:
        folder = room.home / ".gemini"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / "settings.json"
        own = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        path.write_text(json.dumps(own | _SETTINGS), encoding="utf-8")
        environment = base_environment(room) | {
            "GEMINI_API_KEY": "dummy",
            "GOOGLE_GEMINI_BASE_URL": room.server,
            "GEMINI_TELEMETRY_ENABLED": "false",
            "GEMINI_CLI_NO_RELAUNCH": "true",
        }
        return ClientStart((program, "-m", "gemini-2.5-flash", "--yolo", "-p", prompt), environment)

    def trust(self, hook: TrustedHook, environ: Mapping[str, str]) -> Diagnosis | None:
        if hook.is_users_own:
            return None
        home = Path(environ.get("GEMINI_CLI_HOME") or Path.home()) / ".gemini"
        rules = _read(home / "trustedFolders.json")
        root = hook.root.resolve()
        refused = [name for name, rule in rules.items() if rule == "DO_NOT_TRUST" and root.is_relative_to(name)]
        if not refused:
            return None
        why = f"Gemini CLI does not load the hooks of this folder: {refused[0]} is not trusted"
        return Diagnosis(hook.name, "broken", why, "Start gemini in this folder and trust it with /permissions.")


def _read(path: Path) -> dict[str, object]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
