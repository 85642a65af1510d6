"""JUnit reports: what holds for every report, and for everything that is none."""

from __future__ import annotations

import tempfile
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from donewhen.completion import ReasonCode, ReportError, SuiteBaseline, SuiteReport, read_junit
from donewhen.completion.suite import against_baseline
from donewhen_kit import examples

MODEST = settings(max_examples=examples(100), deadline=None)

WORST_FIRST = ("errored", "failed", "skipped", "passed")
TAGS = {"errored": "error", "failed": "failure", "skipped": "skipped"}
NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_categories=("C", "Z")), min_size=1, max_size=8
)
CASES = st.lists(st.tuples(NAMES, NAMES, st.sampled_from(WORST_FIRST)), max_size=12)


def document(cases: list[tuple[str, str, str]]) -> bytes:
    root = ET.Element("testsuites")
    suite = ET.SubElement(root, "testsuite", name="s")
    for group, name, outcome in cases:
        case = ET.SubElement(suite, "testcase", classname=group, name=name)
        if outcome in TAGS:
            ET.SubElement(case, TAGS[outcome], message="said").text = "more"
    return ET.tostring(root, encoding="utf-8", xml_declaration=True)


def expected(cases: list[tuple[str, str, str]]) -> dict[str, str]:
    outcomes: dict[str, list[str]] = {}
    for group, name, outcome in cases:
        outcomes.setdefault(f"{group}::{name}", []).append(outcome)
    return {one: min(several, key=WORST_FIRST.index) for one, several in outcomes.items()}


@MODEST
@given(CASES)
def test_every_test_is_read_with_its_worst_outcome(cases: list[tuple[str, str, str]]) -> None:
    report = read_junit([document(cases)])
    assert dict(report.outcomes) == expected(cases)
    assert report.executed == sum(outcome != "skipped" for outcome in expected(cases).values())
    assert set(report.messages) == {one for one, outcome in expected(cases).items() if outcome in ("failed", "errored")}


@MODEST
@given(CASES, st.integers(0, 12))
def test_it_does_not_matter_how_a_report_is_spread_over_files(cases: list[tuple[str, str, str]], at: int) -> None:
    whole = read_junit([document(cases)])
    parts = read_junit([document(cases[:at]), document(cases[at:])])
    assert dict(parts.outcomes) == dict(whole.outcomes)


@MODEST
@given(CASES, st.data())
def test_a_report_that_breaks_off_is_refused_wherever_it_does(
    cases: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    whole = document(cases)
    with pytest.raises(ReportError):
        read_junit([whole[: data.draw(st.integers(0, len(whole) - 1))]])


@MODEST
@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_what_is_no_report_is_refused_and_nothing_else_happens(data: bytes) -> None:
    with pytest.raises(ReportError):
        read_junit([data])


@MODEST
@given(
    st.recursive(
        st.sampled_from(["testcase", "failure", "error", "skipped", "testsuite", "x"]).map(
            lambda tag: f'<{tag} name="a" message="m"/>'
        ),
        lambda inner: st.tuples(
            st.sampled_from(["testsuite", "testcase", "failure", "skipped", "system-out"]), st.lists(inner, max_size=4)
        ).map(lambda pair: f'<{pair[0]} name="{pair[0]}">{"".join(pair[1])}</{pair[0]}>'),
        max_leaves=10,
    )
)
def test_any_nesting_of_elements_is_read_or_refused(inside: str) -> None:
    try:
        report = read_junit([f"<testsuites>{inside}</testsuites>".encode()])
    except ReportError:
        return
    assert set(report.outcomes.values()) <= set(WORST_FIRST)
    assert set(report.messages) <= set(report.outcomes)


IDS = st.frozensets(st.sampled_from("abcdefgh"))


def report_of(executed: frozenset[str], skipped: frozenset[str]) -> SuiteReport:
    return SuiteReport(dict.fromkeys(sorted(executed), "passed") | dict.fromkeys(sorted(skipped), "skipped"), {})


@MODEST
@given(IDS, IDS, IDS, IDS)
def test_a_suite_has_lost_something_exactly_when_an_id_is_gone_or_newly_skipped(
    was_run: frozenset[str], was_skipped: frozenset[str], now_run: frozenset[str], now_skipped: frozenset[str]
) -> None:
    baseline = SuiteBaseline(was_run, was_skipped - was_run)
    report = report_of(now_run - now_skipped, now_skipped)
    result = against_baseline(report, baseline)
    lost = (was_run | was_skipped) - (now_run | now_skipped)
    if lost:
        assert result is not None
        assert result.code is ReasonCode.TESTS_LOST
        assert (result.feedback or "").startswith(f"{len(lost)} test(s)")
    elif was_run & now_skipped:
        assert result is not None
        assert result.code is ReasonCode.TESTS_SKIPPED
        assert (result.feedback or "").startswith(f"{len(was_run & now_skipped)} test(s)")
    else:
        assert result is None


@MODEST
@given(CASES)
def test_a_report_never_loses_anything_against_itself(cases: list[tuple[str, str, str]]) -> None:
    report = read_junit([document(cases)])
    baseline = SuiteBaseline.of(report)
    assert against_baseline(report, baseline) is None
    assert baseline.executed | baseline.skipped == set(report.outcomes)
    assert not baseline.executed & baseline.skipped


@MODEST
@given(
    st.frozensets(st.text(st.characters(exclude_categories=("Cs",)), max_size=10), max_size=6),
    st.frozensets(st.text(st.characters(exclude_categories=("Cs",)), max_size=10), max_size=6),
)
def test_a_saved_baseline_is_loaded_as_it_was(executed: frozenset[str], skipped: frozenset[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "baseline.json"
        SuiteBaseline(executed, skipped).save(path)
        assert SuiteBaseline.load(path) == SuiteBaseline(executed, skipped)
