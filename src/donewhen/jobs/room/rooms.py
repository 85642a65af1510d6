"""A room on disk: made once, put back before each command, and compared afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.foundation.canonical import digest
from donewhen.foundation.git_objects import TreeFile
from donewhen.jobs.room.agreed_tree import AgreedFiles
from donewhen.jobs.room.blobs import Blobs
from donewhen.jobs.room.building import (
    changed_files,
    close_for_writing,
    lay_out,
    link_environments,
    remove_files,
    remove_unknown,
)
from donewhen.jobs.room.own_folders import RoomError, kept_folder, own_folder, writing_there
from donewhen.jobs.room.repository import check_out, finish_repository, remove_repository, start_repository
from donewhen.jobs.room.room_plan import Tree

# Files in the folders above the room that tools would read as if they were the project's.
_READ_FROM_ABOVE = (
    *("pytest.ini", ".pytest.ini", "pytest.toml", "tox.ini", "setup.cfg", "pyproject.toml", "conftest.py", "ruff.toml"),
    *(".ruff.toml", "mypy.ini", ".mypy.ini", ".flake8", ".pylintrc", "pylintrc", ".coveragerc", "node_modules"),
    *("package.json", ".npmrc", ".eslintrc", ".eslintrc.json", ".eslintrc.js", "eslint.config.js", "eslint.config.mjs"),
    *(".babelrc", "babel.config.js", "tsconfig.json", "Cargo.toml", ".cargo", "go.work", ".git"),
)


@dataclass
class Room:
    """A folder with the files of a tree."""

    folder: Path
    """The counterpart of the repository, or without git of the project."""
    tree: Tree = field(repr=False)
    agreed: AgreedFiles = field(repr=False)
    blobs: Blobs = field(repr=False)
    writable: Callable[[str], bool] = field(repr=False)
    environments: Sequence[str] = ()
    commit: str | None = None
    links: tuple[str, ...] = ()

    @property
    def project(self) -> Path:
        """The counterpart of the project's folder."""
        return self.folder / self.agreed.place.inside.rstrip("/")

    def prepare(self) -> None:
        """Make the folder have the files of the tree, and nothing else."""
        with writing_there(self.folder):
            self._lay_out()

    def _lay_out(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        remove_repository(self.folder)
        remove_unknown(self.folder, self.tree, self.links)
        missing = changed_files(self.folder, self.tree)
        remove_files(self.folder, missing)
        if self.commit is not None:
            self._check_out_with_git(missing, self.commit)
        else:
            self._write(missing)
        self.links = (*self.links, *link_environments(self.folder, self.agreed.place.top, self.environments, self.tree))
        if wrong := changed_files(self.folder, self.tree):
            raise RoomError(f"{wrong[0]} can't be laid out with the agreed content.", where=str(self.folder))

    def changed(self) -> list[str]:
        """The read-only files that don't have their content any more."""
        closed = {name: file for name, file in self.tree.items() if not self.writable(name)}
        return changed_files(self.folder, closed)

    def _check_out_with_git(self, missing: Sequence[str], commit: str) -> None:
        agreed = self.agreed.committed
        start_repository(self.folder, self.agreed.place.top, commit)
        committed = [name for name in missing if agreed.get(name) == self.tree[name] and not self._in_submodule(name)]
        if committed:
            check_out(self.folder, committed)
            close_for_writing(self.folder, committed, self.tree, self.writable)
        known = set(committed)
        self._write([name for name in missing if name not in known])
        differing = [name for name, file in self.tree.items() if self._is_stored_anew(name, file)]
        gone = [name for name in self._index_names() if name not in self.tree]
        finish_repository(self.folder, differing, gone, [*self.agreed.submodules])

    def _is_stored_anew(self, name: str, file: TreeFile) -> bool:
        if self._in_submodule(name):
            return True
        is_converted = name in self.agreed.converted and self.agreed.files.get(name) == file
        return not is_converted and self.agreed.committed.get(name) != file

    def _index_names(self) -> Sequence[str]:
        from donewhen.foundation.git import git

        listed = git(self.folder, "ls-files", "-z") or b""
        return [os.fsdecode(name) for name in listed.split(b"\0") if name]

    def _in_submodule(self, name: str) -> bool:
        return any(name.startswith(f"{folder}/") for folder in self.agreed.submodules)

    def _write(self, names: Sequence[str]) -> None:
        files: dict[str, TreeFile] = {name: self.tree[name] for name in names}
        lay_out(self.folder, files, self.blobs, writable=self.writable)


@contextmanager
def room_folder(project: Path, use: str) -> Iterator[Path]:
    """A folder for a room. The same one is used again, because files that are still right need not be written, but only
    by one process at a time; others get a new one."""
    real = Path(os.path.realpath(project))
    _refuse_settings_above(own_folder(), real)
    with kept_folder(f"{use}-{digest(os.fsencode(real))[7:23]}", real) as folder:
        yield folder / project.name


def _refuse_settings_above(base: Path, project: Path) -> None:
    """Raise RoomError if a folder above the rooms has files that checks would read: nobody has agreed to them.

    What lies above the project, too, is read by its checks anyway.
    """
    for folder in (base, *base.parents):
        if project.is_relative_to(folder):
            break
        for name in _READ_FROM_ABOVE:
            if os.path.lexists(folder / name):
                raise RoomError(
                    f"{folder / name} would be read by checks, but it is no part of the project.",
                    next_step=f"Remove it, or set TMPDIR to another folder than {base.parent}.",
                )
