"""What `status` and the gates say first, and in which words."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.cli._times import moment
from donewhen.foundation.plain_text import shorten
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project

Donewhen = Callable[..., subprocess.CompletedProcess[str]]
ADA, BOT = Approval(Actor("ada", "person")), Actor("bot")


def test_status_says_first_what_waits_for_you_and_how_to_settle_it(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = create_project(tmp_path, "Shop")
    jobs = [
        add_job(workspace, f"Part {number}", criteria=["It is there\n  check: file /a.md"], outputs=["/a.md"])
        for number in range(3)
    ]
    for proposal in agreement_proposals(workspace, jobs[:1]):
        agree(workspace, proposal, ADA)
    start_job(workspace, jobs[0].id, BOT)
    assert "Waits for you" in donewhen(["status"], tmp_path).stdout
    set_job_aside(workspace, jobs[0].id, BOT, question="Which one?")
    lines = donewhen(["status"], tmp_path).stdout.splitlines()
    assert lines[1:4] == [
        "Waits for you:",
        "  1 question of an agent        donewhen review",
        "  2 jobs that nobody agreed to  donewhen agree",
    ]


def test_status_says_nothing_of_you_where_nothing_waits(tmp_path: Path, donewhen: Donewhen) -> None:
    workspace = create_project(tmp_path, "Shop")
    job = add_job(workspace, "Part", criteria=["It is there\n  check: file /a.md"], outputs=["/a.md"])
    for proposal in agreement_proposals(workspace, [job]):
        agree(workspace, proposal, ADA)
    assert "Waits for you" not in donewhen(["status"], tmp_path).stdout


@pytest.mark.parametrize("columns", [80, 120])
def test_at_a_terminal_each_job_has_one_line_cut_between_words(tmp_path: Path, as_person: Any, columns: int) -> None:
    workspace = create_project(tmp_path, "Shop")
    title = "Discounts, rounding and currencies are computed as the finance team described in its letter of March"
    add_job(workspace, title, criteria=["It is there\n  check: file /a.md"], outputs=["/a.md"])
    sized = ["/bin/sh", "-c", f'stty rows 24 cols {columns}; exec "$@"', "sh"]
    screen = as_person(["status", "--no-color"], tmp_path, words=sized).screen.replace("\r", "")
    (line,) = [line for line in screen.splitlines() if "Discounts" in line]
    assert len(line) <= columns
    shown = line.split("not_agreed", 1)[1].strip()
    assert shown.endswith("…") or shown == title
    assert title.startswith(shown.removesuffix("…"))
    assert title[len(shown.removesuffix("…")) :][:1] in ("", " ")


@pytest.mark.parametrize(
    ("at", "shown"),
    [
        ("2026-02-14T10:00:00Z", "just now (2026-02-14 10:00)"),
        ("2026-02-14T09:59:00Z", "1 minute ago (2026-02-14 09:59)"),
        ("2026-02-14T07:59:00Z", "2 hours ago (2026-02-14 07:59)"),
        ("2026-02-11T10:00:00Z", "3 days ago (2026-02-11 10:00)"),
        ("2024-02-11T10:00:00Z", "2 years ago (2024-02-11 10:00)"),
        ("2026-02-15T10:00:00Z", "just now (2026-02-15 10:00)"),
        ("some day", "some day"),
    ],
)
def test_a_time_is_shown_with_how_long_ago_it_was(at: str, shown: str) -> None:
    assert moment(at, "2026-02-14T10:00:00Z") == shown


@pytest.mark.parametrize("limit", range(1, 60))
def test_a_text_is_cut_between_words_as_long_as_half_of_it_stays(limit: int) -> None:
    text = "The quick brown fox jumps over the lazy dog and on"
    short = shorten(text, limit)
    assert len(short) <= limit
    if limit < len(text):
        kept = short.removesuffix("…")
        assert text.startswith(kept)
        assert text[len(kept) : len(kept) + 1] == " " or " " not in text[limit // 2 : limit]
    assert len(shorten("x" * 100, limit)) == limit
