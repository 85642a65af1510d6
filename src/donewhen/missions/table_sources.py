"""Rows from where people keep them: a CSV, a JSONL, a folder of texts. Each knows its place, and none is left out."""

from __future__ import annotations

import csv
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

from donewhen.foundation.files import read_regular
from donewhen.foundation.plain_text import one_line
from donewhen.judging.ticket import TicketError

Kind = Literal["CSV", "JSONL", "folder"]

LABELS_FILE = "labels.csv"
FILE_COLUMNS = ("file", "filename", "file_name", "path", "name", "id", "group_id")
"""Names of the column of labels.csv that says which text is meant."""
_DELIMITERS = ",;\t|"
_LONGEST_FIELD = 64 * 1024 * 1024
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")


class SourceRow(NamedTuple):
    """One row, or one text of a folder."""

    where: str
    fields: Mapping[str, Any]


class SkippedRow(NamedTuple):
    """Something that is no ticket, or no new one, and why."""

    where: str
    why: str


Read: TypeAlias = SourceRow | SkippedRow | TicketError


class TableSource(NamedTuple):
    """Where tickets come from."""

    path: Path
    kind: Kind

    def rows(self) -> Iterator[Read]:
        """Every row, from the start; what can't be read is an error in its place, and reading goes on where it can."""
        match self.kind:
            case "CSV":
                return _csv_rows(self.path)
            case "JSONL":
                return _json_rows(self.path)
            case "folder":
                return _folder_rows(self.path)


def find_source(path: Path) -> TableSource:
    """What kind of source a path is, by its name and, where that says nothing, by how it begins."""
    if path.is_dir():
        return TableSource(path, "folder")
    if path.exists() and not path.is_file():
        raise TicketError("This is no file: it is read more than once, and a pipe can't be.", where=str(path))
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
    csv.field_size_limit(_LONGEST_FIELD)
    bad: list[TicketError] = []
    try:
        with path.open("rb") as file:
            lines = _decoded(file, path, bad)
            first = next(lines, "")
            delimiter = max(_DELIMITERS, key=re.sub(r'"[^"]*"', "", first).count)
            table = csv.reader(_again(first, lines), delimiter=delimiter, strict=True)
            yield from _records(table, path, bad)
    except OSError as error:
        yield _unreadable(path, error)


def _records(table: Any, path: Path, bad: list[TicketError]) -> Iterator[SourceRow | TicketError]:
    """The rows of an open table, with problems that came up while lines were decoded."""
    header: list[str] | None = None
    while True:
        where = f"{path}:{table.line_num + 1}"
        try:
            fields = next(table, None)
        except csv.Error as error:
            yield from _taken(bad)
            told = "a quotation mark is opened and never closed" if "unexpected end" in str(error) else str(error)
            yield TicketError(f"The rest of the file can't be read as CSV: {told}.", where=where)
            return
        yield from _taken(bad)
        if fields is None:
            return
        if not any(field.strip() for field in fields):
            continue
        if header is None:
            header = [field.strip() for field in fields]
            doubled = {one for one in header if header.count(one) > 1}
            if doubled or len(header) < 2:
                told = f"two columns are named {min(doubled)!r}" if doubled else "it has one column"
                yield TicketError(f"The first line can't be the header: {told}.", where=where)
                return
        elif len(fields) != len(header):
            told = f"The row has {len(fields)} field(s), and the header has {len(header)}."
            yield TicketError(told, where=where, next_step="Put fields with a separator in them in quotation marks.")
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
                        "The file is one JSON array, not one object a line.",
                        where=str(path),
                        next_step=f"jq -c '.[]' {path.name} makes lines of it.",
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
        told = f"{error.msg} (column {error.colno})" if isinstance(error, json.JSONDecodeError) else str(error)
        return TicketError(f"The line is not JSON: {told}.", where=where, next_step="One object a line.")
    if not isinstance(data, dict):
        return TicketError("The line is not an object.", where=where)
    return SourceRow(where, data)


def _folder_rows(folder: Path) -> Iterator[Read]:
    if (folder / LABELS_FILE).exists():
        yield from _listed_texts(folder)
        return
    for entry in _entries(folder):
        if isinstance(entry, TicketError):
            yield entry
        elif entry.name.startswith("."):
            yield SkippedRow(str(entry), "it is hidden")
        elif entry.is_dir():
            yield from _labelled_texts(entry)
        else:
            advice = f"Put it into a folder such as pass/ or fail/, or name it in {LABELS_FILE}."
            yield TicketError("The file is in no folder that says its label.", where=str(entry), next_step=advice)


def _labelled_texts(folder: Path) -> Iterator[Read]:
    """Each file is a ticket; each folder is one, too, with its files as pieces of evidence."""
    for entry in _entries(folder):
        if isinstance(entry, TicketError):
            yield entry
        elif entry.name.startswith("."):
            yield SkippedRow(str(entry), "it is hidden")
        else:
            evidence: dict[str, str] = {}
            for piece in _entries(entry) if entry.is_dir() else (entry,):
                found = piece if isinstance(piece, TicketError) else _text_of(piece)
                if isinstance(found, str) and isinstance(piece, Path):
                    evidence["text" if piece == entry else piece.name] = found
                elif isinstance(found, TicketError | SkippedRow):
                    yield found
            if evidence or entry.is_dir():
                yield SourceRow(str(entry), {"group_id": entry.name, "label": folder.name, "evidence": evidence})


def _listed_texts(folder: Path) -> Iterator[Read]:
    """The rows of labels.csv, each with the text of the file that it names; files that none names are errors."""
    table = folder / LABELS_FILE
    named = {os.path.realpath(table)}
    inside = Path(os.path.realpath(folder))
    for row in _csv_rows(table):
        if isinstance(row, TicketError):
            yield row
            continue
        by_name = {field.strip().casefold(): field for field in row.fields}
        column = next((by_name[one] for one in FILE_COLUMNS if one in by_name), next(iter(row.fields)))
        name = str(row.fields[column]).strip()
        path = Path(os.path.realpath(folder / name)) if name and "\0" not in name else inside
        if not path.is_relative_to(inside) or path == inside:
            yield TicketError(f"{one_line(name, 80)!r} names no file of the folder.", where=row.where)
            continue
        named.add(str(path))
        found = _text_of(path)
        if isinstance(found, str):
            yield SourceRow(row.where, {**row.fields, column: name, "evidence": {"text": found}})
        else:
            told = found.message if isinstance(found, TicketError) else found.why
            yield TicketError(f"{one_line(name, 80)}: {told}", where=row.where)
    unreadable: list[OSError] = []
    for at, folders, files in os.walk(inside, onerror=unreadable.append):
        folders[:] = sorted(one for one in folders if not one.startswith("."))
        for file in sorted(files):
            path = Path(at, file)
            if file.startswith("."):
                yield SkippedRow(str(path), "it is hidden")
            elif str(path) not in named:
                yield TicketError(f"The file has no row in {LABELS_FILE}.", where=str(path))
    yield from (_unreadable(Path(error.filename or inside), error) for error in unreadable)


def _entries(folder: Path) -> Iterator[Path | TicketError]:
    try:
        yield from sorted(folder.iterdir())
    except OSError as error:
        yield _unreadable(folder, error)


def _text_of(path: Path) -> str | TicketError | SkippedRow:
    if path.name.startswith("."):
        return SkippedRow(str(path), "it is hidden")
    try:
        return read_regular(path).removeprefix(_BOM).decode("utf-8")
    except UnicodeDecodeError:
        return TicketError("The file is not text in UTF-8.", where=str(path))
    except OSError as error:
        return _unreadable(path, error)


def _not_utf8(error: UnicodeDecodeError, where: str) -> TicketError:
    message = f"The line is not UTF-8: byte 0x{error.object[error.start]:02x} at position {error.start + 1}."
    advice = "Save it as UTF-8, as with iconv -f GB18030 -t UTF-8 or iconv -f LATIN1 -t UTF-8."
    return TicketError(message, where=where, next_step=advice)


def _unreadable(path: Path, error: OSError) -> TicketError:
    return TicketError(f"It can't be read: {error.strerror}.", where=str(path))


def _taken(bad: list[TicketError]) -> Iterator[TicketError]:
    yield from bad
    bad.clear()


def _again(first: str, rest: Iterator[str]) -> Iterator[str]:
    if first:
        yield first
    yield from rest
