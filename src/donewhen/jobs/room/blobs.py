"""Contents of files by the names that git gives them: from a repository, its submodules, or a store of our own."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_whole
from donewhen.foundation.git import GitError
from donewhen.foundation.git_objects import ObjectReader, object_name

_BATCH = 200


class MissingContentError(DonewhenError):
    """A content is not on this machine."""

    code = "content_missing"


class ChangedContentError(MissingContentError):
    """A file has another content than a moment ago."""


class Blobs(Protocol):
    """Where contents come from."""

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        """Yield the contents of (file name, content name) pairs in this order; raise if one is missing or damaged."""
        ...


class GitBlobs:
    """The contents in a repository and its submodules. A context manager: it holds git processes."""

    def __init__(self, top: Path, repositories: Mapping[str, Path] | None = None) -> None:
        self._top = top
        self._repositories = dict(repositories or {})
        self._readers: dict[Path, ObjectReader] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def reader(self, name: str = "") -> ObjectReader:
        """The reader of the repository that a file belongs to."""
        above = [folder for folder in self._repositories if name.startswith(f"{folder}/")]
        top = self._repositories[max(above, key=len)] if above else self._top
        if top not in self._readers:
            self._readers[top] = ObjectReader(top)
        return self._readers[top]

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        for reader, group in groupby(files, key=lambda file: self.reader(file[0])):
            yield from reader.contents([blob for _, blob in group])


class StoredBlobs:
    """Contents in a folder of our own, each in a file with its name. They are compared with it when they are read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        for name, blob in files:
            content = self.get(blob)
            if content is None:
                raise MissingContentError(
                    f"The agreed content of {name} is not on this machine, or it is damaged.",
                    next_step="Agree again here: donewhen agree",
                )
            yield content

    def get(self, blob: str) -> bytes | None:
        """A content; None if it is missing or damaged."""
        try:
            content = read_whole(self._path(blob))
        except OSError:
            return None
        return content if object_name(content, "blob", blob) == blob else None

    def put(self, content: bytes, like: str) -> str:
        """Store a content, unless it is there, and return its name."""
        blob = object_name(content, "blob", like)
        if self.get(blob) is None:
            path = self._path(blob)
            path.parent.mkdir(parents=True, exist_ok=True)
            # Not flushed: there may be thousands, and what is damaged is noticed when it is read.
            temporary = path.with_name(f".donewhen-{os.urandom(8).hex()}.tmp")
            temporary.write_bytes(content)
            temporary.replace(path)
        return blob

    def _path(self, blob: str) -> Path:
        return self._folder / blob[:2] / blob


class SeveralBlobs:
    """Contents that are in the first source or, if not there, in the next."""

    def __init__(self, *sources: Blobs) -> None:
        self._sources = sources

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        first, *others = self._sources
        if not others:
            yield from first.contents(files)
            return
        position = 0
        while position < len(files):
            # Not all at once: they may be large, and a source that fails is asked again for what follows.
            end = min(len(files), position + _BATCH)
            try:
                for content in first.contents(files[position:end]):
                    position += 1
                    yield content
            except (GitError, MissingContentError) as error:
                yield self._content(files[position], others, error)
                position += 1

    def _content(self, file: tuple[str, str], sources: Sequence[Blobs], problem: DonewhenError) -> bytes:
        for source in sources:
            try:
                return next(iter([*source.contents([file])]))
            except (GitError, MissingContentError) as error:
                # That it was there a moment ago says more than that it is nowhere else.
                problem = problem if isinstance(problem, ChangedContentError) else error
        raise problem


class DiskBlobs:
    """The contents of files on disk, as long as they are what was read before."""

    def __init__(self, top: str) -> None:
        self._top = top

    def contents(self, files: Sequence[tuple[str, str]]) -> Iterator[bytes]:
        for name, blob in files:
            path = f"{self._top}/{name}"
            try:
                if os.path.islink(path):  # noqa: PTH114
                    content = os.fsencode(os.readlink(path))  # noqa: PTH115
                else:
                    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
                    with os.fdopen(descriptor, "rb") as file:
                        content = file.read()
            except OSError as error:
                raise MissingContentError(f"{name} can't be read: {error.strerror}.") from error
            if object_name(content, "blob", blob) != blob:
                raise ChangedContentError(f"{name} changed while it was being read.", next_step="Run it again.")
            yield content
