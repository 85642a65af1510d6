"""Ids of tests without secrets, and still one for each test, on every machine."""

from __future__ import annotations

import pytest

from donewhen.jobs.evidence.test_ids import stored_outcomes, stored_test_id, with_older_ids
from donewhen.jobs.evidence.two_runs import compare_outcomes
from donewhen.jobs.gates.suites import compare_suites
from donewhen.test_reports.junit import Outcome

FIRST, SECOND = ("t::test_it[gh" + "p_" + letters * 9 + "]" for letters in ("a1B2", "c3D4"))
PASSED: dict[str, Outcome] = {FIRST: "passed", SECOND: "passed", "t::test_other": "passed"}


def test_two_tests_are_never_one_even_if_only_secrets_tell_them_apart() -> None:
    stored = stored_outcomes(PASSED)
    assert len(stored) == 3
    assert "t::test_other" in stored
    assert not any("a1B2" in name or "c3D4" in name for name in stored)
    assert stored_test_id(FIRST).startswith("t::test_it[[redacted]] #")


def test_a_variable_with_the_name_of_a_test_hides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = stored_outcomes(PASSED)
    monkeypatch.setenv("MY_KEY", "t::test_other")
    monkeypatch.setenv("OTHER_TOKEN", "test_other")
    now = stored_outcomes({FIRST: "passed", SECOND: "passed"})
    assert compare_outcomes(before, now).lost == ("t::test_other",)
    assert compare_suites("pytest", now, before).lost == ("t::test_other",)
    assert stored_outcomes(PASSED) == before


def test_ids_that_an_older_version_stored_are_not_lost() -> None:
    older: dict[str, Outcome] = {"t::test_it[[redacted]]": "passed", "t::test_other": "passed"}
    now = stored_outcomes(PASSED)
    assert not compare_outcomes(older, with_older_ids(now, older))
    assert not compare_suites("pytest", now, older).lost
    gone = {name: outcome for name, outcome in now.items() if "redacted" not in name}
    assert compare_suites("pytest", gone, older).lost == ("t::test_it[[redacted]]",)
    assert with_older_ids(now, PASSED) is now
