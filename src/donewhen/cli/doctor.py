"""`donewhen doctor`: check whether donewhen works on this machine, by trying it."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal

import click

from donewhen import __version__
from donewhen.adapters.command_hooks import CANARY
from donewhen.adapters.hook_files import HookEntry, installed_hooks
from donewhen.adapters.hook_targets import HOOK_TARGETS, HOOK_TIMEOUT, HookTarget, Scope
from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.cli.hook import dialect_of
from donewhen.completion.from_settings import checker_for
from donewhen.config import GuardSettings, find_root, load
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.files import write_atomically
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.process import run_command

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
_EXTRAS = {"claude": "claude-agent-sdk", "web": "starlette", "mcp": "mcp"}
_MARKS: dict[Health, tuple[str, str | None]] = {"ok": ("✓", "green"), "note": ("·", None), "broken": ("✗", "red")}


@dataclass(frozen=True)
class Diagnosis:
    """The result of one check."""

    name: str
    health: Health
    detail: str
    next: str | None = None


@click.command()
@common_options
@click.pass_obj
def command(output: Output) -> ExitCode:
    """Check what donewhen needs on this machine, and report what is missing."""
    with output.progress("checking"):
        found = [_tried(examine) for examine in _EXAMINATIONS] + _tried_hooks()
    width = max(len(diagnosis.name) for diagnosis in found)
    for diagnosis in found:
        mark, color = _MARKS[diagnosis.health]
        output.say(f"{mark} {diagnosis.name.ljust(width)}  {diagnosis.detail}", fg=color)
        if diagnosis.next:
            output.say(f"  {' ' * width}  next: {diagnosis.next}", dim=True)
    broken = [diagnosis for diagnosis in found if diagnosis.health == "broken"]
    output.say()
    output.say(f"{len(broken)} problem(s) found." if broken else "Everything works.", bold=True)
    findings = [
        Finding(f"doctor_{diagnosis.name.replace(' ', '_')}", diagnosis.detail, next=diagnosis.next)
        for diagnosis in broken
    ]
    status = ExitCode.GATE_FAILED if broken else ExitCode.PASS
    return output.finish(status, {"diagnoses": [asdict(diagnosis) for diagnosis in found]}, findings)


def _tried(examine: Callable[[], Diagnosis]) -> Diagnosis:
    try:
        return examine()
    except Exception as error:  # noqa: BLE001 - every failure is a diagnosis
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
    return Diagnosis("commands", "ok", "a test command was run, and a hanging one was stopped")


def _files() -> Diagnosis:
    with tempfile.TemporaryDirectory(prefix="donewhen-doctor-") as folder:
        path = Path(folder, "file")
        write_atomically(path, b"old")
        write_atomically(path, b"new")
        if path.read_bytes() != b"new":
            return Diagnosis("files", "broken", f"a file in {folder} could not be replaced")
    if not os.access(Path.cwd(), os.W_OK):
        return Diagnosis("files", "note", f"the current folder is not writable: {Path.cwd()}")
    return Diagnosis("files", "ok", "atomic replace works; the current folder is writable")


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
    for table in ("stop", "subagent_stop", "task_completed"):
        guard: GuardSettings = getattr(settings, table)
        checker_for(guard, str(settings.source), table)
        if guard.check_timeout >= HOOK_TIMEOUT:
            return Diagnosis(
                "settings",
                "broken",
                f"check_timeout {guard.check_timeout:g} is not below the hooks' timeout {HOOK_TIMEOUT}: a runtime "
                "releases the agent when its hook times out",
                f"Lower check_timeout in {settings.source}.",
            )
    if not settings.stop.has_checks:
        return Diagnosis(
            "settings", "note", f"no checks for a stop are set up in {settings.root}", "Write a [stop] table."
        )
    return Diagnosis("settings", "ok", f"{settings.source} has checks for a stop")


def _hooks_fire() -> list[Diagnosis]:
    """Send a test event through every installed command line, as the runtime would."""
    root = find_root(Path.cwd())
    found: list[Diagnosis] = []
    scopes: tuple[Scope, Scope] = ("project", "user")
    for runtime in HOOK_TARGETS.values():
        by_scope = [_of_scope(runtime, scope, root) for scope in scopes]
        found += [diagnosis for diagnoses in by_scope for diagnosis in diagnoses]
        if all(by_scope):
            detail = "installed for the project and for you: every stop is checked twice"
            advice = f"donewhen hooks uninstall --{runtime.name} --user"
            found.append(Diagnosis(f"{runtime.name} twice", "note", detail, advice))
    return found or [Diagnosis("hooks", "note", "none installed", "donewhen hooks install --claude, if you want them")]


def _of_scope(runtime: HookTarget, scope: Scope, root: Path) -> list[Diagnosis]:
    """The checks of one hook file; none if it has no hooks of donewhen."""
    name = f"{runtime.name} {scope}"
    path = runtime.path(scope, root, os.environ)
    try:
        entries = installed_hooks(path)
    except DonewhenError as error:
        return [Diagnosis(name, "broken", str(error))]
    if not entries:
        return []
    found = [_canaries(name, runtime, entries, root), *_too_short(name, entries, root)]
    stop = next((entry.command for entry in entries if entry.event == "Stop"), None)
    if runtime.name == "codex" and stop is not None:
        try:
            found.append(_trusted(f"{name} trust", stop, root))
        except DonewhenError as error:
            found.append(Diagnosis(f"{name} trust", "note", f"can't be checked here: {error}"))
    return found


def _canaries(name: str, runtime: HookTarget, entries: Sequence[HookEntry], root: Path) -> Diagnosis:
    for entry in entries:
        said = _canary(runtime, entry, root)
        if said is not None:
            detail = f"the installed hook does not work: {entry.event}: {said}"
            return Diagnosis(name, "broken", detail, "Run donewhen hooks install again.")
    return Diagnosis(name, "ok", "the installed hook runs and can refuse a stop")


def _canary(runtime: HookTarget, entry: HookEntry, root: Path) -> str | None:
    """Send an event through the hook's command line, as the runtime would; return the output if it did not refuse."""
    nonce = os.urandom(8).hex()
    event = {"session_id": "donewhen-doctor", "cwd": str(root), "hook_event_name": entry.event, CANARY: nonce}
    try:
        done = subprocess.run(
            ["sh", "-c", entry.command],
            input=json.dumps(event),
            capture_output=True,
            text=True,
            errors="replace",
            cwd=root,
            env=os.environ | ({runtime.about.project_variable: str(root)} if runtime.about.project_variable else {}),
            timeout=60,
        )
    except subprocess.TimeoutExpired:
        return "it did not answer within 60 seconds"
    kinds = [kind for event_name, kind, _ in runtime.events if event_name == entry.event]
    expected = [dialect_of(runtime.name).refuse(kind, f"canary {nonce}") for kind in kinds]
    try:
        if done.returncode == 0 and json.loads(done.stdout) in expected:
            return None
    except ValueError:
        pass
    return one_line(done.stderr or done.stdout or f"exit status {done.returncode}", 200)


def _too_short(name: str, entries: Sequence[HookEntry], root: Path) -> list[Diagnosis]:
    try:
        settings = load(root)
    except DonewhenError:
        return []
    longest = max(table.check_timeout for table in (settings.stop, settings.subagent_stop, settings.task_completed))
    short = [entry for entry in entries if entry.timeout <= longest]
    if not short:
        return []
    detail = (
        f"the timeout of {short[0].event}, {short[0].timeout} s, is not above check_timeout, {longest:g} s: a runtime "
    )
    detail += "releases the agent when its hook times out"
    return [Diagnosis(f"{name} timeout", "broken", detail, "Run donewhen hooks install again.")]


def _trusted(name: str, command_line: str, root: Path) -> Diagnosis:
    from donewhen.adapters.codex.app_server import listed_hooks

    hooks = listed_hooks(root)
    if hooks is None:
        return Diagnosis(name, "note", "can't be checked here: codex is not on the PATH", "Look at /hooks in codex.")
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
