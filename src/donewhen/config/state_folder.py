"""The ``.donewhen`` folder of a project."""

from __future__ import annotations

from pathlib import Path

from donewhen.foundation.files import sweep_temporary_files, write_atomically
from donewhen.foundation.locks import locked_folder

FOLDER = ".donewhen"
_FILES = {
    ".gitignore": "# Local to this machine.\nstate/\ncache/\nindex.sqlite*\n.donewhen-*\n",
    # git must not convert the line ends of hashed files.
    ".gitattributes": "* -text\n",
}


def prepare_state_folder(root: Path) -> Path:
    """Create ``.donewhen/`` in ``root`` with its git files, if missing; return it."""
    folder = root / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    if not all((folder / name).exists() for name in _FILES):
        with locked_folder(folder):
            sweep_temporary_files(folder)
            for name, content in _FILES.items():
                if not (folder / name).exists():
                    write_atomically(folder / name, content.encode())
    return folder
