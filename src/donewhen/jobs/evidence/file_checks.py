"""File checks: existence, regular expression, number of rows, JSON Schema."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import stat
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from donewhen.foundation.errors import ConfigError, MissingExtraError
from donewhen.foundation.files import TooLargeError, read_limited, read_stream
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import CHECKED_FILE, SCHEMA
from donewhen.jobs.contract.inputs import locate_path
from donewhen.jobs.plan.criteria import Check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

_CHUNK = 1 << 18

FileState = Literal["good", "missing", "empty", "not_a_file", "too_large", "outside"]


class FileCheckResult(NamedTuple):
    """The result of a file check."""

    passed: bool
    detail: str
    state: FileState = "good"


_EMPTY = FileCheckResult(False, "the file is empty", "empty")


def run_file_check(workspace: Workspace, job: Job, check: Check, schema: bytes | None = None) -> FileCheckResult:
    """Run a ``file`` check; ``schema`` replaces the content of its schema file."""
    path = locate_path(workspace, job, check.path or "", "criteria")
    if check.regex is None and check.rows is None and check.schema is None:
        return _existence(path)
    content = _content(path)
    if isinstance(content, FileCheckResult):
        return content
    if check.regex is not None:
        text = content.decode("utf-8", "replace")
        # Git may have changed the line ends: `^one$` means the same line.
        spellings = (text, text.replace("\r\n", "\n")) if "\r\n" in text else (text,)
        match = next(filter(None, (re.search(check.regex, spelling, re.MULTILINE) for spelling in spellings)), None)
        return FileCheckResult(match is not None, f"/{check.regex}/ {'matches' if match else 'does not match'}")
    if check.rows is not None:
        rows = count_rows(content, path.suffix)
        return FileCheckResult(rows >= check.rows, f"rows: {rows}, required: {check.rows}")
    return _validate_schema(content, locate_path(workspace, job, check.schema or "", "criteria"), schema)


def checked_files(workspace: Workspace, job: Job, check: Check) -> dict[str, Path]:
    """Return the files that a ``file`` check depends on, by name."""
    names = (check.path, check.schema)
    paths = [locate_path(workspace, job, name, "criteria") for name in names if name is not None]
    return {workspace.where(path): path for path in paths}


def count_rows(content: bytes, suffix: str) -> int:
    """Count the rows of data: items of a JSON list, CSV records below the header, or non-empty lines."""
    text = content.decode("utf-8-sig", "replace")
    suffix = suffix.lower()
    if suffix == ".json":
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            return 0
        return len(data) if isinstance(data, list) else 0
    if suffix in (".csv", ".tsv"):
        reader = csv.reader(io.StringIO(text, newline=""), delimiter="\t" if suffix == ".tsv" else ",")
        limit = csv.field_size_limit(CHECKED_FILE.bytes)
        try:
            return max(0, sum(any(cell.strip() for cell in row) for row in reader) - 1)
        finally:
            csv.field_size_limit(limit)
    # Not splitlines(): it also splits at characters such as U+2028 inside a row.
    return sum(bool(line.strip()) for line in io.StringIO(text, newline=None))


def file_state(path: Path) -> FileState:
    """Return whether a file exists, is a regular file, and is not empty; its size doesn't matter."""
    return _existence(path).state


def _existence(path: Path) -> FileCheckResult:
    """Return a passed result if a file is a regular file that is not empty. Reads no more than it needs, in pieces."""
    file = _opened(path)
    if isinstance(file, FileCheckResult):
        return file
    with file:
        chunk = file.read(_CHUNK).removeprefix(codecs.BOM_UTF8)
        while chunk and not chunk.strip():
            chunk = file.read(_CHUNK)
        if not chunk:
            return _EMPTY
        return FileCheckResult(True, f"{os.fstat(file.fileno()).st_size} bytes")


def _content(path: Path) -> bytes | FileCheckResult:
    """Return a file's content, or a failed result if it is missing, empty, too large, a link or not a regular file."""
    file = _opened(path)
    if isinstance(file, FileCheckResult):
        return file
    with file:
        try:
            content = read_stream(file, CHECKED_FILE, path)
        except TooLargeError as error:
            return FileCheckResult(False, f"the file is too large: {error.strerror}", "too_large")
    return content if content.removeprefix(codecs.BOM_UTF8).strip() else _EMPTY


def _opened(path: Path) -> IO[bytes] | FileCheckResult:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return FileCheckResult(False, "file not found", "missing")
        return FileCheckResult(False, f"{error.strerror}", "not_a_file")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        return FileCheckResult(False, "not a regular file", "not_a_file")
    return os.fdopen(descriptor, "rb")


def _validate_schema(content: bytes, schema_path: Path, given: bytes | None) -> FileCheckResult:
    try:
        import jsonschema
        import referencing
    except ImportError:
        raise MissingExtraError("A JSON Schema check", "schema") from None
    where = str(schema_path)
    try:
        schema: Any = json.loads(read_limited(schema_path, SCHEMA) if given is None else given)
        is_schema = isinstance(schema, dict | bool)
        if not is_schema:
            raise ConfigError("Not a JSON Schema: expected an object, true or false.", where=where)
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        # An empty registry: remote references are never fetched.
        validator = kind(schema, registry=referencing.Registry())
    except OSError as error:
        raise ConfigError(f"The schema can't be read: {error.strerror}.", where=where) from error
    except jsonschema.SchemaError as error:
        raise ConfigError(f"Not a valid JSON Schema: {one_line(error.message)}.", where=where) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The schema is not valid JSON: {one_line(str(error))}.", where=where) from error
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        return FileCheckResult(False, f"not valid JSON: {one_line(str(error))}")
    try:
        violation = next(validator.iter_errors(data), None)
    except RecursionError as error:
        raise ConfigError("The schema has a circular reference.", where=where) from error
    except referencing.exceptions.Unresolvable as error:
        raise ConfigError(
            f"The schema has a reference that can't be resolved: {one_line(str(error))}.", where=where
        ) from error
    if violation is None:
        return FileCheckResult(True, "fits the schema")
    place = "/".join(str(step) for step in violation.absolute_path)
    return FileCheckResult(False, one_line(f"{place or 'top level'}: {violation.message}"))
