"""A baseline is replaced only if no test is lost, or if the loss is accepted: for programs as for the verb."""

from __future__ import annotations

from pathlib import Path

import pytest

from donewhen.test_reports.suite_baseline import SuiteBaseline, update_baseline

OLD = SuiteBaseline(frozenset({"a", "b"}), frozenset({"c"}))


@pytest.mark.parametrize(
    ("new", "lost"),
    [
        (OLD, ()),
        (SuiteBaseline(frozenset({"a", "b", "c", "d"})), ()),
        (SuiteBaseline(frozenset({"a"}), frozenset({"c"})), ("b",)),
        (SuiteBaseline(frozenset({"a"}), frozenset({"b", "c"})), ("b",)),
        (SuiteBaseline(frozenset({"b"})), ("a", "c")),
    ],
    ids=["same", "more", "missing", "newly skipped", "several"],
)
@pytest.mark.parametrize("accept", [False, True])
def test_it_is_replaced_unless_tests_are_lost(
    tmp_path: Path, new: SuiteBaseline, lost: tuple[str, ...], accept: bool
) -> None:
    path = tmp_path / "baseline.json"
    OLD.save(path)
    update = update_baseline(path, new, accept_losses=accept)
    assert (update.lost, update.saved) == (lost, accept or not lost)
    assert SuiteBaseline.load(path) == (new if update.saved else OLD)


def test_without_a_file_every_test_is_new(tmp_path: Path) -> None:
    update = update_baseline(tmp_path / "baseline.json", OLD)
    assert (update.added, update.lost, update.saved) == (2, (), True)
