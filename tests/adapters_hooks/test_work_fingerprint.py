"""The fingerprint of the work: it changes with every change that an agent can make, and with nothing else."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.adapters import work_fingerprint
from donewhen.adapters.work_fingerprint import fingerprint_work

CHANGES: dict[str, Callable[[Path], object]] = {
    "a tracked file": lambda root: (root / "tracked.txt").write_text("b"),
    "a tracked file is gone": lambda root: (root / "tracked.txt").unlink(),
    "a new file": lambda root: (root / "new.txt").write_text("b"),
    "a new file in a new folder": lambda root: ((root / "a b").mkdir(), (root / "a b" / "ü.txt").write_text("b")),
    "an untracked file": lambda root: (root / "untracked.txt").write_text("b"),
    "an untracked file is gone": lambda root: (root / "untracked.txt").unlink(),
    "an executable bit": lambda root: (root / "untracked.txt").chmod(0o755),
    "a symlink leads elsewhere": lambda root: ((root / "link").unlink(), (root / "link").symlink_to("new")),
    "a ledger": lambda root: ((root / ".donewhen" / "ledger").mkdir(), (root / ".donewhen" / "ledger" / "x").touch()),
}
NO_CHANGES: dict[str, Callable[[Path], object]] = {
    "nothing": lambda root: None,
    "times": lambda root: os.utime(root / "tracked.txt", (1, 1)),
    "our own state": lambda root: (root / ".donewhen" / "state" / "attempts-x.json").write_text("{}"),
    "our own git files": lambda root: (root / ".donewhen" / ".gitignore").write_text("state/\n"),
}


def git(root: Path, *arguments: str) -> None:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    subprocess.run(["git", *who, *arguments], cwd=root, check=True, capture_output=True)


@pytest.fixture(params=["git", "without git", "below the repository"])
def root(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    folder = tmp_path / "project" if request.param == "below the repository" else tmp_path
    (folder / ".donewhen" / "state").mkdir(parents=True)
    (folder / "tracked.txt").write_text("a")
    if request.param != "without git":
        git(tmp_path, "init", "--quiet")
        git(tmp_path, "add", ".")
        git(tmp_path, "commit", "--quiet", "-m", "x")
    (folder / "untracked.txt").write_text("a")
    (folder / "link").symlink_to("old")
    return folder


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_seen(root: Path, change: Callable[[Path], object]) -> None:
    before = fingerprint_work(root)
    change(root)
    assert fingerprint_work(root) != before is not None


@pytest.mark.parametrize("change", NO_CHANGES.values(), ids=NO_CHANGES)
def test_what_is_no_work_is_not_seen(root: Path, change: Callable[[Path], object]) -> None:
    before = fingerprint_work(root)
    change(root)
    assert fingerprint_work(root) == before is not None


def test_a_commit_is_a_change(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "a").touch()
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "x")
    before = fingerprint_work(tmp_path)
    git(tmp_path, "commit", "--quiet", "--allow-empty", "-m", "y")
    assert fingerprint_work(tmp_path) != before


def test_a_file_that_git_ignores_counts_if_it_is_named(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / ".gitignore").write_text("out.txt\n")
    before = fingerprint_work(tmp_path, ["out.txt"]), fingerprint_work(tmp_path)
    (tmp_path / "out.txt").write_text("x")
    assert fingerprint_work(tmp_path, ["out.txt"]) != before[0]
    assert fingerprint_work(tmp_path) == before[1]


def test_what_lies_beside_the_project_does_not_count(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "project").mkdir()
    before = fingerprint_work(tmp_path / "project")
    (tmp_path / "other").write_text("x")
    assert fingerprint_work(tmp_path / "project") == before


def test_a_pipe_or_an_unreadable_file_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    (root / "gone").symlink_to("gone")
    assert fingerprint_work(root, ["no such file"]) == fingerprint_work(root, ["no such file"])


def test_too_many_files_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_fingerprint, "_MAX_FILES", 2)
    for name in "abc":
        (tmp_path / name).touch()
    assert fingerprint_work(tmp_path) is None


def test_of_too_much_content_the_size_still_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_fingerprint, "_MAX_BYTES", 10)
    (tmp_path / "a").write_text("x" * 20)
    before = fingerprint_work(tmp_path)
    (tmp_path / "a").write_text("x" * 30)
    assert fingerprint_work(tmp_path) != before
