"""Lines of the work that a person should look at: they hold a job, are shown, and are accepted or refused."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from changes_kit import ADA, BOT, Shop, shop_with

from donewhen.completion import JobChecker
from donewhen.foundation.errors import UsageError
from donewhen.jobs.ledger.approval import Approval
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.dispatch import dispatch_call
from donewhen.mcp.tools import TOOLS
from donewhen.review.verdicts import record_verdict
from donewhen.testing import make_context

pytestmark = pytest.mark.scenes

WATCHED = """import os


def total(prices):
    if "PYTEST_CURRENT_TEST" in os.environ:
        return 4
    return 0
"""
HONEST = "def total(prices):\n    return sum(prices) + 1\n"
PYTEST = f"The tests pass\n  check: run {sys.executable} -m pytest -q -p no:cacheprovider"


def watched(root: Path, source: str = WATCHED) -> Shop:
    """The tests pass, because the work knows when it is tested."""
    shop = shop_with(root, PYTEST)
    shop.write("src/shop/price.py", source)
    assert not shop.complete().done
    return shop


def may_stop(shop: Shop) -> bool:
    return JobChecker(jobs=[shop.id], root=shop.root).check(make_context()).complete


def test_work_that_knows_when_it_is_tested_waits_for_a_person(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    assert (shop.view.word, shop.view.code, shop.view.next) == ("needs_person", "signs_found", "donewhen review")
    (status,) = shop.view.evidence
    assert status.state == "needs_human"
    assert status.why == ("a person has to look at 1 changed line(s) (test-machinery): src/shop/price.py:5",)
    assert shop.job.iteration == 0
    assert may_stop(shop)


def test_the_item_shows_the_lines_with_the_reason(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    (item,) = shop.items()
    assert (item.kind, item.job, item.criteria, [*item.files]) == (
        "signs_found",
        shop.id,
        ("AC-1",),
        ["src/shop/price.py"],
    )
    assert [answer.key for answer in item.answers] == ["a", "x"]
    shown = item.evidence["src/shop/price.py"].splitlines()
    assert shown[0] == "@@ line 5, test-machinery: names 'PYTEST_CURRENT_TEST'"
    assert [line for line in shown if line.startswith("+")] == ['+    5      if "PYTEST_CURRENT_TEST" in os.environ:']


def test_accepted_lines_hold_while_they_are_the_same(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    recorded = record_verdict(shop.workspace, shop.items()[0], "pass", ADA, "It is a demo.")
    assert recorded.counts
    assert shop.decisions == [("accept_signs", "It is a demo.", "person")]
    assert shop.items() == ()
    assert shop.view.code is None
    assert not may_stop(shop)
    # The line moves, and other lines change.
    shop.write("src/shop/price.py", f'"""Prices."""\n\n{WATCHED}')
    assert shop.complete().done


def test_a_changed_line_is_a_new_question(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    record_verdict(shop.workspace, shop.items()[0], "pass", ADA)
    shop.write("src/shop/price.py", WATCHED.replace("in os.environ", "in os.environ and prices"))
    assert not shop.complete().done
    assert [item.kind for item in shop.items()] == ["signs_found"]


def test_the_same_line_a_second_time_is_a_new_question(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    record_verdict(shop.workspace, shop.items()[0], "pass", ADA)
    shop.write("src/shop/price.py", WATCHED + WATCHED.replace("total", "other").replace("import os\n", ""))
    assert not shop.complete().done
    (item,) = shop.items()
    assert item.evidence["src/shop/price.py"].startswith("@@ line 11, ")


def test_refused_lines_fail_until_they_change(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    assert record_verdict(shop.workspace, shop.items()[0], "fail", ADA, "It must not know.").counts
    assert shop.decisions == [("refuse_signs", "It must not know.", "person")]
    assert shop.items() == ()
    assert (shop.view.word, shop.view.code) == ("in_progress", "criterion_failed")
    (status,) = shop.view.evidence
    assert status.why[-1] == "ada (person) refused these lines: It must not know."
    assert not may_stop(shop)
    again = shop.complete()
    assert (again.done, again.job.iteration) == (False, 1)
    shop.write("src/shop/price.py", HONEST)
    assert shop.complete().done


def test_an_agents_answer_has_no_effect(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    (item,) = shop.items()
    assert not record_verdict(shop.workspace, item, "pass", Approval(BOT)).counts
    assert not record_verdict(shop.workspace, item, "fail", Approval(BOT)).counts
    assert not shop.complete().done
    assert (shop.view.code, len(shop.items())) == ("signs_found", 1)


def test_nothing_is_decided_about_lines_that_changed_since_they_were_shown(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    (item,) = shop.items()
    shop.write("src/shop/price.py", WATCHED.replace("PYTEST_CURRENT_TEST", "PYTEST_VERSION"))
    for verdict in ("pass", "fail"):
        with pytest.raises(UsageError, match="changed since they were shown"):
            record_verdict(shop.workspace, item, "pass" if verdict == "pass" else "fail", ADA)
    assert shop.decisions == []


def test_honest_work_is_no_question(tmp_path: Path) -> None:
    shop = shop_with(tmp_path, PYTEST)
    shop.write("src/shop/price.py", HONEST)
    assert shop.complete().done
    assert shop.items() == ()


def test_evidence_on_declared_inputs_does_not_hide_new_lines(tmp_path: Path) -> None:
    check = "import sys; sys.exit(0)"
    shop = shop_with(tmp_path, f'It works\n  check: run {sys.executable} -c "{check}"', inputs=["/README.md"])
    shop.write("src/shop/price.py", HONEST)
    shop.write("src/shop/other.py", "import sys\n\n\ndef caller():\n    return sys._getframe(1).f_locals\n")
    assert not shop.complete().done
    assert shop.view.code == "signs_found"


def test_a_test_is_shown_beside_its_special_case(tmp_path: Path) -> None:
    shop = shop_with(tmp_path, PYTEST)
    shop.write("src/shop/price.py", "def total(prices):\n    if prices == [1, 2]:\n        return 4\n    return 0\n")
    assert not shop.complete().done
    (item,) = shop.items()
    shown = item.evidence["src/shop/price.py"].splitlines()
    assert shown[0] == "@@ line 2, special-cases: answers [1, 2] with 4, as a visible test expects"
    assert shown[1] == "@@ beside tests/test_price.py:6: assert total([1, 2]) == 4"


def test_expected_signs_can_be_agreed(tmp_path: Path) -> None:
    tmp_path.joinpath("donewhen.toml").write_text(
        '[jobs]\nsigns_allowed = ["/src/shop/**: test-machinery"]\n', encoding="utf-8"
    )
    shop = shop_with(tmp_path, PYTEST)
    shop.write("src/shop/price.py", WATCHED)
    assert shop.complete().done
    shop.write("donewhen.toml", '[jobs]\nsigns_allowed = ["/src/shop/**: test-machinery", "/src/**: frames"]\n')
    assert shop.view.code == "agreement_voided"


def test_a_read_only_tool_shows_the_files(tmp_path: Path) -> None:
    shop = watched(tmp_path)
    tools = {tool.name: tool for tool in TOOLS}
    data = dispatch_call(tools["show_job"], {"job": shop.id}, CallContext(shop.root)).data
    assert data is not None
    assert (data["code"], data["changes"]) == ("signs_found", ["src/shop/price.py"])


def test_the_ledger_has_no_text_of_the_work(tmp_path: Path) -> None:
    shop = watched(tmp_path, WATCHED.replace("return 4", "return 4  # key sk-verysecret"))
    record_verdict(shop.workspace, shop.items()[0], "pass", ADA)
    chains = "".join(path.read_text() for path in (tmp_path / ".donewhen").rglob("*.jsonl"))
    assert chains
    assert "PYTEST_CURRENT" not in chains


def test_a_comment_that_silences_a_tool_which_no_check_runs_is_a_note(tmp_path: Path) -> None:
    shop = shop_with(tmp_path, PYTEST)
    shop.write("src/shop/price.py", HONEST.replace("+ 1", "+ 1  # noqa: E501"))
    assert shop.complete().done
    assert shop.view.notes == (
        "comments that silence tools were added; the checks don't run these tools: src/shop/price.py:2",
    )


def test_a_comment_that_silences_a_tool_of_the_checks_is_a_question(tmp_path: Path) -> None:
    shop = shop_with(tmp_path, f'It is clean\n  check: run {sys.executable} -c "0" ruff check src')
    shop.write("src/shop/price.py", HONEST.replace("+ 1", "+ 1  # noqa: E501"))
    assert not shop.complete().done
    assert shop.view.code == "signs_found"
