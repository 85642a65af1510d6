"""What a filesystem can do, and how a path is written."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from donewhen.foundation.errors import DonewhenError, ExitCode


class FilesystemError(DonewhenError):
    """A file could not be read or written as asked."""

    code = "filesystem"
    exit_code = ExitCode.USAGE


class PathEscapeError(FilesystemError):
    """A path leads, or could lead, out of the workspace."""

    code = "path_escape"


@runtime_checkable
class Filesystem(Protocol):
    """Files below one root.

    Paths are relative, with ``/`` between their parts. A path that leads out of the root raises
    :class:`PathEscapeError` from every method: asking about it is already a mistake.
    """

    def exists(self, path: str) -> bool:
        """Whether there is a file or a directory."""
        ...

    def is_file(self, path: str) -> bool:
        """Whether there is a regular file."""
        ...

    def is_dir(self, path: str) -> bool:
        """Whether there is a directory."""
        ...

    def read_bytes(self, path: str) -> bytes:
        """The content of a regular file."""
        ...

    def read_text(self, path: str) -> str:
        """The content of a regular file that is UTF-8 text."""
        ...

    def write_bytes(self, path: str, data: bytes) -> None:
        """Make ``data`` the content, with any missing directories above it."""
        ...

    def write_text(self, path: str, text: str) -> None:
        """Make ``text`` the content, as UTF-8, with any missing directories above it."""
        ...

    def list_dir(self, path: str = ".") -> tuple[str, ...]:
        """The names in a directory, sorted."""
        ...

    def delete(self, path: str) -> None:
        """Remove a file."""
        ...


def split_path(path: str) -> tuple[str, ...]:
    """The parts of ``path`` below the root, with ``.`` and ``..`` worked out; the root itself has none."""
    if not isinstance(path, str):
        raise FilesystemError(f"A path is a str, not {type(path).__name__}.")
    if "\0" in path or any("\ud800" <= character <= "\udfff" for character in path):
        raise FilesystemError(f"The path {path!r} has a character in it that no file name can have.")
    if not path:
        raise FilesystemError("The path is empty.", next_step="Use '.' for the root.")
    if path.startswith("/"):
        raise PathEscapeError(
            f"The path {path!r} is absolute.", next_step="Give it relative to the root of the workspace."
        )
    parts: list[str] = []
    for part in path.split("/"):
        if part == "..":
            if not parts:
                raise PathEscapeError(f"The path {path!r} leads out of the workspace.")
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return tuple(parts)


def decode(path: str, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FilesystemError(f"{path!r} is not UTF-8 text: {error.reason} at byte {error.start}.") from error


def encode(path: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise FilesystemError(f"The text for {path!r} can't be written as UTF-8: {error.reason}.") from error


def not_found(path: str) -> FilesystemError:
    return FilesystemError(f"There is no file {path!r}.")


def not_regular(path: str) -> FilesystemError:
    return FilesystemError(f"{path!r} is not a regular file.")


def not_directory(path: str) -> FilesystemError:
    return FilesystemError(f"{path!r} is not a directory.")
