"""Labels that people gave in reviews: an append-only log, and the tickets that follow from it.

A review label replaces the earlier labels of its group. Two people who disagree make two tickets, which the learner
reports as a policy question.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.foundation.canonical import digest_of
from donewhen.foundation.files import fsync_folder, read_limited, read_stream, write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.foundation.size_limits import LABEL_LOG
from donewhen.judging.ticket import Ticket, TicketError

LOG = "reviews.jsonl"
LABELLED = "reviewed.jsonl"


class JudgeStatement(msgspec.Struct, frozen=True, kw_only=True):
    """The judge's verdict on the same ticket."""

    verdict: Binary | None
    passes: int
    fails: int
    malformed: int = 0
    decided: bool = True
    """Whether enough votes agreed; if not, the verdict was left to people."""
    margin: float | None = None
    reason: str = ""
    guidance_step: int = 0

    @property
    def agreement(self) -> float:
        """The majority's share of all votes, malformed ones included."""
        votes = self.passes + self.fails + self.malformed
        return max(self.passes, self.fails) / votes if votes else 0.0


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """One person's label of one ticket."""

    group_id: str
    label: Binary
    by: str
    at: str
    reason: str = ""
    asked: str = ""
    """Why the person was asked."""
    said: JudgeStatement | None = None
    entry: str = ""
    """The ledger entry that records the label."""
    cluster: str = ""
    evidence: Mapping[str, str] = {}


def read_label_log(folder: Path) -> tuple[Label, ...]:
    """Read every label, oldest first; an incomplete last line is ignored."""
    path = folder / LOG
    try:
        content = read_limited(path, LABEL_LOG)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TicketError(f"The review labels can't be read: {error.strerror}.", where=str(path)) from error
    return tuple(_parse_labels(content, path))


def current_labels(log: Iterable[Label]) -> dict[str, dict[str, Label]]:
    """The last label of each person, by group and person."""
    current: dict[str, dict[str, Label]] = {}
    for label in log:
        by_person = current.setdefault(label.group_id, {})
        by_person.pop(label.by, None)
        by_person[label.by] = label
    return current


def add_label(folder: Path, mission: str, label: Label) -> None:
    """Append a label to the log and update the tickets."""
    with locked_folder(folder):
        with (folder / LOG).open("a+b") as file:
            file.seek(0)
            content = read_stream(file, LABEL_LOG, folder / LOG)
            whole = content.rfind(b"\n") + 1
            # A writer may have been killed here. An incomplete label is cut off, so that it does not corrupt this one.
            # A complete label that only lacks its newline is kept, because readers count it.
            newline = b"\n" if _is_label(content[whole:]) else b""
            file.truncate(len(content) if newline else whole)
            file.write(newline + msgspec.json.encode(label) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fsync_folder(folder)
        _write_tickets(folder, mission)


def update_tickets(folder: Path, mission: str) -> None:
    """Rewrite the tickets from the log: the writer of the last label may have been killed before it did."""
    if (folder / LOG).is_file():
        with locked_folder(folder):
            _write_tickets(folder, mission)


def _write_tickets(folder: Path, mission: str) -> None:
    path, written = folder / LABELLED, render_tickets(read_label_log(folder), mission)
    if not path.is_file() or read_limited(path, LABEL_LOG) != written:
        write_atomically(path, written)


def render_tickets(log: Iterable[Label], mission: str) -> bytes:
    """The content of the ticket file."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in labelled_tickets(log, mission))


def labelled_tickets(log: Iterable[Label], mission: str) -> Iterator[dict[str, Any]]:
    """Yield the labelled tickets that follow from the log, one for each group and verdict."""
    for group, by_person in current_labels(log).items():
        by_verdict: dict[Binary, list[Label]] = {}
        for person_label in by_person.values():
            by_verdict.setdefault(person_label.label, []).append(person_label)
        for verdict, labels in by_verdict.items():
            last = labels[-1]
            yield {
                "group_id": group,
                "mission": mission,
                "label": verdict,
                "evidence": dict(last.evidence),
                "cluster": last.cluster or group,
                "label_source": ", ".join(label.by for label in labels),
                "label_timestamp": last.at,
            }


def label_for(ticket: Ticket, label: Binary, by: str, at: str, **rest: Any) -> Label:
    """A person's label of a ticket."""
    return Label(
        group_id=ticket.group_id,
        label=label,
        by=by,
        at=at,
        cluster=ticket.cluster,
        evidence=dict(ticket.evidence),
        **rest,
    )


def ticket_hash(ticket: Ticket) -> str:
    """Digest of a ticket's content, independent of its label."""
    return digest_of([ticket.mission, dict(ticket.evidence)])


def _is_label(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Label)
    except msgspec.DecodeError:
        return False
    return True


def _parse_labels(content: bytes, path: Path) -> Iterator[Label]:
    lines = content.split(b"\n")
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield msgspec.json.decode(line, type=Label)
        except msgspec.DecodeError as error:
            if number == len(lines):
                return
            raise TicketError(
                f"The line is not a label: {error}.",
                where=f"{path}:{number}",
                next_step="Restore the file from version control, or delete the line.",
            ) from error
