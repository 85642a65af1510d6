"""A verification as JUnit XML: a suite a job, a case a gate and criterion. What was not run is skipped, not passed."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.jobs.verifying import Verification, VerificationCase
from donewhen.reports.verification_places import location_of_reason


def junit(found: Verification) -> bytes:
    """The document."""
    root = Element("testsuites", name="donewhen verify")
    _suite(root, found, "project", "project", found.project)
    for job in found.jobs:
        _suite(root, found, f"{job.id} {one_line(job.title, 120)}", job.id, job.cases)
    _count(root, found.cases)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(root: Element, found: Verification, name: str, group: str, cases: Iterable[VerificationCase]) -> None:
    every = list(cases)
    suite = SubElement(root, "testsuite", name=_safe(name))
    _count(suite, every)
    for case in every:
        element = SubElement(suite, "testcase", classname=_safe(group), name=_safe(case_name(case)))
        places = [place for reason in case.reasons if (place := location_of_reason(found, reason)) is not None]
        if places:
            element.set("file", _safe(places[0].path))
            element.set("line", str(places[0].line))
        if case.outcome in ("failed", "error"):
            told = "\n".join(f"[{one.code}] {one.message}" for one in case.reasons) or case.text
            kind = case.reasons[0].code if case.reasons else case.outcome
            first = case.reasons[0].message if case.reasons else case.text
            tag = "failure" if case.outcome == "failed" else "error"
            SubElement(element, tag, message=_safe(one_line(first, 400)), type=_safe(kind)).text = _safe(told)
        elif case.outcome == "skipped":
            SubElement(element, "skipped", message=_safe(one_line(case.text, 400)))
        if case.output:
            SubElement(element, "system-out").text = _safe(case.output)


def case_name(case: VerificationCase) -> str:
    """A case's name for people."""
    text = f" {one_line(case.text, 120)}" if case.kind == "criterion" else ""
    return f"{case.kind}: {case.name}{text}"


def _count(element: Element, cases: Iterable[VerificationCase]) -> None:
    outcomes = [case.outcome for case in cases]
    element.set("tests", str(len(outcomes)))
    for name, outcome in (("failures", "failed"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(outcomes.count(outcome)))  # type: ignore[arg-type]


def _safe(text: str) -> str:
    """Text that XML can hold: it has no way to write most control characters, halves of pairs, and two more."""
    return "".join(one for one in plain_text(text) if one not in "\ufffe\uffff")
