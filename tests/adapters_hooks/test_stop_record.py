"""The record of unverified stops: what is counted, and how large it gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from donewhen.adapters.stop_record import (
    RECORD,
    StopRow,
    append_row,
    ends_by_record,
    records_of_person,
    unverified_ends,
)


def row(status: str = "capped", end: str | None = None, how: str = "stop", feedback: str | None = "why") -> StopRow:
    return StopRow("claude-stop-s1", status, 6, "files_missing", feedback, how, end)


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / RECORD).read_text(encoding="utf-8").splitlines()]


def test_nothing_is_on_record_without_a_file(tmp_path: Path) -> None:
    assert unverified_ends(tmp_path / RECORD) == []


def test_a_later_row_of_the_same_end_replaces_the_earlier_one(tmp_path: Path) -> None:
    append_row(row("incomplete", "e1", "session-end"), tmp_path / RECORD)
    append_row(row("incomplete", "e2", "session-end"), tmp_path / RECORD)
    append_row(row("verified", "e1", "session-end"), tmp_path / RECORD)
    append_row(row("errored", "e2", "session-end"), tmp_path / RECORD)
    assert [(end.status, end.how) for end in unverified_ends(tmp_path / RECORD)] == [("errored", "session-end")]


def test_stops_without_an_end_all_count(tmp_path: Path) -> None:
    append_row(row(), tmp_path / RECORD)
    append_row(row(), tmp_path / RECORD)
    assert len(unverified_ends(tmp_path / RECORD)) == 2
    # As earlier versions wrote them.
    assert not {"how", "end"} & lines(tmp_path)[0].keys()


def test_unreadable_lines_count_too(tmp_path: Path) -> None:
    (tmp_path / RECORD).write_bytes(b'{"status": "cap\n[]\n\n\xff\n' + b"[" * 100_000 + b"\n{}\n")
    assert [end.status for end in unverified_ends(tmp_path / RECORD)] == ["unverified"] * 5


def test_long_feedback_is_cut_and_odd_characters_are_kept_out(tmp_path: Path) -> None:
    append_row(row(feedback="x" * 1_000_000), tmp_path / RECORD)
    append_row(row(feedback="half \ud800 \n line"), tmp_path / RECORD)
    assert (tmp_path / RECORD).stat().st_size < 5000
    assert len(lines(tmp_path)) == 2


def test_an_end_in_several_records_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "person"))
    project, other = tmp_path / "project", tmp_path / "other"
    temporary = tmp_path / "temporary" / RECORD
    append_row(row("incomplete", "e1"), temporary, *records_of_person(project))
    append_row(row("capped"), *records_of_person(project))
    append_row(row("capped"), *records_of_person(other))
    found = ends_by_record(project, tmp_path / "none" / RECORD, temporary)
    assert [(path, [end.status for end in ends]) for path, ends in found.items()] == [
        (temporary, ["incomplete"]),
        (records_of_person(project)[0], ["capped"]),
    ]


def test_two_ends_of_the_same_second_that_read_the_same_are_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "person"))
    here, elsewhere = tmp_path / "here" / RECORD, tmp_path / "elsewhere" / RECORD
    append_row(row("incomplete", "e1"), here)
    elsewhere.parent.mkdir()
    elsewhere.write_bytes(here.read_bytes() + here.read_bytes().replace(b'"e1"', b'"e2"'))
    found = ends_by_record(tmp_path, here, elsewhere)
    assert [(path, len(ends)) for path, ends in found.items()] == [(here, 1), (elsewhere, 1)]


def test_an_end_is_recorded_where_it_can_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    append_row(row(), tmp_path / "file" / RECORD, tmp_path / RECORD)
    assert len(unverified_ends(tmp_path / RECORD)) == 1
    with pytest.raises(OSError, match="file"):
        append_row(row(), tmp_path / "file" / RECORD)
