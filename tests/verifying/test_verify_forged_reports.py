"""In CI, too, work that makes the agreed tests say that they pass is refused, and the honest work beside it is not."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from verify_room_kit import RIGHT, RUN_TESTS, WRONG, RoomShop, found_codes

pytestmark = pytest.mark.scenes

TURNS = "import _pytest.python\n_pytest.python.Function.runtest = lambda self: None\n"
ENDS = (
    "import os, re\nvariables = open('/proc/self/environ').read().replace(chr(0), ' ')\n"
    'for path in re.findall(r"junitxml=([^\' ]+)", variables):\n'
    "    with open(path, 'w') as file:\n"
    '        file.write(\'<testsuites><testsuite><testcase classname="tests.test_price" name="test_sum"/>\'\n'
    '                   \'<testcase classname="tests.test_price" name="test_nothing"/></testsuite></testsuites>\')\n'
    "    os._exit(0)\n"
)
ODD = (
    "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    report = (yield).get_result()\n"
    "    if 'odd' in item.name:\n        report.outcome, report.longrepr = 'passed', None\n"
)


@pytest.mark.parametrize("forgery", [TURNS, ENDS], ids=["what runs a test", "the report and the end"])
def test_a_forged_report_is_refused(tmp_path: Path, forgery: str) -> None:
    shop = RoomShop(tmp_path / "shop")
    job = shop.agreed(RUN_TESTS)
    refused = shop.pull_request(job, {"src/shop/price.py": f"{forgery}\n\n# Other.\n{WRONG}"})
    assert "run_not_trusted" in found_codes(refused), refused.reasons
    honest = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert "run_not_trusted" not in found_codes(honest), honest.reasons
    assert not found_codes(honest) & {"criterion_failed", "command_not_passed"}, honest.reasons


def test_a_suite_that_turns_its_own_reports_on_the_base_is_honest(tmp_path: Path) -> None:
    tests = {"conftest.py": ODD, "tests/test_odd.py": "def test_odd():\n    assert False\n"}
    shop = RoomShop(tmp_path / "shop", tests)
    job = shop.agreed(RUN_TESTS)
    honest = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert not found_codes(honest) & {"run_not_trusted", "criterion_failed"}, honest.reasons


NODE_TEST = """\
const { test } = require("node:test");
const assert = require("node:assert");
const { total } = require("../src/shop/price.js");

test("adds the prices", () => assert.equal(total([1, 2]), 3));
"""
NODE_LAZY = "exports.total = () => 0;\n"


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_a_forged_report_of_node_is_refused(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop", {"test/price.test.js": NODE_TEST, "src/shop/price.js": NODE_LAZY})
    job = shop.agreed("run node --test test/price.test.js", outputs=("/src/shop/price.js",))
    forged = f'require("node:assert").equal = () => {{}};\n{NODE_LAZY}'
    refused = shop.pull_request(job, {"src/shop/price.js": forged})
    assert "run_not_trusted" in found_codes(refused), refused.reasons
    honest = shop.pull_request(job, {"src/shop/price.js": "exports.total = ([first, second]) => first + second;\n"})
    assert not found_codes(honest) & {"run_not_trusted", "criterion_failed", "command_not_passed"}, honest.reasons
