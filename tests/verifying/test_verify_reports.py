"""What a look came to, as other programs read it: JUnit, SARIF, annotations and a summary. Every outcome is in all."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from xml.etree.ElementTree import fromstring

import pytest
from verify_kit import HONEST, Shop, forge

from donewhen.jobs.verifying import CaseReason, JobCases, Verification, VerificationCase
from donewhen.reports.verification_github import annotation_lines, escape_runner_commands, summary
from donewhen.reports.verification_junit import junit
from donewhen.reports.verification_places import FileLocation, location_of_reason
from donewhen.reports.verification_sarif import sarif
from donewhen.test_reports.junit import read_junit
from sentences import assert_sentences, lines_with

pytestmark = pytest.mark.scenes

NASTY = (
    "a|b `c` <img src=x> @ada #1 ]]> & \x1b[31mred\x1b[0m \x00\ufffe\uffff\udcff ::error::x\n::stop-commands::y\n%0A"
)
FAILED = CaseReason("criterion_failed", f"AC-1 {NASTY}", "jobs/WI-1/plan.md:7", "donewhen why WI-1")
BROKEN = CaseReason("gate_error", "It broke.", "/tmp/elsewhere", None)
FOUND = Verification(
    "main",
    "c" * 40,
    (VerificationCase("contract", "project", "passed"), VerificationCase("verify", "project", "error", (BROKEN,))),
    (
        JobCases(
            "WI-1",
            f"Title {NASTY}",
            "jobs/WI-1/plan.md",
            True,
            (
                VerificationCase("agreement", "gate", "passed"),
                VerificationCase("budget", "gate", "skipped", text="Not here."),
                VerificationCase("truth", "gate", "failed", text="1 of 1 is not met."),
                VerificationCase("AC-1", "criterion", "failed", (FAILED, FAILED._replace(where="")), NASTY, NASTY),
            ),
        ),
        JobCases(
            "WI-2", "Another", "jobs/WI-2/plan.md", False, (VerificationCase("not run", "gate", "skipped", text="No."),)
        ),
    ),
    (CaseReason("judging_changed", "test_x.py was changed.", "tests/té st.py"),),
    "apps/shop/",
)


def test_every_case_is_in_the_junit_report_and_nothing_that_was_not_run_has_passed() -> None:
    root = fromstring(junit(FOUND))  # noqa: S314
    assert {name: root.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "7",
        "failures": "2",
        "errors": "1",
        "skipped": "2",
    }
    assert [item.get("tests") for item in root] == ["2", "4", "1"]
    read = read_junit([junit(FOUND)])
    assert dict(read.outcomes).values() and [*read.outcomes.values()] == [
        *("passed", "errored", "passed", "skipped", "failed", "failed", "skipped")
    ]
    failed = root.findall(".//failure")
    assert [item.get("type") for item in failed] == ["failed", "criterion_failed"]
    assert failed[0].get("message") == failed[0].text == "1 of 1 is not met."
    assert failed[1].text is not None and failed[1].text.count("[criterion_failed] AC-1 a|b `c` <img src=x>") == 2
    case = root.findall(".//testcase")[5]
    assert (case.get("file"), case.get("line")) == ("apps/shop/jobs/WI-1/plan.md", "7")
    assert root.find(".//error").get("type") == "gate_error"  # type: ignore[union-attr]
    assert [item.get("message") for item in root.findall(".//skipped")] == ["Not here.", "No."]
    assert "]]> & red" in (root.findtext(".//system-out") or "")


def test_another_reader_of_junit_agrees(tmp_path: Path) -> None:
    try:
        from junitparser import JUnitXml
    except ImportError:
        pytest.skip("LOUD: junitparser is not installed; that others can read the JUnit report is NOT tested")
    place = tmp_path / "report.xml"
    place.write_bytes(junit(FOUND))
    report = JUnitXml.fromfile(str(place))
    assert (report.tests, report.failures, report.errors, report.skipped) == (7, 2, 1, 2)
    results = [[type(result).__name__ for result in case.result] for suite in report for case in suite]
    assert results == [[], ["Error"], [], ["Skipped"], ["Failure"], ["Failure"], ["Skipped"]]


def test_sarif_keeps_to_what_the_format_and_github_ask_for() -> None:
    document: Any = json.loads(sarif(FOUND, 3))
    assert document["version"] == "2.1.0"
    assert document["$schema"].endswith("sarif-2.1.0.json")
    (run,) = document["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted({"criterion_failed", "gate_error", "judging_changed"})
    assert all(rule["shortDescription"]["text"] and rule["help"]["text"] and rule["name"].isalpha() for rule in rules)
    assert run["invocations"] == [{"executionSuccessful": False, "exitCode": 3}]
    assert [result["level"] for result in run["results"]] == ["error", "error", "error", "note"]
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        assert 0 < len(result["message"]["text"]) < 10_000
        (location,) = result["locations"]
        place = location["physicalLocation"]
        assert place["region"]["startLine"] >= 1
        assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]
        assert not re.search(r"[^\x21-\x7e]|^/|^\.\.|\\", place["artifactLocation"]["uri"])
        assert all(isinstance(value, str) for value in result["partialFingerprints"].values())
    uris = [unquote(result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) for result in run["results"]]
    assert uris == [
        "apps/shop/jobs/plan.md",
        "apps/shop/jobs/WI-1/plan.md",
        "apps/shop/jobs/plan.md",
        "apps/shop/tests/té st.py",
    ]
    assert run["results"][1]["locations"][0]["physicalLocation"]["region"]["startLine"] == 7
    assert "\x1b" not in run["results"][1]["message"]["text"]
    marks = [next(iter(result["partialFingerprints"].values())) for result in run["results"]]
    assert len(set(marks)) == 4
    moved = FOUND._replace(
        jobs=(
            FOUND.jobs[0]._replace(
                cases=(
                    VerificationCase("AC-1", "criterion", "failed", (FAILED._replace(where="jobs/WI-1/plan.md:9"),)),
                )
            ),
        )
    )
    again: Any = json.loads(sarif(moved, 1))["runs"][0]["results"]
    assert again[1]["partialFingerprints"] == run["results"][1]["partialFingerprints"]
    assert sarif(FOUND, 3) == sarif(FOUND, 3)


def test_a_code_of_an_error_elsewhere_is_a_rule_too() -> None:
    found = Verification.of_error("main", "base", "There is no commit.", "", "git fetch")
    (rule,) = json.loads(sarif(found, 2))["runs"][0]["tool"]["driver"]["rules"]
    assert (rule["id"], rule["name"]) == ("base", "Base")


def test_annotations_stand_at_their_lines_and_hold_nothing_that_the_runner_obeys() -> None:
    lines = [*annotation_lines(FOUND)]
    assert [line.partition("::")[2].split(" ")[0] for line in lines] == ["error", "error", "error", "notice"]
    assert all("\n" not in line and "\x1b" not in line for line in lines)
    assert lines[0] == "::error title=donewhen%3A gate_error::It broke."
    head, _, text = lines[1].removeprefix("::").partition("::")
    assert head == "error file=apps/shop/jobs/WI-1/plan.md,line=7,title=donewhen%3A criterion_failed"
    assert_sentences(text)
    assert lines[3].startswith("::notice file=apps/shop/tests/té st.py,line=1,")
    comma = FOUND._replace(notes=(CaseReason("git", "x", "a,b:c.py:3"),), project=(), jobs=())
    assert [*annotation_lines(comma)] == ["::notice file=apps/shop/a%2Cb%3Ac.py,line=3,title=donewhen%3A git::x"]


@pytest.mark.parametrize(
    "line",
    [
        *("::error::x", "   ::stop-commands::x", "\t::set-output name=a::b", "::::x"),
        *("##[error]x", "x ##[group]y", "\u200b::error::x", "\x1b[0m::error::x", "#\u200b#[error]x", "\r::error::x"),
    ],
)
def test_a_line_of_others_is_text_to_the_runner(line: str) -> None:
    shown = escape_runner_commands(line)
    assert all(not line.lstrip().startswith("::") for line in shown.splitlines())
    assert "##[" not in shown


def test_what_is_no_command_stays_as_it_is() -> None:
    assert escape_runner_commands("a :: b # # [c] test_x.py::test_y") == "a :: b # # [c] test_x.py::test_y"


def test_the_summary_shows_others_words_as_text() -> None:
    text = summary(FOUND)
    assert text.startswith("## donewhen: could not be verified\n")
    assert_sentences(text)
    assert "cccccccccc" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    assert len(rows) == 7
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 5 for row in rows)
    assert "<img" not in text and "@ada" not in text and "`c`" not in text.replace("\\`", "")
    assert "&lt;img src=x&gt; &#64;ada &#35;1" in text
    assert_sentences(text)
    many = FOUND._replace(jobs=(FOUND.jobs[0]._replace(cases=FOUND.jobs[0].cases * 100),))
    assert "And 202 more." in summary(many)
    assert len(summary(many).encode()) < 1 << 20
    good = FOUND._replace(project=(), jobs=(FOUND.jobs[0]._replace(cases=(VerificationCase("a", "gate", "passed"),)),))
    assert "## donewhen: verified" in summary(good)
    bad = FOUND._replace(project=())
    assert "## donewhen: not verified" in summary(bad)
    links = FOUND._replace(notes=(CaseReason("git", "see https://x.test and www.x.test", ""),))
    assert "https:&#47;/x.test and www&#46;x.test" in summary(links)


@pytest.mark.parametrize(
    ("where", "place"),
    [
        ("a.md:3", FileLocation("apps/shop/a.md", 3)),
        ("a.md", FileLocation("apps/shop/a.md", 1)),
        ("a.md:0", FileLocation("apps/shop/a.md:0", 1)),
        ("a\nb.md:2", FileLocation("apps/shop/a\nb.md", 2)),
        ("a\udcff.md", FileLocation("apps/shop/a?.md", 1)),
        *(("", None), ("/etc/passwd", None), ("../x", None), ("a/../../x:1", None), (" --option", None)),
    ],
)
def test_a_place_is_a_file_of_the_repository_or_none(where: str, place: FileLocation | None) -> None:
    assert location_of_reason(FOUND, CaseReason("x", "y", where)) == place


@pytest.mark.parametrize(
    ("arguments", "base", "env", "status", "code"),
    [
        ((), "gone", {}, 2, "base"),
        ((), "--output=x", {}, 2, "base"),
        ((), "main:prices.py", {}, 2, "base"),
        ((), "", {}, 2, "usage"),
        (("--job", "999"), "main", {}, 2, "usage"),
        ((), "main", {"TMPDIR": "/proc/1"}, 0, None),
        ((), "", {"GITHUB_BASE_REF": "main"}, 2, "base"),
    ],
)
def test_an_error_is_reported_in_every_form(
    shop: Shop,
    tmp_path: Path,
    arguments: tuple[str, ...],
    base: str,
    env: dict[str, str],
    status: int,
    code: str | None,
) -> None:
    job = shop.job(criteria=("There is one\n  check: file /prices.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    files = {name: tmp_path / name for name in ("junit", "sarif", "summary")}
    options = [word for name, file in files.items() for word in (f"--{name}", str(file))]
    done = shop.verify("--json", *arguments, *options, base=base, GITHUB_ACTIONS="true", **env)
    assert done.returncode == status, done.stdout + done.stderr
    envelope = json.loads(done.stdout)
    assert envelope["ok"] is (status == 0)
    assert [finding["code"] for finding in envelope["findings"]] == ([code] if code else [])
    assert bool(read_junit([files["junit"].read_bytes()]).ids("errored")) is (status != 0)
    assert json.loads(files["sarif"].read_text())["runs"][0]["invocations"][0]["exitCode"] == status
    assert ("could not be verified" in files["summary"].read_text()) is (status != 0)
    assert ("::error " in done.stderr) is (status != 0)


def test_an_error_tells_people_what_to_do_and_names_no_folder_that_is_gone(shop: Shop) -> None:
    shop.job()
    shop.branch()
    done = shop.verify("--job", "999", base="main")
    assert done.returncode == 2
    assert "      [usage] There is no job '999'.\n      next: donewhen status\nNot verified.\n" in done.stdout


def test_what_nobody_foresaw_is_reported_and_is_no_pass(shop: Shop, tmp_path: Path) -> None:
    job = shop.job()
    shop.branch()
    forge(shop, job)
    shop.commit()
    blob = shop.git("rev-parse", "HEAD:prices.py").strip()
    (shop.folder / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    done = shop.verify("--junit", str(tmp_path / "junit.xml"))
    assert done.returncode in (1, 2, 3)
    assert_sentences(lines_with(done.stdout, "[git]"), done.stdout.splitlines()[-1])
    assert (tmp_path / "junit.xml").is_file()


def test_a_report_that_cannot_be_written_is_told_and_keeps_nobody_from_the_others(shop: Shop, tmp_path: Path) -> None:
    job = shop.job(criteria=("There is one\n  check: file /prices.py",))
    shop.branch()
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    done = shop.verify("--junit", str(tmp_path / "no" / "junit.xml"), "--sarif", str(tmp_path / "sarif"))
    assert done.returncode == 2
    assert_sentences(done.stderr)
    assert (tmp_path / "sarif").is_file()


def test_names_that_are_no_text_are_reported(shop: Shop, tmp_path: Path) -> None:
    name = b"tests/test_\xff.py".decode("utf-8", "surrogateescape")
    (shop.root / "tests").mkdir()
    (shop.root / name).write_text("")
    shop.write("tests/::error::x\n.py", "")
    job = shop.job(criteria=("There is one\n  check: file /prices.py",))
    shop.branch()
    (shop.root / name).unlink()
    shop.write("tests/::error::x\n.py", "y = 1\n")
    forge(shop, job)
    shop.commit()
    files = {name: tmp_path / name for name in ("junit", "sarif", "summary")}
    done = shop.verify(
        *(word for name, file in files.items() for word in (f"--{name}", str(file))), GITHUB_ACTIONS="true"
    )
    assert done.returncode == 1, done.stderr
    assert all(file.stat().st_size for file in files.values())
    assert "report_tests_lost" in done.stdout
    commands = [line for line in done.stdout.splitlines() if line.lstrip().startswith("::")]
    assert all(line.startswith(("::error title=donewhen", "::error file=", "::notice ")) for line in commands)
    read_junit([files["junit"].read_bytes()])
    json.loads(files["sarif"].read_text())
