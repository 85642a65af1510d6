"""A verification as JUnit XML: one suite per job, one case per gate and criterion. What was not run is skipped."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from donewhen.foundation.plain_text import one_line, plain_text
from donewhen.jobs.verifying import Verification, VerificationCase
from donewhen.reports.verification_places import location_of_reason


def junit(verification: Verification) -> bytes:
    """Return the XML document."""
    root = Element("testsuites", name="donewhen verify")
    _suite(root, verification, "project", "project", verification.project)
    for job in verification.jobs:
        _suite(root, verification, f"{job.id} {one_line(job.title, 120)}", job.id, job.cases)
    _count(root, verification.cases)
    indent(root)
    document: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(root: Element, verification: Verification, name: str, group: str, cases: Iterable[VerificationCase]) -> None:
    every = list(cases)
    suite = SubElement(root, "testsuite", name=_safe(name))
    _count(suite, every)
    for case in every:
        element = SubElement(suite, "testcase", classname=_safe(group), name=_safe(case_name(case)))
        places = [place for reason in case.reasons if (place := location_of_reason(verification, reason)) is not None]
        if places:
            element.set("file", _safe(places[0].path))
            element.set("line", str(places[0].line))
        if case.outcome in ("failed", "error"):
            details = "\n".join(f"[{reason.code}] {reason.message}" for reason in case.reasons) or case.text
            kind = case.reasons[0].code if case.reasons else case.outcome
            first = case.reasons[0].message if case.reasons else case.text
            tag = "failure" if case.outcome == "failed" else "error"
            SubElement(element, tag, message=_safe(one_line(first, 400)), type=_safe(kind)).text = _safe(details)
        elif case.outcome == "skipped":
            SubElement(element, "skipped", message=_safe(one_line(case.text, 400)))
        if case.output:
            SubElement(element, "system-out").text = _safe(case.output)


def case_name(case: VerificationCase) -> str:
    """Return the display name of a case."""
    text = f" {one_line(case.text, 120)}" if case.kind == "criterion" else ""
    return f"{case.kind}: {case.name}{text}"


def _count(element: Element, cases: Iterable[VerificationCase]) -> None:
    outcomes = [case.outcome for case in cases]
    element.set("tests", str(len(outcomes)))
    for name, outcome in (("failures", "failed"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(outcomes.count(outcome)))  # type: ignore[arg-type]


def _safe(text: str) -> str:
    """Remove the characters that XML can't represent."""
    return "".join(character for character in plain_text(text) if character not in "\ufffe\uffff")
