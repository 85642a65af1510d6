"""Does donewhen work on this machine? Things are tried, not only looked at."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal

import click

from donewhen import __version__
from donewhen.adapters.command_hooks import CANARY
from donewhen.adapters.hook_files import installed
from donewhen.adapters.installing import HOOK_TIMEOUT, RUNTIMES, Scope
from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.completion.configured import checker_for
from donewhen.config import load
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.files import write_atomically
from donewhen.foundation.process import run_command
from donewhen.foundation.text import one_line

Health = Literal["ok", "note", "broken"]

_ROOMS = (
    "completion",
    "runtime",
    "filesystem",
    "prompt",
    "contrib.tools.planning",
    "adapters.claude_agent_sdk",
    "testing",
)
_EXTRAS = {"claude": "claude-agent-sdk"}
_MARKS: dict[Health, tuple[str, str | None]] = {"ok": ("✓", "green"), "note": ("·", None), "broken": ("✗", "red")}


@dataclass(frozen=True)
class Diagnosis:
    """One thing that was tried."""

    name: str
    health: Health
    detail: str
    next: str | None = None


@click.command()
@common_options
@click.pass_obj
def command(output: Output) -> ExitCode:
    """Try what donewhen needs on this machine, and say what is missing."""
    with output.progress("trying things"):
        found = [_tried(examine) for examine in _EXAMINATIONS] + _tried_hooks()
    width = max(len(one.name) for one in found)
    for one in found:
        mark, color = _MARKS[one.health]
        output.say(f"{mark} {one.name.ljust(width)}  {one.detail}", fg=color)
        if one.next:
            output.say(f"  {' ' * width}  next: {one.next}", dim=True)
    broken = [one for one in found if one.health == "broken"]
    output.say()
    output.say(f"{len(broken)} problem(s) found." if broken else "Everything that donewhen needs is here.", bold=True)
    findings = [Finding(f"doctor_{one.name.replace(' ', '_')}", one.detail, next=one.next) for one in broken]
    status = ExitCode.GATE_FAILED if broken else ExitCode.PASS
    return output.finish(status, {"diagnoses": [asdict(one) for one in found]}, findings)


def _tried(examine: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return examine()
    except Exception as error:  # noqa: BLE001 - a broken machine is what a doctor is for
        name = examine.__name__.strip("_").replace("_", " ")
        return Diagnosis(name, "broken", f"{type(error).__name__}: {error}")


def _tried_hooks() -> list[Diagnosis]:
    try:
        return _hooks_fire()
    except Exception as error:  # noqa: BLE001 - as above
        return [Diagnosis("hooks", "broken", f"{type(error).__name__}: {error}")]


def _python() -> Diagnosis:
    version = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    return Diagnosis("python", "ok", version)


def _package() -> Diagnosis:
    for room in _ROOMS:
        import_module(f"donewhen.{room}")
    folder = Path(import_module("donewhen").__path__[0])
    return Diagnosis("package", "ok", f"donewhen {__version__}, complete, in {folder}")


def _dependencies() -> Diagnosis:
    names = ("click", "msgspec", "rich")
    return Diagnosis("dependencies", "ok", ", ".join(f"{name} {metadata.version(name)}" for name in names))


def _extras() -> Diagnosis:
    installed = []
    missing = []
    for extra, distribution in _EXTRAS.items():
        try:
            installed.append(f"{extra} ({distribution} {metadata.version(distribution)})")
        except metadata.PackageNotFoundError:
            missing.append(extra)
    detail = f"installed: {', '.join(installed) or 'none'}; optional and not installed: {', '.join(missing) or 'none'}"
    advice = f"pip install 'donewhen[{missing[0]}]', if you want it" if missing else None
    return Diagnosis("extras", "note", detail, advice)


def _commands() -> Diagnosis:
    ran = run_command([sys.executable, "-c", "print('ran')"], cwd=Path.cwd(), timeout=60)
    if not (ran.succeeded and ran.output == "ran\n"):
        return Diagnosis("commands", "broken", f"a test command failed with exit status {ran.exit_code}")
    hung = run_command([sys.executable, "-c", "import time; time.sleep(60)"], cwd=Path.cwd(), timeout=0.2)
    if hung.ending != "timed_out":
        return Diagnosis("commands", "broken", "a command that hangs could not be stopped")
    return Diagnosis("commands", "ok", "one was run, and one that hung was killed")


def _files() -> Diagnosis:
    with tempfile.TemporaryDirectory(prefix="donewhen-doctor-") as folder:
        path = Path(folder, "file")
        write_atomically(path, b"old")
        write_atomically(path, b"new")
        if path.read_bytes() != b"new":
            return Diagnosis("files", "broken", f"a file in {folder} could not be replaced")
    if not os.access(Path.cwd(), os.W_OK):
        return Diagnosis("files", "note", f"the current folder can't be written to: {Path.cwd()}")
    return Diagnosis("files", "ok", "written and replaced in one step; the current folder can be written to")


def _git() -> Diagnosis:
    found = shutil.which("git")
    if found is None:
        return Diagnosis("git", "note", "not found; only needed for work inside a repository", "Install git.")
    ran = run_command([found, "--version"], cwd=Path.cwd(), timeout=60)
    return Diagnosis("git", "ok" if ran.succeeded else "note", ran.output.strip())


def _terminal() -> Diagnosis:
    encoding = (sys.stdout.encoding or "unknown").lower()
    colors = "off (NO_COLOR)" if os.environ.get("NO_COLOR") else "on" if sys.stdout.isatty() else "off (not a terminal)"
    health: Health = "ok" if "utf" in encoding else "note"
    advice = None if health == "ok" else "Set a UTF-8 locale, such as LANG=C.UTF-8, to see every character."
    return Diagnosis("terminal", health, f"encoding {encoding}, colours {colors}", advice)


def _settings() -> Diagnosis:
    settings = load(Path.cwd())
    for guard in (settings.stop, settings.subagent_stop, settings.task_completed):
        checker_for(guard, str(settings.source))
        if guard.has_checks and guard.check_timeout >= HOOK_TIMEOUT:
            return Diagnosis(
                "settings",
                "broken",
                f"check_timeout {guard.check_timeout:g} is not below the hooks' timeout {HOOK_TIMEOUT}: a runtime lets "
                "the agent go when its hook takes too long",
                f"Lower check_timeout in {settings.source}.",
            )
    if not settings.stop.has_checks:
        return Diagnosis("settings", "note", f"no checks guard a stop in {settings.root}", "Write a [stop] table.")
    return Diagnosis("settings", "ok", f"{settings.source} guards a stop")


def _hooks_fire() -> list[Diagnosis]:
    """Sends a canary event through every installed command line, as the runtime would."""
    root = load(Path.cwd()).root
    found: list[Diagnosis] = []
    scopes: tuple[Scope, Scope] = ("project", "user")
    for runtime in RUNTIMES.values():
        for scope in scopes:
            path = runtime.path(scope, root, os.environ)
            entries = [entry for entry in installed(path) if entry.event == "Stop"]
            if entries:
                found.append(_canary(f"{runtime.name} {scope}", entries[0].command, root))
                if runtime.name == "codex":
                    found.append(_trusted(f"codex {scope} trust", entries[0].command, root))
    return found or [Diagnosis("hooks", "note", "none installed", "donewhen hooks install --claude, if you want them")]


def _canary(name: str, command_line: str, root: Path) -> Diagnosis:
    nonce = os.urandom(8).hex()
    event = {"session_id": "donewhen-doctor", "cwd": str(root), "hook_event_name": "Stop", CANARY: nonce}
    done = subprocess.run(
        ["sh", "-c", command_line],
        input=json.dumps(event),
        capture_output=True,
        text=True,
        cwd=root,
        env=os.environ | {"CLAUDE_PROJECT_DIR": str(root)},
        timeout=60,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        answer = None
    if done.returncode == 0 and answer == {"decision": "block", "reason": f"canary {nonce}"}:
        return Diagnosis(name, "ok", "the installed hook fires and can hold an agent back")
    said = one_line(done.stderr or done.stdout, 200)
    return Diagnosis(name, "broken", f"the installed hook does not fire: {said}", "Run donewhen hooks install again.")


def _trusted(name: str, command_line: str, root: Path) -> Diagnosis:
    from donewhen.adapters.codex.app_server import listed_hooks

    hooks = listed_hooks(root)
    if hooks is None:
        return Diagnosis(name, "note", "can't be proved here: codex is not on the PATH", "Look at /hooks in codex.")
    states = [hook for hook in hooks if hook.get("command") == command_line and hook.get("eventName") == "stop"]
    if not states:
        why = "Codex does not load it; it reads a project's hooks only when the project is trusted"
        return Diagnosis(name, "broken", why, "Start codex in this folder and trust the project.")
    if all(hook.get("trustStatus") in ("trusted", "managed") and hook.get("enabled") for hook in states):
        return Diagnosis(name, "ok", "Codex trusts the hook and runs it")
    status = states[0].get("trustStatus") if states[0].get("enabled") else "switched off"
    return Diagnosis(
        name, "broken", f"Codex skips the hook: it is {status}", "Start codex, review the hooks, trust it."
    )


_EXAMINATIONS = (_python, _package, _dependencies, _extras, _commands, _files, _git, _terminal, _settings)
