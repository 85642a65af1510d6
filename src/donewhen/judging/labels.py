"""What people have said about tickets: a log of every label with who gave it, and the tickets that it comes to.

The log is append-only. The tickets are made from it: a work that a person has looked at is labelled by that person, and
no longer by whoever labelled it before. Two people who disagree make two tickets, which is what the learner asks about.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.files import fsync_folder, write_atomically
from donewhen.foundation.locks import locked_folder
from donewhen.judging.ticket import Ticket, TicketError
from donewhen.models.roles import Binary

LOG = "reviews.jsonl"
LABELLED = "reviewed.jsonl"


class JudgeStatement(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge had said about the same ticket."""

    verdict: Binary | None
    passes: int
    fails: int
    malformed: int = 0
    decided: bool = True
    """Whether enough of its votes agreed; where not, it left the verdict to people."""
    margin: float | None = None
    reason: str = ""
    guidance_step: int = 0

    @property
    def agreement(self) -> float:
        """The majority's share of all votes, malformed ones included."""
        votes = self.passes + self.fails + self.malformed
        return max(self.passes, self.fails) / votes if votes else 0.0


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """One person's word on one ticket."""

    group_id: str
    label: Binary
    by: str
    at: str
    reason: str = ""
    asked: str = ""
    """Why they were asked."""
    said: JudgeStatement | None = None
    entry: str = ""
    """The entry of the ledger that has it on record."""
    cluster: str = ""
    evidence: Mapping[str, str] = {}


def read_label_log(folder: Path) -> tuple[Label, ...]:
    """Every label that was given, the oldest first; half a line at the end was never given."""
    path = folder / LOG
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise TicketError(f"The labels of people can't be read: {error.strerror}.", where=str(path)) from error
    return tuple(_labels(content, path))


def current_labels(log: Iterable[Label]) -> dict[str, dict[str, Label]]:
    """By group and person, what holds: the last word of each."""
    found: dict[str, dict[str, Label]] = {}
    for one in log:
        of_group = found.setdefault(one.group_id, {})
        of_group.pop(one.by, None)
        of_group[one.by] = one
    return found


def add_label(folder: Path, mission: str, label: Label) -> None:
    """Put a label on record, and bring the tickets up to date with it."""
    with locked_folder(folder):
        with (folder / LOG).open("a+b") as file:
            file.seek(0)
            content = file.read()
            whole = content.rfind(b"\n") + 1
            # Somebody may have been cut off here; what they wrote is no label, and must not spoil this one. A whole
            # label that lacks nothing but the end of its line is one, for whoever reads the log.
            kept = b"\n" if _is_label(content[whole:]) else b""
            file.truncate(len(content) if kept else whole)
            file.write(kept + msgspec.json.encode(label) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        fsync_folder(folder)
        _write_tickets(folder, mission)


def update_tickets(folder: Path, mission: str) -> None:
    """Make the tickets what the log comes to: whoever gave the last label may have been cut off in between."""
    if (folder / LOG).is_file():
        with locked_folder(folder):
            _write_tickets(folder, mission)


def _write_tickets(folder: Path, mission: str) -> None:
    path, written = folder / LABELLED, render_tickets(read_label_log(folder), mission)
    if not path.is_file() or path.read_bytes() != written:
        write_atomically(path, written)


def render_tickets(log: Iterable[Label], mission: str) -> bytes:
    """The file of the tickets."""
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in labelled_tickets(log, mission))


def labelled_tickets(log: Iterable[Label], mission: str) -> Iterator[dict[str, Any]]:
    """The labelled tickets that the log comes to, one for each group and verdict."""
    for group, of_people in current_labels(log).items():
        by_verdict: dict[Binary, list[Label]] = {}
        for one in of_people.values():
            by_verdict.setdefault(one.label, []).append(one)
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
    """The name of what a ticket shows, whoever labels it."""
    return digest_of([ticket.mission, dict(ticket.evidence)])


def _is_label(line: bytes) -> bool:
    try:
        msgspec.json.decode(line, type=Label)
    except msgspec.DecodeError:
        return False
    return True


def _labels(content: bytes, path: Path) -> Iterator[Label]:
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
                f"The line is no label: {error}.",
                where=f"{path}:{number}",
                next_step="Restore the file from version control, or take the line out.",
            ) from error
