"""Looking at a file: is it there, does it say what it should, has it the right shape, has it enough rows?"""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
import re
import stat
from pathlib import Path
from typing import Any, Literal, NamedTuple

from donewhen.foundation.errors import ConfigError, MissingExtraError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.contract.inputs import locate_path
from donewhen.jobs.plan.criteria import Check
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

_SIZE_LIMIT = 64 * 1024 * 1024

FileState = Literal["good", "missing", "empty", "not_a_file", "outside"]


class FileCheckResult(NamedTuple):
    """What a look at a file gave."""

    passed: bool
    told: str
    state: FileState = "good"


def run_file_check(workspace: Workspace, job: Job, check: Check) -> FileCheckResult:
    """Decide a ``file`` check."""
    path = locate_path(workspace, job, check.path or "", "criteria")
    content = _content(path)
    if isinstance(content, FileCheckResult):
        return content
    if check.regex is not None:
        found = re.search(check.regex, content.decode("utf-8", "replace"), re.MULTILINE)
        return FileCheckResult(found is not None, f"/{check.regex}/ {'matches' if found else 'does not match'}")
    if check.rows is not None:
        rows = count_rows(content, path.suffix)
        return FileCheckResult(rows >= check.rows, f"{rows} rows, {check.rows} asked for")
    if check.schema is not None:
        return _against_schema(content, locate_path(workspace, job, check.schema, "criteria"))
    return FileCheckResult(True, f"{len(content)} bytes")


def checked_files(workspace: Workspace, job: Job, check: Check) -> dict[str, Path]:
    """The files that a ``file`` check depends on, by name."""
    named = (check.path, check.schema)
    paths = [locate_path(workspace, job, one, "criteria") for one in named if one is not None]
    return {workspace.where(path): path for path in paths}


def count_rows(content: bytes, suffix: str) -> int:
    """The rows of data: items of a JSON list, records of a CSV below its header, lines that are not empty."""
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
        limit = csv.field_size_limit(_SIZE_LIMIT)
        try:
            return max(0, sum(any(cell.strip() for cell in row) for row in reader) - 1)
        finally:
            csv.field_size_limit(limit)
    # Not splitlines(): to that, a row may end in the middle of a text.
    return sum(bool(line.strip()) for line in io.StringIO(text, newline=None))


def file_state(path: Path) -> FileState:
    """Whether a file is there and says something."""
    found = _content(path)
    return "good" if isinstance(found, bytes) else found.state


def _content(path: Path) -> bytes | FileCheckResult:
    """A file's content: a regular file, not empty, not a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if isinstance(error, FileNotFoundError):
            return FileCheckResult(False, "it is not there", "missing")
        return FileCheckResult(False, f"{error.strerror}", "not_a_file")
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        return FileCheckResult(False, "it is not a regular file", "not_a_file")
    with os.fdopen(descriptor, "rb") as file:
        if found.st_size > _SIZE_LIMIT:
            return FileCheckResult(
                False, f"it has {found.st_size} bytes; at most {_SIZE_LIMIT} are looked at", "not_a_file"
            )
        content = file.read()
    return content if content.removeprefix(codecs.BOM_UTF8).strip() else FileCheckResult(False, "it is empty", "empty")


def _against_schema(content: bytes, schema_path: Path) -> FileCheckResult:
    try:
        import jsonschema
        import referencing
    except ImportError:
        raise MissingExtraError("A check against a JSON Schema", "schema") from None
    where = str(schema_path)
    try:
        schema: Any = json.loads(schema_path.read_bytes())
        is_schema = isinstance(schema, dict | bool)
        if not is_schema:
            raise ConfigError("The schema is not one: it is neither an object nor true or false.", where=where)
        kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
        kind.check_schema(schema)
        # Nothing is fetched: a reference to somewhere else can't be resolved.
        validator = kind(schema, registry=referencing.Registry())
    except OSError as error:
        raise ConfigError(f"The schema can't be read: {error.strerror}.", where=where) from error
    except jsonschema.SchemaError as error:
        raise ConfigError(f"The schema is not one: {one_line(error.message)}.", where=where) from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"The schema is not JSON: {one_line(str(error))}.", where=where) from error
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        return FileCheckResult(False, f"it is not JSON: {one_line(str(error))}")
    try:
        wrong = next(validator.iter_errors(data), None)
    except RecursionError as error:
        raise ConfigError("The schema goes in a circle.", where=where) from error
    except referencing.exceptions.Unresolvable as error:
        raise ConfigError(f"The schema refers to something else: {one_line(str(error))}.", where=where) from error
    if wrong is None:
        return FileCheckResult(True, "fits the schema")
    place = "/".join(str(one) for one in wrong.absolute_path)
    return FileCheckResult(False, one_line(f"{place or 'the whole'}: {wrong.message}"))
