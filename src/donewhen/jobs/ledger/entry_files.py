"""The chain of a project or a workstream: one file for each entry, so that branches never write the same file.

An entry names the hash of every entry that nothing followed when it was written: one, or several after a merge. So two
branches can both go on, and git merges them without a conflict. What a chain shows, this shows as well: an entry can't
be changed, and none that another one follows can be removed, replaced or moved. The order is that of the numbers, each
one higher than those that an entry follows, and among equals that of the hashes: every clone reads the same order.

Entries in a file of the older format, one line each, come first: new entries follow the last of them.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from donewhen.foundation.files import read_regular
from donewhen.foundation.size_limits import LEDGER_LINE
from donewhen.jobs.ledger.entries import Break, Chain, Entry, first_link, parse_entry

_NAME = re.compile(r"[0-9]{5,}-[0-9a-f]{16}\.json")


def entry_file_name(seq: int, value: str) -> str:
    """The name of an entry's file."""
    return f"{seq:05d}-{value.removeprefix('sha256:')[:16]}.json"


def links(entry: Entry) -> tuple[str, ...]:
    """The hashes of the entries that an entry follows."""
    return tuple(entry.prev.split(" "))


def read_entry_files(folder: Path) -> dict[str, bytes]:
    """The files of the entries in a folder, with their contents; of what is no regular file, an empty content."""
    found: dict[str, bytes] = {}
    try:
        with os.scandir(folder) as entries:
            names = [entry.name for entry in entries if _NAME.fullmatch(entry.name)]
    except (FileNotFoundError, NotADirectoryError):
        return {}
    for name in sorted(names):
        path = folder / name
        # Nothing else is opened: a pipe would block, and a link leads elsewhere.
        found[name] = read_regular(path, LEDGER_LINE) if stat.S_ISREG(os.lstat(path).st_mode) else b""
    return found


def with_entry_files(chain: str, lines: Chain, files: Mapping[str, bytes]) -> Chain:
    """A chain with the entries of its files. Its breaks are those of the lines, and of files that fail verification."""
    if not files:
        return lines
    entries: list[Entry] = []
    breaks: list[Break] = [*lines.breaks]
    for number, (name, content) in enumerate(files.items(), 1):
        entry = _entry_in(name, content)
        if isinstance(entry, str):
            breaks.append(Break(chain, number, f"{entry} (in {name})"))
        else:
            entries.append(entry)
    ordered = sorted((*lines.entries, *entries), key=lambda entry: (entry.seq, entry.hash))
    known = {entry.hash: entry.seq for entry in ordered}
    written = {entry.hash for entry in lines.entries}
    for number, entry in enumerate(ordered, 1):
        if entry.hash not in written:
            breaks += (Break(chain, number, problem) for problem in _link_problems(chain, entry, known))
    return Chain(tuple(ordered), tuple(breaks), _heads(ordered))


def next_link(chain: str, known: Chain) -> tuple[int, str]:
    """The number of the next entry, and what it follows: every entry that nothing follows yet."""
    heads = known.heads or tuple(entry.hash for entry in known.entries[-1:])
    return (known.entries[-1].seq + 1 if known.entries else 1), (" ".join(heads) or first_link(chain))


def _entry_in(name: str, content: bytes) -> Entry | str:
    line, end, rest = content.partition(b"\n")
    entry: Entry | str = parse_entry(line) if end and not rest else "the file does not consist of one line"
    if isinstance(entry, str):
        return entry
    return entry if entry_file_name(entry.seq, entry.hash) == name else "the file has the name of another entry"


def _link_problems(chain: str, entry: Entry, known: Mapping[str, int]) -> Iterator[str]:
    name = entry_file_name(entry.seq, entry.hash)
    followed = links(entry)
    if followed == (first_link(chain),):
        numbers: list[int] = [0]
    elif any(link not in known for link in followed):
        yield f"{name}: an entry that it follows is missing"
        return
    else:
        numbers = [known[link] for link in followed]
    if entry.seq != max(numbers) + 1:
        yield f"{name}: expected sequence number {max(numbers) + 1}, found {entry.seq}"


def _heads(entries: Sequence[Entry]) -> tuple[str, ...]:
    followed = {link for entry in entries for link in links(entry)}
    return tuple(sorted(entry.hash for entry in entries if entry.hash not in followed))
