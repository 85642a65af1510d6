"""Writes ``logs/execution.jsonl``: a line for each command that was run as evidence, for other tools.

The log is output only: donewhen never reads it. The ledger decides.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.locks import LockedError, locked
from donewhen.jobs.plan.generated_files import keep_out_of_git
from donewhen.jobs.plan.workspace import Workspace

_MAX_OUTPUT = 4000
_LOCK_TIMEOUT = 10.0


class LoggedRun(NamedTuple):
    """A run, as it is logged. Secrets have already been redacted."""

    job: str
    label: str
    """What it was run for: a criterion, ``verification``, or ``run`` if no requirement asked for it."""
    command: str
    started_at: str
    ended_at: str
    seconds: float
    exit_code: int
    passed: bool
    output: str
    """Standard output and error of the command, in the order written."""


def log_run(workspace: Workspace, run: LoggedRun) -> str | None:
    """Append a line. If that fails, return the reason; the run itself is not affected."""
    path = workspace.base / "logs" / "execution.jsonl"
    line = json.dumps(_row(workspace, run), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(workspace.root)):
            return f"{workspace.where(path.parent)} is a symlink out of the project"
        keep_out_of_git(workspace, path.parent)
        with locked(workspace.folder / "state" / "locks" / "execution-log.lock", wait=_LOCK_TIMEOUT):
            _append(path, line)
    except LockedError as error:
        return f"{workspace.where(path)}: {error.message}"
    except OSError as error:
        return f"{workspace.where(path)}: {error.strerror}"
    return None


def _row(workspace: Workspace, run: LoggedRun) -> dict[str, object]:
    return {
        "timestamp": run.started_at,
        "end_timestamp": run.ended_at,
        "duration_sec": round(run.seconds, 3),
        "label": run.label,
        "level": "info" if run.passed else "error",
        "tags": ["donewhen", "gate"],
        "work_item_id": run.job,
        "phase": "verification",
        "command": _without_local_paths(workspace, run.command),
        "cwd": ".",
        "exit_code": run.exit_code,
        "stdout": _end_of(_without_local_paths(workspace, run.output)),
        "stderr": "",
    }


def _append(path: Path, line: bytes) -> None:
    """Append with a single write. If the last line of the file is incomplete, a line break is added first."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "Not a file", str(path))
        if status.st_size and os.pread(descriptor, 1, status.st_size - 1) != b"\n":
            line = b"\n" + line
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(0, "No space left on device", str(path))
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, status.st_size)
            raise
    finally:
        os.close(descriptor)


def _without_local_paths(workspace: Workspace, text: str) -> str:
    """Replace this machine's folders: the log is committed with the project."""
    text = text.replace(str(workspace.root), ".")
    home = os.path.expanduser("~")  # noqa: PTH111
    return text.replace(f"{home}/", "~/") if home != "/" else text


def _end_of(text: str) -> str:
    """The end of a long text, where a command usually prints its result."""
    if len(text) <= _MAX_OUTPUT:
        return text
    return f"[… {len(text) - _MAX_OUTPUT} characters left out …]\n{text[-_MAX_OUTPUT:]}"
