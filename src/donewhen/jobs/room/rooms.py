"""A room on disk: made once, put back before each command, and compared afterwards."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.foundation.canonical import digest
from donewhen.foundation.git_objects import TreeFile, folders_of
from donewhen.jobs.room.agreed_tree import AgreedFiles
from donewhen.jobs.room.blobs import Blobs
from donewhen.jobs.room.building import (
    changed_files,
    close_for_writing,
    lay_out,
    link_environments,
    marks_of,
    remove_files,
    remove_unknown,
    touched_files,
)
from donewhen.jobs.room.built_files import BuiltFiles, age_files
from donewhen.jobs.room.judging_names import is_settings
from donewhen.jobs.room.moved_folders import watching_folders
from donewhen.jobs.room.own_folders import RoomError, kept_folder, own_folder, temporary_folder, writing_there
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
    mounted: bool = False
    """Whether commands find it at the repository's own path."""
    commit: str | None = None
    judging: Callable[[str], bool] = field(default=lambda _: False, repr=False)
    """Whether a file judges the work, so that no command may touch it, not even for a while."""
    built: BuiltFiles = field(default_factory=BuiltFiles, repr=False)
    """What `make` builds in it."""
    changed_names: Collection[str] = field(default=(), repr=False)
    """The files that the agent has changed."""
    _closed: dict[str, TreeFile] = field(default_factory=dict, repr=False)
    """The files that no command may write to."""
    _marks: dict[str, tuple[int, int]] = field(default_factory=dict, repr=False)

    @property
    def project(self) -> Path:
        """The counterpart of the project's folder."""
        return self.folder / self.agreed.place.inside.rstrip("/")

    def prepare(self) -> None:
        """Make the folder have the files of the tree, and nothing else."""
        with writing_there(self.folder):
            self._lay_out()
            age_files(self.folder, self.changed_names, self.built, self.tree)
        self._closed = {name: file for name, file in self.tree.items() if not self.writable(name)}
        self._marks = marks_of(self.folder, self._closed)

    def _lay_out(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.folder.is_symlink():
            raise RoomError("The folder of the room is not a folder.", where=str(self.folder))
        remove_repository(self.folder)
        remove_unknown(self.folder, self.tree)
        missing = changed_files(self.folder, self.tree, own=True)
        remove_files(self.folder, missing)
        if self.commit is not None:
            self._check_out_with_git(missing, self.commit)
        else:
            self._write(missing)
        top = self.agreed.place.top
        link_environments(self.folder, top, self.environments, self.tree, mounted=self.mounted)
        if wrong := changed_files(self.folder, self.tree):
            raise RoomError(f"{wrong[0]} can't be laid out with the agreed content.", where=str(self.folder))

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Meanwhile, a command runs in the room: remember which agreed folders it moves."""
        folders = folders_of(name for name in self._marks)
        with watching_folders(self.folder, sorted(folders)) as moved:
            yield
        for name in moved:
            # Their files are others, or were for a while.
            self._marks |= {file: (0, 0) for file in self._marks if file.startswith(f"{name}/")}

    def changed(self) -> list[str]:
        """The read-only files that don't have their content any more, and those that judge and were written to,
        although they have it again."""
        changed = changed_files(self.folder, self._closed)
        touched = (name for name in touched_files(self.folder, self._marks) if self.judging(name))
        return [*dict.fromkeys((*changed, *touched))]

    def _check_out_with_git(self, missing: Sequence[str], commit: str) -> None:
        converted = {name: file for name, file in self.agreed.committed.items() if self._is_converted(name)}
        stored = {
            name: file
            for name, file in self.tree.items()
            if self.agreed.committed.get(name) == file and not self._in_submodule(name)
        }
        start_repository(self.folder, self.agreed.place.top, commit, {**stored, **converted})
        committed = [name for name in missing if name in stored]
        if committed:
            check_out(self.folder, committed)
            close_for_writing(self.folder, committed, self.tree, self.writable)
        self._write([name for name in missing if name not in stored])
        finish_repository(self.folder, [name for name in self.tree if name not in stored and name not in converted])

    def _is_converted(self, name: str) -> bool:
        """Whether git stores a file with another content than it has in the folder, and knows how."""
        return (
            name in self.agreed.converted
            and self.tree.get(name) == self.agreed.files.get(name)
            and not self._in_submodule(name)
        )

    def _in_submodule(self, name: str) -> bool:
        return any(name.startswith(f"{folder}/") for folder in self.agreed.submodules)

    def _write(self, names: Sequence[str]) -> None:
        files: dict[str, TreeFile] = {name: self.tree[name] for name in names}
        lay_out(self.folder, files, self.blobs, writable=self.writable)


@contextmanager
def room_folder(project: Path, use: str, *, keep: bool = True) -> Iterator[Path]:
    """A folder for a room. If it is to be kept, the same one is used again, because files that are still right need not
    be written, but only by one process at a time; others get a new one."""
    real = Path(os.path.realpath(project))
    base = own_folder()
    _refuse_settings_above(base, real)
    name = f"{use}-{digest(os.fsencode(real))[7:23]}"
    if keep:
        with kept_folder(name, real) as folder:
            _keep_only(folder, project.name)
            yield folder / project.name
        return
    try:
        with temporary_folder(name) as folder:
            yield folder / project.name
    finally:
        with suppress(OSError):
            base.rmdir()


def _keep_only(folder: Path, name: str) -> None:
    """Remove everything in a folder but the folder of this name: tools would read what lies above the room."""
    with os.scandir(folder) as entries:
        others = [entry.name for entry in entries if entry.name != name or not entry.is_dir(follow_symlinks=False)]
    remove_files(folder, others)


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
