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
        self.root = Path(root).resolve()
        if not self.root.is_dir():
            raise FilesystemError(f"{str(root)!r} is not a directory.", next_step="Give an existing folder as root.")

    def exists(self, path: str) -> bool:
        return self._mode(path) is not None

    def is_file(self, path: str) -> bool:
        return stat.S_ISREG(self._mode(path) or 0)

    def is_dir(self, path: str) -> bool:
        return stat.S_ISDIR(self._mode(path) or 0)

    def read_bytes(self, path: str) -> bytes:
        with self._parent(path) as (directory, name):
            # Not blocking: a named pipe must not hang the reader before it is seen for what it is.
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
            with _explained(path), os.fdopen(os.open(name, flags, dir_fd=directory), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise not_regular(path)
                return file.read()

    def read_text(self, path: str) -> str:
        return decode(path, self.read_bytes(path))

    def write_bytes(self, path: str, data: bytes) -> None:
        with self._parent(path, create=True) as (directory, name), _explained(path):
            if self.exists(path) and not self.is_file(path):
                raise not_regular(path)
            replace_in_directory(directory, name, data)

    def write_text(self, path: str, text: str) -> None:
        self.write_bytes(path, text.encode())

    def list_dir(self, path: str = ".") -> tuple[str, ...]:
        if not self.is_dir(path):
            raise not_directory(path) if self.exists(path) else not_found(path)
        with _explained(path):
            return tuple(sorted(entry.name for entry in self._resolve(path).iterdir()))

    def delete(self, path: str) -> None:
        parts = split_path(path)
        # The last part is not resolved: deleting a link removes the link.
        above = "/".join(parts[:-1]) or "."
        with self._parent(f"{above}/_") as (directory, _), _explained(path):
            if not parts or stat.S_ISDIR(os.stat(parts[-1], dir_fd=directory, follow_symlinks=False).st_mode):
                raise not_regular(path)
            os.unlink(parts[-1], dir_fd=directory)

    def __repr__(self) -> str:
        return f"HostFilesystem({str(self.root)!r})"

    def _resolve(self, path: str) -> Path:
        try:
            resolved = Path(os.path.realpath(self.root.joinpath(*split_path(path))))
        except OSError as error:
            raise FilesystemError(f"{path!r} could not be resolved: {error.strerror}.") from error
        if not resolved.is_relative_to(self.root):
            raise PathEscapeError(f"The path {path!r} leads out of the workspace through a symlink.")
        return resolved

    def _mode(self, path: str) -> int | None:
        try:
            return os.lstat(self._resolve(path)).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise FilesystemError(f"{path!r} could not be looked at: {error.strerror}.") from error

    @contextmanager
    def _parent(self, path: str, *, create: bool = False) -> Iterator[tuple[int, str]]:
        """The open directory that holds ``path``, and its name in there."""
        *above, name = self._resolve(path).relative_to(self.root).parts or (".",)
        with _explained(path):
            directory = os.open(self.root, _DIRECTORY)
        try:
            for part in above:
                with _explained(path):
                    if create:
                        _make_directory(part, directory)
                    following = os.open(part, _DIRECTORY, dir_fd=directory)
                os.close(directory)
                directory = following
            yield directory, name
        finally:
            os.close(directory)


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
