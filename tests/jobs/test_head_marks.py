"""The file of marks: what it keeps, when it is written anew, and what is done about a file that can't be used."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from donewhen.foundation import person_folder
from donewhen.foundation.git_head import DETACHED, CheckedOut
from donewhen.jobs.board.open_jobs import find_open_jobs
from donewhen.jobs.ledger import head_marks
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.ledger.head_marks import HeadMarks, Mark, after_growth
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.record.head_watch import watch
from donewhen.jobs.record.writing import writing

FIRST, SECOND = Mark("refs/heads/main", 1, "a"), Mark("refs/heads/main", 2, "b")


@pytest.fixture
def heads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HeadMarks:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return HeadMarks(CheckedOut(tmp_path, "refs/heads/main", "begun"))


def test_the_last_line_about_a_chain_counts(heads: HeadMarks) -> None:
    assert heads.read() == ({}, False, "", "")
    assert heads.put({"WI-1": (FIRST,)}) == ""
    assert heads.put({"WI-1": (SECOND,), "WI-2": (FIRST,)}) == ""
    assert heads.read().marks == {"WI-1": (SECOND,), "WI-2": (FIRST,)}
    (path,) = heads.paths
    before = path.read_bytes()
    assert heads.put({"WI-1": (SECOND,)}) == ""
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o077 == 0


def test_that_a_hook_looks_after_the_jobs_is_kept_also_when_they_are_accepted(heads: HeadMarks) -> None:
    heads.put({"WI-1": (FIRST,)})
    assert not heads.read().guarded
    heads.put({}, guarded=True)
    assert heads.read().guarded
    assert heads.replace({}) == ""
    assert heads.read() == ({}, True, "", "")


def test_another_clone_in_the_same_place_has_no_marks(heads: HeadMarks) -> None:
    heads.put({"WI-1": (FIRST,)}, guarded=True)
    another = HeadMarks(heads.place._replace(begun="anew"))
    assert another.read() == ({}, False, "", "")
    another.put({"WI-2": (SECOND,)})
    assert another.read().marks == {"WI-2": (SECOND,)}
    assert heads.read().marks == {}
    # Not known, as in a repository without a log: the marks count.
    assert HeadMarks(heads.place._replace(begun="")).read().marks == {"WI-2": (SECOND,)}


def test_marks_of_several_folders_are_joined(heads: HeadMarks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heads.put({"WI-1": (FIRST,)})
    monkeypatch.setattr(person_folder, "_home_of_account", lambda: str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / ".local" / "state"))
    HeadMarks(heads.place).put({"WI-1": (SECOND,)})
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    both = HeadMarks(heads.place)
    assert len(both.paths) == 2
    assert set(both.read().marks["WI-1"]) == {FIRST, SECOND}
    both.put({"WI-1": (SECOND,)})
    assert both.read().marks == {"WI-1": (SECOND,)}


def test_a_process_that_may_not_read_is_no_damage(heads: HeadMarks, monkeypatch: pytest.MonkeyPatch) -> None:
    heads.put({"WI-1": (FIRST,)})

    def forbidden(*_: object) -> bytes:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(head_marks, "read_regular", forbidden)
    found = heads.read()
    assert (found.marks, found.problem, "Permission denied" in found.out_of_reach) == ({}, "", True)
    assert "Permission denied" in heads.put({"WI-1": (SECOND,)})


def test_without_a_home_folder_nothing_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(person_folder, "_home_of_account", lambda: "")
    for name in ("XDG_STATE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    heads = HeadMarks(CheckedOut(tmp_path, "refs/heads/main", ""))
    assert heads.put({"WI-1": (FIRST,)}) == "there is no home folder"
    assert heads.read().marks == {}


def test_files_of_work_trees_that_are_gone_are_removed_once_there_are_many(
    heads: HeadMarks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_marks, "_MANY_PLACES", 2)
    kept = tmp_path / "kept"
    kept.mkdir()
    for place in (kept, tmp_path / "gone"):
        HeadMarks(CheckedOut(place, "refs/heads/main", "")).put({"WI-1": (FIRST,)})
    heads.put({"WI-1": (FIRST,)})
    places = {HeadMarks(CheckedOut(place, "", "")).paths[0] for place in (kept, tmp_path)}
    assert {*(tmp_path / "state" / "donewhen" / "heads").glob("*.jsonl")} == places


def test_what_has_gone_back_on_the_same_branch_keeps_its_mark() -> None:
    other = Mark("refs/heads/other", 5, "e")
    assert after_growth((FIRST,), SECOND, [FIRST]) == (SECOND,)
    assert after_growth((SECOND,), FIRST, []) == (SECOND,)
    assert after_growth((other,), FIRST, []) == (other, FIRST)
    assert after_growth((other, FIRST), SECOND, [FIRST]) == (other, SECOND)
    detached = Mark(DETACHED, 3, "c")
    assert after_growth((detached,), Mark(DETACHED, 2, "b"), []) == (detached, Mark(DETACHED, 2, "b"))


def test_open_jobs_are_found_behind_long_ends_and_without_chains(tmp_path: Path) -> None:
    workspace = create_project(tmp_path / "shop", "Shop")
    job = add_job(workspace, "Long")
    with writing(workspace, job.path, job.id) as plan:
        plan.append("started", {}, Approval(person_at_terminal()), {"status": "in_progress"})
        for number in range(30):
            plan.append("unverified", {"why": f"{number} " + "x" * 900}, Approval(unproved_actor()))
    assert find_open_jobs(workspace).names == (job.id,)
    # A line that is longer than what is read at first.
    with writing(workspace, job.path, job.id) as plan:
        plan.append("unverified", {"why": "y" * 20_000}, Approval(unproved_actor()))
    assert find_open_jobs(workspace).names == (job.id,)
    with writing(workspace, job.path, job.id) as plan:
        plan.append("decided", {"decision": "block", "reason": "x"}, Approval(unproved_actor()), {"status": "blocked"})
    assert find_open_jobs(workspace).names == ()
    claimed = add_job(workspace, "Claimed")
    claimed.path.write_text(claimed.path.read_text().replace("status: planned", "status: in_progress", 1))
    assert find_open_jobs(workspace).names == (claimed.id,)
    (workspace.root / "jobs" / "odd").mkdir()
    os.mkfifo(workspace.root / "jobs" / "odd" / "plan.md")
    assert find_open_jobs(workspace).names == (claimed.id,)


def test_a_torn_last_line_is_read_as_a_whole_and_is_no_step_back(tmp_path: Path) -> None:
    workspace = create_project(tmp_path / "shop", "Shop")
    job = add_job(workspace, "Torn")
    with writing(workspace, job.path, job.id) as plan:
        plan.append("started", {}, Approval(person_at_terminal()), {"status": "in_progress"})
    with (workspace.folder / "ledger" / f"{job.id}.jsonl").open("ab") as file:
        file.write(b'{"half')
    found = find_open_jobs(workspace)
    assert (found.names, found.gone_back) == ((job.id,), ())
    assert watch(workspace).marks(job.id)[0].seq == 1
