"""Fields that only show what the ledger says: whatever is typed into them is found, and nothing honest is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry, EventKind
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.projection import (
    PROJECTED,
    WRITTEN_BY_DONEWHEN,
    Mismatch,
    adopted_fields,
    compare_fields,
    expected_fields,
    last_writes,
    mismatches,
    pending_writes,
)
from donewhen.jobs.record.writing import writing
from sentences import assert_sentences

NEW: dict[str, Any] = {"work_item_id": "WI-20260214-001", "title": "x", **PROJECTED}
OTHER: dict[str, Any] = {
    "status": "in_progress",
    "agreement_status": "agreed",
    "agreed_at": "2026-02-14T10:00:00Z",
    "agreed_by": "me",
    "iteration": 2,
    "rework_count": 1,
    "started_at": "2026-02-14T10:00:00Z",
    "completed_at": "2026-02-14T11:00:00Z",
    "reward_last_score": 100,
    "reward_last_eval_at": "2026-02-14T11:00:00Z",
    "reward_last_next_action": "none",
    "truth_last_status": "pass",
    "truth_last_checked_at": "2026-02-14T11:00:00Z",
    "truth_last_failures": ["one"],
}
"""Each projected field with a value that it does not begin with."""


def entry(data: Mapping[str, Any], kind: EventKind = "evaluated") -> Entry:
    return Entry(1, None, kind, "2026-02-14T00:00:00Z", Actor("gate", "agent"), data, "h")


def wrote(**values: Any) -> Entry:
    """An entry that wrote these fields, each given as before and after."""
    return entry({"writes": {name: list(pair) for name, pair in values.items()}})


def test_every_projected_field_is_one_that_donewhen_writes_and_has_another_value_here() -> None:
    assert set(OTHER) == set(PROJECTED)
    assert all(OTHER[name] != PROJECTED[name] for name in PROJECTED)
    others = {"updated_at", "stakes", "reward_target", "max_iterations", "github_issue_number", "github_issue_url"}
    others.add("rework_reason")
    assert set(PROJECTED) | others == WRITTEN_BY_DONEWHEN


def test_a_new_plan_says_what_an_empty_ledger_says() -> None:
    assert mismatches(NEW, []) == ()
    assert mismatches({}, []) == ()
    assert expected_fields([]) == PROJECTED
    assert pending_writes(NEW, []) == {}
    assert last_writes([]) == {}


@pytest.mark.parametrize("name", PROJECTED)
def test_whatever_is_typed_into_a_projected_field_is_found(name: str) -> None:
    assert mismatches({**NEW, name: OTHER[name]}, [entry({})]) == (Mismatch(name, OTHER[name], PROJECTED[name]),)
    done = [wrote(**{name: (PROJECTED[name], OTHER[name])}), entry({})]
    assert mismatches({**NEW, name: OTHER[name]}, done) == ()
    assert mismatches(NEW, done) == (Mismatch(name, PROJECTED[name], OTHER[name]),)
    without = {key: value for key, value in NEW.items() if key != name}
    assert mismatches(without, done) == (Mismatch(name, None, OTHER[name]),)


@pytest.mark.parametrize("name", PROJECTED)
@pytest.mark.parametrize("blank", [None, "", []], ids=["null", "empty", "list"])
def test_an_empty_field_says_what_a_new_plan_says(name: str, blank: Any) -> None:
    assert mismatches({**NEW, name: blank}, [entry({})]) == ()


@pytest.mark.parametrize("found", [True, "0", 0.5, 1], ids=["true", "text", "half", "one"])
def test_a_number_is_not_another_value_that_looks_like_it(found: Any) -> None:
    assert [mismatch.field for mismatch in mismatches({**NEW, "iteration": found}, [entry({})])] == ["iteration"]


@pytest.mark.parametrize("name", ["title", "stakes", "reward_target", "max_iterations", "updated_at", "priority", "x"])
def test_fields_that_are_not_projected_are_nobodys_business_here(name: str) -> None:
    assert mismatches({**NEW, name: "typed"}, [wrote(**{name: ("a", "b")}), entry({})]) == ()


def test_the_last_word_of_the_ledger_holds() -> None:
    entries = [
        wrote(status=("planned", "in_progress"), iteration=(0, 1)),
        wrote(status=("in_progress", "blocked"), stakes=("normal", "low")),
        entry({"writes": {}}),
        entry({}),
    ]
    assert expected_fields(entries) == {**PROJECTED, "status": "blocked", "iteration": 1}
    assert "stakes" not in expected_fields(entries)
    assert mismatches({**NEW, "status": "blocked", "iteration": 1}, entries) == ()
    assert [mismatch.field for mismatch in mismatches({**NEW, "status": "in_progress", "iteration": 1}, entries)] == [
        "status"
    ]


def test_an_entry_without_writes_writes_nothing() -> None:
    assert expected_fields([entry({})]) == PROJECTED
    assert last_writes([entry({})]) == {}


# Writers that were cut off between ledger and file.


def test_what_the_last_entry_wrote_and_the_file_does_not_have_is_pending_and_no_forgery() -> None:
    entries = [wrote(status=("planned", "in_progress"), started_at=("", "now"), updated_at=("old", "new"))]
    before = {**NEW, "updated_at": "old"}
    after = {**NEW, "updated_at": "new", "status": "in_progress", "started_at": "now"}
    assert pending_writes(before, entries) == {"status": "in_progress", "started_at": "now", "updated_at": "new"}
    assert mismatches(before, entries) == ()
    assert pending_writes(after, entries) == {}
    assert mismatches(after, entries) == ()


def test_a_field_that_was_not_there_before_is_pending_too() -> None:
    entries = [wrote(agreed_by=(None, "ada (person)"), agreement_status=(None, "agreed"))]
    fields = {"title": "x"}
    assert pending_writes(fields, entries) == {"agreed_by": "ada (person)", "agreement_status": "agreed"}
    assert mismatches(fields, entries) == ()


def test_a_value_that_is_neither_the_old_nor_the_new_one_is_a_forgery() -> None:
    entries = [wrote(status=("planned", "in_progress"), iteration=(0, 1))]
    fields = {**NEW, "status": "done"}
    assert pending_writes(fields, entries) == {}
    assert [mismatch.field for mismatch in mismatches(fields, entries)] == ["status", "iteration"]


def test_a_field_put_back_after_the_write_is_a_forgery_and_no_interruption() -> None:
    entries = [wrote(iteration=(2, 3), updated_at=("old", "new"))]
    fields = {**NEW, "iteration": 2, "updated_at": "new"}
    assert mismatches(fields, entries) == (Mismatch("iteration", 2, 3),)
    assert pending_writes(fields, entries) == {}


def test_a_term_put_back_by_hand_after_the_write_is_left_alone() -> None:
    entries = [wrote(max_iterations=(3, 6), updated_at=("old", "new"))]
    assert pending_writes({**NEW, "max_iterations": 3, "updated_at": "new"}, entries) == {}
    assert pending_writes({**NEW, "max_iterations": 3, "updated_at": "old"}, entries) == {
        "max_iterations": 6,
        "updated_at": "new",
    }


def test_only_the_last_entry_can_have_been_cut_off() -> None:
    entries = [wrote(status=("planned", "in_progress")), entry({})]
    assert pending_writes(NEW, entries) == {}
    assert mismatches(NEW, entries) == (Mismatch("status", "planned", "in_progress"),)


def test_the_same_answer_comes_from_what_a_chain_comes_to() -> None:
    entries = [wrote(status=("planned", "blocked")), wrote(iteration=(0, 1))]
    fields = {**NEW, "reward_last_score": 100, "status": "blocked"}
    found = compare_fields(fields, {**expected_fields(entries), "unknown": 1}, last_writes(entries))
    assert found == mismatches(fields, entries) == (Mismatch("reward_last_score", 100, 0),)


# Plans that others have written. Older versions took over what they say; those entries still count.


def test_what_an_older_version_has_taken_over_still_counts() -> None:
    fields = {**NEW, "status": "in_progress", "iteration": 2, "started_at": "2026", "title": "mine"}
    kept = adopted_fields(fields)
    assert (kept["status"], kept["iteration"], kept["started_at"]) == ("in_progress", 2, "2026")
    assert set(kept) <= set(PROJECTED)
    assert not {"agreed_at", "completed_at", "truth_last_failures", "title"} & set(kept)
    assert mismatches(fields, [entry({"adopted": kept})]) == ()
    assert [mismatch.field for mismatch in mismatches({**fields, "iteration": 3}, [entry({"adopted": kept})])] == [
        "iteration"
    ]


def test_that_something_is_done_is_never_taken_over() -> None:
    fields = {**NEW, "status": "done", "completed_at": "2026", "iteration": 1}
    kept = adopted_fields(fields)
    assert not {"status", "completed_at"} & set(kept)
    assert kept["iteration"] == 1
    assert [mismatch.field for mismatch in mismatches(fields, [entry({"adopted": kept})])] == ["status", "completed_at"]


def test_when_something_was_completed_is_kept_where_it_does_not_say_done() -> None:
    assert adopted_fields({"status": "blocked", "completed_at": "2026"}) == {
        "status": "blocked",
        "completed_at": "2026",
    }


def test_that_something_is_agreed_is_never_taken_over() -> None:
    kept = adopted_fields({**NEW, "agreement_status": "agreed", "agreed_at": "2026", "agreed_by": "me"})
    assert "agreement_status" not in kept
    assert (kept["agreed_at"], kept["agreed_by"]) == ("2026", "me")


def test_nothing_is_taken_over_later_on() -> None:
    entries = [entry({"adopted": {"iteration": 2}}), entry({"adopted": {"status": "done", "reward_last_score": 100}})]
    assert expected_fields(entries) == {**PROJECTED, "iteration": 2}


def test_a_first_entry_that_takes_over_a_done_is_not_believed() -> None:
    assert expected_fields([entry({"adopted": {"status": "done", "iteration": 1}})])["status"] == "planned"


# Writing: the ledger first, then the file.


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    (tmp_path / ".git").mkdir()
    made = create_project(tmp_path, "Demo")
    add_job(made, "Parser", criteria=["The log is parsed."])
    return made


def the_job(workspace: Workspace) -> Job:
    return workspace.job_at(next(workspace.places()).path)


def write(workspace: Workspace, **writes: Any) -> Entry:
    job = the_job(workspace)
    by = Approval(Actor("gate", "agent"))
    with writing(workspace, job.path) as plan:
        found = plan.append("evaluated", {"score": 7}, by, writes)
        assert plan.document.fields == the_job(workspace).document.fields
    return found


def test_an_entry_names_each_field_with_its_value_before_and_after(workspace: Workspace) -> None:
    found = write(workspace, reward_last_score=7, agreed_by="x")
    assert found.data["score"] == 7
    assert found.data["writes"] == {"reward_last_score": [0, 7], "agreed_by": [None, "x"]}
    job = the_job(workspace)
    assert (job.document.fields["reward_last_score"], job.document.fields["agreed_by"]) == (7, "x")
    assert workspace.ledger.read(job.id).entries == (found,)
    assert mismatches(job.document.fields, [found]) == ()


def test_an_entry_that_writes_nothing_leaves_the_file_alone(workspace: Workspace) -> None:
    before = the_job(workspace).path.read_bytes()
    found = write(workspace)
    assert found.data["score"] == 7
    assert "writes" not in found.data
    assert the_job(workspace).path.read_bytes() == before


def test_the_ledger_is_written_before_the_file(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    before = the_job(workspace).path.read_bytes()

    def full(*_: Any) -> Entry:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(Ledger, "append", full)
        with pytest.raises(OSError) as caught:
            write(workspace, reward_last_score=7)
        assert_sentences(caught.value)
    assert the_job(workspace).path.read_bytes() == before


def test_a_repair_finishes_the_write_and_is_not_needed_twice(workspace: Workspace) -> None:
    job = the_job(workspace)
    before = job.path.read_bytes()
    write(workspace, reward_last_score=7, truth_last_status="pass")
    after = job.path.read_bytes()
    job.path.write_bytes(before)
    for _ in range(2):
        with writing(workspace, job.path) as plan:
            assert plan.document.fields["reward_last_score"] == 7
        assert job.path.read_bytes() == after
