"""Mutants change what decides and nothing else, are found again after renames, and are noticed or not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from tools.mutants import LEAST_PER_ROOM, ROOMS, quotas, replayed, sample
from tools.mutating.measuring import Tree, chosen_tests, measure, measure_baseline, named_tests
from tools.mutating.places import Change, Unit, all_units, mutated_text, unit_from, units_of
from tools.mutating.relocating import Found, NotFound, relocate

ROOT = Path(__file__).parents[2]

RULE = '''
"""Whether it is not done, and why."""
__all__ = ["decide"]


def decide(votes: list[int] | None, least: int = 2) -> bool:
    """Whether there are enough votes and not only one."""
    if votes is None or not votes:
        raise ValueError(f"no votes {1 == 2}, and {least} are needed" if least > 1 else "none")
    if len(votes) < least:
        return False
    return max(votes) in {*votes, 3}
'''

RENAMED = '''
"""Is the quorum reached?"""
from collections.abc import Sequence


def _unrelated(count: int) -> int:
    return count + 1


def has_quorum(ballots: Sequence[int] | None, quorum: int = 2) -> bool:
    """True if the quorum is reached."""
    if ballots is None or not ballots:
        raise QuorumError("The ballot box is empty.")
    if len(ballots) < quorum:
        return False
    return max(ballots) in {*ballots, 3}
'''


def _function(module: str, text: str, name: str) -> Unit:
    (found,) = [unit for unit in units_of(module, text) if unit.function == name]
    return found


def _change(unit: Unit, operator: str, original: str) -> Change:
    (found,) = [change for change in unit.changes if (change.operator, change.original) == (operator, original)]
    return found


def test_what_decides_is_changed_and_text_and_types_are_not() -> None:
    unit = _function("small.rule", RULE, "decide")
    found = Counter(
        (change.operator, change.original, change.mutated) for change in unit.changes if change.operator != "exit"
    )
    assert found == Counter(
        {
            ("number", "2", "3"): 1,
            ("if-true", "votes is None or not votes", "True"): 1,
            ("if-false", "votes is None or not votes", "False"): 1,
            ("and-or", "votes is None or not votes", "votes is None and (not votes)"): 1,
            ("compare", "votes is None", "votes is not None"): 1,
            ("not", "not votes", "votes"): 1,
            ("if-true", "len(votes) < least", "True"): 1,
            ("if-false", "len(votes) < least", "False"): 1,
            ("compare", "len(votes) < least", "len(votes) <= least"): 1,
            ("boolean", "False", "True"): 1,
            ("return", "return max(votes) in {*votes, 3}", "return None"): 1,
            ("compare", "max(votes) in {*votes, 3}", "max(votes) not in {*votes, 3}"): 1,
            ("min-max", "max(votes)", "min(votes)"): 1,
            ("union", "{*votes, 3}", "{*votes}"): 1,
            ("number", "3", "4"): 1,
        }
    )
    assert [change.mutated for change in unit.changes if change.operator == "exit"] == ["pass", "pass"]


def test_a_mutant_is_the_same_text_but_for_one_place() -> None:
    unit = _function("small.rule", RULE, "decide")
    mutated = mutated_text(RULE, _change(unit, "compare", "len(votes) < least"))
    assert mutated == RULE.replace("if len(votes) < least:", "if (len(votes) <= least):")
    for change in unit.changes:
        compile(mutated_text(RULE, change), "rule.py", "exec")


def test_a_sample_is_the_same_each_time_and_has_mutants_of_every_room() -> None:
    units = all_units(ROOT)
    chosen = sample(units, 40, 7)
    assert [one.key for one in chosen] == [one.key for one in sample(units, 40, 7)]
    assert len({one.key for one in chosen}) == 40
    rooms = Counter(one.room for one in chosen)
    assert all(rooms[room] >= LEAST_PER_ROOM for room in ROOMS)
    other = sample(units, 40, 7, [chosen[0].key])
    assert chosen[0].key not in {one.key for one in other}
    assert len(other) == 40


def test_large_rooms_have_more_mutants() -> None:
    assert quotas({"completion": 10, "jobs": 100, "judging": 10, "learning": 40}, 40) == {
        "completion": 7,
        "jobs": 19,
        "judging": 7,
        "learning": 7,
    }


@pytest.mark.parametrize(
    ("operator", "original", "now"),
    [
        ("compare", "len(votes) < least", "len(ballots) < quorum"),
        ("not", "not votes", "not ballots"),
        ("union", "{*votes, 3}", "{*ballots, 3}"),
        ("boolean", "False", "False"),
    ],
)
def test_a_place_is_found_again_after_everything_was_renamed(operator: str, original: str, now: str) -> None:
    old = unit_from("small.rule", "decide", _function("small.rule", RULE, "decide").source)
    found = relocate(old, _change(old, operator, original), [*units_of("small.votes.quorum", RENAMED)], {})
    assert isinstance(found, Found)
    assert (found.unit.function, found.change.original, found.how) == ("has_quorum", now, "shape")


def test_a_map_says_what_became_of_a_name() -> None:
    old = _function("small.rule", RULE, "decide")
    change = _change(old, "compare", "len(votes) < least")
    twice = [*units_of("small.one", RENAMED), *units_of("small.two", RENAMED)]
    unclear = relocate(old, change, twice, {})
    assert isinstance(unclear, NotFound)
    found = relocate(old, change, twice, {"small.rule:decide": "small.two:has_quorum"})
    assert isinstance(found, Found)
    assert (found.unit.module, found.how) == ("small.two", "name")
    line = found.change.line
    by_hand = relocate(old, change, twice, {}, f"small.one:{line}")
    assert isinstance(by_hand, Found)
    assert (by_hand.unit.module, by_hand.change.line, by_hand.how) == ("small.one", line, "hand")


def test_a_place_that_is_gone_is_reported() -> None:
    recorded = {
        "id": "m1",
        "module": "small.rule",
        "function": "decide",
        "operator": "min-max",
        "node": _change(_function("small.rule", RULE, "decide"), "min-max", "max(votes)").node,
        "part": 0,
        "source": _function("small.rule", RULE, "decide").source,
    }
    mutants, _, lost = replayed([recorded], [*units_of("small.rule", "def other(a: int) -> int:\n    return a\n")], {})
    assert mutants == []
    assert list(lost) == ["m1"]


def test_the_own_tests_of_a_module_come_first_and_a_replay_takes_those_of_before(tmp_path: Path) -> None:
    unit = _function("small.rule", RULE, "decide")
    seconds = {
        "tests/spec/test_all.py::test_a": 0.1,
        "tests/room/test_other.py::test_b": 0.3,
        "tests/room/test_other.py::test_c": 0.2,
        "tests/room/test_rule.py::test_d": 0.4,
        "tests/room/test_rule.py::test_e": 500.0,
    }
    chosen, left_out = chosen_tests(unit, seconds, seconds, tmp_path, ["tests/room"])
    assert [one[-1] for one in chosen] == ["d", "c", "b", "a"]
    assert left_out == 1
    before = ["tests/old/test_moved.py::test_a", "tests/old/test_moved.py::test_gone"]
    chosen, left_out = chosen_tests(unit, seconds, seconds, tmp_path, ["tests/room"], before)
    assert [one[-1] for one in chosen] == ["a", "d"]
    assert left_out == 3


TESTS = """
import subprocess
import sys

def test_in_this_process():
    from small.rule import decide
    assert not decide([1])
    assert decide([1, 2, 3])

def test_in_a_process_that_has_no_environment():
    code = "from small.rule import decide; print(decide([1, 2]))"
    done = subprocess.run([sys.executable, "-c", code], env={}, capture_output=True, text=True)
    assert done.stdout == "True\\n"

def test_that_has_nothing_to_do_with_it():
    pass

def test_that_fails_anyway():
    raise AssertionError
"""


def test_a_mutant_is_noticed_or_survives_in_a_copy_of_the_tree(tmp_path: Path) -> None:
    root = tmp_path / "project"
    (root / "src" / "small").mkdir(parents=True)
    (root / "src" / "small" / "__init__.py").write_text("")
    (root / "src" / "small" / "rule.py").write_text(RULE)
    (root / "tests").mkdir()
    (root / "tests" / "test_rule.py").write_text(TESTS)
    (tmp_path / "copy").mkdir()
    tree = Tree(root, tmp_path / "copy")
    unit = _function("small.rule", RULE, "decide")

    baseline = measure_baseline(tree, {"m1": unit}, ["tests"], 0)
    assert baseline.left_out == {"tests/test_rule.py::test_that_fails_anyway": "failed"}
    here, there = (
        f"tests/test_rule.py::test_in_{name}" for name in ("this_process", "a_process_that_has_no_environment")
    )
    assert baseline.reached_by["m1"] == {here}

    found = measure(tree, unit, _change(unit, "if-false", "len(votes) < least"), [here], 0, 1.0)
    assert (found.status, found.killed_by) == ("killed", here)
    found = measure(tree, unit, _change(unit, "compare", "len(votes) < least"), [here, there], 0, 1.0)
    assert (found.status, found.killed_by) == ("killed", there)
    found = measure(tree, unit, _change(unit, "min-max", "max(votes)"), [here, there], 0, 1.0)
    assert found.status == "survived"
    found = measure(tree, unit, _change(unit, "min-max", "max(votes)"), ["tests/test_rule.py::test_gone"], 0, 1.0)
    assert found.status == "unreached"
    flaky = "tests/test_rule.py::test_that_fails_anyway"
    found = measure(tree, unit, _change(unit, "min-max", "max(votes)"), [flaky, here], 0, 1.0)
    assert found.status == "survived"
    assert named_tests(root, "tests/old/test_old.py::test_in_this_process[1]") == (here,)
    assert (root / "src" / "small" / "rule.py").read_text() == RULE
