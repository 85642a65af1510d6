"""Resolves the program of a command to its path and content hash."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.files import opened
from donewhen.foundation.process import command_not_found

_LONGEST_SHEBANG = 4096
_DEEPEST = 5
_CHUNK = 1 << 18


class Executable(NamedTuple):
    """A resolved program."""

    path: Path
    hash: str


def resolve_executable(command: str, root: Path, environ: Mapping[str, str] = os.environ) -> Executable:
    """Resolve the first word of a command to a program, without searching folders that others can write to."""
    found = str(root / command) if "/" in command else shutil.which(command, path=safe_path(root, environ))
    if found is None or not Path(found).is_file() or not os.access(found, os.X_OK):
        raise command_not_found(
            command,
            "Install it, or give its path. Programs in the project and in temporary folders are not found by name.",
        )
    path = Path(found)
    return Executable(path, _content_hash(path, root, environ, 0))


def safe_path(root: Path, environ: Mapping[str, str] = os.environ, *, environments: bool = True) -> str:
    """PATH without folders in which others could place a program with a well-known name.

    These are relative folders, folders in the project (except those of a virtual environment) and temporary folders.
    """
    # An empty PATH would mean the current folder.
    return os.pathsep.join(_safe_folders(root, environ, environments)) or os.defpath


def _safe_folders(root: Path, environ: Mapping[str, str], environments: bool) -> Iterator[str]:
    # As texts: this is asked before each start of git, and paths as objects would cost more than the rest.
    writable = {os.path.realpath(folder) for folder in (root, tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm")}  # noqa: S108
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        # An empty entry means the current folder.
        if not os.path.isabs(folder):  # noqa: PTH117
            continue
        resolved = os.path.realpath(folder)
        unsafe = any(resolved == parent or resolved.startswith(f"{parent.rstrip('/')}/") for parent in writable)
        if not unsafe or (environments and os.path.isfile(f"{os.path.dirname(resolved)}/pyvenv.cfg")):  # noqa: PTH113, PTH120
            yield folder


def _content_hash(path: Path, root: Path, environ: Mapping[str, str], depth: int) -> str:
    """The hash of a program. In a script's first line, the interpreter's path is replaced by its content hash."""
    with opened(path) as file:
        first = file.readline(_LONGEST_SHEBANG)
        if not first.startswith(b"#!") or depth == _DEEPEST:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
        rest = _hash_rest(file)
    line = first[2:].decode("utf-8", "replace")
    return digest_of([_interpreter_hash(line, root, environ, depth), rest])


def _hash_rest(file: IO[bytes]) -> str:
    content_hash = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        content_hash.update(chunk)
    return content_hash.hexdigest()


def _interpreter_hash(line: str, root: Path, environ: Mapping[str, str], depth: int) -> str:
    try:
        words = shlex.split(line)
        programs = [0]
        if Path(words[0]).name == "env":
            programs += [
                index for index, word in enumerate(words) if index and not word.startswith("-") and "=" not in word
            ][:1]
        return digest_of(
            [
                _program_hash(word, root, environ, depth) if index in programs else word
                for index, word in enumerate(words)
            ]
        )
    except (OSError, ValueError, IndexError):
        return line


def _program_hash(word: str, root: Path, environ: Mapping[str, str], depth: int) -> str:
    found = word if os.path.isabs(word) else shutil.which(word, path=safe_path(root, environ))  # noqa: PTH117
    if found is None:
        raise FileNotFoundError(word)
    return _content_hash(Path(found), root, environ, depth + 1)
