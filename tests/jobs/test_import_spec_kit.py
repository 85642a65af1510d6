"""spec-kit: phases of tasks, the stories they serve, and what waits for what."""

from __future__ import annotations

from donewhen.jobs.imports.items import ReadSource, SourceText
from donewhen.jobs.imports.spec_kit import read_spec_kit
from donewhen.jobs.ledger.finding_codes import FindingCode
from sentences import assert_sentences

TASKS = """---
description: "Tasks of the lighthouse"
---

# Tasks: Lighthouse

**Input**: Design documents from `/specs/004-lighthouse/`

<!-- - [ ] T900 a sample that nobody wants -->

## Format: `[ID] [P?] [Story] Description`

- **[P]**: Can run in parallel

## Phase 1: Setup (Shared Infrastructure)

**Purpose**: A place to build on

- [X] T001 Create the folder in src/
- [x] T002 [P] Choose a lamp

---

## Phase 2: Foundational (Blocking Prerequisites)

- [ ] T003 Build the tower in
      src/tower.py

**Checkpoint**: The tower stands

## Phase 3: User Story 1 - Light at night (Priority: P1) 🎯 MVP

**Goal**: Ships see the coast
also in fog

**Independent Test**: Sail past at night and look

### Tests for User Story 1

- [ ] T004 [P] [US1] Test the lamp in tests/test_lamp.py

### Implementation for User Story 1

- [ ] T005 [US1] Turn the lamp (depends on T003, T004)

## Phase 4: User Story 2 - Sound in fog (Priority: P2)

- [ ] T006 [US2] Blow the horn

## Phase 5: Polish & Cross-Cutting Concerns

- [ ] T007 Paint it

## Dependencies & Execution Order

- **Setup (Phase 1)**: No dependencies
"""

SPEC = """# Feature Specification: Lighthouse

## User Scenarios & Testing *(mandatory)*

### User Story 1 - Light at night (Priority: P1)

A captain looks for the coast.

**Why this priority**: Rocks.

**Independent Test**: Sail past with the lamp on

**Acceptance Scenarios**:

1. **Given** it is night, **When** a ship passes, **Then** it sees the light
2. **Given** it is day, **When** a ship passes,
   **Then** the lamp is off

---

### User Story 2 - Sound in fog (Priority: P2)

A captain listens.

### User Story 3 - A museum (Priority: P3)

Visitors climb up.

**Acceptance Scenarios**:

1. **Given** a ticket, **When** it is shown, **Then** the door opens
"""


def texts(tasks: str = TASKS, spec: str | None = SPEC, feature: str = "004-lighthouse") -> list[SourceText]:
    found = [SourceText(f"{feature}/tasks.md", f"specs/{feature}/tasks.md", tasks)]
    return found if spec is None else [*found, SourceText(f"{feature}/spec.md", f"specs/{feature}/spec.md", spec)]


def by_name(imported: ReadSource) -> dict[str, object]:
    return {item.name.partition("/")[2]: item for item in imported.items}


def after(imported: ReadSource) -> dict[str, list[str]]:
    return {item.name.partition("/")[2]: [key.partition("/")[2] for key in item.depends_on] for item in imported.items}


def codes_and_places(imported: ReadSource) -> list[tuple[str, str]]:
    return [(finding.code, finding.where) for finding in imported.findings]


def test_a_phase_is_an_item_and_a_story_has_its_scenarios_as_criteria() -> None:
    imported = read_spec_kit(texts())
    setup, base, light, horn, polish = imported.items
    assert [item.key for item in imported.items] == [
        "spec-kit:004-lighthouse/phase-1",
        "spec-kit:004-lighthouse/phase-2",
        "spec-kit:004-lighthouse/US1",
        "spec-kit:004-lighthouse/US2",
        "spec-kit:004-lighthouse/phase-5",
    ]
    assert light.title == "004-lighthouse: User Story 1 - Light at night"
    assert light.priority == 1
    assert light.where == "specs/004-lighthouse/tasks.md:31"
    assert light.criteria == (
        "Given it is night, When a ship passes, Then it sees the light",
        "Given it is day, When a ship passes, Then the lamp is off",
        "Independent test: Sail past with the lamp on",
    )
    assert light.objective.startswith("Ships see the coast also in fog\n\nA captain looks for the coast.")
    assert "- T005 [US1] Turn the lamp (depends on T003, T004)" in light.objective
    assert setup.criteria == ("T001 Create the folder in src/", "T002 [P] Choose a lamp")
    assert setup.objective == "A place to build on"
    assert setup.title == "004-lighthouse: Setup (Shared Infrastructure)"
    assert base.criteria == ("T003 Build the tower in src/tower.py",)
    assert horn.criteria == ("T006 [US2] Blow the horn",)
    assert polish.priority == 2


def test_stories_stand_side_by_side_between_foundations_and_polish() -> None:
    assert after(read_spec_kit(texts())) == {
        "phase-1": [],
        "phase-2": ["phase-1"],
        "US1": ["phase-2"],
        "US2": ["phase-2"],
        "phase-5": ["US1", "US2"],
    }


def test_phases_of_an_older_version_follow_each_other() -> None:
    tasks = "".join(
        f"## Phase 3.{item}: {name}\n- [ ] T00{item} Do it\n" for item, name in enumerate(("A", "B", "C"), 1)
    )
    assert after(read_spec_kit(texts(tasks, None))) == {
        "phase-3.1": [],
        "phase-3.2": ["phase-3.1"],
        "phase-3.3": ["phase-3.2"],
    }


def test_a_task_that_names_one_of_another_phase_waits_for_that_phase() -> None:
    tasks = TASKS.replace("Blow the horn", "Blow the horn (depends on T005 and T999)")
    assert after(read_spec_kit(texts(tasks)))["US2"] == ["phase-2", "US1", "T999"]


def test_ticks_are_claims() -> None:
    setup, _base, light, *_ = read_spec_kit(texts()).items
    assert (setup.claim.done, light.claim.done) == (True, False)
    assert_sentences(setup.claim.told, light.claim.told)


def test_a_story_without_tasks_is_told() -> None:
    assert codes_and_places(read_spec_kit(texts())) == [(FindingCode.IMPORT_LEFT_OUT, "specs/004-lighthouse/spec.md")]


def test_a_feature_without_tasks_is_told() -> None:
    imported = read_spec_kit(texts()[1:])
    assert not imported.items
    assert codes_and_places(imported) == [(FindingCode.IMPORT_LEFT_OUT, "specs/004-lighthouse/spec.md")]


def test_without_a_spec_the_independent_test_is_what_there_is() -> None:
    imported = read_spec_kit(texts(spec=None))
    assert imported.items[2].criteria == ("Independent test: Sail past at night and look",)
    assert not imported.findings


def test_a_box_without_a_number_is_told_with_its_line() -> None:
    tasks = "# Tasks\n- [ ] T000 above all\n## Phase 1: Setup\n- [ ] TXXX later\n- [ ] **T001** now\n- [ ] T001 again\n"
    imported = read_spec_kit(texts(tasks, None))
    assert imported.items[0].criteria == ("T001 now", "T001 again")
    assert [finding.where.rpartition(":")[2] for finding in imported.findings] == ["4", "2", "6"]
    assert {finding.code for finding in imported.findings} == {FindingCode.IMPORT_NOT_UNDERSTOOD}


def test_a_file_without_tasks_is_told() -> None:
    imported = read_spec_kit(texts("# Tasks\n\nLater.\n", None))
    assert not imported.items
    assert codes_and_places(imported) == [(FindingCode.IMPORT_NOT_UNDERSTOOD, "specs/004-lighthouse/tasks.md")]


def test_sections_that_are_no_phases_go_by_their_titles_and_marks_name_the_story() -> None:
    tasks = "## Setup\n- [ ] T001 a b\n## The light\n- [ ] T002 [US4] c\n- [ ] T003 [US4] d\n"
    tasks += "## Mixed\n- [ ] T004 [US4] c\n- [ ] T005 e\n"
    assert after(read_spec_kit(texts(tasks, None))) == {"setup": [], "US4": ["setup"], "mixed": ["US4"]}


def test_two_phases_for_one_story_are_one() -> None:
    tasks = "## Phase 1: User Story 1 - A\n- [ ] T001 a b\n## Phase 2: User Story 1 - B\n- [x] T002 c d\n"
    (item,) = read_spec_kit(texts(tasks, None)).items
    assert item.criteria == ("T001 a b", "T002 c d")
    assert_sentences(item.claim.told)


def test_scenarios_that_belong_to_no_story_are_told() -> None:
    spec = "## User Scenarios & Testing\n\n### Primary User Story\nSee it.\n\n"
    spec += "### Acceptance Scenarios\n1. **Given** a, **When** b, **Then** c\n"
    imported = read_spec_kit(texts("## Phase 1: Setup\n- [ ] T001 a b\n", spec))
    assert codes_and_places(imported) == [(FindingCode.IMPORT_NOT_UNDERSTOOD, "specs/004-lighthouse/spec.md:6")]


def test_a_heading_for_scenarios_without_a_list_is_told() -> None:
    spec = "### User Story 1 - A\n\nText.\n\n**Acceptance Scenarios**:\n\n**Given** a, **When** b, **Then** c\n"
    imported = read_spec_kit(texts("## Phase 1: User Story 1 - A\n- [ ] T001 a b\n", spec))
    assert codes_and_places(imported) == [(FindingCode.IMPORT_NOT_UNDERSTOOD, "specs/004-lighthouse/spec.md:1")]
    assert imported.items[0].criteria == ("T001 a b",)


def test_two_features_keep_apart() -> None:
    imported = read_spec_kit([*texts(), *texts(feature="005-harbour")])
    assert len(imported.items) == 10
    assert len({item.key for item in imported.items}) == 10


def test_tasks_in_a_code_fence_are_an_example() -> None:
    tasks = "## Phase 1: Setup\n```\n- [ ] T009 sample\n```\n- [ ] T001 real one\n"
    imported = read_spec_kit(texts(tasks, None))
    assert imported.items[0].criteria == ("T001 real one",)
    assert not imported.findings
