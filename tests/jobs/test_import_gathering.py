"""Finding out what a source is, and reading no more of it than what counts."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from donewhen.foundation.errors import UsageError
from donewhen.jobs.imports import gathering
from donewhen.jobs.imports.gathering import MAX_FILE_BYTES, GatheredSource, gather_source
from donewhen.jobs.imports.items import Kind
from sentences import assert_sentences

TASK = "---\nid: task-1\n---\n"
PHASE = "## Phase 1: Setup\n- [ ] T001 Begin\n"
CHANGE = "## 1. Do\n- [ ] 1.1 Begin\n"


def put(root: Path, *names: str, text: str = TASK) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def names(found: GatheredSource) -> list[str]:
    return [text.name for text in found.texts]


@pytest.mark.parametrize("place", ["", "backlog"])
def test_a_backlog_is_found_from_the_repository_and_from_its_own_folder(tmp_path: Path, place: str) -> None:
    root = tmp_path / "backlog"
    put(root, "tasks/task-10 - b.md", "tasks/task-2 - a.md", "tasks/README.md", "tasks/x.txt", "config.yml")
    put(root, "completed/task-1 - c.md", "drafts/draft-1 - d.md", "archive/tasks/task-3 - e.md", "docs/doc-1 - f.md")
    found = gather_source(tmp_path / place, None)
    assert (found.kind, found.root, found.scope) == ("backlog", root, "backlog:")
    assert names(found) == [
        "config.yml",
        "tasks/task-2 - a.md",
        "tasks/task-10 - b.md",
        "completed/task-1 - c.md",
        "drafts/draft-1 - d.md",
        "archive/tasks/task-3 - e.md",
    ]


def test_a_part_of_a_backlog_can_be_named(tmp_path: Path) -> None:
    put(tmp_path, "tasks/task-10 - b.md", "tasks/back-2 - a.md")
    whole = gather_source(tmp_path / "tasks", None)
    assert (whole.kind, whole.scope, names(whole)) == ("backlog", None, ["back-2 - a.md", "task-10 - b.md"])
    single = gather_source(tmp_path / "tasks" / "task-10 - b.md", None)
    assert (single.kind, single.scope, names(single)) == ("backlog", None, ["task-10 - b.md"])


@pytest.mark.parametrize("above", ["specs", ".specify/specs"])
def test_features_of_spec_kit_are_found(tmp_path: Path, above: str) -> None:
    put(tmp_path / above, "002-b/tasks.md", "001-a/tasks.md", "001-a/spec.md", "001-a/plan.md", text=PHASE)
    found = gather_source(tmp_path, None)
    assert (found.kind, found.scope) == ("spec-kit", "spec-kit:")
    assert names(found) == ["001-a/tasks.md", "001-a/spec.md", "002-b/tasks.md"]


@pytest.mark.parametrize("place", ["specs/001-a", "specs/001-a/tasks.md"])
def test_one_feature_of_spec_kit_can_be_named(tmp_path: Path, place: str) -> None:
    put(tmp_path / "specs", "002-b/tasks.md", "001-a/tasks.md", "001-a/spec.md", text=PHASE)
    found = gather_source(tmp_path / place, None)
    assert (found.kind, found.scope) == ("spec-kit", "spec-kit:001-a/")
    assert names(found) == ["001-a/tasks.md", "001-a/spec.md"]


@pytest.mark.parametrize("place", ["", "openspec", "openspec/changes"])
def test_changes_of_openspec_are_found(tmp_path: Path, place: str) -> None:
    root = tmp_path / "openspec" / "changes"
    put(root, "b/tasks.md", "a/proposal.md", "a/specs/gate/spec.md", "a/notes.md", text=CHANGE)
    put(root, "archive/2026-01-02-c/tasks.md", text=CHANGE)
    put(root.parent, "specs/gate/spec.md", text="# gate\n")
    found = gather_source(tmp_path / place, None)
    assert (found.kind, found.scope) == ("openspec", "openspec:")
    assert names(found) == ["a/proposal.md", "a/specs/gate/spec.md", "b/tasks.md", "archive/2026-01-02-c/tasks.md"]


@pytest.mark.parametrize("name", ["a", "archive/2026-01-02-a"])
def test_one_change_can_be_named(tmp_path: Path, name: str) -> None:
    root = tmp_path / "openspec" / "changes"
    put(root, "other/proposal.md", f"{name}/tasks.md", f"{name}/specs/gate/spec.md", text=CHANGE)
    for place in (root / name, root / name / "tasks.md"):
        found = gather_source(place, None)
        assert (found.kind, found.scope, found.root) == ("openspec", None, root)
        assert names(found) == [f"{name}/tasks.md", f"{name}/specs/gate/spec.md"]


def test_a_list_of_features_may_have_any_name(tmp_path: Path) -> None:
    put(tmp_path, "feature_list.json", "prd.json", text="[]")
    for place, name in ((tmp_path, "feature_list.json"), (tmp_path / "prd.json", "prd.json")):
        found = gather_source(place, None)
        assert (found.kind, found.scope, names(found)) == ("feature-list", "feature-list:", [name])


def test_where_it_could_be_two_things_somebody_has_to_say(tmp_path: Path) -> None:
    put(tmp_path, "backlog/tasks/task-1 - a.md")
    put(tmp_path, "feature_list.json", text="[]")
    with pytest.raises(UsageError) as caught:
        gather_source(tmp_path, None)
    assert_sentences(caught.value)
    assert "--from backlog" in (caught.value.next_step or "")
    assert gather_source(tmp_path, "feature-list").kind == "feature-list"
    with pytest.raises(UsageError) as caught:
        gather_source(tmp_path, "openspec")
    assert_sentences(caught.value)


@pytest.mark.parametrize("name", ["empty", "notes.md", "missing", "tasks.txt"])
def test_what_is_nothing_of_these_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    put(tmp_path, "notes.md", "tasks.txt")
    with pytest.raises(UsageError):
        gather_source(tmp_path / name, None)


def test_a_folder_of_tasks_of_something_else_is_no_backlog(tmp_path: Path) -> None:
    put(tmp_path, "tasks/build.py")
    with pytest.raises(UsageError) as caught:
        gather_source(tmp_path, None)
    assert_sentences(caught.value)


BROKEN = ("link", "folder", "latin", "nul", "huge", "pipe")


@pytest.mark.parametrize("kind", BROKEN)
def test_a_file_that_cannot_be_read_is_told_and_stops_no_other(tmp_path: Path, kind: str) -> None:
    put(tmp_path, "backlog/tasks/task-1 - a.md")
    bad = tmp_path / "backlog" / "tasks" / "task-2 - b.md"
    match kind:
        case "link":
            (tmp_path / "secret.md").write_text(TASK)
            bad.symlink_to(tmp_path / "secret.md")
        case "folder":
            bad.mkdir()
        case "latin":
            bad.write_bytes(b"---\n\xe4\n---\n")
        case "nul":
            bad.write_bytes(b"---\nid: task-2\x00\n---\n")
        case "huge":
            bad.write_bytes(b"x" * (MAX_FILE_BYTES + 1))
        case "pipe":
            os.mkfifo(bad)
    found = gather_source(tmp_path, None)
    assert names(found) == ["tasks/task-1 - a.md"]
    (finding,) = found.findings
    assert_sentences(finding.message)
    assert finding.where.endswith("task-2 - b.md")


def test_folders_that_are_links_lead_nowhere(tmp_path: Path) -> None:
    root = tmp_path / "here"
    put(root, "openspec/changes/a/proposal.md", text=CHANGE)
    put(tmp_path / "there", "proposal.md", text=CHANGE)
    (root / "openspec" / "changes" / "b").symlink_to(tmp_path / "there")
    found = gather_source(root, None)
    assert names(found) == ["a/proposal.md"]
    assert_sentences([finding.message for finding in found.findings])
    put(root, "backlog/config.yml")
    (root / "backlog" / "tasks").symlink_to(tmp_path / "there")
    assert names(gather_source(root, "backlog")) == ["config.yml"]


def test_a_list_of_features_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "list.json").write_bytes(b"[\xff]")
    with pytest.raises(UsageError) as caught:
        gather_source(tmp_path / "list.json", None)
    assert_sentences(caught.value)


def test_a_folder_without_permission_is_an_error_with_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "backlog/tasks/task-1 - a.md")
    look = os.scandir

    def refused(folder: Path) -> object:
        if str(folder).endswith("tasks"):
            # Root, who may run these tests, is refused nothing.
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return look(folder)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(UsageError, match="Permission denied") as caught:
        gather_source(tmp_path, None)
    assert caught.value.where == str(tmp_path / "backlog" / "tasks")


@pytest.mark.parametrize("limit", ["MAX_FILES", "MAX_SOURCE_CHARACTERS"])
def test_a_source_without_measure_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    put(tmp_path, "task-1 - a.md", "task-2 - b.md")
    monkeypatch.setattr(gathering, limit, 1)
    with pytest.raises(UsageError) as caught:
        gather_source(tmp_path, None)
    assert_sentences(caught.value)


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path: Path) -> None:
    path = tmp_path / "task-1 - a.md"
    path.write_bytes(b"\xef\xbb\xbf" + TASK.encode())
    assert gather_source(path, None).texts[0].text == TASK


@pytest.mark.parametrize("kind", ["backlog", "spec-kit", "openspec", "feature-list"])
def test_a_source_that_is_itself_a_link_was_named_by_somebody(tmp_path: Path, kind: Kind) -> None:
    put(tmp_path / "real", "backlog/tasks/task-1 - a.md")
    put(tmp_path / "real", "specs/001-a/tasks.md", text=PHASE)
    put(tmp_path / "real", "openspec/changes/a/tasks.md", text=CHANGE)
    put(tmp_path / "real", "feature_list.json", text="[]")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert len(gather_source(tmp_path / "link", kind).texts) == 1
