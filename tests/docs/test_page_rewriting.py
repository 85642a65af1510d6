"""Shown output is replaced by what is printed now, line by line, and never by something unlike it."""

from __future__ import annotations

from pathlib import Path

from page_rewriting import rewrite_page, updated_lines


def test_only_a_stale_line_is_replaced() -> None:
    shown = ["WI-…-001  Prices", "  ✗ truth: the price is not there", "…"]
    printed = ["WI-20261116-001  Prices", "  ✗ truth: the price is missing", "more"]
    assert updated_lines(shown, printed) == ["WI-…-001  Prices", "  ✗ truth: the price is missing", "…"]


def test_what_differs_from_run_to_run_becomes_an_ellipsis() -> None:
    printed = ["receipt sha256:0123456789 for WI-20261116-002 at 2026-11-16T08:00:00Z"]
    assert updated_lines(["receipt of WI-…-002"], printed) == ["receipt sha256:… for WI-…-002 at …"]


def test_a_line_without_a_successor_is_left_to_a_person() -> None:
    assert updated_lines(["something else entirely"], ["✓ 12"]) is None


def test_a_line_is_never_taken_from_behind_one_that_still_matches() -> None:
    assert updated_lines(["a is there", "b is there"], ["b is there", "a is here"]) is None


def test_a_page_is_rewritten_in_place(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n$ donewhen x\nthe old words\nafter\n")
    assert rewrite_page(page, ["the old words"], "the new words\n")
    assert page.read_text() == "before\n$ donewhen x\nthe new words\nafter\n"
    assert not rewrite_page(page, ["not on the page"], "not on this page\n")
