"""The folder that donewhen keeps in a project."""

from __future__ import annotations

from pathlib import Path

from donewhen.foundation.files import write_atomically

FOLDER = ".donewhen"
_IGNORED = "# Local to this machine.\nstate/\ncache/\nindex.sqlite*\n"


def prepared(root: Path) -> Path:
    """``.donewhen/`` in ``root``, made with its ``.gitignore`` where it is not there yet."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    ignore = folder / ".gitignore"
    if not ignore.exists():
        write_atomically(ignore, _IGNORED.encode())
    return folder
