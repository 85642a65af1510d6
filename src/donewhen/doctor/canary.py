"""Send a test event through the installed command lines, as the runtime would, and find out what disarms them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from donewhen.adapters.command_hooks import CANARY
from donewhen.adapters.diagnosis import Diagnosis
from donewhen.adapters.dialects import dialect_of
from donewhen.config.hook_line import uses_script
from donewhen.config.hook_script import program_of
from donewhen.doctor.hook_settings import Entry, RuntimeSettings, Where
from donewhen.foundation.plain_text import one_line

_PATIENCE = 60.0
_SCRIPT_PATH = re.compile(r"""\bsh ['"]?(/[^'"|;&]*/donewhen/hook)\b""")
_NEEDED = frozenset({"PATH", "HOME", "LANG", "USER", "LOGNAME", "SHELL", "TMPDIR"})
"""Variables that a hook may need to start at all."""


def canaries(runtime: RuntimeSettings, where: Where, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Try every hook of one file; the first that does not answer is reported, with what disarms it."""
    name = f"{runtime.name} {where}"
    block = environment_block(runtime)
    inherited = dict(environ) | _project_variable(runtime)
    entries = [entry for entry in runtime.entries(where) if runtime.has_event(entry.event)]
    for entry in entries:
        answer = canary(runtime, entry, inherited | block)
        if answer is None:
            continue
        culprit = _culprit(runtime, entry, inherited, block)
        if culprit is not None:
            yield culprit
        detail = f"the installed hook does not work: {entry.event}: {answer}"
        yield Diagnosis(name, "broken", detail, culprit.next if culprit else "Run donewhen hooks install again.")
        return
    if any(entry.kind == "stop" for entry in entries):
        yield Diagnosis(name, "ok", "the installed hook runs and can refuse a stop")


def canary(runtime: RuntimeSettings, entry: Entry, environment: Mapping[str, str]) -> str | None:
    """Send an event through the hook's command line; return the output if it did not refuse."""
    nonce = os.urandom(8).hex()
    event = {"session_id": "donewhen-doctor", "cwd": str(runtime.root), "hook_event_name": entry.event, CANARY: nonce}
    try:
        done = subprocess.run(
            [*runtime.target.client.shell(environment), entry.command],
            input=json.dumps(event),
            capture_output=True,
            text=True,
            errors="replace",
            cwd=runtime.root,
            env=dict(environment),
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_PATIENCE:g} seconds"
    except OSError as error:
        return f"the shell of {runtime.target.title} can't be started: {error}"
    kinds = [kind for event_name, kind, _ in runtime.target.events if event_name == entry.event]
    expected = [dialect_of(runtime.name).refuse(kind, f"canary {nonce}") for kind in kinds]
    try:
        if done.returncode == 0 and json.loads(done.stdout) in expected:
            return None
    except ValueError:
        pass
    return one_line(done.stderr or done.stdout or f"exit status {done.returncode}", 200)


def environment_block(runtime: RuntimeSettings) -> dict[str, str]:
    """The variables that the runtime's settings files set for hooks; a person's local file comes last."""
    key = runtime.target.client.environment_key
    merged: dict[str, str] = {}
    for file in sorted(runtime.hook_files, key=lambda file: ("user", "project", "local").index(file.where)):
        block = file.data.get(key) if key else None
        if isinstance(block, dict):
            merged |= {name: str(value) for name, value in block.items() if _can_be_set(name, str(value))}
    return merged


def _can_be_set(name: str, value: str) -> bool:
    return bool(name) and "=" not in name and "\0" not in name + value


def _project_variable(runtime: RuntimeSettings) -> dict[str, str]:
    variable = runtime.target.about.project_variable
    return {variable: str(runtime.root)} if variable else {}


def _culprit(
    runtime: RuntimeSettings, entry: Entry, inherited: dict[str, str], block: dict[str, str]
) -> Diagnosis | None:
    """The variables without which the same line works; None if it does not work without any of them either."""

    def works_without(names: Sequence[str], variables: Mapping[str, str], base: Mapping[str, str]) -> bool:
        rest = {name: value for name, value in variables.items() if name not in names}
        return canary(runtime, entry, {**base, **rest}) is None

    if block and works_without(list(block), block, inherited):
        names = smallest(list(block), lambda left_out: works_without(left_out, block, inherited))
        key = runtime.target.client.environment_key
        files = [file.path for file in runtime.hook_files if set(names) & set(file.data.get(key or "") or {})]
        where = ", ".join(map(str, files))
        return Diagnosis(
            f"{runtime.name} environment",
            "broken",
            f"{', '.join(names)} in the `{key}` block of {where} disarms the hook's command line",
            f"Remove {', '.join(names)} from `{key}` in {where}.",
        )
    own = _project_variable(runtime)
    others = [name for name in inherited if name not in _NEEDED and name not in own]
    rest = {**inherited, **block}
    if others and works_without(others, rest, {}):
        names = smallest(others, lambda left_out: works_without(left_out, rest, {}))
        return Diagnosis(
            f"{runtime.name} environment",
            "broken",
            f"{', '.join(names)} in the environment disarms the hook's command line",
            f"unset {' '.join(names)}",
        )
    return None


def smallest(names: Sequence[str], works_without: Callable[[Sequence[str]], bool]) -> Sequence[str]:
    """A smaller part of ``names`` without which it works, found by halving."""
    while len(names) > 1:
        half = len(names) // 2
        part = next((part for part in (names[:half], names[half:]) if works_without(part)), None)
        if part is None:
            break
        names = part
    return names


def program_on_path(runtime: RuntimeSettings, where: Where, environ: Mapping[str, str]) -> Iterator[Diagnosis]:
    """The line calls donewhen by its name, and the first one on the PATH is another one."""
    path = (dict(environ) | environment_block(runtime)).get("PATH", os.defpath)
    by_name = [entry for entry in runtime.entries(where) if _calls_by_name(runtime, entry.command)]
    if not by_name:
        return
    first = shutil.which("donewhen", path=path)
    name = f"{runtime.name} {where} program"
    if first is None:
        advice = f"Put {Path(sys.executable).parent} on the PATH, or run donewhen hooks install again."
        yield Diagnosis(name, "broken", "the hook calls donewhen by its name, which is not on the PATH", advice)
        return
    version = _version(first, environ)
    if version is None:
        yield Diagnosis(
            name,
            "broken",
            f"the first donewhen on the PATH is {first}, and that is not this program",
            f"Remove {first}, or put the folder of this donewhen before it on the PATH.",
        )
    elif version != _own_version():
        yield Diagnosis(
            name,
            "note",
            f"the first donewhen on the PATH is {first}, version {version}; this one is {_own_version()}",
            "Update it, or put the folder of this donewhen before it on the PATH.",
        )


def _calls_by_name(runtime: RuntimeSettings, command: str) -> bool:
    """Whether a command line, or the script that it starts, calls donewhen by its name."""
    if uses_script(command):
        own = _SCRIPT_PATH.search(command)
        path = Path(own[1]) if own else runtime.target.script("project", runtime.root, {})
        program = None
        with suppress(OSError):
            program = program_of(path.read_text(encoding="utf-8", errors="replace"))
    else:
        return "donewhen" in command.replace("|", " ").replace(";", " ").replace("(", " ").split()
    return program == "donewhen"


def _version(program: str, environ: Mapping[str, str]) -> str | None:
    """The version that a program reports in the way of donewhen; None if it does not."""
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, env=dict(environ), timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    words = done.stdout.split()
    return words[-1] if done.returncode == 0 and words[:1] == ["donewhen"] else None


def _own_version() -> str:
    from donewhen import __version__

    return __version__
