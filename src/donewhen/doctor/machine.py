"""Whether donewhen works on this machine, by trying it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
import tempfile
from importlib import import_module, metadata
from pathlib import Path

from donewhen import __version__
from donewhen.adapters.diagnosis import Diagnosis, Health
from donewhen.foundation.files import write_atomically
from donewhen.foundation.install_line import install_line
from donewhen.foundation.process import run_command
from donewhen.isolation.report import isolation_report

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


def python() -> Diagnosis:
    version = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    return Diagnosis("python", "ok", version)


def package() -> Diagnosis:
    for room in _ROOMS:
        import_module(f"donewhen.{room}")
    folder = Path(import_module("donewhen").__path__[0])
    return Diagnosis("package", "ok", f"donewhen {__version__}, complete, in {folder}")


def dependencies() -> Diagnosis:
    names = ("click", "msgspec", "rich")
    return Diagnosis("dependencies", "ok", ", ".join(f"{name} {metadata.version(name)}" for name in names))


def extras() -> Diagnosis:
    installed = []
    missing = []
    for extra, distribution in _EXTRAS.items():
        try:
            installed.append(f"{extra} ({distribution} {metadata.version(distribution)})")
        except metadata.PackageNotFoundError:
            missing.append(extra)
    detail = f"installed: {', '.join(installed) or 'none'}; optional and not installed: {', '.join(missing) or 'none'}"
    line = install_line(missing[0]) if missing else ""
    advice = f"{line}, if you want it" if line else None
    return Diagnosis("extras", "note", detail, advice)


def commands() -> Diagnosis:
    ran = run_command([sys.executable, "-c", "print('ran')"], cwd=Path.cwd(), timeout=60)
    if not (ran.succeeded and ran.output == "ran\n"):
        return Diagnosis("commands", "broken", f"a test command failed with exit status {ran.exit_code}")
    hung = run_command([sys.executable, "-c", "import time; time.sleep(60)"], cwd=Path.cwd(), timeout=0.2)
    if hung.ending != "timed_out":
        return Diagnosis("commands", "broken", "a command that hangs could not be stopped")
    return Diagnosis("commands", "ok", "a test command was run, and a hanging one was stopped")


def files() -> Diagnosis:
    with tempfile.TemporaryDirectory(prefix="donewhen-doctor-") as folder:
        path = Path(folder, "file")
        write_atomically(path, b"old")
        write_atomically(path, b"new")
        if path.read_bytes() != b"new":
            return Diagnosis("files", "broken", f"a file in {folder} could not be replaced")
    if not os.access(Path.cwd(), os.W_OK):
        return Diagnosis("files", "note", f"the current folder is not writable: {Path.cwd()}")
    return Diagnosis("files", "ok", "atomic replace works; the current folder is writable")


def git() -> Diagnosis:
    found = shutil.which("git")
    if found is None:
        return Diagnosis("git", "note", "not found; only needed for work inside a repository", "Install git.")
    ran = run_command([found, "--version"], cwd=Path.cwd(), timeout=60)
    return Diagnosis("git", "ok" if ran.succeeded else "note", ran.output.strip())


def terminal() -> Diagnosis:
    encoding = (sys.stdout.encoding or "unknown").lower()
    colors = "off (NO_COLOR)" if os.environ.get("NO_COLOR") else "on" if sys.stdout.isatty() else "off (not a terminal)"
    health: Health = "ok" if "utf" in encoding else "note"
    advice = None if health == "ok" else "Set a UTF-8 locale, such as LANG=C.UTF-8, to see every character."
    return Diagnosis("terminal", health, f"encoding {encoding}, colours {colors}", advice)


def isolation() -> Diagnosis:
    report = isolation_report()
    return Diagnosis("isolation", "note" if report.next_step else "ok", report.detail, report.next_step)


MACHINE_CHECKS = (python, package, dependencies, extras, commands, files, git, isolation, terminal)
