"""Parses JUnit reports, which are untrusted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal
from xml.parsers import expat

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import TEST_REPORT

Outcome = Literal["passed", "failed", "errored", "skipped"]

# The same id twice (a rerun, a parametrisation without ids) counts by its worst outcome.
_WORST_FIRST: tuple[Outcome, ...] = ("errored", "failed", "skipped", "passed")
_OUTCOME_OF: dict[str, Outcome] = {"failure": "failed", "error": "errored", "skipped": "skipped"}


class ReportError(DonewhenError):
    """The report can't be read as JUnit XML."""

    code = "report_unreadable"


@dataclass(frozen=True)
class SuiteReport:
    """Test ids with their outcomes, and the first line of each failure message."""

    outcomes: Mapping[str, Outcome]
    messages: Mapping[str, str]

    def ids(self, *outcomes: Outcome) -> tuple[str, ...]:
        """The ids of the tests with these outcomes, in the order of the report."""
        return tuple(test for test, outcome in self.outcomes.items() if outcome in outcomes)

    @property
    def executed(self) -> int:
        return len(self.outcomes) - len(self.ids("skipped"))


def read_report_file(path: Path) -> bytes:
    """The content of a report file of limited size."""
    try:
        return read_limited(path, TEST_REPORT)
    except OSError as error:
        raise ReportError(f"The report {path.name} can't be read: {error.strerror}.") from error


def read_junit(documents: Iterable[bytes]) -> SuiteReport:
    """Parse JUnit XML documents into a single report."""
    collector = _Collector()
    for document in documents:
        collector.read(document)
    return SuiteReport(MappingProxyType(collector.outcomes), MappingProxyType(collector.messages))


class _Collector:
    def __init__(self) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self.messages: dict[str, str] = {}
        self._path: list[str] = []
        self._current: str | None = None
        self._outcome: Outcome = "passed"

    def read(self, document: bytes) -> None:
        if len(document) > TEST_REPORT.bytes:
            raise ReportError(f"The JUnit report has {len(document)} bytes; at most {TEST_REPORT.bytes} are read.")
        self._path.clear()
        parser = expat.ParserCreate()
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        # A document type can declare entities, and no test runner needs it.
        parser.StartDoctypeDeclHandler = _refuse_doctype
        try:
            parser.Parse(document, True)
        except expat.ExpatError as error:
            raise ReportError(
                f"The JUnit report is not well-formed XML: {expat.ErrorString(error.code)}.",
                where=f"line {error.lineno}, column {error.offset + 1}",
            ) from error

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if not self._path and tag not in ("testsuites", "testsuite"):
            raise ReportError(f"The report's root element is <{tag}>, not <testsuites> or <testsuite>.")
        self._path.append(tag)
        if tag == "testcase":
            if self._current is not None:
                raise ReportError("The report has a <testcase> inside another one.")
            self._current = _test_id(attributes)
            self._outcome = "passed"
        elif self._current is not None and self._path[-2] == "testcase" and tag in _OUTCOME_OF:
            self._outcome = _worse(self._outcome, _OUTCOME_OF[tag])
            if tag != "skipped" and attributes.get("message"):
                self.messages.setdefault(self._current, one_line(attributes["message"]))

    def _end(self, tag: str) -> None:
        self._path.pop()
        if tag == "testcase" and self._current is not None:
            known = self.outcomes.get(self._current, "passed")
            self.outcomes[self._current] = _worse(known, self._outcome)
            self._current = None


def _test_id(attributes: dict[str, str]) -> str:
    group = attributes.get("classname") or attributes.get("file") or ""
    name = attributes.get("name", "")
    if not (group or name):
        raise ReportError("The report has a <testcase> without a name.")
    # White space is no difference, but nothing is cut off: two tests must not become one.
    return " ".join((f"{group}::{name}" if group else name).split())


def _worse(outcome: Outcome, other: Outcome) -> Outcome:
    return min(outcome, other, key=_WORST_FIRST.index)


def _refuse_doctype(*_: Any) -> None:
    raise ReportError("The JUnit report declares a document type, which could smuggle in entities.")
