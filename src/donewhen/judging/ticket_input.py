"""Read the tickets that are to be judged, from files or standard input. A bad ticket is an item, not an end."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.files import read_lines, read_stream
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import TEXT, TICKET_LINE
from donewhen.judging.ticket import Ticket, TicketError, ticket_of, tickets_from_lines

STDIN = Path("-")


def tickets_in_files(files: Sequence[Path], mission: str) -> Iterator[Ticket | TicketError]:
    """Yield the ticket of each line, which is a JSON object. A ticket that occurs twice in any of the files is bad."""
    with DiskDict() as seen:
        for path in files:
            try:
                with _opened(path) as file:
                    lines = read_lines(file, TICKET_LINE, _name(path))
                    yield from tickets_from_lines(lines, _name(path), mission, seen, labelled=False)
            except OSError as error:
                yield TicketError(f"The tickets can't be read: {error.strerror}.", where=_name(path))


def tickets_of_texts(files: Sequence[Path], mission: str) -> Iterator[Ticket | TicketError]:
    """Yield a ticket for each file: its text is the evidence, its name the group."""
    for path in files:
        try:
            with _opened(path) as file:
                text = read_stream(file, TEXT, _name(path)).decode("utf-8")
            data = {"group_id": one_line(_name(path)), "text": text}
            yield ticket_of(data, _name(path), mission, labelled=False)
        except TicketError as error:
            yield error
        except OSError as error:
            yield TicketError(f"The text can't be read: {error.strerror}.", where=_name(path))
        except UnicodeDecodeError as error:
            yield TicketError(f"The text is not UTF-8, from byte {error.start} on.", where=_name(path))


def is_regular_file(path: Path) -> bool:
    """Whether reading it never waits for a writer, as reading a pipe does."""
    return stat.S_ISREG(os.fstat(0).st_mode) if path == STDIN else path.is_file()


def _opened(path: Path) -> IO[bytes]:
    # Not sys.stdin: the interpreter can't exit while a thread is still reading from it.
    return os.fdopen(os.dup(0), "rb") if path == STDIN else path.open("rb")


def _name(path: Path) -> str:
    return "standard input" if path == STDIN else str(path)
