# Runs `python -m unittest ARGUMENTS` unchanged, and also writes a JUnit report to $DONEWHEN_UNITTEST_REPORT.
"""The interpreter of the project runs this file by its path, without donewhen: standard library, Python 3.8 or later.

It imports nothing that ``python -m unittest`` does not import, since modules of the project can have the same names.
The coverage of the project must not count it, so each statement is excluded.
"""

from __future__ import annotations  # pragma: no cover

import os  # pragma: no cover
import sys  # pragma: no cover

_HERE = os.path.dirname(os.path.realpath(__file__))  # noqa: PTH120  # pragma: no cover

if sys.path and os.path.realpath(sys.path[0]) == _HERE:  # pragma: no cover
    # `python -m` has the working folder here; with -I or -P, neither is added.
    sys.path[0] = os.getcwd()  # noqa: PTH109

import unittest  # noqa: E402  # pragma: no cover

if False:  # pragma: no cover
    # Only for the type checker: `typing` is not imported by all versions of `unittest`.
    from collections.abc import Iterator
    from typing import Any

_VARIABLE = "DONEWHEN_UNITTEST_REPORT"  # pragma: no cover
_CONTROLS = sys.modules.get("donewhen_controls")  # pragma: no cover
_SESSION = _CONTROLS.load("unittest_controls")["session"]() if _CONTROLS is not None else None  # pragma: no cover
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}  # pragma: no cover


class _Result(unittest.TextTestResult):  # pragma: no cover
    """The result of unittest; also notes the outcome of each test."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.outcomes: dict[tuple[str, str], list[tuple[str, str]]] = {}
        self.last_said: Any = None

    def _note(self, test: Any, kind: str, message: str = "") -> None:
        self.outcomes.setdefault(_name_of(test), []).append((kind, message))

    def _said(self, test: Any, outcome: str) -> bool:
        """Tell the gate; return whether the test is one of the gate, which counts nowhere else."""
        if _SESSION is None:
            return False
        self.last_said = test
        _SESSION.ended(test, outcome)
        return bool(_SESSION.is_own(test))

    def _is_own(self, test: Any) -> bool:
        return _SESSION is not None and bool(_SESSION.is_own(test))

    def startTest(self, test: Any) -> None:  # noqa: N802
        if self._is_own(test):
            return
        super().startTest(test)
        self.outcomes.setdefault(_name_of(test), [])

    def stopTest(self, test: Any) -> None:  # noqa: N802
        if self._is_own(test):
            return
        super().stopTest(test)
        if self.last_said is not test and not any(kind != "skipped" for kind, _ in self.outcomes[_name_of(test)]):
            # A subtest was skipped: unittest says nothing about the test, and the report has no failure.
            self._said(test, "passed")

    def addDuration(self, test: Any, elapsed: float) -> None:  # noqa: N802
        # Python 3.12 or later.
        if not self._is_own(test):
            super().addDuration(test, elapsed)  # type: ignore[misc, unused-ignore]

    def addSuccess(self, test: Any) -> None:  # noqa: N802
        if not self._said(test, "passed"):
            super().addSuccess(test)

    def addError(self, test: Any, err: Any) -> None:  # noqa: N802
        if self._said(test, "failed"):
            return
        super().addError(test, err)
        self._note(test, "error", _message(err))

    def addFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        if self._said(test, "failed"):
            return
        super().addFailure(test, err)
        self._note(test, "failure", _message(err))

    def addSkip(self, test: Any, reason: str) -> None:  # noqa: N802
        if self._said(test, "skipped"):
            return
        super().addSkip(test, reason)
        self._note(test, "skipped", str(reason))

    def addExpectedFailure(self, test: Any, err: Any) -> None:  # noqa: N802
        if self._said(test, "skipped"):
            return
        super().addExpectedFailure(test, err)
        self._note(test, "skipped", "expected failure")

    def addUnexpectedSuccess(self, test: Any) -> None:  # noqa: N802
        if self._said(test, "failed"):
            return
        super().addUnexpectedSuccess(test)
        self._note(test, "failure", "unexpected success")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:  # noqa: N802
        super().addSubTest(test, subtest, err)
        if err is not None:
            # The parameters of a subtest can be a time or an address, so they are no part of an id.
            kind = "failure" if issubclass(err[0], test.failureException) else "error"
            parameters = getattr(subtest, "_subDescription", str)()
            self._said(test, "failed")
            self._note(test, kind, parameters + " " + _message(err))


class _Runner(unittest.TextTestRunner):  # pragma: no cover
    """The runner of unittest; also writes the report."""

    resultclass = _Result

    def run(self, test: Any) -> Any:
        report = os.environ.pop(_VARIABLE, "")
        names = [_name_of(case) for case in _cases(test)]
        if _SESSION is not None:
            _SESSION.place(test)
        result = super().run(test)
        if report and isinstance(result, _Result):
            _add_not_started(result.outcomes, names)
            try:
                with open(report, "wb") as file:  # noqa: PTH123
                    file.write(_xml(result.outcomes).encode("utf-8", "replace"))
            except OSError:
                # Whoever asked for the report notices that it is missing.
                pass
        if _SESSION is not None:
            _SESSION.end(result.wasSuccessful() and not result.errors and not result.failures)
        return result


def _cases(suite: Any) -> Iterator[Any]:  # pragma: no cover
    """The tests of a suite, which forgets them when they have run."""
    if isinstance(suite, unittest.BaseTestSuite):
        for test in suite:
            yield from _cases(test)
    elif suite is not None:
        yield suite


def _name_of(test: Any) -> tuple[str, str]:  # pragma: no cover
    """The class (with its module) and the name of a test."""
    if isinstance(test, unittest.TestCase) and type(test).id is unittest.TestCase.id:
        return type(test).__module__ + "." + type(test).__qualname__, str(test._testMethodName)
    name = str(test.id()) if hasattr(test, "id") else str(test)
    if not isinstance(test, unittest.TestCase) and name.endswith(")") and " (" in name:
        # What stands for setUpClass, tearDownModule and the like: "setUpClass (module.Class)".
        function, _, owner = name[:-1].partition(" (")
        return owner, function
    group, _, last = name.rpartition(".")
    return group, last


def _add_not_started(outcomes: Any, names: Any) -> None:  # pragma: no cover
    """Add the tests that did not start because their class or module was skipped or could not be set up."""
    reasons = {}
    for (owner, function), found in list(outcomes.items()):
        if function in ("setUpClass", "setUpModule") and found:
            reasons[owner] = found[0]
            if all(kind == "skipped" for kind, _ in found):
                del outcomes[owner, function]
    for owner, name in names:
        # The class itself, or its module.
        owners = [owner] + [owner[:place] for place, letter in enumerate(owner) if letter == "."]
        reason = next((reasons[known] for known in owners if known in reasons), None)
        if reason is not None and (owner, name) not in outcomes:
            outcomes[owner, name] = [reason]


def _message(err: Any) -> str:  # pragma: no cover
    try:
        text = str(err[1])
    except Exception:  # noqa: BLE001
        text = ""
    return f"{err[0].__name__}: {text}"


def _quoted(text: str) -> str:  # pragma: no cover
    return '"' + "".join(map(_letter, text)) + '"'


def _letter(letter: str) -> str:  # pragma: no cover
    code = ord(letter)
    if letter in "\t\n\r":
        return f"&#{code};"
    if code < 0x20 or 0xD800 <= code <= 0xDFFF or code in (0xFFFE, 0xFFFF):
        return "\ufffd"
    return _ENTITIES.get(letter, letter)


def _xml(outcomes: Any) -> str:  # pragma: no cover
    lines = ['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>"]
    for (owner, name), found in outcomes.items():
        lines.append(f"<testcase classname={_quoted(owner)} name={_quoted(name)}>")
        lines.extend(f"<{kind} message={_quoted(message[:2000])}/>" for kind, message in found)
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuites>"]) + "\n"


if __name__ == "__main__":  # pragma: no cover
    sys.argv[0] = os.path.basename(sys.executable) + " -m unittest"  # noqa: PTH119
    unittest.TestProgram(module=None, testRunner=_Runner)
