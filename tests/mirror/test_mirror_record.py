"""What the score makes of the record, without asking anybody."""

from __future__ import annotations

from typing import Any

import pytest

from donewhen.jobs.contract.agreement import project_agreement
from donewhen.jobs.issues.mirror_status import mirror_entry_text, waves_of
from donewhen.jobs.ledger.entry_content import Mirrored
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import FieldError, read_project
from donewhen.jobs.plan.templates import project_plan
from sentences import assert_sentences


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("title: Parser", "title: Other"),
        ("written down", "written up"),
        ("## Objective\n", "## Objective\n\nRead it.\n"),
    ],
)
def test_parity_ends_when_the_plan_says_something_else(place: Any, old: str, new: str) -> None:
    job = place.job()
    place.sync()
    assert place.fact(job).current
    place.edit(job.path, old, new)
    found = place.fact(job)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])
    place.sync()
    assert place.fact(job).current


def test_a_number_that_somebody_typed_or_took_out_changes_nothing(place: Any) -> None:
    one, two = place.job("One"), place.job("Two")
    place.sync(only=one.id)
    place.edit(two.path, 'github_issue_number: ""', "github_issue_number: 1")
    found = place.fact(two)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])
    place.edit(one.path, "github_issue_number: 1", "github_issue_number: 9")
    assert place.fact(one).current


def test_the_newest_sync_counts(place: Any) -> None:
    job = place.job()
    place.sync()
    place.double.repo.may_write = False
    place.issue()["labels"] = []
    # It may not put the label back, so the sync stops; what was seen before is still what is on record.
    with pytest.raises(Exception) as caught:
        place.sync()
    assert_sentences(caught.value)
    assert place.fact(job).current
    assert [gap.field for gap in place.gaps()] == ["status"]


def test_waves_that_make_no_sense_are_told_and_keep_nobody_from_looking(place: Any) -> None:
    job = place.job()
    place.sync()
    place.edit(place.workspace.project_file, "waves: []", "waves: soon")
    found = place.fact(job)
    assert found[:-1] == (True, False)
    assert_sentences(found[-1])
    with pytest.raises(FieldError) as caught:
        place.sync()
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "waves",
    [
        "waves: soon",
        "waves: {id: a}",
        "waves: [a]",
        "waves: [{title: a}]",
        "waves: [{id: [a]}]",
        "waves: [{id: a}, {id: a}]",
    ],
)
def test_a_wave_has_an_id_of_its_own(tmp_path: Any, waves: str) -> None:
    raw = project_plan("PJ-20260214-001", "Demo", "now").replace(b"waves: []", waves.encode())
    project = read_project(parse_document(raw, "plan.md"), tmp_path / "plan.md", "plan.md")
    with pytest.raises(FieldError) as caught:
        waves_of(project)
    assert_sentences(caught.value)
    assert str(caught.value.where).startswith("plan.md:")


def test_a_wave_that_ends_on_no_day_is_told(place: Any) -> None:
    job = place.job()
    place.edit(place.workspace.project_file, "waves: []", "waves:\n  - id: W1\n    end: soon")
    place.edit(job.path, 'wave_id: ""', "wave_id: W1")
    with pytest.raises(Exception) as caught:
        place.sync()
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "data",
    [
        {"number": 7, "repo": "o/r", "observed": {"status": "done", "state": "completed"}, "wanted": {}},
        {
            "number": 7,
            "repo": "o/r",
            "observed": {"status": "", "state": "open"},
            "wanted": {"status": "", "state": "open"},
        },
    ],
)
def test_an_entry_is_told_in_a_sentence(data: dict[str, Any]) -> None:
    assert_sentences(mirror_entry_text(Mirrored(**data)))


def test_the_page_tells_a_sync_as_the_log_does(place: Any) -> None:
    from donewhen.jobs.board.entry_text import entry_text

    job = place.job()
    place.sync()
    assert entry_text(place.mirrored(job)[0]) == "issue 1 in octo/demo has status planned, open: matches the plan"


def test_a_mirror_that_was_agreed_to_is_switched_off_or_turned_elsewhere_by_a_person_only(place: Any) -> None:
    job = place.job()
    place.begin(job)
    project_file = place.workspace.project_file
    before = project_file.read_text()
    for old, new in (("github_enabled: true", "github_enabled: false"), ("octo/demo", "eve/leak")):
        place.edit(project_file, old, new)
        found = project_agreement(place.workspace, place.workspace.project())
        assert found.state == "voided"
        project_file.write_text(before)
    assert project_agreement(place.workspace, place.workspace.project()).state == "agreed"


def test_a_status_that_somebody_typed_is_announced_to_nobody(place: Any) -> None:
    begun, new = place.job("One"), place.job("Two")
    place.begin(begun)
    place.edit(begun.path, "status: in_progress", "status: done")
    place.edit(new.path, "status: planned", "status: done")
    place.sync()
    for number, status in ((1, "in_progress"), (2, "planned")):
        assert (place.issue(number)["state"], place.labels(number)) == ("open", [f"status:{status}"])
    # The second has a chain by now, and its plan was put right.
    assert place.read(new).status == "planned"
    assert place.fact(begun).current
    assert place.fact(new).current
    assert place.plan().steps == ()
