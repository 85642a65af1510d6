"""The record of what `donewhen init` has written, so that `donewhen uninit` takes exactly that back."""

from __future__ import annotations

from pathlib import Path

import msgspec

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_limited
from donewhen.foundation.size_limits import OTHER

RECORD = "setup.json"


class WrittenText(msgspec.Struct, frozen=True):
    """A text that was added at the end of a file, or the whole file if it was ``created``."""

    path: str
    text: str
    created: bool


class SetupRecord(msgspec.Struct, frozen=True):
    """Everything that was written, besides hooks and jobs."""

    files: tuple[WrittenText, ...] = ()
    folders: tuple[str, ...] = ()
    """The folders that were created for it."""


def record_path(root: Path) -> Path:
    return root / FOLDER / RECORD


def read_record(root: Path) -> SetupRecord | None:
    """The record; None if there is none. Raise ConfigError if it can't be read."""
    path = record_path(root)
    try:
        content = read_limited(path, OTHER)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return msgspec.json.decode(content, type=SetupRecord)
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            "The record of what init has written can't be read.", where=str(path), next_step="Restore it with git."
        ) from error


def encode_record(record: SetupRecord) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n"


def merged(before: SetupRecord | None, after: SetupRecord) -> SetupRecord:
    """What two calls of init have written."""
    if before is None:
        return after
    known = [*before.files, *(file for file in after.files if file not in before.files)]
    return SetupRecord(tuple(known), tuple(dict.fromkeys((*before.folders, *after.folders))))
