"""The reports that a command writes besides its exit status: test outcomes and coverage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.test_reports.junit import Outcome, ReportError, read_junit, read_report_file

_OUTCOMES: dict[str, Outcome] = {
    "passed": "passed",
    "xpassed": "passed",
    "failed": "failed",
    "error": "errored",
    "skipped": "skipped",
    "xfailed": "skipped",
}
_WORST_FIRST: tuple[Outcome, ...] = ("errored", "failed", "skipped", "passed")


class RunReport(NamedTuple):
    """The test outcomes and the coverage (in per cent) of a run."""

    formats: tuple[str, ...]
    outcomes: Mapping[str, Outcome]
    coverage: float | None = None
    messages: Mapping[str, str] = MappingProxyType({})
    """What failed tests say, as far as the reports have it: one line each."""

    def count(self, *outcomes: Outcome) -> int:
        return sum(outcome in outcomes for outcome in self.outcomes.values())

    @property
    def has_tests(self) -> bool:
        """Whether there was a test report, even an empty one."""
        return any(name != "coverage" for name in self.formats)

    @property
    def good(self) -> bool:
        """Whether a test passed and none failed. Without a test report there is nothing to object to."""
        return not self.has_tests or (self.count("passed") > 0 and not self.count("failed", "errored"))

    def summary(self) -> dict[str, Any]:
        """The numbers, for the ledger."""
        summary: dict[str, Any] = {"formats": list(self.formats)}
        if self.has_tests:
            summary |= {name: self.count(*kinds) for name, kinds in _COUNTED.items()}
        return summary if self.coverage is None else summary | {"coverage": self.coverage}


_COUNTED: dict[str, tuple[Outcome, ...]] = {
    "passed": ("passed",),
    "failed": ("failed", "errored"),
    "skipped": ("skipped",),
}


def read_reports(folder: Path) -> RunReport | None:
    """Read the reports in a folder: JUnit XML, pytest's JSON, coverage's JSON or XML. None if there is none.

    Other files are skipped; a report that can't be parsed is an error.
    """
    formats: list[str] = []
    outcomes: dict[str, Outcome] = {}
    messages: dict[str, str] = {}
    coverage: float | None = None
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_file() or path.suffix not in (".xml", ".json"):
            continue
        content = read_report_file(path)
        if path.suffix == ".xml":
            root = _root_element(content)
            if root == "coverage":
                formats.append("coverage")
                coverage = _cobertura_coverage(content)
            elif root in ("testsuites", "testsuite", None):
                formats.append("junit")
                suite = read_junit([content])
                for name, outcome in suite.outcomes.items():
                    _add(outcomes, name, outcome)
                messages |= suite.messages
        elif (data := _json(content, path)) is not None and "tests" in data:
            formats.append("pytest-json")
            _add_pytest(outcomes, messages, data)
        elif data is not None and "totals" in data:
            formats.append("coverage")
            coverage = _json_coverage(data)
    return RunReport(tuple(sorted(set(formats))), outcomes, coverage, messages) if formats else None


def _json(content: bytes, path: Path) -> dict[str, Any] | None:
    try:
        data = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ReportError(f"The report {path.name} is not valid JSON: {error}.") from error
    return data if isinstance(data, dict) else None


def _add_pytest(outcomes: dict[str, Outcome], messages: dict[str, str], data: dict[str, Any]) -> None:
    tests = data["tests"]
    try:
        for test in tests:
            name = one_line(str(test["nodeid"]), 1000)
            _add(outcomes, name, _OUTCOMES[test["outcome"]])
            if message := _crash_message(test):
                messages.setdefault(name, message)
    except (KeyError, TypeError) as error:
        raise ReportError(f"pytest's JSON report has a test without its id or outcome: {error}.") from error


def _crash_message(test: dict[str, Any]) -> str:
    """What a test of pytest's JSON report says about its failure; empty if it does not."""
    for phase in ("call", "setup", "teardown"):
        crash = part.get("crash") if isinstance(part := test.get(phase), dict) else None
        if isinstance(crash, dict) and isinstance(message := crash.get("message"), str):
            return one_line(message)
    return ""


def _add(outcomes: dict[str, Outcome], name: str, outcome: Outcome) -> None:
    outcomes[name] = min(outcomes.get(name, "passed"), outcome, key=_WORST_FIRST.index)


def _json_coverage(data: dict[str, Any]) -> float:
    try:
        return _rounded(float(data["totals"]["percent_covered"]))
    except (KeyError, TypeError, ValueError) as error:
        raise ReportError("coverage's JSON report does not say how much is covered.") from error


def _rounded(percentage: float) -> float:
    if not math.isfinite(percentage):
        raise ValueError(percentage)
    return round(percentage, 2)


class _RootFound(Exception):  # noqa: N818 - it stops the parser
    pass


def _root_element(content: bytes) -> str | None:
    """The name of an XML document's root element; None if it has none."""
    from xml.parsers import expat

    def start(tag: str, _: dict[str, str]) -> None:
        raise _RootFound(tag)

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    try:
        parser.Parse(content, True)
    except _RootFound as found:
        return str(found)
    except expat.ExpatError:
        pass
    return None


def _cobertura_coverage(content: bytes) -> float:
    from xml.parsers import expat

    line_rates: list[str] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        if tag == "coverage" and "line-rate" in attributes:
            line_rates.append(attributes["line-rate"])

    def refuse(*_: Any) -> None:
        # The one document type that coverage itself writes has no entities; what declares some is refused.
        raise ReportError("The coverage report declares entities.")

    parser = expat.ParserCreate()
    parser.StartElementHandler = start
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(content, True)
        return _rounded(float(line_rates[0]) * 100)
    except (expat.ExpatError, IndexError, ValueError) as error:
        raise ReportError("The coverage report can't be read.") from error
