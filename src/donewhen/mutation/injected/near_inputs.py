"""Inputs near those that tests use, and inputs of the same kind that are much larger.

Only plain values are varied: numbers, texts, and lists, tuples, sets and dictionaries of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Arguments = tuple[Any, ...]
_PLAIN = (type(None), bool, int, float, str, bytes)
_MOST_NEAR = 120
_MOST_MIXED = 40
_MOST_CALLS = 8
_LARGE_NUMBERS = (97, 1000, 12345678)
_LARGE_LENGTH = 2000


def is_plain(value: Any, depth: int = 4) -> bool:
    """Whether a value can be written as a literal."""
    if type(value) in _PLAIN:
        return value == value and value not in (float("inf"), float("-inf"))
    if depth == 0:
        return False
    if type(value) in (list, tuple, set):
        return all(is_plain(item, depth - 1) for item in value)
    if type(value) is dict:
        return all(is_plain(part, depth - 1) for item in value.items() for part in item)
    return False


def near_arguments(calls: Sequence[Arguments]) -> list[Arguments]:
    """Arguments that differ in one place from those of some call: with those of another call first, then with boundary
    values."""
    calls = calls[:_MOST_CALLS]
    seen = {repr(call) for call in calls}
    found: list[Arguments] = []

    def add(arguments: Arguments) -> None:
        text = repr(arguments)
        if text not in seen:
            seen.add(text)
            found.append(arguments)

    for number, mixed in enumerate(_mixed(calls)):
        if number < _MOST_MIXED:
            add(mixed)
    rows = [list(_varied(call)) for call in calls]
    # Each call in turn, so that a limit keeps some of each.
    for column in range(max(map(len, rows), default=0)):
        for row in rows:
            if column < len(row):
                add(row[column])
    return found[:_MOST_NEAR]


def large_arguments(calls: Sequence[Arguments]) -> list[Arguments]:
    """Arguments of which one is much larger than in a call."""
    found: list[Arguments] = []
    for call in calls[:2]:
        for place, value in enumerate(call):
            if type(value) is int:
                found += [_with(call, place, number) for number in _LARGE_NUMBERS]
            elif type(value) in (list, tuple, str) and value:
                found.append(_with(call, place, value * (_LARGE_LENGTH // len(value) + 1)))
    return found


def _mixed(calls: Sequence[Arguments]) -> Iterator[Arguments]:
    for call in calls:
        for other in calls:
            if len(call) == len(other) > 1:
                for place, value in enumerate(other):
                    if type(value) is type(call[place]):
                        yield _with(call, place, value)


def _varied(call: Arguments) -> Iterator[Arguments]:
    for place, value in enumerate(call):
        for near in near_values(value):
            yield _with(call, place, near)


def near_values(value: Any) -> list[Any]:
    """Values of the same type near a value: boundary values, neighbours, shorter, longer and reordered ones."""
    kind = type(value)
    if kind is bool:
        return [not value]
    if kind is int:
        return [0, 1, -1, value + 1, value - 1, -value, 2, value * 2]
    if kind is float:
        return [0.0, 1.0, -value, value + 1, value / 2]
    if kind is str:
        cut = [value[:1], value[1:], value[:-1]]
        return ["", *cut, value + value, value[::-1], value.upper(), value.lower(), value + " ", " " + value]
    if kind in (list, tuple):
        return list(_near_sequences(value, kind))
    if kind is set:
        return [set(), set(list(value)[:1])]
    if kind is dict:
        return [{}, dict(list(value.items())[:1])]
    return []


def _near_sequences(value: Any, kind: Any) -> Iterator[Any]:
    yield kind()
    yield from (value[:1], value + value, value[::-1], value[:-1], value[1:])
    if not value:
        return
    for item in near_values(value[0])[:4]:
        yield kind([item, *value[1:]])
    for item in near_values(value[-1])[:3]:
        yield kind([*value[:-1], item])
    yield value + value[:1]
    yield kind([value[0]] * len(value))
    try:
        yield kind(sorted(value))
    except TypeError:
        return


def _with(call: Arguments, place: int, value: Any) -> Arguments:
    return (*call[:place], value, *call[place + 1 :])
