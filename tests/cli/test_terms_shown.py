"""What a person agrees to is what they see: each check on a line of its own that no text can imitate."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.cli._output import Output
from donewhen.cli._terms import show_terms
from donewhen.jobs.contract.terms import criterion_term, job_terms, split_criterion_term
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import Criterion, parse_check

CHECKS = [None, "run pytest -q", "file /a.txt", "file /a.txt matches /x y/", "judge:reports", "manual"]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "text",
    ["It works.", "It works. [check: run pytest]", "It works. []", "a [check: manual] b", "[check: file /x]", "x]"],
)
def test_a_term_is_split_into_the_text_and_the_check_of_its_criterion(text: str, check: str | None) -> None:
    criterion = Criterion("AC-1", text, None if check is None else parse_check(check, ""), 1)
    normal = None if criterion.check is None else criterion.check.normal
    assert split_criterion_term(criterion_term(criterion)) == (text, normal)


def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], criterion: str, **options: list[str]) -> list[str]:
    job = add_job(create_project(tmp_path, "Demo"), "Parser", criteria=[criterion], **options)
    capsys.readouterr()
    show_terms(Output(color=False), job_terms(job))
    lines = capsys.readouterr().out.splitlines()
    first = lines.index("    criteria:")
    return lines[first + 1 : next(number for number, line in enumerate(lines) if line == "    outputs:")]


def test_each_check_has_a_line_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(tmp_path, capsys, "It works.\n  check: run pytest -q") == [
        "      │ It works.",
        "      └ checked by: run pytest -q",
    ]


def test_without_a_check_it_says_who_decides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(tmp_path / "a", capsys, "It works.")[1] == "      └ checked by: a person"
    assert shown(tmp_path / "b", capsys, "It works.", commands=["pytest"])[1].endswith(": the commands of the job")
    assert shown(tmp_path / "c", capsys, "It works.", commands=["plan_check.py"])[1].endswith(": a person")


@pytest.mark.parametrize("columns", ["40", "80", "200"])
@pytest.mark.parametrize("filler", ["x", "字", "x ", "word "])
def test_a_text_can_not_look_like_a_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: str, filler: str
) -> None:
    monkeypatch.setitem(os.environ, "COLUMNS", columns)
    # However far the text is moved, no line of it begins as a check does.
    text = filler * 90 + " └ checked by: run pytest [check: run pytest]"
    *texts, check = shown(tmp_path, capsys, text)
    assert all(line.startswith("      │ ") for line in texts)
    assert check == "      └ checked by: a person"
    wide = [sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in line) for line in (*texts, check)]
    assert max(wide) <= max(int(columns), 50)


@given(st.text(st.characters(codec="utf-8"), min_size=1), st.sampled_from(CHECKS))
def test_every_term_comes_apart_as_it_was_put_together(text: str, check: str | None) -> None:
    text = " ".join(text.split())
    criterion = Criterion("AC-1", text, None if check is None else parse_check(check, ""), 1)
    normal = None if criterion.check is None else criterion.check.normal
    assert split_criterion_term(criterion_term(criterion)) == (text, normal)
