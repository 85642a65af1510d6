"""``donewhen hook``: called by runtimes at every stop. Without click, because it must start fast."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from donewhen.config.agent_runtimes import HOOK_RUNTIMES

if TYPE_CHECKING:
    from donewhen.adapters.command_hooks import HookKind

HOOK_KINDS: tuple[HookKind, ...] = (
    *("stop", "subagent-stop", "pre-tool-use", "task-completed"),
    *("stop-failure", "session-end", "session-start"),
)
_USAGE = f"usage: donewhen hook {'|'.join(HOOK_KINDS)} --runtime {'|'.join(HOOK_RUNTIMES)} < event.json"
EVENT = 30.0
"""Time limit in seconds for the event."""
_HELP = f"""{_USAGE}

Reads an event from standard input and writes the answer to standard output, as one JSON object in the
runtime's format. The exit status is 0 if an answer was written; an internal error refuses the stop.
Without settings ([stop] in donewhen.toml, or [tool.donewhen.stop] in pyproject.toml) every stop is allowed.
Runtimes call this; to set it up, see: donewhen hooks install --help"""


def main(arguments: Sequence[str]) -> int:
    """Answer one event."""
    if any(word in ("-h", "--help") for word in arguments):
        sys.stdout.write(_HELP + "\n")
        return 0
    kind, runtime = _parsed(arguments)
    from pathlib import Path

    from donewhen.adapters.command_hooks import respond_to_event
    from donewhen.adapters.dialects import dialect_of
    from donewhen.foundation.caller_variables import CALLER_VARIABLES
    from donewhen.foundation.current_command import name_command
    from donewhen.foundation.notices import notices_to

    name_command("hook")
    try:
        folder = Path.cwd()
    except OSError:
        # The current folder was removed; the event has the runtime's folder.
        folder = Path("/")
    with notices_to(lambda message: sys.stderr.write(f"donewhen: {message}\n")):
        answer = respond_to_event(kind, dialect_of(runtime), _event(), CALLER_VARIABLES, folder)
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()
    return 0


def _parsed(arguments: Sequence[str]) -> tuple[HookKind, str]:
    words = [part for word in arguments for part in (word.split("=", 1) if word.startswith("--runtime=") else [word])]
    match words:
        case [name, "--runtime", runtime] | ["--runtime", runtime, name] if runtime in HOOK_RUNTIMES:
            known = next((kind for kind in HOOK_KINDS if kind == name), None)
        case _:
            known, runtime = None, ""
    if known is not None:
        return known, runtime
    return refuse_event(f"donewhen hook: {' '.join(arguments) or 'nothing'} is not a known hook.\n{_USAGE}")


def refuse_event(message: str) -> NoReturn:
    """Refuse the stop without knowing the event, with this message on standard error."""
    # Status 2 with a reason on stderr refuses the stop even if the hook line is wrong. Only once: attempts can't be
    # counted here, and some runtimes would never be released.
    sys.stderr.write(message + "\n")
    try:
        event = json.loads(_event())
    except (ValueError, RecursionError):
        event = None
    raise SystemExit(1 if isinstance(event, dict) and event.get("stop_hook_active") is True else 2)


def _event() -> str:
    """Read the event from stdin; an empty string if there is none, or if stdin is a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    from donewhen.cli._hook_event import read_event
    from donewhen.foundation.deadline import DeadlineError, within

    try:
        content = within(EVENT, read_event, sys.stdin.buffer, what="reading the event")
    except DeadlineError:
        from donewhen.adapters.command_hooks import NO_EVENT

        return NO_EVENT
    return content.decode("utf-8", errors="replace")
