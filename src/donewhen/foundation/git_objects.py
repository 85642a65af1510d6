"""Reads git objects and checks each against its name, so that a repository can't show other contents than it names.

git itself does not check that when it reads. From the name of a commit, everything below it is determined: its tree,
the trees in it, and the contents of its files.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from donewhen.foundation.git import GitError, git_start

LINK = "120000"
FILE = "100644"
PROGRAM = "100755"
_SUBMODULE = "160000"
_FOLDER = "40000"
_SHA1_SIZE = 20


class TreeFile(NamedTuple):
    """A file of a tree: its mode, and the name that git gives its content."""

    mode: str
    blob: str


class ObjectReader:
    """Reads the objects of a repository. A context manager: it holds a git process."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End git."""
        process, self._process = self._process, None
        if process is None:
            return
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        with suppress(OSError):
            process.kill()
        process.wait()

    def commit_tree(self, commit: str) -> str:
        """The name of a commit's tree."""
        content = self._one(commit, "commit")
        first = content.partition(b"\n")[0]
        if not first.startswith(b"tree "):
            raise self._error(commit)
        return first.removeprefix(b"tree ").decode("ascii", "replace")

    def parents(self, commit: str) -> tuple[str, ...]:
        """The names of a commit's parents."""
        lines = self._one(commit, "commit").partition(b"\n\n")[0].split(b"\n")
        return tuple(line.removeprefix(b"parent ").decode() for line in lines if line.startswith(b"parent "))

    def files(self, commit: str) -> tuple[dict[str, TreeFile], dict[str, str]]:
        """The files of a commit by name, and its submodules: folders with the names of their commits.

        Raise GitError for a folder that could be read in two ways: git writes none like that, but a commit made by
        hand can have one, and what is judged would not be what another command of git shows or checks out.
        """
        files: dict[str, TreeFile] = {}
        submodules: dict[str, str] = {}
        level = [("", self.commit_tree(commit))]
        while level:
            following: list[tuple[str, str]] = []
            for (folder, tree), content in zip(level, self.contents([tree for _, tree in level], "tree"), strict=True):
                before = b""
                names: set[str] = set()
                for mode, name, entry in _tree_entries(content, len(level[0][1]) // 2):
                    key = os.fsencode(name) + (b"/" if mode == _FOLDER else b"")
                    if name in names or key < before:
                        raise self._ambiguous(tree, f"{folder}{name}")
                    names.add(name)
                    before = key
                    if mode == _FOLDER:
                        following.append((f"{folder}{name}/", entry))
                    elif mode == _SUBMODULE:
                        submodules[f"{folder}{name}"] = entry
                    else:
                        files[f"{folder}{name}"] = TreeFile(mode, entry)
            level = following
        return files, submodules

    def contents(self, names: Sequence[str], kind: str = "blob") -> Iterator[bytes]:
        """Yield the contents of objects in this order. Raise GitError for a missing one and one with another hash."""
        process = self._started()
        writer = threading.Thread(target=self._write_names, args=(process, names), daemon=True)
        writer.start()
        complete = False
        try:
            for name in names:
                yield self._read(process, name, kind)
            complete = True
        finally:
            if not complete:
                # The rest of the answers would be taken for those of the next question.
                self.close()
            writer.join()

    def content(self, blob: str) -> bytes:
        """The content of one file."""
        return self._one(blob, "blob")

    def _one(self, name: str, kind: str) -> bytes:
        return next(iter([*self.contents([name], kind)]))

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            start = git_start(self.top, "cat-file", "--batch")
            if start is None:
                raise GitError("The repository belongs to another user.", where=str(self.top))
            try:
                self._process = subprocess.Popen(
                    start.argv,
                    cwd=self.top,
                    env=start.environment,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                )
            except OSError as error:
                raise GitError(f"git can't be started: {error.strerror}.", where=str(self.top)) from error
        return self._process

    def _write_names(self, process: subprocess.Popen[bytes], names: Iterable[str]) -> None:
        with suppress(OSError, ValueError):
            if process.stdin is not None:
                process.stdin.write("".join(f"{name}\n" for name in names).encode())
                process.stdin.flush()

    def _read(self, process: subprocess.Popen[bytes], name: str, kind: str) -> bytes:
        if process.stdout is None:
            raise self._error(name)
        header = process.stdout.readline().split()
        if len(header) != 3 or not header[2].isdigit():
            raise self._error(name)
        content = process.stdout.read(int(header[2]))
        process.stdout.read(1)
        if header[1] != kind.encode() or object_name(content, kind, name) != name:
            raise self._error(name)
        return content

    def _ambiguous(self, tree: str, name: str) -> GitError:
        message = (
            f"The folder {tree[:12]} of a commit lists {name!r} twice or out of order, so it can be read in two ways."
        )
        return GitError(message, where=str(self.top), next_step="git fsck, then commit the files again")

    def _error(self, name: str) -> GitError:
        message = f"git can't read the object {name[:12]}, or it is damaged."
        return GitError(message, where=str(self.top), next_step="git fsck")


def object_name(content: bytes, kind: str, like: str) -> str:
    """The name that git gives an object, with the same algorithm as the name ``like``."""
    hasher = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    hasher.update(b"%s %d\0" % (kind.encode(), len(content)))
    hasher.update(content)
    return hasher.hexdigest()


def _tree_entries(content: bytes, size: int) -> Iterator[tuple[str, str, str]]:
    position = 0
    while position < len(content):
        space = content.index(b" ", position)
        end = content.index(b"\0", space)
        name = os.fsdecode(content[space + 1 : end])
        # Old programs wrote folders as 040000.
        mode = content[position:space].decode().lstrip("0")
        position = end + 1 + (size or _SHA1_SIZE)
        yield mode, name, content[end + 1 : position].hex()


def folders_of(tree: Iterable[str]) -> frozenset[str]:
    """The folders of the files with these names."""
    folders: set[str] = set()
    for name in tree:
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return frozenset(folders)
