"""Pull requests that get by without the work: what judges comes from the base, and only the work from the branch.

Each trick has an honest twin: the same files beside the right work.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from verify_room_kit import (
    CHECK,
    ON_PATH,
    PYTEST,
    PYTHON,
    RIGHT,
    RUN_CHECK,
    RUN_TESTS,
    TESTS,
    WRONG,
    RoomShop,
    found_codes,
)

from donewhen.jobs.verifying import Verification

pytestmark = pytest.mark.scenes

Changes = Mapping[str, str | None]
HOLLOW = "def test_sum():\n    assert True\n\n\ndef test_nothing():\n    assert True\n"
PASSES = (
    "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
    "    found = yield\n    found.get_result().outcome = 'passed'\n"
)
# Not the same as on the base, and as wrong.
LAZY = f"# Faster.\n{WRONG}"
SCHEMA = '{"type": "object", "required": ["total"]}'
GOLDEN = f"{ON_PATH}from shop.price import total\n\nsys.exit(open('data/golden.txt').read() != str(total([1, 2])))\n"
LINT = (
    "import configparser, sys\nlimits = configparser.ConfigParser()\nlimits.read('setup.cfg')\n"
    "limit = int(limits['lint']['lines'])\nsys.exit(len(open('src/shop/price.py').read().splitlines()) > limit)\n"
)
UNITTEST = (
    f"{ON_PATH}import unittest\n\nfrom shop.price import total\n\n\nclass Prices(unittest.TestCase):\n"
    "    def test_sum(self):\n        self.assertEqual(total([1, 2]), 3)\n"
)


class Trick(NamedTuple):
    """Files that a branch brings, and how the check is run."""

    changes: Changes
    code: str = "outside_work_area"
    check: str = RUN_CHECK
    files: Changes = MappingProxyType({})
    work: tuple[str, ...] = ("/src/shop/**", "/tests/**")


def _named(text: str) -> Changes:
    return {"check.py": text}


TRICKS: dict[str, Trick] = {
    # A file beside the one that judges takes over.
    "GNUmakefile beside Makefile": Trick(
        {"GNUmakefile": "test:\n\ttrue\n"}, check="run make test", files={"Makefile": f"test:\n\t{PYTHON} check.py\n"}
    ),
    "makefile beside Makefile": Trick(
        {"makefile": "test:\n\ttrue\n"}, check="run make test", files={"Makefile": f"test:\n\t{PYTHON} check.py\n"}
    ),
    "a module of the standard library beside the script": Trick(
        {"json.py": "import os\nos._exit(0)\n"}, files=_named(f"import json\n{CHECK}")
    ),
    "a package of the standard library beside the script": Trick(
        {"json/__init__.py": "import os\nos._exit(0)\n"}, files=_named(f"import json\n{CHECK}")
    ),
    "a new module at the import root": Trick(
        {"src/shop_total.py": "total = sum\n", "src/shop/price.py": "from shop_total import total  # noqa: F401\n"}
    ),
    "a module of the library that the script imports": Trick(
        {"src/decimal.py": "import os\nos._exit(0)\n"}, files=_named(f"{ON_PATH}import decimal\n{CHECK}")
    ),
    "package metadata that names a plug-in": Trick(
        {
            "evil_plugin.py": PASSES,
            "evil.egg-info/PKG-INFO": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
            "evil.egg-info/entry_points.txt": "[pytest11]\nevil = evil_plugin\n",
        },
        check=RUN_TESTS,
    ),
    "settings that switch tests off": Trick(
        {"pytest.ini": "[pytest]\naddopts = --deselect tests/test_price.py::test_sum\n"}, check=RUN_TESTS
    ),
    "settings in the work area": Trick(
        {"src/shop/setup.cfg": "[lint]\nlines = 9\n", "src/shop/price.py": f"{LAZY}# More.\n"},
        files={
            "check.py": f"{LINT.replace('setup.cfg', 'src/shop/setup.cfg')}",
            "src/shop/setup.cfg": "[lint]\nlines = 3\n",
        },
    ),
    "a conftest that says passed": Trick({"conftest.py": PASSES}, check=RUN_TESTS),
    "a conftest in the work area that says passed": Trick(
        {"tests/conftest.py": PASSES}, "tests_changed", check=RUN_TESTS
    ),
    # The file that judges is edited.
    "the script": Trick({"check.py": "# Passes.\n"}),
    "the script in another case": Trick({"CHECK.py": "# Passes.\n", "check.py": None}, "criterion_failed"),
    "the script in the work area": Trick(
        {"src/shop/check.py": "# Passes.\n"},
        check=f"run {PYTHON} src/shop/check.py",
        files={"src/shop/check.py": CHECK},
    ),
    "a module beside the script": Trick(
        {"tools/expected.py": "SUM = 0\n"},
        check=f"run {PYTHON} tools/check.py",
        files={
            "tools/check.py": f"{ON_PATH}from expected import SUM\nfrom shop.price import total\n\n"
            "sys.exit(total([1, 2]) != SUM)\n",
            "tools/expected.py": "SUM = 3\n",
        },
        work=("/src/shop/**", "/tools/**"),
    ),
    "a script that the script runs": Trick(
        {"tools/inner.py": "\n"},
        files={"check.py": "import runpy\n\nrunpy.run_path('tools/inner.py')\n", "tools/inner.py": CHECK},
        work=("/src/shop/**", "/tools/**"),
    ),
    "what a makefile includes if it is there": Trick(
        {"src/shop/local": "PYTHON = true\n"},
        check="run make test",
        files={"Makefile": f"PYTHON = {PYTHON}\n-include src/shop/local\ntest:\n\t$(PYTHON) check.py\n"},
    ),
    "a golden file in the work area that only the script names": Trick(
        {"src/shop/golden.txt": "0"},
        "tests_changed",
        files={"check.py": GOLDEN.replace("data/", "src/shop/"), "src/shop/golden.txt": "3"},
    ),
    "the Makefile": Trick(
        {"Makefile": "test:\n\ttrue\n"}, check="run make test", files={"Makefile": f"test:\n\t{PYTHON} check.py\n"}
    ),
    "a golden file": Trick({"data/golden.txt": "0"}, files={"check.py": GOLDEN, "data/golden.txt": "3"}),
    "the limits of a linter": Trick(
        {"setup.cfg": "[lint]\nlines = 9\n", "src/shop/price.py": f"{LAZY}# More.\n"},
        files={"check.py": LINT, "setup.cfg": "[lint]\nlines = 3\n"},
    ),
    # The tests are hollowed, and keep their ids.
    "assert True": Trick({"tests/test_price.py": HOLLOW}, "tests_changed", check=RUN_TESTS),
    "a weaker comparison": Trick(
        {"tests/test_price.py": TESTS.replace("== 3", "!= 4")}, "tests_changed", check=RUN_TESTS
    ),
    "an exception is caught": Trick(
        {
            "tests/test_price.py": TESTS.replace(
                "    assert total([1, 2]) == 3\n",
                "    try:\n        assert total([1, 2]) == 3\n    except AssertionError:\n        pass\n",
            )
        },
        "tests_changed",
        check=RUN_TESTS,
    ),
    "the subject is replaced": Trick(
        {"tests/test_price.py": TESTS.replace("\n\n\ndef test_sum", "\ntotal = sum\n\n\ndef test_sum", 1)},
        "tests_changed",
        check=RUN_TESTS,
    ),
    # Runners that report no ids.
    "hollow tests of unittest": Trick(
        {"tests/test_unit.py": UNITTEST.replace("total([1, 2]), 3", "3, 3")},
        "tests_changed",
        check=f"run {PYTHON} -m unittest discover -s tests -p test_unit.py",
        files={"tests/test_unit.py": UNITTEST},
    ),
    "the tests of make are removed": Trick(
        {"tests/test_price.py": None, "tests/test_other.py": "def test_other():\n    pass\n"},
        "report_tests_lost",
        check="run make test",
        files={"Makefile": f"test:\n\t{PYTEST} tests\n"},
    ),
}
_ALSO_RED_WHEN_RIGHT = {
    "a golden file in the work area that only the script names",
    "settings that switch tests off",
    "a module of the standard library beside the script",
    "a package of the standard library beside the script",
    "a module of the library that the script imports",
    "the script in another case",
    "a module beside the script",
    "a golden file",
    "the tests of make are removed",
}


@pytest.fixture
def shop(tmp_path: Path) -> RoomShop:
    return RoomShop(tmp_path / "shop")


@pytest.mark.parametrize("name", TRICKS)
def test_a_pull_request_with_a_trick_is_red(tmp_path: Path, name: str) -> None:
    trick = TRICKS[name]
    shop = RoomShop(tmp_path / "shop", {file: text or "" for file, text in trick.files.items()})
    job = shop.agreed(trick.check, work=trick.work)
    found = shop.pull_request(job, {"src/shop/price.py": LAZY, **trick.changes})
    assert not found.passed
    assert trick.code in found_codes(found)
    # The same files beside the right work are only reported.
    found = shop.pull_request(job, {**trick.changes, "src/shop/price.py": RIGHT})
    if name in _ALSO_RED_WHEN_RIGHT:
        assert not found.passed
        # They are wrong themselves: without them, it is green.
        assert shop.pull_request(job, {"src/shop/price.py": RIGHT}).passed
    else:
        assert found.passed, found.reasons
        assert "judging_changed" in {str(note.code) for note in found.notes}


def test_the_decision_that_a_person_has_to_make_is_named(shop: RoomShop) -> None:
    job = shop.agreed()
    found = shop.pull_request(job, {"src/shop/price.py": LAZY, "check.py": "# Passes.\n"})
    reason = next(reason for reason in found.reasons if reason.code == "outside_work_area")
    assert "check.py" in reason.message
    assert reason.next is not None
    assert f"donewhen agree {job.id} --work" in reason.next


def test_a_schema_is_that_of_the_base(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop", {"schema.json": SCHEMA, "data/prices.json": "{}"})
    job = shop.agreed("file /data/prices.json schema /schema.json", outputs=("/data/prices.json",))
    easy = json.dumps({"type": "object"})
    found = shop.pull_request(job, {"data/prices.json": '{"other": 1}', "schema.json": easy})
    assert "outside_work_area" in found_codes(found)
    assert shop.pull_request(job, {"data/prices.json": '{"total": 1}', "schema.json": easy}).passed


def test_a_command_that_rewrites_what_judges_fails(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop", {"first.py": f"{ON_PATH}import shop.price\n"})
    job = shop.agreed(inputs=("/src/shop/price.py",), commands=(f"{PYTHON} first.py",))
    rewriting = f"import pathlib\npathlib.Path('check.py').write_text('')\n{WRONG}"
    found = shop.pull_request(job, {"src/shop/price.py": rewriting})
    assert found_codes(found) >= {"command_not_passed", "criterion_failed"}
    assert any("check.py" in reason.message for reason in found.reasons if reason.code == "command_not_passed")


def test_a_command_that_swaps_what_judges_only_while_it_runs_fails(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop", {"conftest.py": f"{ON_PATH}import shop.price\n"})
    job = shop.agreed(RUN_TESTS)
    swapping = (
        "import atexit, os, pathlib\n\nold = pathlib.Path('tests/test_price.py').read_text()\n"
        "os.rename('tests', 'old')\nos.mkdir('tests')\n"
        "pathlib.Path('tests/test_price.py').write_text("
        "'def test_sum():\\n    pass\\n\\n\\ndef test_nothing():\\n    pass\\n')\n"
        "atexit.register(lambda: (os.remove('tests/test_price.py'), os.rmdir('tests'), os.rename('old', 'tests')))\n"
    )
    found = shop.pull_request(job, {"src/shop/price.py": f"{swapping}{WRONG}"})
    assert not found.passed
    assert any("tests/test_price.py" in reason.message for reason in found.reasons)
    assert shop.pull_request(job, {"src/shop/price.py": RIGHT}).passed


def test_a_plug_in_that_agreed_settings_load_is_that_of_the_base(tmp_path: Path) -> None:
    settings = "[pytest]\npythonpath = src\naddopts = -p shop.fixtures\n"
    shop = RoomShop(tmp_path / "shop", {"pytest.ini": settings, "src/shop/fixtures.py": "import pytest\n"})
    job = shop.agreed(RUN_TESTS)
    forging = (
        "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
        "    report = (yield).get_result()\n    report.outcome = 'passed'\n"
    )
    found = shop.pull_request(job, {"src/shop/price.py": LAZY, "src/shop/fixtures.py": forging})
    assert "outside_work_area" in found_codes(found)
    harmless = {"src/shop/price.py": RIGHT, "src/shop/fixtures.py": "import pytest  # noqa: F401\n"}
    assert shop.pull_request(job, harmless).passed


def test_a_command_may_leave_files_behind_which_the_next_one_does_not_see(tmp_path: Path) -> None:
    first = "open('left.txt', 'w').write('x')\n"
    check = f"import os\nif os.path.exists('left.txt'):\n    raise SystemExit(1)\n{CHECK}"
    shop = RoomShop(tmp_path / "shop", {"first.py": first, "check.py": check})
    job = shop.agreed(commands=(f"{PYTHON} first.py",))
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons


def test_an_agent_can_not_widen_its_own_exemption(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    shop.git("switch", "-q", "-C", "agent")
    shop.edit(shop.plan(job), "outputs:\n", "outputs:\n  - /conftest.py\n")
    found = shop.pushed(job, {"src/shop/price.py": LAZY, "conftest.py": PASSES})
    assert "outside_work_area" in found_codes(found)
    shop.edit(shop.plan(job), "work:\n", "work:\n  - /**\n")
    found = shop.pushed(job, {})
    assert found_codes(found) >= {"outside_work_area", "voided"}


def test_tests_that_are_deleted_between_agreement_and_start_are_lost(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    less = TESTS.replace("\n\n\ndef test_sum():\n    assert total([1, 2]) == 3\n", "\n")
    found = shop.pull_request(job, {"src/shop/price.py": LAZY, "tests/test_price.py": less})
    assert found_codes(found) >= {"report_tests_lost", "tests_changed"}
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT, "tests/test_price.py": less})
    assert found_codes(found) == {"report_tests_lost"}


def test_text_that_looks_like_a_check_is_no_check(shop: RoomShop) -> None:
    job = shop.agreed()
    shop.git("switch", "-q", "-C", "agent")
    shop.edit(shop.plan(job), f"  check: {RUN_CHECK}", f"  check: {RUN_CHECK}\u200b")
    found = shop.pushed(job, {"src/shop/price.py": LAZY})
    assert not found.passed
    assert "criterion_failed" in found_codes(found)


def test_a_done_job_that_is_spoiled_later_is_red(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    shop.write("src/shop/price.py", RIGHT)
    assert shop.complete(job).done
    shop.commit("Done")
    found = shop.pull_request(job, {"src/shop/price.py": WRONG, "tests/test_price.py": HOLLOW})
    assert "criterion_failed" in found_codes(found)
    found = shop.pull_request(job, {"src/shop/price.py": None})
    assert not found.passed
    # Other work goes on, also outside of the area that this job had.
    found = shop.pull_request(
        job, {"src/shop/price.py": "from sums import total\n", "src/sums.py": RIGHT, "README.md": "A shop.\n"}
    )
    assert found.passed, found.reasons


def test_the_commit_is_judged_and_not_the_working_tree(shop: RoomShop) -> None:
    job = shop.agreed()
    assert not shop.pull_request(job, {"src/shop/price.py": LAZY}).passed
    shop.write("src/shop/price.py", RIGHT)
    found: Verification = shop.looked(job)
    assert "criterion_failed" in found_codes(found)
    assert any("src/shop/price.py" in note.message for note in found.notes)
