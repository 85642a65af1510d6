"""The record of stops that were not verified, one JSON object a line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.files import open_regular
from donewhen.foundation.person_folder import kept_for

RECORD = "unverified.jsonl"
_ENDS = "ends"
_NOT_RUN = "not-run.jsonl"
"""What the hook scripts of all projects have recorded without donewhen."""
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


def records_of_person(root: Path) -> tuple[Path, ...]:
    """The person's own record about a project, for when nothing can be written in the project; none without a home.

    Another process finds it, whatever its folder for temporary files is.
    """
    return kept_for(_ENDS, _place(root))[:1]


def append_row(row: StopRow, *records: Path) -> None:
    """Add a row to each of these records; raise an OSError only if it is in none of them."""
    from datetime import UTC, datetime

    from donewhen.foundation.plain_text import shorten

    feedback = None if row.feedback is None else shorten(row.feedback, _MAX_FEEDBACK)
    data = {"at": datetime.now(UTC).isoformat(timespec="seconds")} | row._replace(feedback=feedback)._asdict()
    # A stop is the usual case; older records have neither.
    for name, usual in (("how", "stop"), ("end", None)):
        if data[name] == usual:
            del data[name]
    line = json.dumps(data, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
    errors = []
    for path in records:
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # In one write, so that the rows of several sessions don't mix.
            descriptor = open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            try:
                os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            errors.append(error)
    if errors and len(errors) == len(records):
        raise errors[0]


def ends_by_record(root: Path, *records: Path) -> dict[Path, list[UnverifiedEnd]]:
    """The unverified ends in these records and in the person's; those in several of them only once."""
    found: dict[Path, list[UnverifiedEnd]] = {}
    seen: set[str | UnverifiedEnd] = set()
    own = kept_for(_ENDS, _place(root))
    for path in dict.fromkeys((*records, *own)):
        # Two ends may differ in nothing but what identifies them; a stop has only its content.
        ends = [(key if isinstance(key, str) else end, end) for key, end in _ends_by_key(path).items()]
        found[path] = [end for known_as, end in ends if known_as not in seen]
        seen.update(known_as for known_as, _ in ends)
    for path in dict.fromkeys(folder.parent / _NOT_RUN for folder in own):
        found[path] = unverified_ends(path, str(_place(root)))
    return {path: ends for path, ends in found.items() if ends}


def unverified_ends(record: Path, project: str | None = None) -> list[UnverifiedEnd]:
    """The unverified stops and ends on record, the oldest first; unreadable lines count, too.

    With ``project``, only the rows that name it.
    """
    return list(_ends_by_key(record, project).values())


def _ends_by_key(record: Path, project: str | None = None) -> dict[str | int, UnverifiedEnd]:
    """The same by what identifies the end, or else by the number of the line."""
    found: dict[str | int, UnverifiedEnd] = {}
    for number, line in enumerate(_lines(record)):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = {}
        row = row if isinstance(row, dict) else {}
        if project is not None and row.get("project") != project:
            continue
        end = row.get("end")
        key = number if not isinstance(end, str) else end
        if row.get("status") == _VERIFIED:
            found.pop(key, None)
            continue
        texts = [row.get(name) for name in UnverifiedEnd._fields]
        at, session, status, how, code, feedback = (text if isinstance(text, str) else "" for text in texts)
        found[key] = UnverifiedEnd(at, session, status or "unverified", how or "stop", code or None, feedback)
    return found


def _place(root: Path) -> Path:
    return Path(os.path.realpath(root))


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            yield from (line for line in file if line.strip())
    except OSError:
        return
