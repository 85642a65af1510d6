"""What is checked out, read from git's own files in each of their forms."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from donewhen.foundation.git_head import DETACHED, WITHOUT_GIT, checked_out
from donewhen.foundation.person_folder import person_state_folders
from donewhen_kit import git_command


@pytest.fixture
def top(repository: Path) -> Path:
    (repository / "file").write_text("1")
    git_command(repository, "add", "-A")
    git_command(repository, "commit", "-qm", "first")
    return repository


def test_a_branch_a_commit_and_a_folder_inside(top: Path) -> None:
    git_command(top, "switch", "-q", "-c", "a/b")
    (top / "folder").mkdir()
    here = checked_out(top / "folder")
    assert (here.top, here.branch) == (Path(os.path.realpath(top)), "refs/heads/a/b")
    assert here.begun == checked_out(top).begun != ""
    git_command(top, "switch", "-q", "--detach")
    assert checked_out(top).branch == DETACHED
    assert checked_out(top).begun == here.begun


def test_a_linked_work_tree_has_its_own_branch_and_beginning(top: Path, tmp_path: Path) -> None:
    git_command(top, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    there = checked_out(tmp_path / "tree")
    assert there.branch == "refs/heads/other"
    assert there.top == Path(os.path.realpath(tmp_path / "tree"))


def test_without_git_without_a_log_and_without_a_head(top: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    assert checked_out(plain) == (Path(os.path.realpath(plain)), WITHOUT_GIT, "")
    (top / ".git" / "logs" / "HEAD").unlink()
    assert checked_out(top).begun == ""
    (top / ".git" / "HEAD").unlink()
    assert checked_out(top).branch == DETACHED


def test_a_log_that_was_shortened_has_no_beginning(top: Path) -> None:
    (top / "file").write_text("2")
    git_command(top, "commit", "-qam", "second")
    log = top / ".git" / "logs" / "HEAD"
    log.write_bytes(log.read_bytes().splitlines(keepends=True)[-1])
    assert checked_out(top).begun == ""


def test_a_head_that_is_a_link_and_a_pointer_that_is_none(top: Path, tmp_path: Path) -> None:
    branch = checked_out(top).branch
    (top / ".git" / "HEAD").unlink()
    (top / ".git" / "HEAD").symlink_to(branch)
    assert checked_out(top).branch == branch
    odd = tmp_path / "odd"
    odd.mkdir()
    (odd / ".git").write_text("nothing\n")
    assert checked_out(odd).branch == DETACHED


def test_a_pipe_in_the_place_of_the_head_is_an_error_at_once(top: Path) -> None:
    (top / ".git" / "HEAD").unlink()
    os.mkfifo(top / ".git" / "HEAD")
    with pytest.raises(OSError, match="Not a file"):
        checked_out(top)


def test_references_in_tables(tmp_path: Path) -> None:
    made = subprocess.run(
        ["git", "init", "-q", "-b", "main", "--ref-format=reftable", str(tmp_path / "tables")], capture_output=True
    )
    if made.returncode != 0:
        # An older git: its HEAD is written by hand, and git can't say more about it.
        subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "tables")], check=True)
        (tmp_path / "tables" / ".git" / "HEAD").write_text("ref: refs/heads/.invalid\n")
        assert checked_out(tmp_path / "tables").branch in (DETACHED, "refs/heads/.invalid")
        return
    assert checked_out(tmp_path / "tables").branch == "refs/heads/main"


def test_the_folders_of_the_person_are_the_variables_and_always_the_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.foundation.person_folder._home_of_account", lambda: "/home/me")
    inside = Path(".local") / "state" / "donewhen"
    assert person_state_folders({"XDG_STATE_HOME": "/state", "HOME": "/other"}) == (
        Path("/state/donewhen"),
        Path("/other") / inside,
        Path("/home/me") / inside,
    )
    assert person_state_folders({"XDG_STATE_HOME": "relative", "HOME": "/home/me"}) == (Path("/home/me") / inside,)
    monkeypatch.setattr("donewhen.foundation.person_folder._home_of_account", lambda: "")
    assert person_state_folders({}) == ()
