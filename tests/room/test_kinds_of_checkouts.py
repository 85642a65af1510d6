"""Kinds of repositories and clones: with submodules, of another user, worktrees, shallow, sparse, packed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.git import git as read_git
from donewhen.jobs.plan.workspace import find_workspace
from room.checkout_kit import Checkout, git, outcome

pytestmark = pytest.mark.scenes


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path / "shop")


def reopened(checkout: Checkout, folder: Path) -> Checkout:
    """The same project in another folder."""
    found = object.__new__(Checkout)
    found.top = folder
    found.root = folder / checkout.root.relative_to(checkout.top)
    found.workspace = find_workspace(found.root)
    return found


@pytest.fixture
def library(tmp_path: Path) -> Path:
    """A repository of another project, with two commits."""
    folder = tmp_path / "library"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "version.txt").write_text("1\n")
    (folder / ".gitignore").write_text("*.tmp\n")
    git(folder, "add", "--all")
    git(folder, "commit", "-q", "-m", "One")
    (folder / "version.txt").write_text("2\n")
    git(folder, "commit", "-q", "-a", "-m", "Two")
    return folder


def with_submodule(checkout: Checkout, library: Path) -> None:
    git(checkout.top, "submodule", "--quiet", "add", str(library), "vendor/library")
    git(checkout.top / "vendor" / "library", "checkout", "-q", "HEAD~1")
    checkout.commit()


def test_a_submodule_is_in_the_room_as_it_was_agreed(checkout: Checkout, library: Path) -> None:
    with_submodule(checkout, library)
    job = checkout.add('grep -qx 1 vendor/library/version.txt\ntest -z "$(git status --porcelain)"')
    checkout.agree(job)
    checkout.write("vendor/library/notes.tmp", "ignored by the rules of the submodule")
    assert outcome(checkout, job) == (True, "", [])


def test_a_submodule_that_is_not_checked_out_is_no_change(checkout: Checkout, library: Path) -> None:
    with_submodule(checkout, library)
    job = checkout.add("test ! -e vendor/library/version.txt")
    git(checkout.top, "submodule", "--quiet", "deinit", "--force", "vendor/library")
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_another_commit_of_a_submodule_is_a_change_of_its_files(checkout: Checkout, library: Path) -> None:
    with_submodule(checkout, library)
    job = checkout.add("grep -qx 2 vendor/library/version.txt")
    checkout.agree(job)
    git(checkout.top / "vendor" / "library", "checkout", "-q", "master")
    assert outcome(checkout, job) == (False, "outside_work_area", ["vendor/library/version.txt"])


def test_a_file_changed_in_a_submodule_is_a_change(checkout: Checkout, library: Path) -> None:
    with_submodule(checkout, library)
    job = checkout.add("grep -qx 3 vendor/library/version.txt")
    checkout.agree(job)
    checkout.write("vendor/library/version.txt", "3\n")
    assert outcome(checkout, job) == (False, "outside_work_area", ["vendor/library/version.txt"])


def test_a_submodule_that_lacks_the_agreed_commit_is_named(checkout: Checkout, library: Path) -> None:
    with_submodule(checkout, library)
    job = checkout.add("true")
    checkout.agree(job)
    inner = checkout.top / "vendor" / "library"
    git(inner, "checkout", "-q", "--orphan", "other")
    git(inner, "commit", "-q", "-m", "Other")
    git(inner, "branch", "-q", "-D", "master")
    git(inner, "remote", "remove", "origin")
    git(inner, "reflog", "expire", "--expire=now", "--all")
    git(inner, "-c", "gc.reflogExpire=now", "gc", "-q", "--prune=now")
    with pytest.raises(DonewhenError) as caught:
        checkout.finish(job)
    assert caught.value.code == "commit_missing"
    assert "vendor/library" in caught.value.message
    assert "git submodule update" in (caught.value.next_step or "")


def test_the_attributes_of_a_repository_do_not_reach_into_its_submodules(checkout: Checkout, library: Path) -> None:
    checkout.write(".gitattributes", "*.txt text eol=crlf\n")
    with_submodule(checkout, library)
    job = checkout.add("! grep -q \"$(printf '\\r')\" vendor/library/version.txt")
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_a_worktree_has_its_objects_elsewhere(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit()
    git(checkout.top, "worktree", "add", "-q", "-b", "work", str(tmp_path / "work"))
    work = reopened(checkout, tmp_path / "work")
    job = work.add('test -z "$(git status --porcelain)"')
    work.agree(job)
    assert outcome(work, job) == (True, "", [])


def test_large_files_of_a_worktree_are_found_in_the_main_repository(checkout: Checkout, tmp_path: Path) -> None:
    content = b"large"
    name = hashlib.sha256(content).hexdigest()
    checkout.write(".gitattributes", "*.bin filter=lfs -text\n")
    checkout.write("a.bin", f"version https://git-lfs.github.com/spec/v1\noid sha256:{name}\nsize 5\n")
    checkout.commit()
    stored = checkout.top / ".git" / "lfs" / "objects" / name[:2] / name[2:4] / name
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    git(checkout.top, "worktree", "add", "-q", "-b", "work", str(tmp_path / "work"))
    work = reopened(checkout, tmp_path / "work")
    job = work.add("grep -qx large a.bin")
    work.agree(job)
    assert outcome(work, job) == (True, "", [])


def test_a_shallow_clone_has_the_agreed_commit(checkout: Checkout, tmp_path: Path) -> None:
    checkout.write("a.txt", "a")
    checkout.commit("One")
    job = checkout.add("test -f a.txt")
    checkout.agree(job)
    checkout.commit("Agreed")
    # The agreement names the commit before the newest one.
    git(tmp_path, "clone", "-q", "--depth=2", f"file://{checkout.top}", "clone")
    clone = reopened(checkout, tmp_path / "clone")
    assert outcome(clone, job) == (True, "", [])


def test_a_clone_without_the_agreed_commit_says_which_one_to_fetch(checkout: Checkout, tmp_path: Path) -> None:
    job = checkout.add("true")
    agreed = checkout.agree(job)
    assert agreed.tree is not None
    checkout.commit("Agreed")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{checkout.top}", "clone")
    clone = reopened(checkout, tmp_path / "clone")
    with pytest.raises(DonewhenError) as caught:
        clone.finish(job)
    assert caught.value.code == "commit_missing"
    assert (agreed.tree.commit or "")[:12] in caught.value.message
    assert f"git fetch origin {agreed.tree.commit}" in (caught.value.next_step or "")
    # Nothing was recorded, and no iteration spent.
    assert [entry.type for entry in clone.workspace.ledger.read(job.id).entries] == ["agreed", "started"]


def test_a_folder_of_a_larger_repository_is_judged_with_what_lies_above(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "mono", inside="packages/shop")
    (checkout.top / "shared.txt").write_text("shared\n")
    job = checkout.add("grep -qx shared ../../shared.txt")
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])
    job = checkout.add("grep -qx other ../../shared.txt")
    checkout.agree(job)
    (checkout.top / "shared.txt").write_text("other\n")
    assert outcome(checkout, job) == (False, "outside_work_area", ["shared.txt"])


def test_files_outside_a_sparse_checkout_are_no_change(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "mono", inside="packages/shop")
    other = checkout.top / "packages" / "other"
    other.mkdir()
    (other / "a.txt").write_text("a\n")
    job = checkout.add("grep -qx a ../other/a.txt")
    git(checkout.top, "sparse-checkout", "set", "packages/shop")
    assert not other.exists()
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_a_repository_with_sha256_names(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "shop", init=("--object-format=sha256",))
    checkout.write(".gitattributes", "*.txt text eol=crlf\n")
    checkout.write(".gitignore", "*.tmp\n")
    checkout.write("a.txt", "a\r\n")
    checkout.write("a.tmp", "a")
    job = checkout.add("grep -q \"$(printf '\\r')\" a.txt; test ! -e a.tmp")
    agreed = checkout.agree(job)
    assert agreed.tree is not None
    assert len(agreed.tree.commit or "") == 64
    assert outcome(checkout, job) == (True, "", [])


def test_packed_objects_and_references_and_a_detached_head(checkout: Checkout) -> None:
    checkout.write("a.txt", "a\n")
    job = checkout.add("grep -qx a a.txt")
    git(checkout.top, "checkout", "-q", "--detach")
    git(checkout.top, "gc", "-q")
    git(checkout.top, "pack-refs", "--all")
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


SOMEBODY = 54321


def given_away(top: Path) -> None:
    """Make a checkout that of another user, whose settings run a program wherever git lets them."""
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    for folder, _, names in os.walk(top):
        os.chown(folder, SOMEBODY, -1)
        for name in names:
            os.chown(Path(folder, name), SOMEBODY, -1, follow_symlinks=False)


def trapped(top: Path) -> Path:
    """Settings of a repository that run a program where they count; return the file that the program writes."""
    mark = top.parent / "ran"
    program = top.parent / "trap.sh"
    program.write_text(f"#!/bin/sh\ntouch {mark}\n")
    program.chmod(0o755)
    for key in ("core.fsmonitor", "core.sshCommand", "filter.up.clean", "filter.up.smudge", "diff.external"):
        git(top, "config", key, str(program))
    git(top, "config", "remote.origin.url", f"ext::{program}")
    git(top, "config", "protocol.ext.allow", "always")
    return mark


def test_a_checkout_of_another_user_is_read_without_their_settings(checkout: Checkout) -> None:
    checkout.write("a.txt", "a\n")
    checkout.write(".gitattributes", "*.up filter=up\n")
    checkout.write("a.up", "a\n")
    job = checkout.add('grep -qx a a.txt\ntest -z "$(git status --porcelain)"')
    mark = trapped(checkout.top)
    given_away(checkout.top)
    agreed = checkout.agree(job)
    assert agreed.tree is not None
    assert agreed.tree.commit is not None
    assert agreed.tree.filters == {}
    assert outcome(checkout, job) == (True, "", [])
    assert not mark.exists()


def test_a_change_in_a_checkout_of_another_user_is_seen(checkout: Checkout) -> None:
    checkout.write("a.txt", "a\n")
    job = checkout.add("grep -qx b a.txt")
    given_away(checkout.top)
    checkout.agree(job)
    checkout.write("a.txt", "b\n")
    assert outcome(checkout, job) == (False, "outside_work_area", ["a.txt"])


def test_a_worktree_of_another_user_is_read(checkout: Checkout, tmp_path: Path) -> None:
    checkout.commit()
    git(checkout.top, "worktree", "add", "-q", "-b", "work", str(tmp_path / "work"))
    work = reopened(checkout, tmp_path / "work")
    job = work.add("true")
    given_away(checkout.top)
    given_away(work.top)
    work.agree(job)
    assert outcome(work, job) == (True, "", [])


def test_the_repository_of_another_user_is_never_written_to(checkout: Checkout) -> None:
    checkout.commit()
    given_away(checkout.top)
    head = read_git(checkout.top, "rev-parse", "HEAD")
    assert head is not None
    assert read_git(checkout.top, "update-ref", "refs/heads/new", "HEAD") is None
    assert read_git(checkout.top, "-c", "user.name=x", "notes", "add", "-m", "x") is None
    assert read_git(checkout.top, "fetch", "origin") is None
    assert not (checkout.top / ".git" / "refs" / "heads" / "new").exists()


def test_a_sha256_repository_of_another_user_is_read(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "shop", init=("--object-format=sha256",))
    job = checkout.add("true")
    given_away(checkout.top)
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])
