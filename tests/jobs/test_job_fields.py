"""A job and a project out of their plan files: defaults, typed values, and errors that name the line."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError, ExitCode
from donewhen.jobs.plan.criteria import Check
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import (
    BUDGETS,
    STAKES,
    STATUSES,
    TARGETS,
    TRUTH_CHECKS,
    FieldError,
    Job,
    Project,
    read_job,
    read_project,
)
from sentences import assert_sentences

PATH = Path("/somewhere/WI-20260214-001-parse/plan.md")


def job(*lines: str, body: str = "", newline: str = "\n") -> Job:
    text = newline.join(["---", "work_item_id: WI-20260214-001", *lines, "---", body])
    return read_job(parse_document(text.encode(), "plan.md"), PATH, "plan.md")


def project(*lines: str) -> Project:
    return read_project(parse_document("\n".join(["---", *lines, "---", ""]).encode(), "plan.md"), PATH, "plan.md")


def refused(*lines: str) -> FieldError:
    with pytest.raises(FieldError) as caught:
        job(*lines)
    assert (caught.value.code, caught.value.exit_code) == ("field", ExitCode.USAGE)
    return caught.value


def test_a_job_with_only_an_id_has_the_defaults_of_the_format() -> None:
    found = job()
    assert found.id == found.title == "WI-20260214-001"
    assert (found.status, found.stakes, found.truth_mode) == ("planned", "normal", "strict")
    assert (found.reward_target, found.max_iterations, found.iteration, found.rework_count) == (80, 3, 0, 0)
    assert found.outputs == ("outputs/primary.md",)
    assert found.verification_evidence == ("artifacts/verification.md",)
    assert found.depends_on == found.inputs == found.truth_required_commands == found.criteria == ()
    assert found.truth_checks == ("exists_nonempty", "freshness", "verification_consistency")
    assert found.execution_log_required is True
    assert found.lesson_capture_required is True
    assert found.exemptions == {}
    assert found.read_only is False
    assert found.completion_promise == "WI-20260214-001-DONE"
    assert (found.path, found.folder) == (PATH, PATH.parent)
    assert found.document.fields == {"work_item_id": "WI-20260214-001"}


def test_a_job_has_what_its_file_says() -> None:
    found = job(
        "title: ' Parse the log '", "status: in_progress", "depends_on:", "  - WI-1", "  - WI-2", "stakes: critical",
        "reward_target: 91", "max_iterations: 4",
        "iteration: 2", "rework_count: 1", "outputs: [a.md, b.md]", "verification_evidence: c.md", "inputs:", "- x",
        "truth_mode: off", "truth_checks: [freshness]",
        "truth_required_commands: ['pytest -q']", "execution_log_required: false", "lesson_capture_required: no",
        "execution_log_exemption_reason: nothing ran",
        "lesson_capture_exemption_reason: ''", "completion_promise: PROMISE", "read_only: true",
        body="# Acceptance criteria\n- AC-1: x\n  check: manual\n",
    )  # fmt: skip
    assert (found.title, found.status, found.depends_on, found.stakes) == (
        "Parse the log",
        "in_progress",
        ("WI-1", "WI-2"),
        "critical",
    )
    assert (found.reward_target, found.max_iterations, found.iteration, found.rework_count) == (91, 4, 2, 1)
    assert (found.outputs, found.verification_evidence, found.inputs) == (("a.md", "b.md"), ("c.md",), ("x",))
    assert (found.truth_mode, found.truth_checks, found.truth_required_commands) == (
        "off",
        ("freshness",),
        ("pytest -q",),
    )
    assert (found.execution_log_required, found.lesson_capture_required) == (False, False)
    assert found.exemptions == {"execution_log_exemption_reason": "nothing ran"}
    assert found.completion_promise == "PROMISE"
    assert found.read_only is True
    assert [(criterion.id, criterion.text, criterion.check) for criterion in found.criteria] == [
        ("AC-1", "x", Check("manual"))
    ]


@pytest.mark.parametrize(
    ("stakes", "target", "budget"), [("low", 70, 2), ("normal", 80, 3), ("high", 90, 5), ("critical", 95, 7)]
)
def test_the_stakes_set_the_target_and_the_budget(stakes: str, target: int, budget: int) -> None:
    found = job(f"stakes: {stakes}")
    assert (found.stakes, found.reward_target, found.max_iterations) == (stakes, target, budget)


def test_the_closed_sets_are_those_of_the_format() -> None:
    assert STATUSES == ("planned", "in_progress", "blocked", "done", "cancelled")
    assert STAKES == ("low", "normal", "high", "critical")
    assert set(TARGETS) == set(BUDGETS) == set(STAKES)
    assert TRUTH_CHECKS == (
        "exists_nonempty", "freshness", "work_item_execution_logged", "linked_lesson_captured",
        "required_command_logged", "verification_consistency",
    )  # fmt: skip


def test_a_job_and_a_project_cannot_be_changed_in_place() -> None:
    for plan in (job(), project()):
        with pytest.raises(dataclasses.FrozenInstanceError):
            plan.status = "done"  # type: ignore[misc]


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_read(status: str) -> None:
    assert job(f"status: {status}").status == status


@pytest.mark.parametrize("empty", ["", " ''", " null", " ~"])
def test_an_empty_value_counts_as_missing(empty: str) -> None:
    found = job(
        *(
            f"{name}:{empty}"
            for name in ("title", "status", "stakes", "reward_target", "iteration", "truth_mode", "completion_promise")
        )
    )
    assert (found.title, found.status, found.stakes, found.reward_target, found.iteration, found.truth_mode) == (
        "WI-20260214-001", "planned", "normal", 80, 0, "strict",
    )  # fmt: skip
    assert found.completion_promise == "WI-20260214-001-DONE"
    assert job(f"execution_log_required:{empty}").execution_log_required is True


@pytest.mark.parametrize("empty", ["", " ''", " null", " []"])
def test_an_empty_list_is_empty_and_not_the_default(empty: str) -> None:
    found = job(f"outputs:{empty}", f"verification_evidence:{empty}", f"truth_checks:{empty}", f"depends_on:{empty}")
    assert found.outputs == found.verification_evidence == found.truth_checks == found.depends_on == ()


def test_a_job_may_have_its_id_under_either_name_and_must_have_one() -> None:
    document = parse_document(b"---\nid: WI-7\n---\n", "plan.md")
    assert read_job(document, PATH, "plan.md").id == "WI-7"
    both = parse_document(b"---\nid: WI-7\nwork_item_id: WI-8\n---\n", "plan.md")
    assert read_job(both, PATH, "plan.md").id == "WI-8"
    for raw in (b"---\n---\n", b"---\nid: ''\nwork_item_id:\n---\n", b"---\nid: '  '\n---\n"):
        with pytest.raises(FieldError) as caught:
            read_job(parse_document(raw, "plan.md"), PATH, "plan.md")
        assert_sentences(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "status: complete",
        "status: Done",
        "status: canceled",
        "stakes: enormous",
        "truth_mode: on",
        "status: [done]",
        "title: {a: b}",
        "outputs: 5",
        "outputs: {a: b}",
        "outputs: [[a]]",
        "outputs: [a, {b: c}]",
        "outputs: [a, ~]",
        "depends_on: true",
        "iteration: -1",
        "iteration: 1.5",
        "iteration: true",
        "iteration: '3'",
        "iteration: [3]",
        "max_iterations: many",
        "execution_log_required: 1",
        "lesson_capture_required: [true]",
        "execution_log_required: maybe",
        "truth_checks: [freshnes]",
        "truth_checks: [freshness, zzz]",
        "truth_checks: ['']",
    ],
)
def test_a_value_that_a_field_cannot_have_is_refused_with_its_line(line: str) -> None:
    error = refused("# a comment", line)
    assert_sentences(error.message)
    assert error.where == "plan.md:4"


@pytest.mark.parametrize(
    "number",
    ["1e999", "-1e999", ".inf", ".nan", "9" * 5000, "1e400"],
    ids=["inf", "-inf", ".inf", ".nan", "digits", "large"],
)
def test_a_number_beyond_all_bounds_is_refused_and_not_a_crash(number: str) -> None:
    error = refused(f"reward_target: {number}")
    assert_sentences(error.message)
    assert error.where == "plan.md:3"


def test_a_number_may_be_written_as_a_fraction_that_is_whole() -> None:
    found = job("iteration: 3.0", "max_iterations: 1e1")
    assert (found.iteration, type(found.iteration), found.max_iterations) == (3, int, 10)
    assert job("iteration: 0").iteration == 0


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("true", True),
        ("True", True),
        ("yes", True),
        ("ON", True),
        ("'true'", True),
        ("false", False),
        ("No", False),
        ("off", False),
    ],
)
def test_a_flag_is_a_word_for_yes_or_no(word: str, value: bool) -> None:
    found = job(f"execution_log_required: {word}", f"lesson_capture_required: {word}")
    assert (found.execution_log_required, found.lesson_capture_required) == (value, value)


def test_texts_may_look_like_numbers() -> None:
    found = job("title: 12", "depends_on: [7, x, 2]", "outputs: [2024]")
    assert (found.title, found.depends_on, found.outputs) == ("12", ("7", "x", "2"), ("2024",))


@pytest.mark.parametrize("title", ["1.10", "true", "007", "1e3", "+5"])
def test_a_title_is_the_words_that_stand_there(title: str) -> None:
    assert job(f"title: {title}").title == title


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"], ids=["LF", "CRLF", "CR"])
def test_criteria_know_their_line_in_the_file(newline: str) -> None:
    body = newline.join(["", "# Objective", "# Acceptance Criteria", "- one", "- two", ""])
    assert [criterion.line for criterion in job("a: 1", body=body, newline=newline).criteria] == [8, 9]


def test_a_broken_criterion_names_its_line_in_the_file() -> None:
    with pytest.raises(ConfigError) as caught:
        job(body="# Acceptance Criteria\n- one\n  check: nothing\n")
    assert caught.value.where == "plan.md:6"


def test_a_project_with_nothing_has_the_name_of_its_folder() -> None:
    found = project()
    assert (found.id, found.title, found.status, found.agreement_status, found.github_enabled) == (
        "WI-20260214-001-parse", "WI-20260214-001-parse", "planned", "proposed", False,
    )  # fmt: skip
    assert found.path == PATH
    assert found.criteria == ()
    assert found.document.fields == {}


def test_a_project_has_criteria_of_its_own() -> None:
    text = "---\nid: PJ-1\n---\n# Goal\n# Acceptance Criteria\n- AC-1: x\n- y\n"
    found = read_project(parse_document(text.encode(), "plan.md"), PATH, "plan.md")
    assert [(criterion.id, criterion.text, criterion.line) for criterion in found.criteria] == [
        ("AC-1", "x", 6),
        ("AC-2", "y", 7),
    ]


def test_a_project_has_what_its_file_says() -> None:
    found = project("id: PJ-1", "title: P", "status: done", "agreement_status: agreed", "github_enabled: true")
    assert (found.id, found.title, found.status, found.agreement_status, found.github_enabled) == (
        "PJ-1",
        "P",
        "done",
        "agreed",
        True,
    )


@pytest.mark.parametrize("line", ["agreement_status: yes", "status: started", "github_enabled: sometimes", "id: [x]"])
def test_a_project_with_a_value_it_cannot_have_is_refused(line: str) -> None:
    with pytest.raises(FieldError) as caught:
        project("# c", line)
    assert caught.value.where == "plan.md:3"


def test_unknown_fields_are_nobodys_business() -> None:
    unknown: Any = job("whatever: {a: [b]}", "github_issue_number: 7").document.fields
    assert unknown["whatever"] == {"a": ["b"]}


@pytest.mark.parametrize("value", ["101", "100.0e1"])
def test_a_target_above_the_highest_score_is_refused(value: str) -> None:
    error = refused(f"reward_target: {value}")
    assert error.where == "plan.md:3"
    assert_sentences(error.message)


@pytest.mark.parametrize("value", [0, 100])
def test_any_score_may_be_the_target(value: int) -> None:
    assert job(f"reward_target: {value}").reward_target == value
