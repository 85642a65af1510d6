"""Tests of the gate between those of a run of unittest, whose outcomes go to the gate alone.

They are test cases like the others and are run like them; the result that the runner collects does not count them.
"""

from __future__ import annotations

import sys
import unittest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

CONTROLS: Any = globals()["CONTROLS"]  # given by whoever loads this
_parts = CONTROLS.load("stream")
_bodies = CONTROLS.load("bodies")

_AT_ONCE = 25


class Session:
    """The controls of one run, and what is said about its tests."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._draw = _parts["Draw"](stream.seed())
        self._own: dict[int, Any] = {}
        self._passed: list[str] = []

    def place(self, suite: Any) -> None:
        """Put the controls into a suite, where they set nothing up or down that would not be anyway."""
        places = list(_places(suite, []))
        cases = [case for _, _, case in places]
        if not cases:
            self._stream.send("none", "the run has no tests that they could be built like")
            return
        free = [row for row in places if not _sets_up(row[2])]
        drawn = []
        for must in ("fail", "pass"):
            # Before the first test of all, nothing is set up yet that could be set up twice.
            place, position, case = self._draw.from_(free) if free else places[0]
            drawn.append((position, place, case, must, not free))
        for position, place, case, must, apart in sorted(drawn, key=lambda row: (row[0], row[3]), reverse=True):
            place.insert(position, self._built(case, must, apart))
        # What the work changes while the tests run must not make tests pass either.
        suite.addTest(self._built(cases[-1], "fail", _sets_up(cases[-1])))

    def _built(self, case: Any, must: str, apart: bool) -> Any:
        names = [name for name in dir(type(case)) if name.startswith("test")]
        taken = {*names, *(name for control in self._own.values() for name in dir(type(control)))}
        text, label, name = _bodies["drawn"](self._draw, must, "testcase", names, [type(case).__name__], taken)
        module = "test_" + label.lower() if apart else type(case).__module__
        namespace: dict[str, Any] = {"__name__": module, "TestCase": unittest.TestCase}
        exec(compile(text, "<string>", "exec", dont_inherit=True, optimize=0), namespace)
        control = namespace[label](name)
        self._own[id(control)] = control
        self._stream.send("control", control.id(), must)
        return control

    def is_own(self, test: Any) -> bool:
        return self._own.get(id(test)) is test

    def ended(self, test: Any, outcome: str) -> None:
        """Say how a test ended: at once, unless it is one of many that pass."""
        if outcome == "passed" and not self.is_own(test):
            self._passed.append(str(test.id()))
            if len(self._passed) >= _AT_ONCE:
                self._say_passed()
            return
        self._say_passed()
        self._stream.send("ended" if self.is_own(test) else "test", str(test.id()), "call", outcome)

    def _say_passed(self) -> None:
        if self._passed:
            self._stream.send("passed", *self._passed)
            self._passed = []

    def end(self, successful: bool) -> None:
        self._say_passed()
        self._stream.send("end", "0" if successful else "1")


def _sets_up(case: Any) -> bool:
    """Whether the module of a test sets something up, which can fail or be skipped."""
    return hasattr(sys.modules.get(type(case).__module__), "setUpModule")


def _places(suite: Any, previous: list[type]) -> Iterator[tuple[Any, int, Any]]:
    """The places before the first test of each class: the list, the position, the test."""
    tests = getattr(suite, "_tests", None)
    for position, test in enumerate(tests if isinstance(tests, list) else ()):
        if isinstance(test, unittest.BaseTestSuite):
            yield from _places(test, previous)
        elif isinstance(test, unittest.TestCase):
            if not previous or previous[-1] is not type(test):
                yield tests, position, test
            previous[:] = [type(test)]


def session() -> Session | None:
    """The controls of this process, if it is the first test runner of the check."""
    CONTROLS.taken()
    CONTROLS.leave_environment()
    stream = CONTROLS.stream
    if not stream.claim():
        return None
    stream.send("start", "unittest")
    return Session(stream)
