"""Does donewhen work on this machine? Things are tried, not only looked at."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module, metadata
from pathlib import Path
from typing import Literal

import click

from donewhen import __version__
from donewhen.cli._app import common_options
from donewhen.cli._output import Finding, Output
from donewhen.foundation.errors import ExitCode
from donewhen.foundation.files import write_atomically
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
    found = [_tried(examine) for examine in _EXAMINATIONS]
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


_EXAMINATIONS = (_python, _package, _dependencies, _extras, _commands, _files, _git, _terminal)
