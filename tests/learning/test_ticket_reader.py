"""Tickets by their keys, from files of any size: what stays in memory is where they stand."""

from __future__ import annotations

import json
import random
import tracemalloc
from pathlib import Path

import pytest
from learning_kit import mission_in, row

from donewhen.judging.ticket import TicketError
from donewhen.learning.measuring.ticket_reader import TicketReader
from sentences import assert_sentences


def test_every_ticket_is_found_by_its_key_whichever_file_it_is_in(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, [], 'tickets = ["b.jsonl", "a.jsonl"]\n')
    rows = [row(f"QC-{at}", "fail" if at % 3 else "pass", f"text {at} é") for at in range(60)]
    for name, some in (("b.jsonl", rows[:25]), ("a.jsonl", rows[25:])):
        lines = (json.dumps(item, ensure_ascii=bool(at % 2)) + "\n" * (1 + at % 3) for at, item in enumerate(some))
        (tmp_path / name).write_text("".join(lines), encoding="utf-8")
    book = TicketReader(mission)
    assert [member.group for member in book.members] == [row["group_id"] for row in rows]
    keys = [member.key for member in book.members]
    random.Random(1).shuffle(keys)
    for _ in range(2):
        for key, ticket in zip(keys, book.tickets(keys), strict=True):
            assert ticket.key == key
            assert ticket.text == f"text {ticket.group_id[3:]} é"
    for unknown in ("", "QC-1::perhaps", "QC-999::pass", "zzz"):
        with pytest.raises(KeyError):
            book.ticket(unknown)


def test_a_ticket_that_comes_twice_is_named_with_both_places(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, [], 'tickets = ["a.jsonl", "b.jsonl"]\n')
    for name in ("a.jsonl", "b.jsonl"):
        (tmp_path / name).write_text(json.dumps(row("QC-1", "pass", "text")) + "\n")
    with pytest.raises(TicketError) as caught:
        TicketReader(mission)
    assert_sentences(caught.value)


def test_a_file_that_was_changed_meanwhile_is_noticed(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, [row("QC-1", "pass", "text"), row("QC-2", "pass", "text")])
    book = TicketReader(mission)
    mission.ticket_files[0].write_text("".join(json.dumps(row(f"QC-{at}", "pass", "text")) + "\n" for at in (2, 1)))
    with pytest.raises(TicketError) as caught:
        book.ticket("QC-1::pass")
    assert_sentences(caught.value)


def test_of_texts_no_more_is_kept_than_a_certain_number_of_characters(tmp_path: Path) -> None:
    count, size = 300, 100_000
    book = TicketReader(mission_in(tmp_path, (row(f"QC-{at}", "pass", "x" * size) for at in range(count))))
    keys = [member.key for member in book.members]
    tracemalloc.start()
    try:
        assert sum(len(ticket.text) for ticket in book.tickets(keys)) == count * size
        kept = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert kept < count * size / 2
    assert book.ticket(keys[-1]) is book.ticket(keys[-1])


def test_a_ticket_that_is_not_read_takes_a_few_hundred_bytes(tmp_path: Path) -> None:
    def taken(count: int) -> int:
        mission = mission_in(tmp_path / str(count), (row(f"QC-{at}", "pass", f"{at}" * 300) for at in range(count)))
        tracemalloc.start()
        try:
            book = TicketReader(mission)
            assert len(book.members) == count
            return tracemalloc.get_traced_memory()[0]
        finally:
            tracemalloc.stop()

    taken(10)
    assert taken(6000) - taken(1000) < 5000 * 450
