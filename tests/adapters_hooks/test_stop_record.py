"""The record of unverified stops: what is counted, and how large it gets."""

from __future__ import annotations

import json
from pathlib import Path

from donewhen.adapters.stop_record import RECORD, StopRow, append_row, unverified_ends


def row(status: str = "capped", end: str | None = None, how: str = "stop", feedback: str | None = "why") -> StopRow:
    return StopRow("claude-stop-s1", status, 6, "files_missing", feedback, how, end)


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / RECORD).read_text(encoding="utf-8").splitlines()]


def test_nothing_is_on_record_without_a_file(tmp_path: Path) -> None:
    assert unverified_ends(tmp_path) == []


def test_a_later_row_of_the_same_end_replaces_the_earlier_one(tmp_path: Path) -> None:
    append_row(tmp_path, row("incomplete", "e1", "session-end"))
    append_row(tmp_path, row("incomplete", "e2", "session-end"))
    append_row(tmp_path, row("verified", "e1", "session-end"))
    append_row(tmp_path, row("errored", "e2", "session-end"))
    assert [(end.status, end.how) for end in unverified_ends(tmp_path)] == [("errored", "session-end")]


def test_stops_without_an_end_all_count(tmp_path: Path) -> None:
    append_row(tmp_path, row())
    append_row(tmp_path, row())
    assert len(unverified_ends(tmp_path)) == 2
    # As earlier versions wrote them.
    assert not {"how", "end"} & lines(tmp_path)[0].keys()


def test_unreadable_lines_count_too(tmp_path: Path) -> None:
    (tmp_path / RECORD).write_bytes(b'{"status": "cap\n[]\n\n\xff\n' + b"[" * 100_000 + b"\n{}\n")
    assert [end.status for end in unverified_ends(tmp_path)] == ["unverified"] * 5


def test_long_feedback_is_cut_and_odd_characters_are_kept_out(tmp_path: Path) -> None:
    append_row(tmp_path, row(feedback="x" * 1_000_000))
    append_row(tmp_path, row(feedback="half \ud800 \n line"))
    assert (tmp_path / RECORD).stat().st_size < 5000
    assert len(lines(tmp_path)) == 2
