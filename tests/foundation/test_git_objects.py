"""Trees of git are read in one way, or not at all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from donewhen.foundation.git import GitError
from donewhen.foundation.git_objects import ObjectReader
from donewhen_kit import git_command

GOOD, BAD = b"good\n", b"bad\n"


def made(top: Path, kind: str, content: bytes) -> str:
    words = ["git", "hash-object", "-t", kind, "-w", "--literally", "--stdin"]
    return subprocess.run(words, cwd=top, input=content, capture_output=True, check=True).stdout.decode().strip()


def commit_of(top: Path, *entries: tuple[str, str, str]) -> str:
    """A commit whose tree has exactly these entries in this order: mode, name, object."""
    raw = b"".join(f"{mode} {name}".encode() + b"\0" + bytes.fromhex(entry) for mode, name, entry in entries)
    return git_command(top, "commit-tree", made(top, "tree", raw), "-m", "by hand").strip()


def test_a_folder_that_can_be_read_in_two_ways_is_refused(repository: Path) -> None:
    good, bad = made(repository, "blob", GOOD), made(repository, "blob", BAD)
    package = made(repository, "tree", b"100644 __init__.py\0" + bytes.fromhex(good))
    ambiguous = {
        "the same file twice": (("100644", "a", bad), ("100644", "a", good)),
        "twice, and not side by side": (("100644", "a", bad), ("100644", "b", bad), ("100644", "a", good)),
        "a file and a folder": (("100644", "a", bad), ("40000", "a", package)),
        "a file and a folder with another between them": (
            *(("100644", "a", bad), ("100644", "a-b", good)),
            ("40000", "a", package),
        ),
        "not in order, so that a search ends too early": (("100644", "b", bad), ("100644", "a", good)),
    }
    with ObjectReader(repository) as reader:
        for name, entries in ambiguous.items():
            with pytest.raises(GitError, match="two ways"):
                pytest.fail(f"{name}: {reader.files(commit_of(repository, *entries))}")


def test_folders_in_the_order_of_git_are_read(repository: Path) -> None:
    """A folder is sorted as if its name ended in a slash: `a.b` comes before the folder `a`."""
    for name in ("a/x", "a.b", "a0", "a-b/x", "b", "B", "ä", "a b/x"):
        path = repository / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(name.encode())
    git_command(repository, "add", "-A")
    git_command(repository, "commit", "-qm", "all")
    with ObjectReader(repository) as reader:
        files, _ = reader.files(git_command(repository, "rev-parse", "HEAD").strip())
    assert set(files) == {"a/x", "a.b", "a0", "a-b/x", "b", "B", "ä", "a b/x"}


def test_a_folder_that_an_old_program_wrote_is_read(repository: Path) -> None:
    good = made(repository, "blob", GOOD)
    package = made(repository, "tree", b"100644 x\0" + bytes.fromhex(good))
    with ObjectReader(repository) as reader:
        files, _ = reader.files(commit_of(repository, ("040000", "a", package)))
    assert {name: file.blob for name, file in files.items()} == {"a/x": good}
