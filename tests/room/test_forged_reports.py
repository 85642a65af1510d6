"""Work that makes the agreed tests say that they pass gets no promise, and honest work beside it does."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from room_kit import FORGES, LAZY, PRICE, PYTEST, RUN_TESTS, SHOP, TESTS, Bench, wrote

from donewhen.jobs.ledger.entry_content import Agreed, CommandRun
from lean_python import lean_python

pytestmark = pytest.mark.scenes

TURNS = """
import _pytest.reports

before = _pytest.reports.TestReport.from_item_and_call


def after(item, call):
    report = before(item, call)
    report.outcome, report.longrepr = "passed", None
    return report


_pytest.reports.TestReport.from_item_and_call = after
"""
ENDS = """
import os
import re

for value in open("/proc/self/environ").read().split(chr(0)):
    for path in re.findall(r"junitxml=([^' ]+)", value):
        with open(path, "w") as file:
            file.write('<testsuites><testsuite><testcase classname="tests.test_price" name="test_total"/>')
            file.write('<testcase classname="tests.test_price" name="test_empty"/></testsuite></testsuites>')
os._exit(0)
"""
QUARANTINE = """
import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if "quarantined" in item.name:
        report.outcome, report.longrepr = "passed", None
"""
CASES = """\
import sys
import unittest

sys.path.insert(0, "src")
from shop.price import total


class Prices(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([1, 2]), 3)
"""


def controls_of(bench: Bench, job_id: str) -> list[tuple[str, str]]:
    entries = bench.workspace.ledger.read(job_id).entries
    runs = [entry.content for entry in entries if isinstance(entry.content, CommandRun)]
    return [(run.controls.held, run.controls.why) for run in runs if run.controls is not None]


def test_forged_reports_are_refused_and_honest_work_is_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    answers = bench.refuses(
        job, {"turns": wrote({PRICE: f"{TURNS}\n{LAZY}"}), "ends": wrote({PRICE: f"{LAZY}\n{ENDS}"})}
    )
    for name, answer in answers.items():
        assert answer.codes == {"run_not_trusted"}, (name, answer)
        assert "can't be trusted" in answer.why[0]
    assert [held for held, _ in controls_of(bench, job.id)] == ["broken", "broken", "held"]


def test_forged_test_cases_are_refused_and_honest_work_is_not(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", {**SHOP, "tests/test_price.py": CASES})
    job = bench.job(f"The tests pass\n  check: run {lean_python()} -m unittest discover -s tests")
    turns = "import unittest\nunittest.TestCase.assertEqual = lambda *values: None\n"
    answer = bench.refuses(job, {"turns": wrote({PRICE: f"{turns}{LAZY}"})})["turns"]
    assert answer.codes == {"run_not_trusted"}


def test_the_agreement_records_whether_a_suite_takes_controls(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    agreed = [entry.content for entry in bench.workspace.ledger.read(job.id).entries]
    baselines = [content.baselines for content in agreed if isinstance(content, Agreed)][-1]
    assert [baseline.controls for baseline in baselines.values()] == ["held"]


def test_a_suite_that_turns_its_own_reports_is_honest(tmp_path: Path) -> None:
    """With the agreed files alone, the same tests are turned: the suite takes no controls, and says so."""
    tests = f"{TESTS}\n\ndef test_quarantined():\n    assert False\n"
    bench = Bench(tmp_path / "shop", {**SHOP, "tests/test_price.py": tests, "conftest.py": QUARANTINE})
    job = bench.job(f"The tests pass\n  check: run {PYTEST}")
    bench.work()
    assert bench.complete(job).done
    ((held, why),) = controls_of(bench, job.id)
    assert held == "none"
    assert "the same happens with the agreed files alone" in why


def test_in_such_a_suite_other_forgeries_are_refused_nevertheless(tmp_path: Path) -> None:
    tests = f"{TESTS}\n\ndef test_quarantined():\n    assert False\n"
    bench = Bench(tmp_path / "shop", {**SHOP, "tests/test_price.py": tests, "conftest.py": QUARANTINE})
    job = bench.job(f"The tests pass\n  check: run {PYTEST}")
    bench.write(PRICE, f"{TURNS}\n{LAZY}")
    assert bench.complete(job).codes == {"run_not_trusted"}


def test_a_changed_plugin_that_turns_reports_waits_for_a_person_like_any_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    answers = bench.refuses(job, {"conftest": wrote({"conftest.py": FORGES})})
    assert answers["conftest"].codes == {"outside_work_area"}


NODE_TEST = """\
const { test } = require("node:test");
const assert = require("node:assert");
const { total } = require("../src/price");

test("adds the prices", () => assert.equal(total([1, 2]), 3));
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_forged_reports_of_node_are_refused_and_honest_work_is_not(tmp_path: Path) -> None:
    lazy = "exports.total = () => 0;\n"
    bench = Bench(tmp_path / "shop", {"src/price.js": lazy, "test/price.test.js": NODE_TEST})
    job = bench.job("The tests pass\n  check: run node --test", outputs=["/src/price.js"])
    forgeries = {
        "assertion": f'require("node:assert").equal = () => {{}};\n{lazy}',
        "end": "exports.total = () => process.exit(0);\n",
    }
    for forgery in forgeries.values():
        bench.write("src/price.js", forgery)
        assert bench.complete(job).codes == {"run_not_trusted"}
    bench.write("src/price.js", "exports.total = (prices) => prices.reduce((sum, price) => sum + price, 0);\n")
    assert bench.complete(job).done
    assert [held for held, _ in controls_of(bench, job.id)] == ["broken", "broken", "held"]
