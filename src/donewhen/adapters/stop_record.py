"""The record of stops that were not verified, one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.files import open_regular

RECORD = "unverified.jsonl"
_MAX_FEEDBACK = 2000
_VERIFIED = "verified"


class StopRow(NamedTuple):
    """How one stop or session ended."""

    session: str
    status: str
    attempts: int
    code: str | None
    feedback: str | None
    how: str
    """The event: ``stop``, or how the session ended."""
    end: str | None
    """Identifies the end of a session: its later rows replace the earlier ones."""


class UnverifiedEnd(NamedTuple):
    """A stop or an end of a session that is not verified."""

    at: str
    session: str
    status: str
    how: str
    code: str | None
    feedback: str


def append_row(folder: Path, row: StopRow) -> None:
    """Add a row to the record in this folder."""
    from datetime import UTC, datetime

    from donewhen.foundation.plain_text import shorten

    feedback = None if row.feedback is None else shorten(row.feedback, _MAX_FEEDBACK)
    data = {"at": datetime.now(UTC).isoformat(timespec="seconds")} | row._replace(feedback=feedback)._asdict()
    # A stop is the usual case; older records have neither.
    for name, usual in (("how", "stop"), ("end", None)):
        if data[name] == usual:
            del data[name]
    line = json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    # In one write, so that the rows of several sessions don't mix.
    descriptor = open_regular(folder / RECORD, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


def unverified_ends(folder: Path) -> list[UnverifiedEnd]:
    """The unverified stops and ends on record in a folder, the oldest first; unreadable lines count, too."""
    found: dict[object, UnverifiedEnd] = {}
    for number, line in enumerate(_lines(folder / RECORD)):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = {}
        row = row if isinstance(row, dict) else {}
        end = row.get("end")
        key = number if not isinstance(end, str) else end
        if row.get("status") == _VERIFIED:
            found.pop(key, None)
            continue
        texts = [row.get(name) for name in UnverifiedEnd._fields]
        at, session, status, how, code, feedback = (text if isinstance(text, str) else "" for text in texts)
        found[key] = UnverifiedEnd(at, session, status or "unverified", how or "stop", code or None, feedback)
    return list(found.values())


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            yield from (line for line in file if line.strip())
    except OSError:
        return
