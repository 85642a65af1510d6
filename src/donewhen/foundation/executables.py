"""Which program a command really is: its place, and what is in it."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.process import CommandNotRunnableError

_LONGEST_SHEBANG = 4096
_DEEPEST = 5


class Executable(NamedTuple):
    """A program as it was found."""

    path: Path
    hash: str


def resolve_executable(command: str, root: Path, environ: Mapping[str, str] = os.environ) -> Executable:
    """The program that a command's first word stands for. There are no aliases, and no programs left lying about."""
    found = str(root / command) if "/" in command else shutil.which(command, path=safe_path(root, environ))
    if found is None or not Path(found).is_file() or not os.access(found, os.X_OK):
        raise CommandNotRunnableError(
            f"The command {command!r} was not found.",
            next_step="Install it, or give its path; programs in the project and in folders for temporary files "
            "are not found by their names.",
        )
    path = Path(found)
    return Executable(path, _content_hash(path, root, 0))


def safe_path(root: Path, environ: Mapping[str, str] = os.environ, *, environments: bool = True) -> str:
    """PATH without the places where anybody can leave a program with a well-known name.

    Those are relative folders, folders in the project (except a virtual environment's) and those for temporary files.
    """
    # An empty PATH would mean the current folder.
    return os.pathsep.join(_safe_folders(root, environ, environments)) or os.defpath


def _safe_folders(root: Path, environ: Mapping[str, str], environments: bool) -> Iterator[str]:
    project = Path(os.path.realpath(root))
    temporary = [Path(os.path.realpath(one)) for one in {tempfile.gettempdir(), "/tmp", "/var/tmp", "/dev/shm"}]  # noqa: S108
    for folder in environ.get("PATH", os.defpath).split(os.pathsep):
        # pathlib would make "." of an empty entry, which is what a shell makes of it.
        if not os.path.isabs(folder):  # noqa: PTH117
            continue
        place = Path(os.path.realpath(folder))
        open_to_all = any(place.is_relative_to(one) for one in (project, *temporary))
        if not open_to_all or (environments and (place.parent / "pyvenv.cfg").is_file()):
            yield folder


def _content_hash(path: Path, root: Path, depth: int) -> str:
    """What is in a program. A script's first line names a place of one machine; what stands there counts instead."""
    with path.open("rb") as file:
        first = file.readline(_LONGEST_SHEBANG)
        if not first.startswith(b"#!") or depth == _DEEPEST:
            file.seek(0)
            return hashlib.file_digest(file, "sha256").hexdigest()
        rest = hashlib.sha256(file.read()).hexdigest()
    return digest_of([_interpreter_hash(first[2:].decode("utf-8", "replace"), root, depth), rest])


def _interpreter_hash(line: str, root: Path, depth: int) -> str:
    try:
        words = shlex.split(line)
        programs = [0]
        if Path(words[0]).name == "env":
            programs += [at for at, one in enumerate(words) if at and not one.startswith("-") and "=" not in one][:1]
        return digest_of([_word_hash(one, root, depth) if at in programs else one for at, one in enumerate(words)])
    except (OSError, ValueError, IndexError):
        return line


def _word_hash(word: str, root: Path, depth: int) -> str:
    found = word if os.path.isabs(word) else shutil.which(word, path=safe_path(root))  # noqa: PTH117
    if found is None:
        raise FileNotFoundError(word)
    return _content_hash(Path(found), root, depth + 1)
