"""Read rows with their locations from a CSV file, a JSONL file or a folder of texts."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from donewhen.foundation.files import read_regular
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import TEXT
from donewhen.judging.ticket import TicketError

Kind = Literal["CSV", "JSONL", "folder"]

LABELS_FILE = "labels.csv"
FILE_COLUMNS = ("file", "filename", "file_name", "path", "name", "id", "group_id")
"""Possible names of the column in labels.csv that names the text file."""
_DELIMITERS = ",;\t|"
_MAX_FIELD_CHARS = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class SourceRow(NamedTuple):
    """One row of a table, or one text of a folder."""

    where: str
    fields: Mapping[str, Any]


class SkippedRow(NamedTuple):
    """A row or file that was skipped, and why."""

    where: str
    why: str


Read: TypeAlias = SourceRow | SkippedRow | TicketError


@dataclass(frozen=True)
class TableSource:
    """A file or folder to import tickets from."""

    path: Path
    kind: Kind
    more: tuple[Path, ...] = ()
    """Further JSONL files that belong to the same table."""

    def rows(self) -> Iterator[Read]:
        """Yield every row. Unreadable rows are yielded as errors, and reading continues if possible."""
        match self.kind:
            case "CSV":
                return _csv_rows(self.path)
            case "JSONL":
                return chain.from_iterable(map(_json_rows, (self.path, *self.more)))
            case "folder":
                return _folder_rows(self.path)


def find_source(path: Path) -> TableSource:
    """Detect the kind of a source by its file name or, failing that, by its first bytes."""
    if path.is_dir():
        return TableSource(path, "folder")
    if path.exists() and not path.is_file():
        raise TicketError("This is not a regular file; a pipe can't be read more than once.", where=str(path))
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        return TableSource(path, "CSV")
    if suffix in (".jsonl", ".ndjson", ".json"):
        return TableSource(path, "JSONL")
    try:
        with path.open("rb") as file:
            start = file.read(4096)
    except OSError as error:
        raise _unreadable(path, error) from error
    return TableSource(path, "JSONL" if start.removeprefix(_BOM).lstrip().startswith(b"{") else "CSV")


def _csv_rows(path: Path) -> Iterator[SourceRow | TicketError]:
    csv.field_size_limit(_MAX_FIELD_CHARS)
    bad: list[TicketError] = []
    try:
        with path.open("rb") as file:
            lines = _decoded(file, path, bad)
            first = next(lines, "")
            delimiter = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", first).count)
            table = csv.reader(_with_first(first, lines), delimiter=delimiter, strict=True)
            yield from _table_rows(table, path, bad)
    except OSError as error:
        yield _unreadable(path, error)


def _table_rows(table: Any, path: Path, bad: list[TicketError]) -> Iterator[SourceRow | TicketError]:
    """Yield the rows of an open table, and the errors of the decoding."""
    header: list[str] | None = None
    while True:
        where = f"{path}:{table.line_num + 1}"
        try:
            fields = next(table, None)
        except csv.Error as error:
            yield from _drain(bad)
            reason = "a quotation mark is never closed" if "unexpected end" in str(error) else str(error)
            yield TicketError(f"The rest of the file can't be read as CSV: {reason}.", where=where)
            return
        yield from _drain(bad)
        if fields is None:
            return
        if not any(field.strip() for field in fields):
            continue
        if header is None:
            header = [field.strip() for field in fields]
            duplicates = {name for name in header if header.count(name) > 1}
            if duplicates or len(header) < 2:
                reason = f"two columns are named {min(duplicates)!r}" if duplicates else "it has only one column"
                yield TicketError(f"The first line is not a valid header: {reason}.", where=where)
                return
        elif len(fields) != len(header):
            message = f"The row has {len(fields)} field(s), but the header has {len(header)}."
            yield TicketError(message, where=where, next_step="Quote fields that contain the separator.")
        else:
            yield SourceRow(where, dict(zip(header, fields, strict=True)))


def _decoded(file: Any, path: Path, bad: list[TicketError]) -> Iterator[str]:
    for number, raw in enumerate(file, 1):
        where = f"{path}:{number}"
        line = raw.removeprefix(_BOM) if number == 1 else raw
        if number == 1 and raw.startswith(_UTF16):
            bad.append(TicketError("The file is UTF-16.", where=where, next_step="Save it as UTF-8."))
            return
        try:
            yield line.decode("utf-8")
        except UnicodeDecodeError as error:
            bad.append(_not_utf8(error, where))
            yield line.decode("utf-8", "replace")


def _json_rows(path: Path) -> Iterator[SourceRow | TicketError]:
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                line = raw.removeprefix(_BOM).strip()
                if number == 1 and line.startswith(b"["):
                    yield TicketError(
                        "The file is a JSON array; expected one object per line.",
                        where=str(path),
                        next_step=f"Convert it with: jq -c '.[]' {path.name}",
                    )
                    return
                if line:
                    yield _json_row(line, f"{path}:{number}")
    except OSError as error:
        yield _unreadable(path, error)


def _json_row(line: bytes, where: str) -> SourceRow | TicketError:
    try:
        data = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        return _not_utf8(error, where)
    except (ValueError, RecursionError) as error:
        reason = f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)
        return TicketError(f"The line is not JSON: {reason}.", where=where, next_step="Write one JSON object per line.")
    if not isinstance(data, dict):
        return TicketError("The line is not a JSON object.", where=where)
    return SourceRow(where, data)


def _folder_rows(folder: Path) -> Iterator[Read]:
    if (folder / LABELS_FILE).exists():
        yield from _listed_texts(folder)
        return
    for entry in _sorted_entries(folder):
        if isinstance(entry, TicketError):
            yield entry
        elif entry.name.startswith("."):
            yield SkippedRow(str(entry), "hidden file")
        elif entry.is_dir():
            yield from _labelled_texts(entry)
        else:
            advice = f"Move it into a folder such as pass/ or fail/, or list it in {LABELS_FILE}."
            yield TicketError("The file is not in a folder named after a label.", where=str(entry), next_step=advice)


def _labelled_texts(folder: Path) -> Iterator[Read]:
    """Yield a row for each file, and for each subfolder with its files as pieces of evidence."""
    for entry in _sorted_entries(folder):
        if isinstance(entry, TicketError):
            yield entry
        elif entry.name.startswith("."):
            yield SkippedRow(str(entry), "hidden file")
        else:
            evidence: dict[str, str] = {}
            for piece in _sorted_entries(entry) if entry.is_dir() else (entry,):
                text = piece if isinstance(piece, TicketError) else _read_text(piece)
                if isinstance(text, str) and isinstance(piece, Path):
                    evidence["text" if piece == entry else piece.name] = text
                elif isinstance(text, TicketError | SkippedRow):
                    yield text
            if evidence or entry.is_dir():
                yield SourceRow(str(entry), {"group_id": entry.name, "label": folder.name, "evidence": evidence})


def _listed_texts(folder: Path) -> Iterator[Read]:
    """Yield the rows of labels.csv with the text of the file that each names; report files without a row."""
    table = folder / LABELS_FILE
    named = {os.path.realpath(table)}
    root = Path(os.path.realpath(folder))
    for row in _csv_rows(table):
        if isinstance(row, TicketError):
            yield row
            continue
        by_name = {field.strip().casefold(): field for field in row.fields}
        column = next((by_name[field] for field in FILE_COLUMNS if field in by_name), next(iter(row.fields)))
        name = str(row.fields[column]).strip()
        path = Path(os.path.realpath(folder / name)) if name and "\0" not in name else root
        if not path.is_relative_to(root) or path == root:
            yield TicketError(f"{one_line(name, 80)!r} is not a file in the folder.", where=row.where)
            continue
        named.add(str(path))
        text = _read_text(path)
        if isinstance(text, str):
            yield SourceRow(row.where, {**row.fields, column: name, "evidence": {"text": text}})
        else:
            reason = text.message if isinstance(text, TicketError) else text.why
            yield TicketError(f"{one_line(name, 80)}: {reason}", where=row.where)
    unreadable: list[OSError] = []
    for parent, folders, files in os.walk(root, onerror=unreadable.append):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in sorted(files):
            path = Path(parent, file)
            if file.startswith("."):
                yield SkippedRow(str(path), "hidden file")
            elif str(path) not in named:
                yield TicketError(f"The file has no row in {LABELS_FILE}.", where=str(path))
    yield from (_unreadable(Path(error.filename or root), error) for error in unreadable)


def _sorted_entries(folder: Path) -> Iterator[Path | TicketError]:
    try:
        yield from sorted(folder.iterdir())
    except OSError as error:
        yield _unreadable(folder, error)


def _read_text(path: Path) -> str | TicketError | SkippedRow:
    if path.name.startswith("."):
        return SkippedRow(str(path), "hidden file")
    try:
        return read_regular(path, TEXT).removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        return TicketError("The file is not UTF-8 text.", where=str(path))
    except OSError as error:
        return _unreadable(path, error)


def _not_utf8(error: UnicodeDecodeError, where: str) -> TicketError:
    message = f"The line is not UTF-8: byte 0x{error.object[error.start]:02x} at position {error.start + 1}."
    advice = "Convert it to UTF-8, for example with iconv -f GB18030 -t UTF-8 or iconv -f LATIN1 -t UTF-8."
    return TicketError(message, where=where, next_step=advice)


def _unreadable(path: Path, error: OSError) -> TicketError:
    return TicketError(f"Can't be read: {error.strerror}.", where=str(path))


def _drain(bad: list[TicketError]) -> Iterator[TicketError]:
    yield from bad
    bad.clear()


def _with_first(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest
