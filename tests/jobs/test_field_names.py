"""A field that is nearly written like a known one is a finding; fields of others are none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import donewhen.jobs.plan.job as reader
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.lifecycle.planning import check_plan
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.field_names import known_fields, misspelled_fields


def test_every_field_that_is_read_is_known() -> None:
    source = Path(reader.__file__).read_text().partition("def read_project")[0]
    read = set(re.findall(r'get\.\w+\(\s*"(\w+)"', source)) | {"work"}
    assert len(read) > 15
    assert read <= known_fields()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("reward_taget", "reward_target"),
        ("reward-target", "reward_target"),
        ("Stakes", "stakes"),
        ("output", "outputs"),
        ("depend_on", "depends_on"),
        ("max_iteration", "max_iterations"),
        ("tests_may_chnage", "tests_may_change"),
    ],
)
def test_a_likely_typo_is_found_with_what_was_meant(name: str, meant: str) -> None:
    assert misspelled_fields([name]) == ((name, meant),)


@pytest.mark.parametrize(
    "name",
    [*sorted(known_fields()), "owner", "order", "team", "labels", "assignee", "reviewer", "epic", "tag", "x-input",
     "rewarded_by", "statusline", "estimate", "due", "component", "version", "network_policy"],
)  # fmt: skip
def test_known_fields_and_those_of_others_are_no_typos(name: str) -> None:
    assert misspelled_fields([name]) == ()


def test_a_typo_is_a_finding_of_the_plan_check(tmp_path: Path) -> None:
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "A notice", criteria=["It is there.\n  check: file outputs/primary.md"])
    assert check_plan(workspace, survey_jobs(workspace), Policy()) == ()
    job.path.write_text(job.path.read_text().replace("stakes: normal", "reward_taget: 95\nstakes: normal"))
    (problem,) = check_plan(workspace, survey_jobs(workspace), Policy())
    assert (problem.code, problem.where) == ("field_misspelled", workspace.where(job.path))
    assert "reward_taget" in problem.message and "reward_target" in problem.message
