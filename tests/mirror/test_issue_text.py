"""What an issue should be: pure, and harmless whatever stands in a plan."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.jobs.issues.issue_text import (
    IssueContent,
    begin_mark,
    end_mark,
    escape_markdown,
    expected_issue,
    first_difference,
    milestone_title,
    without_mentions,
    workstream_label,
)
from donewhen.jobs.plan.document import parse_document, rewrite_fields
from donewhen.jobs.plan.job import Job, read_job
from donewhen.jobs.plan.templates import job_plan
from sentences import assert_sentences, lines_with

ID = "WI-20260214-001"
WHERE = f"jobs/{ID}-parser/plan.md"
PIECES = [*"@#<>!-/&;`*_[]()\\ \n\ta1Gg", "GH-", "/issues/", "fixes ", "\u200b", "é", "<!--", "-->", "&#64;"]
HOSTILE = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


def job_of(
    title: str = "Parser", objective: str = "", criteria: tuple[str, ...] = ("It works.",), **fields: Any
) -> Job:
    raw = job_plan(ID, "Parser", "2026-02-14T10:00:00Z", criteria=criteria)
    raw = rewrite_fields(parse_document(raw, WHERE), {"title": title, **fields})
    text = raw.decode().replace("## Objective\n", f"## Objective\n\n{objective}\n", 1)
    return read_job(parse_document(text.encode(), WHERE), Path("/p", WHERE), WHERE)


def wanted(job: Job, workstream: str | None = None, milestone: str = "") -> IssueContent:
    return expected_issue(job, WHERE, workstream, milestone)


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("ask @octocat", "ask ＠octocat"),
        ("é@octocat (@org/team)", "é＠octocat (＠org/team)"),
        ("fixes #12", "fixes ＃12"),
        ("closes octo/demo#12", "closes octo/demo＃12"),
        ("resolves GH-12, gh-3", "resolves GH‑12, gh‑3"),
        ("fix https://github.com/o/r/issues/12", "fix https://github.com/o/r/issues∕12"),
        ("see /pull/7 and /commit/abc1234", "see /pull∕7 and /commit∕abc1234"),
        ("a @ b, # one, #tag, C#", "a @ b, # one, #tag, C#"),
    ],
)
def test_nobody_is_mentioned_and_nothing_is_pointed_at(text: str, harmless: str) -> None:
    assert without_mentions(text) == harmless


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("<!-- /donewhen: X --> <script>", "&lt;!-- /donewhen: X --&gt; &lt;script&gt;"),
        ("*a* _b_ `c` [d](e) ~f~ |g| $h$ \\", "\\*a\\* \\_b\\_ \\`c\\` \\[d\\](e) \\~f\\~ \\|g\\| \\$h\\$ \\\\"),
        ("&#64;octocat &commat;octocat", "&amp;＃64;octocat &amp;commat;octocat"),
        ("# heading\n- item\n    code\n===", "\\# heading\n\\- item\ncode\n\\==="),
        ("@\u200boctocat", "＠octocat"),
        ("\x1b[31mred\x1b[0m", "red"),
    ],
)
def test_text_is_shown_as_it_stands(text: str, shown: str) -> None:
    assert escape_markdown(text) == shown


@given(HOSTILE, HOSTILE)
def test_whatever_a_plan_says_our_part_ends_where_it_ends_and_reaches_nobody(title: str, words: str) -> None:
    line = " ".join(words.split()) or "x"
    issue = wanted(job_of(title, objective=words.replace("\n#", "\n"), criteria=(f"It {line}",)))
    for text in (issue.title, issue.body):
        assert not re.search(r"@[A-Za-z0-9]|#[0-9]|\bGH-[0-9]|/issues/[0-9a-f]", text, re.IGNORECASE)
    inside = issue.body.removeprefix(begin_mark(ID)).removesuffix(end_mark(ID))
    assert len(inside) == len(issue.body) - len(begin_mark(ID)) - len(end_mark(ID))
    assert "<!--" not in inside
    assert "-->" not in inside
    assert issue.title.startswith(f"[{ID}] ")
    assert "\n" not in issue.title


def test_lengths_are_limited_and_what_is_left_out_is_counted() -> None:
    job = job_of(
        "T" * 1000, objective="long " * 5000, criteria=tuple(f"Criterion {n} " + "x" * 600 for n in range(300))
    )
    issue = wanted(job, "W" * 100, milestone_title("WV-1", "M" * 1000))
    assert len(issue.title) == 256
    assert issue.title.endswith("…")
    assert len(issue.body) < 40_000
    shown = issue.body.count("\n- AC-")
    assert_sentences(lines_with(issue.body, f" {300 - shown} "))
    assert all(len(label) <= 50 for label in issue.labels)
    assert len(issue.milestone) <= 255


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ("planned", "open"),
        ("in_progress", "open"),
        ("blocked", "open"),
        ("done", "completed"),
        ("cancelled", "not_planned"),
    ],
)
def test_the_state_follows_the_status(status: str, state: str) -> None:
    issue = wanted(job_of(status=status), "Work")
    assert (issue.status, issue.state, issue.labels) == (status, state, ("ws:work", f"status:{status}"))


def test_nothing_in_an_issue_changes_with_the_score() -> None:
    assert wanted(job_of(reward_last_score=93, reward_last_next_action="x", iteration=2)) == wanted(job_of())


def test_an_objective_that_is_a_placeholder_is_none() -> None:
    assert_sentences(wanted(job_of(objective="TBD")).body)
    assert "Read the log." in wanted(job_of(objective="Read the log.")).body


@pytest.mark.parametrize(
    ("title", "label"),
    [("Räume & Pläne", "ws:raume-plane"), ("日本", "ws:untitled"), ("a" * 31 + " b", f"ws:{'a' * 31}")],
)
def test_a_workstream_is_a_label_in_kebab_case(title: str, label: str) -> None:
    assert workstream_label(title) == label


NOW = {"title": "t", "body": "b", "status": "done", "workstream": "", "milestone": "", "state": "completed"}


@pytest.mark.parametrize(
    ("then", "seen"),
    [
        ({}, {}),
        ({}, {"status": "in_progress", "state": "open"}),
        ({}, {"status": ""}),
        ({}, {"state": "open"}),
        ({}, {"state": "not_planned"}),
        ({"title": "x"}, {"title": "x"}),
        ({}, {"title": "x"}),
        ({"body": "x"}, {"body": "x"}),
        ({"workstream": "x"}, {"workstream": "x"}),
        ({"milestone": "x"}, {"milestone": "x"}),
    ],
)
def test_the_first_difference_is_told(then: dict[str, str], seen: dict[str, str]) -> None:
    message = first_difference(NOW, NOW | then, NOW | seen)
    assert (message == "") == (not then and not seen)
    assert_sentences(message)


def test_an_entry_that_says_nothing_is_no_parity() -> None:
    assert_sentences(first_difference(NOW, {}, {}))
