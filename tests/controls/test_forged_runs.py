"""Work that forges what its tests say is not believed."""

from __future__ import annotations

import pytest
from control_kit import Suite
from control_suites import FORGED_WITH_PYTEST, FORGED_WITH_UNITTEST, PYTEST_TESTS, UNITTEST_TESTS, with_add

pytestmark = pytest.mark.scenes

PYTEST = ("python", "-m", "pytest", "-p", "no:cacheprovider")


@pytest.mark.parametrize("forgery", FORGED_WITH_PYTEST)
def test_a_forged_run_of_pytest_is_not_trusted(suite: Suite, forgery: str) -> None:
    run = suite({"app.py": with_add(FORGED_WITH_PYTEST[forgery]), "test_app.py": PYTEST_TESTS}, *PYTEST)
    assert run.controls.held == "broken", (run.controls, run.result.output)
    assert not run.passed


@pytest.mark.parametrize(
    "forgery", ["the report of a test", "a plugin that turns reports later", "the tests themselves"]
)
def test_a_forged_run_of_several_workers_is_not_trusted(suite: Suite, forgery: str) -> None:
    run = suite({"app.py": with_add(FORGED_WITH_PYTEST[forgery]), "test_app.py": PYTEST_TESTS}, *PYTEST, "-n2")
    assert run.controls.held == "broken", (run.controls, run.result.output)


@pytest.mark.parametrize("forgery", FORGED_WITH_UNITTEST)
def test_a_forged_run_of_unittest_is_not_trusted(suite: Suite, forgery: str) -> None:
    files = {"app.py": with_add(FORGED_WITH_UNITTEST[forgery]), "test_app.py": UNITTEST_TESTS}
    run = suite(files, "python", "-m", "unittest")
    assert run.controls.held == "broken", (run.controls, run.result.output)
    assert not run.passed
