"""``logs/execution.jsonl``: a line for each command that the gate ran, in the form that another tool reads.

It is a view. The ledger decides, and nothing here reads the log again.
"""

from __future__ import annotations

import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.locks import LockedError, locked
from donewhen.jobs.plan.workspace import Workspace

_MOST = 4000
_PATIENCE = 10.0


class LoggedRun(NamedTuple):
    """One run, as its line tells it. Secrets are left out already."""

    job: str
    label: str
    """What it was run for: a criterion, ``verification``, or ``run`` where nothing asked for it."""
    command: str
    started_at: str
    ended_at: str
    seconds: float
    exit_code: int
    passed: bool
    output: str
    """What the command said on both of its streams, in the order in which it was said."""


def log_run(workspace: Workspace, run: LoggedRun) -> str | None:
    """Append a line; returns why that was not possible, which is no fault of the run."""
    path = workspace.base / "logs" / "execution.jsonl"
    line = json.dumps(_row(workspace, run), ensure_ascii=False).encode("utf-8", "replace") + b"\n"
    try:
        if not Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(workspace.root)):
            return f"{workspace.where(path.parent)} is a link out of the project"
        path.parent.mkdir(exist_ok=True)
        with locked(workspace.folder / "state" / "locks" / "execution-log.lock", wait=_PATIENCE):
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
        "command": _anywhere(workspace, run.command),
        "cwd": ".",
        "exit_code": run.exit_code,
        "stdout": _shortened(_anywhere(workspace, run.output)),
        "stderr": "",
    }


def _append(path: Path, line: bytes) -> None:
    """One write at the end. What somebody left there without an end gets one, and stays as it is."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o644)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise OSError(0, "Not a file", str(path))
        if found.st_size and os.pread(descriptor, 1, found.st_size - 1) != b"\n":
            line = b"\n" + line
        try:
            if os.write(descriptor, line) < len(line):
                raise OSError(0, "No space left on device", str(path))
        except OSError:
            with suppress(OSError):
                os.ftruncate(descriptor, found.st_size)
            raise
    finally:
        os.close(descriptor)


def _anywhere(workspace: Workspace, text: str) -> str:
    """Without the places of this machine: the log is committed with the project."""
    text = text.replace(str(workspace.root), ".")
    home = os.path.expanduser("~")  # noqa: PTH111
    return text.replace(f"{home}/", "~/") if home != "/" else text


def _shortened(text: str) -> str:
    """The end of a long text: that is where a command says what became of it."""
    if len(text) <= _MOST:
        return text
    return f"[… {len(text) - _MOST} characters left out …]\n{text[-_MOST:]}"
