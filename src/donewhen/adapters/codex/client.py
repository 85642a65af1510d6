"""How Codex is started for one prompt, with nothing but a model server on loopback."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from donewhen.adapters.agent_client import Api, ClientRoom, ClientStart, Outdated, TrustedHook, base_environment
from donewhen.adapters.diagnosis import Diagnosis
from donewhen.foundation.errors import DonewhenError

_CONFIG = """\
model = "scripted-model"
model_provider = "scripted"
check_for_update_on_startup = false
[model_providers.scripted]
name = "scripted"
base_url = {base_url}
wire_api = "responses"
env_key = "SCRIPTED_API_KEY"
request_max_retries = 0
stream_max_retries = 0
supports_websockets = false
[features]
plugins = false
apps = false
[analytics]
enabled = false
[feedback]
enabled = false
[otel]
exporter = "none"
metrics_exporter = "none"
trace_exporter = "none"
[projects.{project}]
trust_level = "trusted"
"""


class CodexClient:
    """Hooks run in the person's own shell, after they were trusted by their hash."""

    program = "codex"
    api: Api = "responses"
    switches: tuple[str, ...] = ()
    environment_key: str | None = None
    hook_variables: tuple[str, ...] = ()
    events_without_matcher = frozenset({"Stop"})
    run_keys: frozenset[str] = frozenset()
    longest_timeout: int | None = None
    check_options: tuple[str, ...] = ()
    project_hooks_below = True

    def shell(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        return (environ.get("SHELL") or "/bin/sh", "-lc")

    def too_old(self) -> Outdated | None:
        return None

    def start(self, program: str, room: ClientRoom, prompt: str) -> ClientStart:
        home = room.home / ".codex"
        home.mkdir(parents=True, exist_ok=True)
        # JSON's strings are TOML's basic strings.
        config = _CONFIG.format(base_url=json.dumps(f"{room.server}/v1"), project=json.dumps(str(room.project)))
        (home / "config.toml").write_text(config, encoding="utf-8")
        arguments = (
            program,
            "exec",
            "--skip-git-repo-check",
            "--sandbox",
            "danger-full-access",
            # Trust depends on the file's path, so that of the original says nothing here; trust() asks for it.
            "--dangerously-bypass-hook-trust",
            prompt,
        )
        environment = base_environment(room) | {"CODEX_HOME": str(home), "SCRIPTED_API_KEY": "dummy"}
        return ClientStart(arguments, environment)

    def trust(self, hook: TrustedHook, environ: Mapping[str, str]) -> Diagnosis | None:
        try:
            return _trust(hook.name, hook.command_line, hook.root)
        except DonewhenError as error:
            return Diagnosis(hook.name, "note", f"can't be checked here: {error}")


def _trust(name: str, command_line: str, root: Path) -> Diagnosis:
    from donewhen.adapters.codex.app_server import listed_hooks

    hooks = listed_hooks(root)
    if hooks is None:
        return Diagnosis(name, "note", "can't be checked here: codex is not on the PATH", "Look at /hooks in codex.")
    states = [hook for hook in hooks if hook.get("command") == command_line and hook.get("eventName") == "stop"]
    if not states:
        why = (
            "Codex does not load it: the project is not trusted, hooks are switched off in Codex's config.toml, or "
            "Codex rejects the file"
        )
        return Diagnosis(name, "broken", why, "Start codex in this folder and trust the project.")
    if all(hook.get("trustStatus") in ("trusted", "managed") and hook.get("enabled") for hook in states):
        return Diagnosis(name, "ok", "Codex trusts the hook and runs it")
    status = states[0].get("trustStatus") if states[0].get("enabled") else "switched off"
    return Diagnosis(
        name, "broken", f"Codex skips the hook: it is {status}", "Start codex, review the hooks, trust it."
    )
