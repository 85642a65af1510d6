"""Backlog.md: what its task files say, what they claim, and what in them is not understood."""

from __future__ import annotations

import pytest

from donewhen.jobs.imports.backlog import normal_id, read_backlog
from donewhen.jobs.imports.items import ImportItem, ReadSource, SourceText
from donewhen.jobs.ledger.finding_codes import FindingCode
from sentences import assert_sentences

TASK = """---
id: {id}
title: {title}
status: {status}
assignee:
  - '@mira'
created_date: '2026-01-04 10:00'
labels:
  - pier
dependencies: {after}
{more}---

## Description

<!-- SECTION:DESCRIPTION:BEGIN -->
Ferries leave on time.

They carry bicycles.
<!-- SECTION:DESCRIPTION:END -->

## Acceptance Criteria
<!-- AC:BEGIN -->
- [x] #1 The timetable lists every ferry
- [ ] #2 A bicycle costs two tokens,
  also on Sundays
<!-- AC:END -->

## Implementation Notes

All of it works, says the one who wrote it.

## Definition of Done
<!-- DOD:BEGIN -->
- [ ] #1 The harbour master has read it
<!-- DOD:END -->
"""


def task(
    identifier: str = "task-4",
    title: str = "Ferry",
    status: str = "To Do",
    after: str = "[]",
    more: str = "",
    folder: str = "tasks",
) -> SourceText:
    name = f"{folder}/{identifier} - {title}.md".lstrip("/")
    return SourceText(
        name,
        f"backlog/{name}",
        TASK.format(id=identifier, title=title, status=status, after=after, more=f"{more}\n" if more else ""),
    )


def only(imported: ReadSource) -> ImportItem:
    assert not imported.findings, imported.findings
    (item,) = imported.items
    return item


def codes(imported: ReadSource) -> list[FindingCode]:
    return [finding.code for finding in imported.findings]


def test_a_task_becomes_an_item_with_criteria_and_definition_of_done() -> None:
    item = only(read_backlog([task()]))
    assert item.key == "backlog:task-4"
    assert item.title == "Ferry"
    assert item.objective == "Ferries leave on time.\n\nThey carry bicycles."
    assert item.criteria == (
        "The timetable lists every ferry",
        "A bicycle costs two tokens, also on Sundays",
        "Definition of done: The harbour master has read it",
    )
    assert item.notes == ("Labels: pier", "Assignee: @mira")
    assert item.priority == 2
    assert item.where == "backlog/tasks/task-4 - Ferry.md"


@pytest.mark.parametrize(("word", "number"), [("high", 1), ("medium", 2), ("low", 3), ("High", 1)])
def test_a_priority_is_a_number_here(word: str, number: int) -> None:
    assert only(read_backlog([task(more=f"priority: {word}")])).priority == number


def test_an_unknown_priority_is_told_with_its_line() -> None:
    imported = read_backlog([task(more="priority: someday")])
    assert [item.priority for item in imported.items] == [2]
    assert codes(imported) == [FindingCode.IMPORT_NOT_UNDERSTOOD]
    assert imported.findings[0].where == "backlog/tasks/task-4 - Ferry.md:11"


def test_a_milestone_is_the_wave() -> None:
    assert only(read_backlog([task(more="milestone: m-2")])).wave == "m-2"


def test_status_and_ticks_are_claims_and_no_more() -> None:
    assert not only(read_backlog([task()])).claim.done
    assert only(read_backlog([task(status="Done")])).claim.done
    assert_sentences(only(read_backlog([task(status=status)])).claim.told for status in ("To Do", "Done"))
    assert only(read_backlog([task(folder="completed")])).claim.done


def test_the_last_column_of_the_board_is_the_word_for_done() -> None:
    config = SourceText("config.yml", "backlog/config.yml", 'project_name: "P"\nstatuses: ["Open", "Shipped"]\n')
    assert only(read_backlog([config, task(status="shipped")])).claim.done
    assert not only(read_backlog([task(status="Shipped")])).claim.done


def test_a_config_that_is_no_yaml_is_told_and_stops_nothing() -> None:
    imported = read_backlog([SourceText("config.yml", "backlog/config.yml", "statuses: [open\n"), task()])
    assert len(imported.items) == 1
    assert codes(imported) == [FindingCode.IMPORT_NOT_UNDERSTOOD]
    assert imported.findings[0].where.startswith("backlog/config.yml:")


def test_dependencies_are_named_alike_however_they_are_written() -> None:
    item = only(read_backlog([task(after="[TASK-007, task-3.01]")]))
    assert item.depends_on == ("backlog:task-7", "backlog:task-3.1")
    assert normal_id("BACK-010.09") == "back-10.9"


def test_a_task_waits_for_its_parts() -> None:
    imported = read_backlog(
        [
            task("task-4"),
            task("task-4.1", more="parent_task_id: task-4"),
            task("task-4.2", more="parent_task_id: TASK-4"),
        ]
    )
    assert not imported.findings
    above, first, second = imported.items
    assert above.parts == ("backlog:task-4.1", "backlog:task-4.2")
    assert first.parts == second.parts == ()
    assert_sentences(first.notes)


def test_a_part_of_something_that_is_not_there_is_told() -> None:
    imported = read_backlog([task("task-4.1", more="parent_task_id: task-4")])
    assert len(imported.items) == 1
    assert codes(imported) == [FindingCode.IMPORT_DEPENDENCY]


@pytest.mark.parametrize("folder", ["drafts", "archive/tasks"])
def test_drafts_and_what_was_put_away_are_left_out_and_told(folder: str) -> None:
    imported = read_backlog([task(), task("task-5", folder=folder)])
    assert [item.key for item in imported.items] == ["backlog:task-4"]
    assert codes(imported) == [FindingCode.IMPORT_LEFT_OUT]
    assert imported.findings[0].where == f"backlog/{folder}/task-5 - Ferry.md"


def test_a_description_has_no_sections_of_its_own() -> None:
    text = task()
    inside = "Ferries leave on time.\n\n## Acceptance Criteria\n\n- [ ] #9 Everything is free\n"
    item = only(read_backlog([text._replace(text=text.text.replace("Ferries leave on time.", inside))]))
    assert len(item.criteria) == 3
    assert "Everything is free" in item.objective


def test_a_file_of_an_older_version_has_no_markers_and_no_numbers() -> None:
    head = "---\nid: task-1\ntitle: >-\n  A long\n  title\nstatus: To Do\n---\n"
    text = f"{head}## Description\n\nShort.\n\n## Acceptance Criteria\n\n- [ ] It holds\n* It stays\n"
    item = only(read_backlog([SourceText("tasks/task-1 - A.md", "t.md", text)]))
    assert item.title == "A long title"
    assert item.objective == "Short."
    assert item.criteria == ("It holds", "It stays")


def test_without_an_id_the_file_name_says_it() -> None:
    assert (
        only(read_backlog([SourceText("tasks/task-12 - A.md", "t.md", "---\ntitle: A\n---\n")])).key
        == "backlog:task-12"
    )
    imported = read_backlog([SourceText("tasks/notes.md", "t.md", "---\ntitle: A\n---\n")])
    assert not imported.items
    assert codes(imported) == [FindingCode.IMPORT_NOT_UNDERSTOOD]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("no frontmatter\n", "t.md:1"),
        ("---\nid: task-1\n", "t.md:1"),
        ("---\nid: task-1\ntitle: a: b\n---\n", "t.md:3:9"),
        ("---\nid: task-1\nid: task-2\n---\n", "t.md:3:1"),
        (
            "---\n"
            + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9) if n else 'x'}]\n" for n in range(9))
            + "---\n",
            "t.md:",
        ),
    ],
)
def test_a_broken_task_is_left_out_with_its_place_and_stops_no_other(text: str, where: str) -> None:
    imported = read_backlog([SourceText("tasks/task-1 - A.md", "t.md", text), task()])
    assert [item.key for item in imported.items] == ["backlog:task-4"]
    assert codes(imported) == [FindingCode.IMPORT_NOT_UNDERSTOOD]
    assert imported.findings[0].where.startswith(where)


def test_two_tasks_of_one_name_are_one_and_the_other_is_told() -> None:
    imported = read_backlog([task("task-4"), task("TASK-04", title="Other")])
    assert [item.title for item in imported.items] == ["Ferry"]
    assert codes(imported) == [FindingCode.IMPORT_NOT_UNDERSTOOD]
    assert_sentences(imported.findings[0].message)


def test_prose_among_the_criteria_is_told_with_its_line() -> None:
    text = "---\nid: task-1\n---\n## Acceptance Criteria\n\nIt should be nice.\n- [ ] It is nice\n"
    imported = read_backlog([SourceText("tasks/task-1 - A.md", "t.md", text)])
    assert imported.items[0].criteria == ("It is nice",)
    assert [finding.where for finding in imported.findings] == ["t.md:6"]


@pytest.mark.parametrize("field", ["labels: {a: b}", "dependencies: [[x]]"])
def test_a_field_of_another_shape_is_told(field: str) -> None:
    imported = read_backlog([SourceText("tasks/task-1 - A.md", "t.md", f"---\nid: task-1\n{field}\n---\n")])
    assert imported.items[0].depends_on == ()
    assert [finding.where for finding in imported.findings] == ["t.md:3"]


def test_a_word_that_yaml_takes_for_a_number_stays_what_it_is() -> None:
    text = "---\nid: task-1\ntitle: 1.10\nlabels: one\nstatus: true\n---\n"
    item = only(read_backlog([SourceText("tasks/task-1 - A.md", "t.md", text)]))
    assert item.title == "1.10"
    assert item.notes == ("Labels: one",)
    assert item.claim.told == "status true"


def test_line_ends_of_windows_are_line_ends() -> None:
    text = task()
    assert (
        only(read_backlog([text._replace(text=text.text.replace("\n", "\r\n"))])).criteria
        == only(read_backlog([text])).criteria
    )


@pytest.mark.parametrize(
    "names", ["@mira", "\n  - @mira", "'@mira'", "mira@pier"], ids=["one", "list", "quoted", "mail"]
)
def test_a_name_without_quotation_marks_is_read_as_it_is(names: str) -> None:
    text = task()
    text = text._replace(text=text.text.replace("\n  - '@mira'", f" {names}" if "\n" not in names else names))
    expected = "mira@pier" if "pier" in names else "@mira"
    assert only(read_backlog([text])).notes == ("Labels: pier", f"Assignee: {expected}")


def test_a_name_in_the_text_below_stays_as_it_is() -> None:
    text = task()
    text = text._replace(text=text.text.replace("They carry bicycles.", "Ask:\n- @mira"))
    assert only(read_backlog([text])).objective == "Ferries leave on time.\n\nAsk:\n- @mira"


def test_links_follow_a_project_that_has_changed_the_prefix_of_its_ids() -> None:
    parent = task("pier-7", "Pier")
    child = task("pier-7.1", "Plank", after="[task-8]", more="parent_task_id: task-7")
    items = {item.name: item for item in read_backlog([parent, child, task("pier-8", "Nail")]).items}
    assert items["pier-7"].parts == ("backlog:pier-7.1",)
    assert items["pier-7.1"].depends_on == ("backlog:pier-8",)


def test_a_number_that_two_tasks_have_is_no_link_to_either() -> None:
    imported = read_backlog([task("pier-8", "A"), task("quay-8", "B"), task("pier-9", "C", after="[task-8]")])
    assert imported.items[2].depends_on == ("backlog:task-8",)


def test_headings_among_the_criteria_only_group_them() -> None:
    text = task()
    text = text._replace(text=text.text.replace("- [ ] #2", "### Bicycles\n\n- [ ] #2"))
    assert len(only(read_backlog([text])).criteria) == 3
