"""What a command reported besides its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from donewhen.foundation.canonical import canonical_json
from donewhen.test_reports.junit import ReportError
from donewhen.test_reports.run_reports import RunReport, read_reports

TESTS = """
import pytest
def test_good(): pass
def test_bad(): assert 1 == 2
@pytest.fixture
def broken(): raise RuntimeError("no")
def test_error(broken): pass
@pytest.mark.skip(reason="later")
def test_later(): pass
@pytest.mark.xfail
def test_expected(): assert False
"""
JUNIT = '<testsuites><testsuite><testcase classname="t" name="{name}">{inside}</testcase></testsuite></testsuites>'
COVERAGE = '<?xml version="1.0" ?>\n<coverage line-rate="{rate}" branch-rate="0"/>'


def junit(name: str = "a", inside: str = "") -> str:
    return JUNIT.format(name=name, inside=inside)


def pytest_json(**outcomes: str) -> str:
    """As pytest-json-report writes it."""
    tests = [{"nodeid": f"test_x.py::{name}", "outcome": outcome} for name, outcome in outcomes.items()]
    return json.dumps({"created": 1.5, "exitcode": 0, "root": "/x", "summary": {"total": 1}, "tests": tests})


def python(folder: Path, *arguments: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("COV", "PYTEST_"))}
    subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, check=False)


def read(folder: Path, **files: str) -> RunReport | None:
    """The report of these files; an underscore in a name stands for the dot."""
    for name, content in files.items():
        (folder / name.replace("_", ".")).write_text(content)
    return read_reports(folder)


def some(report: RunReport | None) -> RunReport:
    assert report is not None
    return report


def test_a_folder_without_reports_has_none(tmp_path: Path) -> None:
    assert read_reports(tmp_path) is None
    assert read(tmp_path, log_txt="<testsuites/>", html="<html/>") is None


def test_a_junit_report_by_pytest_itself_is_read(tmp_path: Path) -> None:
    (tmp_path / "test_x.py").write_text(TESTS)
    python(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=out/junit.xml", "test_x.py")
    report = some(read_reports(tmp_path / "out"))
    assert report.formats == ("junit",)
    assert report.outcomes == {
        "test_x::test_good": "passed",
        "test_x::test_bad": "failed",
        "test_x::test_error": "errored",
        "test_x::test_later": "skipped",
        "test_x::test_expected": "skipped",
    }
    assert report.summary() == {"formats": ["junit"], "passed": 1, "failed": 2, "skipped": 2}
    assert not report.good
    assert report.coverage is None


def test_coverage_by_coverage_itself_is_read_from_both_of_its_forms(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text("import sys\nif len(sys.argv) > 5:\n    print(1)\nprint(2)\n")
    python(tmp_path, "-m", "coverage", "run", "x.py")
    for form in ("json", "xml"):
        (tmp_path / form).mkdir()
        python(tmp_path, "-m", "coverage", form, "-o", f"{form}/coverage.{form}")
        report = some(read_reports(tmp_path / form))
        assert report == RunReport(("coverage",), {}, 75.0)
        assert not report.has_tests
        assert report.good
        assert report.summary() == {"formats": ["coverage"], "coverage": 75.0}


def test_a_json_report_by_pytest_is_read(tmp_path: Path) -> None:
    report = some(
        read(
            tmp_path,
            report_json=pytest_json(a="passed", b="failed", c="error", d="skipped", e="xfailed", f="xpassed"),
        )
    )
    assert report.formats == ("pytest-json",)
    assert [report.outcomes[f"test_x.py::{name}"] for name in "abcdef"] == [
        "passed",
        "failed",
        "errored",
        "skipped",
        "skipped",
        "passed",
    ]


@pytest.mark.parametrize(
    ("outcomes", "good"),
    [
        (["passed"], True),
        (["passed", "skipped"], True),
        (["passed", "xfailed"], True),
        (["passed", "failed"], False),
        (["passed", "error"], False),
        (["skipped"], False),
        (["xfailed"], False),
        ([], False),
    ],
    ids=lambda value: "+".join(value) or "none" if isinstance(value, list) else None,
)
def test_a_report_is_good_when_some_test_passed_and_none_failed(
    tmp_path: Path, outcomes: Sequence[str], good: bool
) -> None:
    named = {f"t{number}": outcome for number, outcome in enumerate(outcomes)}
    report = some(read(tmp_path, report_json=pytest_json(**named)))
    assert report.has_tests
    assert report.good is good


@pytest.mark.parametrize("empty", ["<testsuites/>", "<testsuite/>", "<testsuites><testsuite tests='0'/></testsuites>"])
def test_a_report_without_tests_is_a_report_and_not_good(tmp_path: Path, empty: str) -> None:
    report = some(read(tmp_path, junit_xml=empty))
    assert report.has_tests
    assert not report.good
    assert report.summary() == {"formats": ["junit"], "passed": 0, "failed": 0, "skipped": 0}


def test_several_reports_are_one(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "two.xml").write_text(junit("b"))
    report = some(
        read(tmp_path, one_xml=junit("a"), three_json=pytest_json(c="passed"), cov_xml=COVERAGE.format(rate=0.5))
    )
    assert report.formats == ("coverage", "junit", "pytest-json")
    assert set(report.outcomes) == {"t::a", "t::b", "test_x.py::c"}
    assert report.coverage == 50.0
    assert report.good
    assert report.summary()["passed"] == 3
    assert report.summary()["coverage"] == 50.0


@pytest.mark.parametrize("names", [("a.xml", "b.xml"), ("b.xml", "a.xml")], ids=["failed first", "failed last"])
def test_a_test_that_stands_in_two_reports_counts_by_its_worst_outcome(tmp_path: Path, names: tuple[str, str]) -> None:
    (tmp_path / names[0]).write_text(junit("a", "<failure/>"))
    (tmp_path / names[1]).write_text(junit("a"))
    assert some(read_reports(tmp_path)).outcomes == {"t::a": "failed"}


def test_a_test_that_stands_twice_in_one_json_report_counts_by_its_worst_outcome(tmp_path: Path) -> None:
    tests = [{"nodeid": "x", "outcome": outcome} for outcome in ("passed", "error", "failed", "skipped")]
    assert some(read(tmp_path, r_json=json.dumps({"tests": tests}))).outcomes == {"x": "errored"}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("<testsuites>", id="torn"),
        pytest.param("", id="empty"),
        pytest.param("no xml", id="no xml"),
        pytest.param("<testsuite><testcase/></testsuite>", id="test without a name"),
        pytest.param('<!DOCTYPE x [<!ENTITY a "b">]><testsuites/>', id="entities"),
        pytest.param('<!DOCTYPE x SYSTEM "file:///etc/hostname"><testsuites/>', id="outside document type"),
        pytest.param("<coverage/>", id="coverage without a rate"),
        pytest.param('<coverage line-rate="much"/>', id="coverage without a number"),
        pytest.param('<coverage line-rate="nan"/>', id="coverage that is no number"),
        pytest.param('<coverage line-rate="inf"/>', id="endless coverage"),
        pytest.param('<coverage line-rate="0.5">', id="torn coverage"),
        pytest.param('<!DOCTYPE coverage [<!ENTITY a "b">]><coverage line-rate="1"/>', id="coverage with entities"),
        pytest.param(
            '<!DOCTYPE coverage [<!ENTITY a "b"><!ENTITY c "&a;&a;">]><coverage line-rate="1">&c;</coverage>',
            id="coverage with entities in entities",
        ),
    ],
)
def test_an_xml_report_that_can_not_be_read_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(ReportError):
        read(tmp_path, report_xml=content)


@pytest.mark.parametrize(
    "content",
    [
        pytest.param("{torn", id="torn"),
        pytest.param("", id="empty"),
        pytest.param("[" * 100_000, id="too deep"),
        pytest.param('{"tests": 5}', id="tests are a number"),
        pytest.param('{"tests": null}', id="tests are nothing"),
        pytest.param('{"tests": ["x"]}', id="test is a text"),
        pytest.param('{"tests": {"x": "passed"}}', id="tests are an object"),
        pytest.param('{"tests": [{"nodeid": "x"}]}', id="no outcome"),
        pytest.param('{"tests": [{"outcome": "passed"}]}', id="no id"),
        pytest.param('{"tests": [{"nodeid": "x", "outcome": "splendid"}]}', id="unknown outcome"),
        pytest.param('{"tests": [{"nodeid": "x", "outcome": ["passed"]}]}', id="list of outcomes"),
        pytest.param('{"totals": {}}', id="no percentage"),
        pytest.param('{"totals": []}', id="totals are a list"),
        pytest.param('{"totals": {"percent_covered": "much"}}', id="percentage is a text"),
        pytest.param('{"totals": {"percent_covered": null}}', id="percentage is nothing"),
        pytest.param('{"totals": {"percent_covered": NaN}}', id="percentage is no number"),
        pytest.param('{"totals": {"percent_covered": 1e999}}', id="endless percentage"),
    ],
)
def test_a_json_report_that_can_not_be_read_is_an_error(tmp_path: Path, content: str) -> None:
    with pytest.raises(ReportError):
        read(tmp_path, report_json=content)


@pytest.mark.parametrize("content", ["[]", "5", "{}", '{"other": 1}', '"tests"', '["tests", "totals"]'])
def test_a_json_file_that_is_no_report_is_passed_over(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, notes_json=content) is None


@pytest.mark.parametrize(
    "content", ["<checkstyle/>", "<html/>", '<x><coverage line-rate="1"/></x>', "<x><testsuite/></x>"]
)
def test_an_xml_file_that_is_no_report_is_passed_over(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, notes_xml=content) is None


def test_a_failing_report_is_not_hidden_by_the_word_coverage_in_it(tmp_path: Path) -> None:
    inside = '<failure/><coverage line-rate="1"/>'
    report = some(read(tmp_path, junit_xml=junit("a", inside)))
    assert report.outcomes == {"t::a": "failed"}
    assert report.coverage is None
    commented = some(read(tmp_path, junit_xml="<!-- <coverage -->" + junit("a", "<failure/>")))
    assert commented.outcomes == {"t::a": "failed"}


def test_coverage_after_a_long_comment_is_still_coverage(tmp_path: Path) -> None:
    content = COVERAGE.format(rate=0.25).replace("<coverage", f"<!-- {'long ' * 1000} --><coverage")
    assert some(read(tmp_path, coverage_xml=content)).coverage == 25.0


def test_the_document_type_that_coverage_itself_writes_is_no_harm(tmp_path: Path) -> None:
    content = COVERAGE.format(rate="0.5").replace(
        "<coverage", "<!DOCTYPE coverage SYSTEM 'http://cobertura.sourceforge.net/xml/coverage-04.dtd'>\n<coverage"
    )
    assert some(read(tmp_path, coverage_xml=content)).coverage == 50.0


def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "junit.xml").write_text(junit())
    folder = tmp_path / "reports"
    folder.mkdir()
    (folder / "junit.xml").symlink_to(outside / "junit.xml")
    (folder / "folder").symlink_to(outside)
    (folder / "dangling.json").symlink_to("nowhere")
    assert read_reports(folder) is None


def test_a_pipe_or_a_folder_with_the_name_of_a_report_is_passed_over(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "junit.xml")
    (tmp_path / "folder.json").mkdir()
    assert read_reports(tmp_path) is None


@pytest.mark.parametrize("name", ["junit.xml", "report.json"])
def test_a_huge_report_is_not_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    os.truncate(tmp_path / name, 64 * 1024 * 1024 + 1)
    with pytest.raises(ReportError, match=name):
        read_reports(tmp_path)


def test_the_id_of_a_test_is_one_plain_line(tmp_path: Path) -> None:
    tests = [{"nodeid": "a[\x1b[31mred\n  line]", "outcome": "passed"}]
    assert list(some(read(tmp_path, r_json=json.dumps({"tests": tests}))).outcomes) == ["a[red line]"]


def test_a_percentage_is_rounded_and_what_is_told_can_be_written_down(tmp_path: Path) -> None:
    report = some(read(tmp_path, c_json='{"totals": {"percent_covered": 66.66666666}}'))
    assert report.coverage == 66.67
    assert canonical_json(report.summary()) == b'{"coverage":66.67,"formats":["coverage"]}'
    assert some(read(tmp_path, c_json=json.dumps({"totals": {"percent_covered": "12.5"}}))).coverage == 12.5
