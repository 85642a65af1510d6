"""``donewhen hook``: called by runtimes at every stop. Without click, because it must start fast."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

from donewhen.config.agent_runtimes import HOOK_RUNTIMES

if TYPE_CHECKING:
    from donewhen.adapters.command_hooks import Dialect, HookKind

HOOK_KINDS: tuple[HookKind, ...] = ("stop", "subagent-stop", "pre-tool-use", "task-completed")
_USAGE = f"usage: donewhen hook {'|'.join(HOOK_KINDS)} --runtime {'|'.join(HOOK_RUNTIMES)} < event.json"
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
    from donewhen.foundation.current_command import name_command

    name_command("hook")
    try:
        folder = Path.cwd()
    except OSError:
        # The current folder was removed; the event has the runtime's folder.
        folder = Path("/")
    answer = respond_to_event(kind, dialect_of(runtime), _event(), os.environ, folder)
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
    return _refuse(f"donewhen hook: {' '.join(arguments) or 'nothing'} is not a known hook.\n{_USAGE}")


def _refuse(message: str) -> NoReturn:
    # Status 2 with a reason on stderr refuses the stop even if the hook line is wrong. Only once: attempts can't be
    # counted here, and some runtimes would never be released.
    sys.stderr.write(message + "\n")
    held_already = re.search(r'"stop_hook_active"\s*:\s*true', _event())
    raise SystemExit(1 if held_already else 2)


def _event() -> str:
    """Read the event from stdin; an empty string if there is none, or if stdin is a terminal."""
    if sys.stdin is None or sys.stdin.isatty():
        return ""
    from donewhen.foundation.size_limits import HOOK_EVENT, size_text

    content = sys.stdin.buffer.read(HOOK_EVENT.bytes + 1)
    if len(content) > HOOK_EVENT.bytes:
        # The rest is read too, because the runtime waits until all of it is taken. What is returned is not JSON, so
        # that the stop is refused if there are checks.
        while sys.stdin.buffer.read(1 << 20):
            pass
        content = content[: HOOK_EVENT.bytes] + f" [cut: more than {size_text(HOOK_EVENT.bytes)}]".encode()
    return content.decode("utf-8", errors="replace")


def dialect_of(runtime: str) -> Dialect:
    """How this runtime writes its events and reads its answers."""
    if runtime == "codex":
        from donewhen.adapters.codex.dialect import CodexDialect

        return CodexDialect()
    from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect

    return ClaudeCodeDialect()
