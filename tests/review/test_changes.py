"""Changes that a check needs and that a job may not make by itself: a person decides on exactly what was shown."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from changes_kit import ADA, BOT, PRICE, TESTS, Shop, changed_tests, outside, shop_with

from donewhen.completion import JobChecker
from donewhen.foundation.errors import UsageError
from donewhen.jobs.board.board_states import survey_states
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.lifecycle.accepting import accept_changes, open_changes
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.dispatch import dispatch_call
from donewhen.mcp.tools import TOOLS
from donewhen.review.verdicts import record_verdict
from donewhen.testing import make_context
from donewhen_kit import git_command

pytestmark = pytest.mark.scenes

Make = Callable[[Path], Shop]
BOTH = pytest.mark.parametrize(
    ("make", "kind", "file"),
    [(outside, "outside_work_area", "expected.txt"), (changed_tests, "tests_changed", "tests/test_price.py")],
    ids=["outside", "tests"],
)


def may_stop(shop: Shop) -> bool:
    return JobChecker(jobs=[shop.id], root=shop.root).check(make_context()).complete


@BOTH
def test_a_job_waits_with_its_files_and_the_diff_and_costs_no_iteration(
    tmp_path: Path, make: Make, kind: str, file: str
) -> None:
    shop = make(tmp_path)
    (item,) = shop.items()
    assert (item.kind, item.job, item.criteria, [*item.files]) == (kind, shop.id, ("AC-1",), [file])
    assert file in item.why
    assert [*item.evidence] == [file]
    assert item.evidence[file].startswith(f"--- {file}\n+++ {file}\n@@ ")
    assert (shop.view.word, shop.view.code, shop.view.next) == ("needs_person", kind, "donewhen review")
    assert shop.job.iteration == 0
    assert may_stop(shop)


@BOTH
def test_after_acceptance_the_job_is_completed_without_another_question(
    tmp_path: Path, make: Make, kind: str, file: str
) -> None:
    shop = make(tmp_path)
    (item,) = shop.items()
    recorded = record_verdict(shop.workspace, item, "pass", ADA, "It was wrong before.")
    assert recorded.counts
    assert shop.decisions == [("accept_changes", "It was wrong before.", "person")]
    assert shop.items() == ()
    assert not may_stop(shop)
    assert (shop.view.word, shop.view.next) == ("in_progress", f"donewhen run {shop.id}")
    assert survey_states(survey_jobs(shop.workspace))[shop.id].word == "in_progress"
    assert shop.complete().done
    assert shop.view.done


@BOTH
def test_after_a_refusal_the_agent_goes_on_and_knows_why(tmp_path: Path, make: Make, kind: str, file: str) -> None:
    shop = make(tmp_path)
    (item,) = shop.items()
    assert record_verdict(shop.workspace, item, "fail", ADA, "Four is right.").counts
    assert shop.decisions == [("refuse_changes", "Four is right.", "person")]
    assert shop.items() == ()
    assert not may_stop(shop)
    assert (shop.view.word, shop.view.code) == ("in_progress", "criterion_failed")
    (status,) = shop.view.evidence
    assert (status.state, status.why[-1]) == ("failed", "ada (person) refused these changes: Four is right.")
    again = shop.complete()
    assert (again.done, again.job.iteration) == (False, 1)
    assert shop.items() == ()


def test_other_contents_than_the_refused_ones_are_a_new_question(tmp_path: Path) -> None:
    shop = outside(tmp_path)
    record_verdict(shop.workspace, shop.items()[0], "fail", ADA)
    shop.write("expected.txt", "3 \n")
    assert not shop.complete().done
    assert [item.kind for item in shop.items()] == ["outside_work_area"]
    shop.write("expected.txt", "3\n")
    assert not shop.complete().done
    assert (shop.items(), shop.view.code) == ((), "criterion_failed")


def test_a_person_may_accept_what_was_refused_before(tmp_path: Path) -> None:
    shop = outside(tmp_path)
    record_verdict(shop.workspace, shop.items()[0], "fail", ADA)
    accept_changes(shop.workspace, shop.job, open_changes(shop.workspace, shop.job, "work"), "", ADA)
    assert shop.complete().done


def test_an_agents_answer_is_recorded_and_has_no_effect(tmp_path: Path) -> None:
    shop = outside(tmp_path)
    (item,) = shop.items()
    for verdict in ("pass", "fail"):
        assert not record_verdict(shop.workspace, item, verdict, Approval(BOT)).counts
    assert [by for _, _, by in shop.decisions] == ["agent", "agent"]
    assert not shop.complete().done
    assert [again.kind for again in shop.items()] == ["outside_work_area"]
    assert shop.view.code == "outside_work_area"


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_nothing_is_decided_about_files_that_changed_since_they_were_shown(tmp_path: Path, verdict: str) -> None:
    shop = outside(tmp_path)
    (item,) = shop.items()
    shop.write("expected.txt", "3\n\n")
    with pytest.raises(UsageError, match="changed since they were shown"):
        record_verdict(shop.workspace, item, "pass" if verdict == "pass" else "fail", ADA)
    assert shop.decisions == []


def test_changed_work_is_no_question_until_it_is_checked_again(tmp_path: Path) -> None:
    shop = outside(tmp_path)
    shop.write("src/shop/price.py", PRICE.format(result="sum(list(prices))"))
    assert shop.items() == ()
    assert not may_stop(shop)
    assert not shop.complete().done
    assert len(shop.items()) == 1


def test_undone_changes_are_no_question(tmp_path: Path) -> None:
    shop = outside(tmp_path)
    shop.write("expected.txt", "4\n")
    assert shop.items() == ()
    assert shop.view.code == "criterion_stale"


def test_undone_changes_are_no_question_for_a_job_that_declares_its_inputs(tmp_path: Path) -> None:
    shop = shop_with(tmp_path, inputs=["/src/**"])
    shop.write("src/shop/price.py", PRICE.format(result="sum(prices)"))
    shop.write("expected.txt", "3\n")
    assert not shop.complete().done
    assert shop.view.code == "outside_work_area"
    shop.write("expected.txt", "4\n")
    assert (shop.items(), shop.view.code) == ((), "criterion_stale")


def test_a_file_outside_and_a_changed_test_are_one_question(tmp_path: Path) -> None:
    check = (
        "import sys; sys.exit(not all('3' in open(name).read() for name in ('expected.txt', 'tests/test_price.py')))"
    )
    shop = shop_with(tmp_path, f'Both say three\n  check: run {sys.executable} -c "{check}"')
    shop.write("src/shop/price.py", PRICE.format(result="sum(prices)"))
    shop.write("tests/test_price.py", TESTS.format(total=3))
    shop.write("expected.txt", "3\n")
    assert not shop.complete().done
    (item,) = shop.items()
    assert [*item.files] == ["expected.txt", "tests/test_price.py"]
    assert [*item.evidence] == ["changed files", "expected.txt", "tests/test_price.py"]
    record_verdict(shop.workspace, item, "pass", ADA)
    assert [entry.data["value"]["what"] for entry in shop.entries if entry.type == "decided"] == ["work", "tests"]
    assert shop.complete().done


def test_a_removed_file_is_shown_as_removed(tmp_path: Path) -> None:
    check = "import os, sys; sys.exit(os.path.exists('README.md'))"
    shop = shop_with(tmp_path, f'It is gone\n  check: run {sys.executable} -c "{check}"')
    shop.write("src/shop/price.py", PRICE.format(result="1"))
    (tmp_path / "README.md").unlink()
    assert not shop.complete().done
    (item,) = shop.items()
    assert item.evidence["README.md"].splitlines() == ["--- README.md", "+++ (removed)", "@@ -1 +0,0 @@", "-A shop."]
    record_verdict(shop.workspace, item, "pass", ADA)
    assert shop.complete().done


def test_no_tool_accepts_and_reading_tools_show_the_question(tmp_path: Path) -> None:
    shop = outside(tmp_path)
    tools = {tool.name: tool for tool in TOOLS}
    assert not [name for name in tools if "accept" in name or "review" in name or "agree" in name]
    data = dispatch_call(tools["show_job"], {"job": shop.id}, CallContext(shop.root)).data
    assert data is not None
    assert (data["code"], data["changes"]) == ("outside_work_area", ["expected.txt"])
    assert data["gates"][3]["reasons"][0]["code"] == "outside_work_area"
    assert shop.decisions == []


# Notes


def noted(root: Path) -> Shop:
    """A file outside the area changed, and a test was added; the check passes without both."""
    shop = shop_with(root, f"The tests pass\n  check: run {sys.executable} -m pytest -q -p no:cacheprovider")
    shop.write("src/shop/price.py", PRICE.format(result="sum(prices) + 1"))
    shop.write("README.md", "A shop that adds up.\n")
    shop.write("tests/test_more.py", TESTS.format(total=4))
    return shop


NOTES = (
    "README.md changed outside the work area; the checks pass without it",
    "tests/test_more.py changed; the checks pass with the agreed tests, too",
)


def test_what_the_checks_pass_without_is_a_note_and_no_reason(tmp_path: Path) -> None:
    shop = noted(tmp_path)
    done = shop.complete()
    assert done.done
    assert done.evaluation is not None
    assert done.evaluation.notes == NOTES
    assert shop.view.notes == NOTES
    assert shop.items() == ()


def test_what_a_check_needs_is_no_note(tmp_path: Path) -> None:
    assert outside(tmp_path).view.notes == ()


def test_a_job_agreed_to_as_it_is_has_no_notes(tmp_path: Path) -> None:
    shop = outside(tmp_path)
    git_command(shop.root, "checkout", "expected.txt")
    shop.write("src/shop/price.py", PRICE.format(result="4"))
    assert shop.complete().done
    assert shop.view.notes == ()


def test_a_long_diff_is_cut_and_hides_no_other_file(tmp_path: Path) -> None:
    check = "import sys; sys.exit('3' not in open('expected.txt').read())"
    shop = shop_with(tmp_path, f'It is there\n  check: run {sys.executable} -c "{check}"')
    shop.write("src/shop/price.py", PRICE.format(result="1"))
    shop.write("README.md", "y" * 5000 + "\n" + "y\n" * 9000)
    shop.write("expected.txt", "3\n")
    assert not shop.complete().done
    (item,) = shop.items()
    long, short = item.evidence["README.md"].splitlines(), item.evidence["expected.txt"].splitlines()
    assert (len(long), max(map(len, long)), long[-1]) == (1001, 1000, "[… 8005 more lines]")
    assert short[-2:] == ["-4", "+3"]
    assert [*item.files] == ["README.md", "expected.txt"]
