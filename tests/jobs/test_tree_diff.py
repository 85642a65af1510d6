"""What has changed since a commit: by content, whatever git was told to do with it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.jobs.evidence.tree_diff import diff_since, resolve_commit
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from sentences import assert_sentences, lines_with

Git = Callable[..., str]


class Tree:
    """A repository with a project in it, and the commit from which changes are told."""

    def __init__(self, root: Path, git: Git, project: Path | None = None) -> None:
        self.root = root
        self.git = git
        self.workspace: Workspace = create_project(project or root, "Tree")
        self.commit = ""

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def save(self) -> str:
        self.git(self.root, "add", "--all")
        self.git(self.root, "commit", "-q", "--allow-empty", "-m", "x")
        self.commit = self.git(self.root, "rev-parse", "HEAD").strip()
        return self.commit

    def diff(self) -> str:
        found = diff_since(self.workspace, self.commit)
        assert found is not None
        return found


@pytest.fixture
def tree(repository: Path, git: Git) -> Tree:
    return Tree(repository, git)


def test_nothing_has_changed_where_nothing_has(tree: Tree) -> None:
    tree.write("a.txt", "one\n")
    tree.write("b.bin", b"\0\1")
    tree.save()
    assert tree.diff() == ""


def test_a_changed_line_is_told_with_what_is_around_it(tree: Tree) -> None:
    tree.write("a.txt", "one\ntwo\nthree\n")
    tree.save()
    tree.write("a.txt", "one\n2\nthree\n")
    assert tree.diff() == "--- a.txt\n+++ a.txt\n@@ -1,4 +1,4 @@\n one\n-two\n+2\n three\n "


def test_new_removed_and_renamed_files_are_told(tree: Tree) -> None:
    tree.write("gone.txt", "old\n")
    tree.write("before.txt", "same\n")
    tree.save()
    (tree.root / "gone.txt").unlink()
    (tree.root / "before.txt").rename(tree.root / "after.txt")
    tree.write("new.txt", "fresh\n")
    tree.git(tree.root, "add", "--all")
    diff = tree.diff()
    assert "--- gone.txt\n+++ (removed)\n" in diff and "-old" in diff
    assert "--- (new file)\n+++ new.txt\n" in diff and "+fresh" in diff
    assert "--- before.txt\n+++ (removed)\n" in diff
    assert "--- (new file)\n+++ after.txt\n" in diff


def test_what_was_committed_meanwhile_is_told_too(tree: Tree) -> None:
    tree.write("a.txt", "one\n")
    first = tree.save()
    tree.write("a.txt", "two\n")
    tree.save()
    assert "+two" in (diff_since(tree.workspace, first) or "")


def test_a_file_that_git_does_not_track_is_nobodys_work_yet(tree: Tree) -> None:
    tree.save()
    tree.write("scratch.txt", "notes\n")
    assert tree.diff() == ""
    tree.git(tree.root, "add", "scratch.txt")
    assert "+notes" in tree.diff()


def test_taking_a_file_out_of_the_index_does_not_hide_what_was_done_to_it(tree: Tree) -> None:
    tree.write("app.py", "honest = 1\n")
    tree.save()
    tree.write("app.py", "cheat = 1\n")
    tree.git(tree.root, "rm", "-q", "--cached", "app.py")
    assert "+cheat = 1" in tree.diff()


@pytest.mark.parametrize("flag", ["--assume-unchanged", "--skip-worktree"])
def test_telling_git_to_look_away_does_not_hide_a_change(tree: Tree, flag: str) -> None:
    tree.write("app.py", "honest = 1\n")
    tree.save()
    tree.git(tree.root, "update-index", flag, "app.py")
    tree.write("app.py", "cheat = 1\n")
    assert "+cheat = 1" in tree.diff()


def test_no_program_that_the_repository_names_is_run(tree: Tree, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    tool = tmp_path / "tool.sh"
    tool.write_text(f"#!/bin/sh\ntouch {mark}\ncat\n")
    tool.chmod(0o755)
    tree.write("a.txt", "one\n")
    tree.save()
    for name in ("filter.evil.clean", "filter.evil.smudge", "diff.evil.textconv", "diff.evil.command"):
        tree.git(tree.root, "config", name, str(tool))
    for name in ("diff.external", "core.pager", "core.fsmonitor", "core.sshCommand"):
        tree.git(tree.root, "config", name, str(tool))
    tree.write(".gitattributes", "*.txt filter=evil diff=evil\n")
    tree.write("a.txt", "two\n")
    diff = tree.diff()
    assert "+two" in diff and "-one" in diff
    assert not mark.exists()


def test_binary_and_large_files_are_named_and_not_shown(tree: Tree) -> None:
    tree.write("b.bin", b"\0one")
    tree.write("large.txt", "x\n" * 5000)
    tree.write("wide.txt", "x" * (1 << 20))
    tree.save()
    tree.write("b.bin", b"\0two")
    tree.write("large.txt", "y\n" * 5000)
    tree.write("wide.txt", "y" * ((1 << 20) + 1))
    diff = tree.diff()
    assert diff.count("[not a text, or too large to show") == 3
    assert "y" * 100 not in diff


def test_two_changes_that_can_not_be_shown_are_told_apart(tree: Tree) -> None:
    tree.write("b.bin", b"\0one")
    tree.save()
    tree.write("b.bin", b"\0two")
    first = tree.diff()
    tree.write("b.bin", b"\0six")
    assert tree.diff() != first


def test_what_is_not_utf8_is_shown_as_well_as_can_be(tree: Tree) -> None:
    tree.write("a.txt", b"caf\xe9\n")
    tree.save()
    tree.write("a.txt", b"th\xe9\n")
    assert "-caf\ufffd" in tree.diff() and "+th\ufffd" in tree.diff()


def test_a_link_is_what_it_says(tree: Tree) -> None:
    (tree.root / "link").symlink_to("one")
    tree.save()
    (tree.root / "link").unlink()
    (tree.root / "link").symlink_to("/etc/passwd")
    diff = tree.diff()
    assert "-one" in diff and "+/etc/passwd" in diff
    assert "root:" not in diff


def test_a_folder_that_became_a_link_out_of_the_repository_shows_nothing_behind_it(tree: Tree, tmp_path: Path) -> None:
    tree.write("lib/words.txt", "mine\n")
    tree.save()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "words.txt").write_text("THEIRS\n")
    (tree.root / "lib" / "words.txt").unlink()
    (tree.root / "lib").rmdir()
    (tree.root / "lib").symlink_to(tmp_path / "outside")
    assert "THEIRS" not in tree.diff()
    assert "-mine" in tree.diff()


def test_a_file_that_became_a_pipe_is_gone_and_not_waited_for(tree: Tree) -> None:
    path = tree.write("a.txt", "one\n")
    tree.save()
    path.unlink()
    os.mkfifo(path)
    assert "--- a.txt\n+++ (removed)\n" in tree.diff()


def test_a_file_that_can_not_be_read_is_as_good_as_gone(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    tree.write("a.txt", "one\n")
    tree.save()
    real = Path.read_bytes

    def read(path: Path) -> bytes:
        if path.name == "a.txt":
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(Path, "read_bytes", read)
    assert "--- a.txt\n+++ (removed)\n" in tree.diff()


def test_line_ends_that_git_makes_at_checkout_are_no_change(tree: Tree) -> None:
    tree.write(".gitattributes", "* text eol=crlf\n")
    tree.write("a.txt", "one\r\ntwo\r\n")
    tree.save()
    assert tree.git(tree.root, "cat-file", "blob", "HEAD:a.txt") == "one\ntwo\n"
    assert tree.diff() == ""
    tree.write("a.txt", "one\r\n2\r\n")
    diff = tree.diff()
    assert "-two" in diff and "+2" in diff
    assert "-one" not in diff


def test_a_submodule_that_did_not_change_is_no_change(tree: Tree, tmp_path: Path, git: Git) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "-q", "-b", "main")
    (other / "lib.py").write_text("lib = 1\n")
    git(other, "add", "--all")
    git(other, "commit", "-q", "-m", "x")
    git(tree.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "sub")
    tree.save()
    assert tree.diff() == ""
    tree.write("sub/lib.py", "lib = 2\n")
    diff = tree.diff()
    assert "--- sub/lib.py\n+++ sub/lib.py\n" in diff
    assert "-lib = 1" in diff and "+lib = 2" in diff


def test_of_very_many_changed_files_the_first_are_told_and_the_others_counted(tree: Tree) -> None:
    tree.save()
    for number in range(203):
        tree.write(f"many/{number:03d}.txt", f"{number}\n")
    tree.git(tree.root, "add", "--all")
    first = tree.diff()
    assert "+++ many/199.txt" in first and "+++ many/200.txt" not in first
    assert_sentences(lines_with(first, " 3 "))
    tree.write("many/202.txt", "something else\n")
    second = tree.diff()
    assert second != first
    (tree.root / "many" / "202.txt").unlink()
    assert tree.diff() not in (first, second)


def test_a_project_within_a_repository_is_shown_all_that_changed_around_it(repository: Path, git: Git) -> None:
    tree = Tree(repository, git, repository / "inside")
    tree.write("beside.txt", "one\n")
    tree.save()
    tree.write("beside.txt", "two\n")
    tree.write("inside/.donewhen/x.json", "{}")
    tree.git(tree.root, "add", "--all")
    assert "+++ beside.txt" in tree.diff()
    assert ".donewhen" not in tree.diff()


def test_removing_what_donewhen_wrote_is_nobodys_work(tree: Tree) -> None:
    tree.write(".donewhen/ledger/x.jsonl", "{}\n")
    tree.write("a.txt", "one\n")
    tree.save()
    (tree.root / ".donewhen" / "ledger" / "x.jsonl").unlink()
    assert tree.diff() == ""


def test_a_name_with_hidden_characters_is_shown_as_one_plain_line(tree: Tree) -> None:
    tree.save()
    tree.write("a\n+++ b\x1b[2K.txt", "x\n")
    tree.git(tree.root, "add", "--all")
    assert "+++ a +++ b.txt" in tree.diff()


def test_a_repository_of_sha256_is_compared_by_its_own_names(tmp_path: Path, git: Git) -> None:
    root = tmp_path / "new"
    root.mkdir()
    git(root, "init", "-q", "-b", "main", "--object-format=sha256")
    tree = Tree(root, git)
    tree.write("a.txt", "one\n")
    assert len(tree.save()) == 64
    assert tree.diff() == ""
    tree.write("a.txt", "two\n")
    assert "+two" in tree.diff()


def test_a_commit_that_is_not_there_and_no_git_at_all_have_no_changes(tree: Tree, tmp_path: Path) -> None:
    tree.write("a.txt", "one\n")
    tree.save()
    tree.write("a.txt", "two\n")
    assert diff_since(tree.workspace, "0" * 40) is None
    assert diff_since(tree.workspace, "--output=/tmp/x") is None
    bare = tmp_path / "bare"
    bare.mkdir()
    create_project(bare, "Bare")
    assert diff_since(find_workspace(bare), tree.commit) is None


def test_the_commit_is_known_where_there_is_one(tree: Tree, tmp_path: Path) -> None:
    assert resolve_commit(tree.root) is None
    assert resolve_commit(tmp_path) is None
    assert tree.save() == resolve_commit(tree.root)
