"""A folder of this machine as a filesystem that can't be left."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from donewhen.filesystem.protocol import (
    FilesystemError,
    PathEscapeError,
    decode,
    encode,
    not_directory,
    not_found,
    not_regular,
    split_path,
)
from donewhen.foundation.files import replace_in_directory

if TYPE_CHECKING:
    from collections.abc import Iterator

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


class HostFilesystem:
    """The folder ``root`` and what is below it.

    ``..`` and symlinks that lead out are refused; symlinks that stay inside work. A path is resolved first,
    and then opened part by part without following links, so that a link swapped in between is refused too.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        try:
            self.root = Path(root).resolve(strict=True)
            is_folder = stat.S_ISDIR(self.root.stat().st_mode)
        except (OSError, ValueError, RuntimeError) as error:
            raise FilesystemError(
                f"{str(root)!r} can't be the root: {getattr(error, 'strerror', None) or error}.",
                next_step="Give an existing folder as root.",
            ) from error
        if not is_folder:
            raise FilesystemError(f"{str(root)!r} is not a directory.", next_step="Give an existing folder as root.")

    def exists(self, path: str) -> bool:
        return self._mode(path) is not None

    def is_file(self, path: str) -> bool:
        return stat.S_ISREG(self._mode(path) or 0)

    def is_dir(self, path: str) -> bool:
        return stat.S_ISDIR(self._mode(path) or 0)

    def read_bytes(self, path: str) -> bytes:
        # Not blocking: a named pipe must not hang the reader before it is seen for what it is.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
        with (
            _explained(path),
            self._parent(path) as (directory, name),
            # By an opener: os.fdopen leaves the descriptor open when it turns out to be a directory's.
            open(name, "rb", opener=lambda name, _: os.open(name, flags, dir_fd=directory)) as file,
        ):
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise not_regular(path)
            return file.read()

    def read_text(self, path: str) -> str:
        return decode(path, self.read_bytes(path))

    def write_bytes(self, path: str, data: bytes) -> None:
        with _explained(path), self._parent(path, create=True) as (directory, name):
            mode = _mode_in(directory, name)
            if name == "." or (mode is not None and not stat.S_ISREG(mode)):
                raise not_regular(path)
            replace_in_directory(directory, name, data)

    def write_text(self, path: str, text: str) -> None:
        self.write_bytes(path, encode(path, text))

    def list_dir(self, path: str = ".") -> tuple[str, ...]:
        with _explained(path), self._parent(path) as (directory, name):
            descriptor = os.open(name, _DIRECTORY, dir_fd=directory)
            try:
                return tuple(sorted(os.listdir(descriptor)))  # noqa: PTH208 - of an open directory
            finally:
                os.close(descriptor)

    def delete(self, path: str) -> None:
        parts = split_path(path)
        if not parts:
            raise not_regular(path)
        # The last part is not resolved: deleting a link removes the link.
        with _explained(path), self._opened(self._resolve(parts[:-1], path)) as directory:
            if stat.S_ISDIR(os.stat(parts[-1], dir_fd=directory, follow_symlinks=False).st_mode):
                raise not_regular(path)
            os.unlink(parts[-1], dir_fd=directory)

    def __repr__(self) -> str:
        return f"HostFilesystem({str(self.root)!r})"

    def _resolve(self, parts: tuple[str, ...], path: str) -> Path:
        resolved = Path(os.path.realpath(self.root.joinpath(*parts)))
        if not resolved.is_relative_to(self.root):
            raise PathEscapeError(f"The path {path!r} leads out of the workspace through a symlink.")
        return resolved

    def _mode(self, path: str) -> int | None:
        """What kind of thing is there; None for nothing."""
        try:
            with self._parent(path) as (directory, name):
                mode = _mode_in(directory, name)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise FilesystemError(f"{path!r} could not be looked at: {error.strerror}.") from error
        if mode is not None and stat.S_ISLNK(mode):
            # The path was resolved: a link here is dangling, or was put in place just now.
            return None
        return mode

    @contextmanager
    def _parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The open directory that holds ``path``, and its name in there."""
        resolved = self._resolve(split_path(path), path)
        folder, name = (self.root, ".") if resolved == self.root else (resolved.parent, resolved.name)
        with self._opened(folder, create=create) as directory:
            yield directory, name

    @contextmanager
    def _opened(self, folder: Path, *, create: bool = False) -> Iterator[int]:
        """A resolved folder, opened part by part from the root."""
        directory = os.open(self.root, _DIRECTORY)
        try:
            for part in folder.relative_to(self.root).parts:
                if create:
                    _make_directory(part, directory)
                following = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = following
            yield directory
        finally:
            os.close(directory)


def _mode_in(directory: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None


def _make_directory(name: str, directory: int) -> None:
    try:
        os.mkdir(name, dir_fd=directory)
    except FileExistsError:
        return


@contextmanager
def _explained(path: str) -> Iterator[None]:
    """Turn what the operating system says into a sentence about ``path``."""
    try:
        yield
    except FileNotFoundError:
        raise not_found(path) from None
    except IsADirectoryError:
        raise not_regular(path) from None
    except NotADirectoryError:
        raise not_directory(path) from None
    except OSError as error:
        raise FilesystemError(f"{path!r}: {error.strerror}.") from error
