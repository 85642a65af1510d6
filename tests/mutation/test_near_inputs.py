"""Inputs near those of tests, larger ones, and what functions answer to them."""

from __future__ import annotations

import asyncio
import time
import types

from donewhen.mutation.injected.calls import answer, is_plain_function, large_failures, near_answers, record_calls
from donewhen.mutation.injected.near_inputs import is_plain, large_arguments, near_arguments, near_values


def test_plain_values_are_those_that_can_be_written_down() -> None:
    assert is_plain((1, "a", [None, {"b": {2.5}}], b"c"))
    assert not is_plain(object())
    assert not is_plain([float("nan")])
    assert not is_plain(float("inf"))
    assert not is_plain([[[[[[1]]]]]])
    assert not is_plain({"a": len})


def test_near_values_have_the_same_type_and_include_the_boundaries() -> None:
    assert {0, 1, -1, 6, 4, -5} <= set(near_values(5))
    assert near_values(True) == [False]
    assert "" in near_values("ab")
    assert [] in near_values([3, 1, 2]) and [1, 2, 3] in near_values([3, 1, 2]) and [3, 3, 3] in near_values([3, 1, 2])
    assert () in near_values((1, "a"))
    assert near_values([])[:1] == [[]]
    assert set() in near_values({1, 2})
    assert {} in near_values({"a": 1})
    assert 0.0 in near_values(2.5)
    assert near_values(None) == []


def test_near_arguments_mix_calls_first_and_never_repeat_one() -> None:
    calls = [(1, "a"), (2, "b")]
    near = near_arguments(calls)
    assert near[0] == (2, "a")
    assert len({repr(arguments) for arguments in near}) == len(near)
    assert not {repr(call) for call in calls} & {repr(arguments) for arguments in near}
    assert near_arguments([]) == []


def test_larger_arguments_are_larger_in_one_place() -> None:
    assert (12345678, "a") in large_arguments([(1, "a")])
    assert any(len(arguments[1]) > 1000 for arguments in large_arguments([(1, "ab")]))
    assert large_arguments([(None, "", True)]) == []


def test_answers_are_texts_and_errors_have_a_mark() -> None:
    def half(number: int) -> object:
        return [object(), 10 // number]

    assert answer(half, (5,), 1.0) == "[<object object>, 2]"
    assert answer(half, (0,), 1.0) == "!ZeroDivisionError"
    assert answer(lambda: time.sleep(30), (), 0.05) == "!time"
    assert "!ZeroDivisionError" in near_answers(half, [(5,)], 1.0)
    assert near_answers(half, [(5,)], -1.0) == []


def test_arguments_are_copies_so_that_a_call_changes_nothing_for_the_next() -> None:
    given = [3, 1]
    assert answer(lambda items: items.clear(), (given,), 1.0) == "None"
    assert given == [3, 1]


def test_larger_inputs_that_raise_are_counted() -> None:
    def down(number: int) -> int:
        return 0 if number <= 0 else down(number - 1)

    number, failing = large_failures(down, [(3,)])
    assert number == 3
    assert failing >= 1


def test_functions_of_a_module_record_plain_arguments() -> None:
    module = types.ModuleType("sample")
    exec("def add(a, b=0):\n    return a + b\n\ndef count():\n    yield 1\n", vars(module))  # noqa: S102
    calls: dict[tuple[str, str], list[tuple[object, ...]]] = {}
    record_calls(module, "/sample.py", calls)
    assert module.add(1, 2) == 3
    assert module.add(1, 2) == 3
    assert module.add(1, b=2) == 3
    assert calls == {("/sample.py", "add"): [(1, 2)]}
    assert not is_plain_function(asyncio.sleep)
    assert not is_plain_function(len)
