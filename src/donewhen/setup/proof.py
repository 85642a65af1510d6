"""Proves that the installed hooks hold an agent: with a red check they refuse, with a green one they don't."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from donewhen.adapters.hook_targets import HookTarget
from donewhen.config.state_folder import FOLDER
from donewhen.doctor.canary import environment_block
from donewhen.doctor.hook_settings import RuntimeSettings, read_runtime_settings
from donewhen.doctor.scratch import Scratch, scratch_of
from donewhen.foundation.plain_text import one_line

_PATIENCE = 60.0


@dataclass(frozen=True)
class Proof:
    """What the installed hooks of one runtime did in a scratch project."""

    runtime: str
    held: bool
    """Whether they refused while a file was missing."""
    released: bool
    """Whether they allowed the same stop once it was there."""
    reason: str
    """What the agent would have been told; if the hooks don't work, what they said instead."""

    @property
    def proven(self) -> bool:
        return self.held and self.released


def prove(target: HookTarget, root: Path, environ: Mapping[str, str]) -> Proof:
    """Send a stop through the project's hooks as they are installed, in a scratch project with a red check."""
    runtime = read_runtime_settings(target, root, environ)
    entry = next((entry for entry in runtime.entries("project") if entry.kind == "stop"), None)
    if entry is None:
        return Proof(target.name, held=False, released=False, reason="no hook for a stop is installed")
    with scratch_of(runtime, foreign=False) as scratch:
        if (scratch.project / FOLDER).is_symlink():
            # Attempts are counted in the scratch project, not in the real one.
            (scratch.project / FOLDER).unlink()
        red, reason = _refused(runtime, entry.command, scratch, environ, entry.event or "")
        (scratch.project / scratch.missing).write_text("Here it is.\n")
        green, _ = _refused(runtime, entry.command, scratch, environ, entry.event or "")
        held = red is True and scratch.missing in reason
        return Proof(target.name, held, green is False, reason)


def _refused(
    runtime: RuntimeSettings, line: str, scratch: Scratch, environ: Mapping[str, str], event: str
) -> tuple[bool | None, str]:
    """Whether the hook refused, and its reason; None if it did neither."""
    about = {
        "session_id": "donewhen-init",
        "cwd": str(scratch.project),
        "hook_event_name": event,
        "stop_hook_active": False,
    }
    # As the runtime would: its shell may read the person's profile, which sets the PATH.
    environment = dict(environ) | environment_block(runtime)
    if runtime.target.about.project_variable:
        environment[runtime.target.about.project_variable] = str(scratch.project)
    try:
        done = subprocess.run(
            [*runtime.target.client.shell(environment), line],
            input=json.dumps(about).encode(),
            capture_output=True,
            cwd=scratch.project,
            env=environment,
            timeout=_PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return None, f"the hook did not answer within {_PATIENCE:g} seconds"
    except OSError as error:
        return None, f"the hook can't be started: {error.strerror}"
    try:
        answer = json.loads(done.stdout)
    except (ValueError, RecursionError):
        return None, one_line((done.stderr or done.stdout).decode("utf-8", "replace"), 300) or "the hook said nothing"
    if not isinstance(answer, dict):
        return None, one_line(str(answer), 300)
    blocked = answer.get("decision") == "block"
    return blocked, str(answer.get("reason", ""))
