"""OpenSpec: a change with its deltas, and one that was archived, which proves nothing."""

from __future__ import annotations

from donewhen.jobs.imports.items import ImportItem, ReadSource, SourceText
from donewhen.jobs.imports.openspec import read_openspec
from donewhen.jobs.ledger.finding_codes import FindingCode
from sentences import assert_sentences

PROPOSAL = """# Change: Ring the bell

## Why

Nobody hears the gulls.

## What Changes

- A bell at the gate
- **BREAKING** no whistle

## Impact

- Affected specs: gate
"""

TASKS = """## 1. Implementation

- [x] 1.1 Hang the bell
- [ ] 1.2 Tie the rope
  with a good knot

## 2. Verification
- [ ] 2.1 Run `make test`
"""

DELTA = """## ADDED Requirements

### Requirement: Bell at the gate
The gate SHALL have a bell.

#### Scenario: Somebody rings
- **WHEN** the rope is pulled
- **THEN** the bell sounds
- **AND** the dog barks

#### Scenario: Nobody rings
**WHEN** the wind blows **THEN** it is quiet

## MODIFIED Requirements

### Requirement: Opening hours
The gate SHALL open at nine.

## REMOVED Requirements

### Requirement: Whistle
**Reason**: nobody has one

## RENAMED Requirements

- FROM: `### Requirement: Door`
- TO: `### Requirement: Gate`
"""


def change(name: str = "ring-the-bell", **files: str) -> list[SourceText]:
    given = files or {"proposal": PROPOSAL, "tasks": TASKS, "delta": DELTA}
    paths = {"proposal": "proposal.md", "tasks": "tasks.md", "delta": "specs/gate/spec.md", "design": "design.md"}
    return [SourceText(f"{name}/{paths[key]}", f"changes/{name}/{paths[key]}", text) for key, text in given.items()]


def only(imported: ReadSource) -> ImportItem:
    assert not imported.findings, imported.findings
    (item,) = imported.items
    return item


def test_a_change_has_the_scenarios_of_its_deltas_as_criteria() -> None:
    item = only(read_openspec(change()))
    assert item.key == "openspec:ring-the-bell"
    assert item.title == "Ring the bell"
    assert item.where == "changes/ring-the-bell/proposal.md"
    assert_sentences(item.criteria)


def test_why_what_and_the_tasks_are_the_objective() -> None:
    objective = only(read_openspec(change())).objective
    assert objective.startswith("Why:\nNobody hears the gulls.\n\nWhat Changes:\n- A bell at the gate")
    assert "Impact" not in objective
    assert objective.endswith("Tasks:\n- 1.1 Hang the bell\n- 1.2 Tie the rope with a good knot\n- 2.1 Run `make test`")


def test_without_deltas_the_tasks_are_the_criteria() -> None:
    item = only(read_openspec(change(proposal=PROPOSAL, tasks=TASKS)))
    assert item.criteria == ("1.1 Hang the bell", "1.2 Tie the rope with a good knot", "2.1 Run `make test`")
    assert "Tasks:" not in item.objective


def test_without_a_title_the_name_of_the_change_is_one() -> None:
    assert only(read_openspec(change(proposal="## Why\n\nIt is time.\n", tasks=TASKS))).title == "ring-the-bell"
    assert only(read_openspec(change(tasks=TASKS))).title == "ring-the-bell"
    assert only(read_openspec(change(proposal="# Proposal\n", tasks=TASKS))).title == "ring-the-bell"


def test_ticks_and_the_archive_are_claims() -> None:
    changes = (
        change(),
        change(tasks=TASKS.replace("[ ]", "[X]")),
        change("archive/2026-01-02-ring-the-bell"),
        change(proposal=PROPOSAL),
    )
    claims = [only(read_openspec(change)).claim for change in changes]
    assert [claim.done for claim in claims] == [False, True, True, False]
    assert_sentences(claim.told for claim in claims)


def test_a_change_that_is_archived_later_is_the_same_one() -> None:
    before, later = only(read_openspec(change())), only(read_openspec(change("archive/2026-01-02-ring-the-bell")))
    assert before.key == later.key
    assert before.hash == later.hash


def test_a_name_that_was_used_again_keeps_its_day() -> None:
    imported = read_openspec(
        [*change(), *change("archive/2026-01-02-ring-the-bell"), *change("archive/2026-02-02-moor")]
    )
    assert [item.name for item in imported.items] == ["ring-the-bell", "2026-01-02-ring-the-bell", "moor"]


def test_what_is_no_requirement_is_told_with_its_line() -> None:
    rope = "### Requirement: Rope\nIt SHALL hold.\n\n#### Case: rain\n- **WHEN** it rains\n"
    delta = f"## ADDED Requirements\n\n### Feature: Bell\n\n{rope}"
    imported = read_openspec(change(delta=delta))
    assert [finding.where for finding in imported.findings] == [
        "changes/ring-the-bell/specs/gate/spec.md:3",
        "changes/ring-the-bell/specs/gate/spec.md:8",
    ]
    assert imported.items[0].criteria == ("Rope: It SHALL hold.", "Rope (Case: rain): WHEN it rains")


def test_a_spec_without_deltas_and_a_list_without_tasks_are_told() -> None:
    imported = read_openspec(change(proposal=PROPOSAL, tasks="Later.\n", delta="## Purpose\nA gate.\n"))
    assert {finding.code for finding in imported.findings} == {FindingCode.IMPORT_NOT_UNDERSTOOD}
    assert [finding.where.rpartition("/")[2] for finding in imported.findings] == ["tasks.md", "spec.md"]
    assert imported.items[0].criteria == ()


def test_half_a_renaming_is_told() -> None:
    imported = read_openspec(change(delta="## RENAMED Requirements\n- Door, Gate\n- TO: `### Requirement: Gate`\n"))
    assert_sentences(imported.items[0].criteria)
    assert len(imported.findings) == 1


def test_a_change_of_which_nothing_can_be_made_is_told() -> None:
    imported = read_openspec([*change(), *change("empty", design="# Design\n")])
    assert [item.name for item in imported.items] == ["ring-the-bell"]
    assert [(finding.code, finding.where) for finding in imported.findings] == [
        (FindingCode.IMPORT_NOT_UNDERSTOOD, "changes/empty/design.md")
    ]
