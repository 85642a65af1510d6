"""Tickets come line by line, and whatever is wrong with one is said with its file and line."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from judging_kit import line, write_lines

from donewhen.foundation.disk_dict import DiskDict
from donewhen.judging.ticket import (
    Ticket,
    TicketError,
    parse_ticket,
    read_each_line,
    read_tickets,
    ticket_of,
    tickets_from_lines,
)
from sentences import assert_sentences


def read(path: Path, **options: Any) -> list[Ticket]:
    return list(read_tickets([path], "cabinets", **options))


def refused(row: Any, *, labelled: bool = True) -> TicketError:
    content = row if isinstance(row, bytes | str) else json.dumps(row)
    with pytest.raises(TicketError) as caught:
        parse_ticket(content, "tickets.jsonl:7", "cabinets", labelled=labelled)
    assert caught.value.where == "tickets.jsonl:7"
    assert caught.value.exit_code == 2
    return caught.value


def test_a_ticket_has_all_that_its_line_says(tmp_path: Path) -> None:
    row = {
        "group_id": "QC-1",
        "mission": "cabinets",
        "label": "fail",
        "per_image": {"image_1": "an open door", "image_2": "没有封条"},
        "label_source": "ada",
        "label_timestamp": "2026-02-14",
        "cluster": "site 4",
        "something_else": 1,
    }
    assert read(write_lines(tmp_path / "t.jsonl", row)) == [
        Ticket(
            "QC-1",
            "cabinets",
            "fail",
            {"image_1": "an open door", "image_2": "没有封条"},
            "site 4",
            "ada",
            "2026-02-14",
        )
    ]


def test_the_key_is_group_and_label() -> None:
    found = ticket_of(line("QC-1", "fail"), "", "cabinets")
    assert found.key == "QC-1::fail"
    assert found._replace(label=None).key == "QC-1"


def test_the_cluster_is_the_group_unless_it_is_said() -> None:
    assert ticket_of(line("QC-1"), "", "cabinets").cluster == "QC-1"
    assert ticket_of(line("QC-1", cluster="c"), "", "cabinets").cluster == "c"


def test_evidence_comes_as_images_as_names_or_as_a_text_and_also_together() -> None:
    rows = {"per_image": {"image_1": "a"}, "evidence": {"log": "b", "diff": "c"}, "text": "d"}
    bare = {name: value for name, value in line().items() if name != "text"}
    for name, value in rows.items():
        expected = {"text": "d"} if name == "text" else value
        assert ticket_of({**bare, name: value}, "", "cabinets").evidence == expected
    found = ticket_of({**bare, **rows}, "", "cabinets")
    assert list(found.evidence.items()) == [("image_1", "a"), ("log", "b"), ("diff", "c"), ("text", "d")]
    assert found.text == "a\n\nb\n\nc\n\nd"


def test_the_order_of_the_evidence_is_the_order_in_the_file() -> None:
    names = [f"image_{number}" for number in (2, 10, 1)]
    found = parse_ticket(json.dumps(line(text=None, per_image=dict.fromkeys(names, "x"))), "", "cabinets")
    assert list(found.evidence) == names


@pytest.mark.parametrize(
    "fields",
    [
        {"text": ""},
        {"text": None},
        {"text": " \n"},
        {"text": None, "evidence": {}},
        {"text": None, "per_image": {"image_1": " "}},
        {"text": 5},
        {"text": ["a"]},
        {"per_image": ["a"]},
        {"per_image": "a"},
        {"evidence": {"log": 5}},
        {"evidence": {"log": None}},
        {"evidence": {"a": "x", "text": "y"}},
        {"evidence": {"a": "x", "b": "x"}, "per_image": {"b": "y"}},
    ],
)
def test_evidence_that_is_missing_or_misshapen_is_an_error(fields: dict[str, Any]) -> None:
    assert_sentences(refused(line(**fields)).message)


@pytest.mark.parametrize(
    "group",
    [None, 5, "", "  ", "QC::1", "QC-1::pass", "x" * 201, ["QC-1"], "a\nb", "a\tb", "a\u200bb", "a\ud800", "\x1b[1m"],
)
def test_a_group_is_a_short_name_that_makes_no_key_ambiguous(group: Any) -> None:
    assert "group_id" in refused(line(group)).message


def test_a_group_may_have_colons_and_other_letters() -> None:
    for group in ("a:b", "x" * 200, "质检-1", "a b", "é"):
        assert ticket_of(line(group), "", "cabinets").group_id == group


@pytest.mark.parametrize(
    "label",
    [
        None,
        "",
        "PASS",
        "通过",
        True,
        1,
        ["pass"],
        {"pass": 1},
    ],
)
def test_a_label_is_pass_or_fail_and_nothing_else(label: Any) -> None:
    error = refused(line(label=label))
    assert_sentences(error.message)
    assert_sentences(error.next_step)


def test_a_missing_label_is_an_error_unless_tickets_are_only_judged() -> None:
    row = line()
    del row["label"]
    assert_sentences(refused(row).message)
    found = parse_ticket(json.dumps(row), "", "cabinets", labelled=False)
    assert (found.label, found.key) == (None, "QC-1")
    assert parse_ticket(json.dumps(row | {"label": "fail"}), "", "cabinets", labelled=False).label == "fail"
    assert_sentences(refused(row | {"label": "maybe"}, labelled=False).message)


def test_labels_are_asked_for_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    row = {"group_id": "QC-1", "mission": "cabinets", "text": "x"}
    path = write_lines(tmp_path / "t.jsonl", row)
    with pytest.raises(TicketError) as caught:
        parse_ticket(json.dumps(row), "", "cabinets")
    assert_sentences(caught.value)
    with pytest.raises(TicketError) as caught:
        ticket_of(row, "", "cabinets")
    assert_sentences(caught.value)
    with pytest.raises(TicketError) as caught:
        list(read_tickets([path], "cabinets"))
    assert_sentences(caught.value)
    assert [type(ticket) for ticket in read_each_line([path], "cabinets")] == [TicketError]
    assert [type(ticket) for ticket in tickets_from_lines([path.read_bytes()], "t", "cabinets", {})] == [TicketError]
    assert [ticket.label for ticket in read_tickets([path], "cabinets", labelled=False)] == [None]
    assert [type(ticket) for ticket in read_each_line([path], "cabinets", labelled=False)] == [Ticket]


@pytest.mark.parametrize("mission", ["shelves", None, 5])
def test_a_ticket_of_another_mission_is_an_error(mission: Any) -> None:
    error = refused(line(mission=mission))
    assert "'cabinets'" in str(error.next_step)
    assert_sentences(error.message)


def test_a_ticket_that_is_only_judged_need_not_name_its_mission_but_not_another() -> None:
    row = line()
    del row["mission"]
    assert parse_ticket(json.dumps(row), "", "cabinets", labelled=False).mission == "cabinets"
    assert_sentences(refused(row).message)
    assert "shelves" in refused(line(mission="shelves"), labelled=False).message


@pytest.mark.parametrize(
    "fields",
    [
        {"cluster": ""},
        {"cluster": 5},
        {"cluster": None},
        {"cluster": "a\nb"},
        {"cluster": "\ud800"},
        {"label_source": 5},
        {"label_timestamp": 5},
    ],
)
def test_what_is_optional_is_still_checked(fields: dict[str, Any]) -> None:
    assert next(iter(fields)) in refused(line(**fields)).message


@pytest.mark.parametrize(
    "content",
    [
        b'{"group_id": "QC-1", "mission": "cab',
        b'{"group_id": "QC-1",',
        b"group_id,label",
        b'{"group_id": "QC-1"} {}',
        b"[" * 100_000,
        b'{"x": ' + b"1" * 5000 + b"}",
        b'["QC-1"]',
        b'"QC-1"',
        b"null",
    ],
    ids=["half", "cut", "csv", "two", "deep", "huge number", "list", "text", "null"],
)
def test_a_line_that_is_no_object_is_an_error(content: bytes) -> None:
    assert_sentences(refused(content).message)


@pytest.mark.parametrize("bad", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80"])
def test_bytes_that_are_no_utf8_are_an_error(bad: bytes) -> None:
    row = json.dumps(line(text="xx")).encode().replace(b"xx", b"x" + bad + b"x")
    assert_sentences(refused(row).message)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32"])
def test_no_encoding_is_guessed(encoding: str) -> None:
    assert_sentences(refused(json.dumps(line()).encode(encoding)).message)


def test_a_byte_order_mark_at_the_start_of_a_file_is_none_of_its_content(tmp_path: Path) -> None:
    content = b"\xef\xbb\xbf" + json.dumps(line()).encode()
    assert [ticket.key for ticket in read(write_lines(tmp_path / "t.jsonl", content))] == ["QC-1::pass"]


@pytest.mark.parametrize(
    "doubled",
    [
        '{"group_id": "QC-1", "mission": "cabinets", "label": "pass", "label": "fail", "text": "x"}',
        '{"group_id": "QC-1", "mission": "cabinets", "label": "pass", "per_image": {"image_1": "a", "image_1": "b"}}',
    ],
)
def test_a_name_that_stands_there_twice_is_an_error_because_one_would_be_lost(doubled: str) -> None:
    assert_sentences(refused(doubled).message)


def test_every_error_names_its_file_and_its_line_and_reading_goes_on(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "one.jsonl", line("QC-1"), "", "  ", "{", line("QC-2"), line("QC-3", "maybe"))
    two = write_lines(tmp_path / "two.jsonl", b"\xff", line("QC-4"), line("QC-2"))
    found = list(read_each_line([first, two], "cabinets"))
    assert [item.key if isinstance(item, Ticket) else item.where for item in found] == [
        "QC-1::pass",
        f"{first}:4",
        "QC-2::pass",
        f"{first}:6",
        f"{two}:1",
        "QC-4::pass",
        f"{two}:3",
    ]


def test_the_first_bad_line_ends_the_reading_of_tickets(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", line("QC-1"), line("QC-2", "maybe"), line("QC-3"))
    tickets = read_tickets([path], "cabinets")
    assert next(tickets).group_id == "QC-1"
    with pytest.raises(TicketError) as caught:
        next(tickets)
    assert caught.value.where == f"{path}:2"


def test_a_group_with_both_labels_is_two_tickets(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", line("QC-1", "pass"), line("QC-1", "fail"))
    assert [ticket.key for ticket in read(path)] == ["QC-1::pass", "QC-1::fail"]


@pytest.mark.parametrize("change", [{}, {"text": "other evidence"}, {"cluster": "other"}])
def test_the_same_group_with_the_same_label_is_an_error_that_names_both_places(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    path = write_lines(tmp_path / "t.jsonl", line("QC-1"), line("QC-2"), line("QC-1", **change))
    with pytest.raises(TicketError) as caught:
        read(path)
    assert_sentences(caught.value)
    assert caught.value.where == f"{path}:3"
    assert f"{path}:1" in str(caught.value.message)


def test_a_duplicate_is_found_across_files_and_also_without_labels(tmp_path: Path) -> None:
    first = write_lines(tmp_path / "one.jsonl", line("QC-1"))
    two = write_lines(tmp_path / "two.jsonl", line("QC-2"), line("QC-1"))
    with pytest.raises(TicketError) as caught:
        list(read_tickets([first, two], "cabinets"))
    assert (caught.value.where, f"{first}:1" in str(caught.value.message)) == (f"{two}:2", True)
    bare = {"group_id": "QC-1", "text": "x"}
    with pytest.raises(TicketError) as caught:
        read(write_lines(tmp_path / "three.jsonl", bare, bare), labelled=False)
    assert_sentences(caught.value)


def test_a_line_that_was_refused_is_not_the_first_of_two(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "t.jsonl", line("QC-1", text=""), line("QC-1"))
    assert [isinstance(ticket, Ticket) for ticket in read_each_line([path], "cabinets")] == [False, True]


def test_a_file_that_can_not_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    good = write_lines(tmp_path / "good.jsonl", line())
    missing, folder = tmp_path / "missing.jsonl", tmp_path / "folder"
    folder.mkdir()
    found = list(read_each_line([missing, folder, good], "cabinets"))
    assert str(missing) in "\n".join([str(ticket) for ticket in found[:2] if isinstance(ticket, TicketError)])
    assert str(os.strerror(2)) in "\n".join([str(ticket) for ticket in found[:2] if isinstance(ticket, TicketError)])
    assert str(folder) in "\n".join([str(ticket) for ticket in found[:2] if isinstance(ticket, TicketError)])
    assert str(os.strerror(21)) in "\n".join([str(ticket) for ticket in found[:2] if isinstance(ticket, TicketError)])
    assert_sentences([str(ticket) for ticket in found[:2] if isinstance(ticket, TicketError)])
    assert isinstance(found[2], Ticket)
    with pytest.raises(TicketError) as caught:
        read(missing)
    assert_sentences(caught.value)


@pytest.mark.parametrize("content", [b"", b"\n\n", b" \r\n"])
def test_a_file_with_nothing_in_it_has_no_tickets(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    assert read(path) == []


def test_windows_line_ends_and_a_missing_last_one_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(json.dumps(line("QC-1")).encode() + b"\r\n" + json.dumps(line("QC-2")).encode())
    assert [ticket.group_id for ticket in read(path)] == ["QC-1", "QC-2"]


def test_line_separators_inside_of_a_text_are_no_line_ends(tmp_path: Path) -> None:
    text = "one\u2028two\x85three\x0bfour"
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(line(text=text), ensure_ascii=False).replace("\x0b", "\\u000b") + "\n", encoding="utf-8")
    assert read(path)[0].text == text


def test_lines_may_come_from_anywhere() -> None:
    lines = [json.dumps(line("QC-1")).encode(), b"{"]
    with DiskDict() as seen:
        found = list(tickets_from_lines(lines, "<stdin>", "cabinets", seen))
        again = list(tickets_from_lines(lines[:1], "<stdin>", "cabinets", seen))
    assert isinstance(found[0], Ticket)
    assert isinstance(found[1], TicketError)
    assert found[1].where == "<stdin>:2"
    assert isinstance(again[0], TicketError)
    assert_sentences(again[0].next_step)


def test_a_long_or_strange_value_does_not_flood_the_message() -> None:
    assert len(refused(line(label="x" * 10_000)).message) < 200
    assert len(refused(line(mission="\x1b[31m" + "x" * 10_000)).message) < 200
    assert "\x1b" not in str(refused(line(mission="\x1b[31mred")))


def test_reading_needs_no_more_memory_for_texts_than_for_one_of_them(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    size, count = 20_000, 1_000
    with path.open("w") as file:
        for number in range(count):
            file.write(json.dumps(line(f"QC-{number}", text="x" * size)) + "\n")

    def drained(tickets: Iterator[Ticket]) -> int:
        return sum(1 for _ in tickets)

    tracemalloc.start()
    try:
        assert drained(read_tickets([path], "cabinets")) == count
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < size * count / 10
