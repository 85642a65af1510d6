"""Programs outside of the project that commands and agreed files name by a path, such as `~/venvs/shop/bin/python`."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

_HOME = r"~|\$\$?(?:HOME\b|\{HOME\}|\(HOME\))"
# In a script, a path ends where a shell, make or a programming language would end it.
_START = rf"(?<![\w./~$)}}\]\\-])({_HOME})?|(?<![\w.])((?:\.\./)*\.\.)"
_PATH = re.compile(rf"(?:{_START})(/[^\s'\"`;|&<>(){{}}\[\],:=*?!#\\]+)")
_WORD = re.compile(rf"({_HOME})?(/.+)", re.DOTALL)
_MAX_BYTES, _MAX_PATHS = 1 << 18, 2_000


def programs_named_in(
    words: Iterable[str], contents: Iterable[bytes], folder: Path, top: Path, home: Path
) -> tuple[Path, ...]:
    """The programs that lie outside of ``top`` and are named by a path in these words or contents of scripts.

    Relative paths are relative to ``folder``. For a virtual environment that is named, the program is its Python.
    """
    paths: dict[str, None] = {}
    for path in _paths(words, contents, str(folder), str(home)):
        paths[path] = None
        if len(paths) >= _MAX_PATHS:
            break
    found = (program for path in paths if not _is_in(path, top) for program in _programs_at(path))
    return tuple(map(Path, dict.fromkeys(found)))


def is_program(path: str) -> bool:
    """Whether it is a regular file, perhaps behind links, that may be executed."""
    with suppress(OSError):
        return stat.S_ISREG(os.stat(path).st_mode) and os.access(path, os.X_OK)  # noqa: PTH116
    return False


def _paths(words: Iterable[str], contents: Iterable[bytes], folder: str, home: str) -> Iterator[str]:
    for word in words:
        # As a whole, because a path can have spaces in it.
        if found := _WORD.fullmatch(word.partition("=")[2] or word):
            yield os.path.normpath(f"{home if found[1] else ''}{found[2]}")
    for text in (*words, *(content[:_MAX_BYTES].decode("utf-8", "surrogateescape") for content in contents)):
        for at_home, above, rest in _PATH.findall(text):
            start = home if at_home else f"{folder}/{above}" if above else ""
            yield os.path.normpath(f"{start}{rest}")


def _programs_at(path: str) -> Iterator[str]:
    if "\0" in path:
        return
    parent = os.path.dirname(path)  # noqa: PTH120
    # An environment, its folder of programs, and the script there that a shell reads.
    for folder in (path, parent, os.path.dirname(parent)):  # noqa: PTH120
        inner = os.path.relpath(path, folder)
        named = inner in (".", "bin") or inner.startswith("bin/activate")
        if named and os.path.isfile(f"{folder}/pyvenv.cfg") and is_program(f"{folder}/bin/python"):  # noqa: PTH113
            yield f"{folder}/bin/python"
            return
    if is_program(path):
        yield path


def _is_in(path: str, top: Path) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in (top, os.path.realpath(top)))
