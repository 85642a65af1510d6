"""The folder that donewhen keeps in a project."""

from __future__ import annotations

from pathlib import Path

from donewhen.foundation.files import write_atomically
from donewhen.foundation.locks import locked_folder

FOLDER = ".donewhen"
_FILES = {
    ".gitignore": "# Local to this machine.\nstate/\ncache/\nindex.sqlite*\n.donewhen-*\n",
    # What is hashed must not change its line ends on the way through git.
    ".gitattributes": "* -text\n",
}


def prepare_state_folder(root: Path) -> Path:
    """``.donewhen/`` in ``root``, made with its ``.gitignore`` where it is not there yet."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / name).exists() for name in _FILES):
        with locked_folder(folder):
            for left in folder.glob(".donewhen-*.tmp"):
                left.unlink(missing_ok=True)
            for name, content in _FILES.items():
                if not (folder / name).exists():
                    write_atomically(folder / name, content.encode())
    return folder
