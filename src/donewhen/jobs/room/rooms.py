"""A room on disk: made once, put back before each command, and compared afterwards."""

from __future__ import annotations

import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.foundation.canonical import digest
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.git_objects import TreeFile
from donewhen.jobs.room.agreed_tree import AgreedFiles
from donewhen.jobs.room.blobs import Blobs
from donewhen.jobs.room.building import (
    changed_files,
    close_for_writing,
    lay_out,
    link_environments,
    remove_files,
    remove_room,
    remove_unknown,
)
from donewhen.jobs.room.judging_names import is_settings
from donewhen.jobs.room.repository import check_out, finish_repository, remove_repository, start_repository
from donewhen.jobs.room.room_plan import Tree

# Files in the folders above the room that tools would read as if they were the project's.
_READ_FROM_ABOVE = (
    *(".git", ".cargo", ".coveragerc", ".config", ".python-version", ".tool-versions", ".nvmrc", ".editorconfig"),
    *("node_modules", "biome.json", "dprint.json", "deno.lock", "poetry.toml", "hatch.toml", "mkdocs.yml"),
)
# The settings of one tool have many endings. Others that are not hidden are known by their names.
_STARTS = (
    *(".npmrc", ".yarnrc", ".pnpmfile", ".eslintrc", ".prettierrc", ".stylelintrc", ".babelrc", ".swcrc", ".mocharc"),
    *(".nycrc", ".c8rc", ".taprc", ".flake8", ".pylintrc", ".mypy.ini", ".ruff.toml", ".pytest.", ".bandit", ".isort"),
    *(
        ".golangci",
        ".rubocop",
        ".rspec",
        ".clang-",
        ".rustfmt",
        ".clippy",
        ".bazelrc",
        ".swiftlint",
        ".php-cs",
        ".yamllint",
    ),
    *(".markdownlint", ".pre-commit-config", ".shellcheckrc", ".env", ".terraform", ".justfile"),
)


class RoomError(DonewhenError):
    """The room can't be made."""

    code = "room"


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
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.folder.is_symlink():
            raise RoomError("The folder of the room is not a folder.", where=str(self.folder))
        remove_repository(self.folder)
        remove_unknown(self.folder, self.tree, self.links)
        missing = changed_files(self.folder, self.tree, own=True)
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
        differing = [name for name, file in self.tree.items() if agreed.get(name) != file or self._in_submodule(name)]
        gone = [name for name in self._index_names() if name not in self.tree]
        finish_repository(self.folder, differing, gone, [*self.agreed.submodules])

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
    base = _own_folder()
    _refuse_settings_above(base, Path(os.path.realpath(project)))
    name = f"{use}-{digest(os.fsencode(os.path.realpath(project)))[7:23]}"
    descriptor = os.open(base / f"{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            folder = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=base))
            try:
                yield folder / project.name
            finally:
                remove_room(folder)
            return
        folder = base / name
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if folder.is_symlink() or not folder.is_dir():
            raise RoomError("The folder of the room is not a folder.", where=str(folder), next_step=f"rm -rf {folder}")
        _keep_only(folder, project.name)
        yield folder / project.name
    finally:
        os.close(descriptor)


def _keep_only(folder: Path, name: str) -> None:
    """Remove everything in a folder but the folder of this name: tools would read what lies above the room."""
    with os.scandir(folder) as entries:
        others = [entry.name for entry in entries if entry.name != name or not entry.is_dir(follow_symlinks=False)]
    remove_files(folder, others)


def _own_folder() -> Path:
    """The folder of all rooms of this user, which nobody else can write to."""
    base = Path(os.path.realpath(tempfile.gettempdir())) / f"donewhen-rooms-{os.getuid()}"
    with suppress(FileExistsError):
        base.mkdir(mode=0o700)
    status = base.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
        raise RoomError("The folder for rooms belongs to somebody else.", where=str(base), next_step="Set TMPDIR.")
    if stat.S_IMODE(status.st_mode) & 0o077:
        base.chmod(0o700)
    return base


def _refuse_settings_above(base: Path, project: Path) -> None:
    """Raise RoomError if a folder above the rooms has files that checks would read: nobody has agreed to them.

    What lies above the project, too, is read by its checks anyway.
    """
    for folder in (base, *base.parents):
        if project.is_relative_to(folder):
            break
        for name in sorted(os.listdir(folder)):  # noqa: PTH208
            if name in _READ_FROM_ABOVE or name.startswith(_STARTS) or (name[0] != "." and is_settings(name)):
                raise RoomError(
                    f"{folder / name} would be read by checks, but it is no part of the project.",
                    next_step=f"Remove it, or set TMPDIR to another folder than {base.parent}.",
                )
