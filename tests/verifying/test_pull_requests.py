"""A pull request that weakens a criterion, deletes a test and commits a forged receipt; the same without cheating."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from verify_kit import HONEST, PYTEST, TESTS, Shop, case, forge

from sentences import assert_sentences

pytestmark = pytest.mark.scenes

CRITERIA = (
    f"No test fails\n  check: run {PYTEST}",
    "The refusal names the price\n  check: file /prices.py matches /negative/",
)
MORE = "from prices import total\n\n\ndef test_nothing_costs_nothing():\n    assert total([]) == 0\n"
ONE_TEST = TESTS.partition("\n\ndef test_negative")[0] + "\n"


def test_a_pull_request_that_cheats_is_red_with_the_reasons_in_the_annotations(shop: Shop, tmp_path: Path) -> None:
    job = shop.job(criteria=CRITERIA)
    shop.branch()
    shop.edit(shop.plan(job), "  check: file /prices.py matches /negative/", "  check: file /prices.py")
    shop.write("test_prices.py", ONE_TEST)
    receipt = forge(shop, job)
    shop.commit("Refuse negative prices")

    summary = tmp_path / "summary.md"
    done = shop.verify(GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))

    assert done.returncode == 1, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    plan = shop.plan(job)
    weakened = [line for line in lines if "voided" in line]
    assert len(weakened) == 1
    assert re.match(rf"::error file={re.escape(plan)},line=\d+,title=donewhen%3A voided::", weakened[0])
    assert "The refusal names the price [check: file /prices.py matches /negative/]" in weakened[0]
    line = int(re.search(r"line=(\d+)", weakened[0])[1])  # type: ignore[index]
    assert "The refusal names the price" in (shop.root / plan).read_text().splitlines()[line - 1]
    lost = [line for line in lines if "report_tests_lost" in line]
    assert len(lost) == 1
    assert "test_negative_prices_are_refused" in lost[0]
    forged = [line for line in lines if "receipt_unfounded" in line]
    assert any(receipt[:19] in item and "no passed run of" in item for item in forged)
    refuted = [line for line in lines if "receipt_refuted" in line]
    assert len(refuted) == 1
    failed = [line for line in lines if "criterion_failed" in line]
    assert any("With the tests of main: AC-1" in item for item in failed)
    assert any("AC-2" in item for item in failed)
    assert "## donewhen: not verified" in summary.read_text()
    assert "report_tests_lost" not in summary.read_text()
    assert "missing" in summary.read_text()


def test_the_same_without_the_cheating_is_green(shop: Shop, tmp_path: Path) -> None:
    job = shop.job(criteria=CRITERIA)
    shop.branch()
    shop.write("prices.py", HONEST)
    shop.write(
        "test_more_prices.py",
        "from prices import total\n\n\ndef test_nothing_costs_nothing():\n    assert total([]) == 0\n",
    )
    assert shop.complete(job).done
    shop.commit("Refuse negative prices")
    before = shop.git("status", "--porcelain")

    summary = tmp_path / "summary.md"
    done = shop.verify(GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))

    assert done.returncode == 0, done.stdout + done.stderr
    assert "::error" not in done.stdout
    assert "## donewhen: verified" in summary.read_text()
    assert_sentences(done.stdout)
    assert shop.git("status", "--porcelain") == before == ""
    found = shop.verified()
    assert [case["outcome"] for case in found["data"]["jobs"][0]["cases"]] == [
        *("passed", "skipped", "passed", "passed", "passed"),
        *("passed", "passed"),
        "passed",
    ]
    assert case(found, "budget", job.id)["outcome"] == "skipped"
