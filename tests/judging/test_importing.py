"""Tickets from tables and folders: what is guessed, what is refused, and that nothing gets lost on the way."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from donewhen.foundation.errors import UsageError
from donewhen.judging.mission import check_mission
from donewhen.judging.mission_settings import DEFAULT_SAMPLERS, ManualReview, Split, Trial
from donewhen.judging.ticket import Ticket, TicketError
from donewhen.missions.new_mission import create_mission
from donewhen.missions.table_import import (
    ColumnChoices,
    ColumnReading,
    ImportPreview,
    import_tickets,
    preview_import,
    read_columns,
    verdict_values,
)
from donewhen.missions.table_sources import SkippedRow, SourceRow, find_source
from donewhen.models.contrast import default_rule
from sentences import assert_sentences


def looked_at(path: Path, wishes: ColumnChoices | None = None) -> tuple[ColumnReading, ImportPreview]:
    source = find_source(path)
    understood = read_columns(source, wishes or ColumnChoices())
    return understood, preview_import(source, understood, "m")


def tickets_of(path: Path, wishes: ColumnChoices | None = None) -> list[Ticket]:
    source = find_source(path)
    found = list(import_tickets(source, read_columns(source, wishes or ColumnChoices()), "m"))
    assert all(isinstance(ticket, Ticket) for ticket in found)
    return [ticket for ticket in found if isinstance(ticket, Ticket)]


def refused(path: Path, wishes: ColumnChoices | None = None) -> list[str]:
    try:
        _, seen = looked_at(path, wishes)
    except TicketError as error:
        return [str(error)]
    return [str(problem) for problem in seen.problems]


def test_a_table_is_understood_by_the_names_of_its_columns(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("Ticket ID,Body,Decision,Author\nQ1,It works,ok,ann\nQ2,It does not,nok,bob\n")
    understood, seen = looked_at(table)
    assert (understood.label, understood.texts, understood.group) == ("Decision", ("Body",), "Ticket ID")
    assert understood.values == {"ok": "pass", "nok": "fail"}
    assert understood.unused == ("Author",)
    assert understood.guessed == {"label", "text", "group", "values"}
    assert seen.problems == ()
    assert [(ticket.key, ticket.text) for ticket in tickets_of(table)] == [
        ("Q1::pass", "It works"),
        ("Q2::fail", "It does not"),
    ]


def test_without_telling_names_the_label_is_the_column_of_verdict_words_and_the_text_the_longest(
    tmp_path: Path,
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y,z\nshort,a long and winding text,yes\nwords,another text of some length,no\n")
    understood, _ = looked_at(table)
    assert (understood.label, understood.texts, understood.group) == ("z", ("y",), None)


def test_two_columns_that_could_be_the_label_are_for_a_person_to_tell_apart(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("x,y,z\nyes,some text,no\nno,other text,yes\n")
    with pytest.raises(TicketError) as caught:
        looked_at(table)
    assert_sentences(caught.value)
    assert "--label-column to one of 'x', 'y', 'z'" in str(caught.value)
    understood, _ = looked_at(table, ColumnChoices(label="z"))
    assert understood.values == {"no": "fail", "yes": "pass"}


def test_what_the_caller_says_goes_before_what_could_be_guessed(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,text,label,other,part,who\n1,a,pass,0,left,x\n2,b,pass,1,right,y\n")
    wishes = ColumnChoices("other", ("text", "part"), "who", "id", ("0",), ("1",))
    understood, seen = looked_at(table, wishes)
    assert understood.guessed == set()
    assert seen.problems == ()
    first, second = tickets_of(table, wishes)
    assert (first.key, first.cluster, dict(first.evidence)) == ("x::pass", "1", {"text": "a", "part": "left"})
    assert second.key == "y::fail"


@pytest.mark.parametrize(
    ("values", "passes", "fails", "expected"),
    [
        (["1", "0"], (), (), {"1": "pass", "0": "fail"}),
        (["通过", "不通过"], (), (), {"通过": "pass", "不通过": "fail"}),
        (["ＯＫ", " NOK "], (), (), {"ＯＫ": "pass", " NOK ": "fail"}),
        (["True", "FALSE", ""], (), (), {"True": "pass", "FALSE": "fail"}),
        (["refund", "keep"], ("refund",), (), {"refund": "pass", "keep": "fail"}),
        (["refund", "keep"], (), ("refund",), {"refund": "fail", "keep": "pass"}),
        (["refund", "keep", "maybe"], ("refund",), (), {"refund": "pass", "keep": None, "maybe": None}),
        (["0", "1"], ("0",), ("1",), {"0": "pass", "1": "fail"}),
        (["1", "2", "3"], (), (), {"1": "pass", "2": None, "3": None}),
    ],
)
def test_labels_are_understood_or_left_to_a_person(
    values: list[str], passes: tuple[str, ...], fails: tuple[str, ...], expected: dict[str, str | None]
) -> None:
    assert verdict_values(values, passes, fails) == expected


def test_a_value_can_not_mean_both() -> None:
    with pytest.raises(TicketError) as caught:
        verdict_values(["a", "b"], ("A",), ("a",))
    assert_sentences(caught.value)


def test_every_row_that_is_no_ticket_is_named_with_its_line(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    rows = ["id,text,label", "A,one,pass", 'B,"two', 'lines",fail', "C,three,maybe", "D,,fail", "E,four,", "F,five"]
    table.write_text("\n".join([*rows, "G::x,six,pass"]) + "\n")
    assert [line.partition(": ")[0] for line in refused(table)] == [f"{table}:{line}" for line in (5, 6, 7, 8, 9)]
    assert_sentences(refused(table))


def test_a_row_that_says_the_same_again_is_left_out_and_named_and_one_that_says_otherwise_is_refused(
    tmp_path: Path,
) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,text,label\nA,one,pass\nB,two,fail\nA,one,pass\nA,one,fail\nB,three,fail\n")
    _, seen = looked_at(table)
    assert seen.left_out == (SkippedRow(f"{table}:4", f"duplicate of {table}:2"),)
    assert [str(problem.where) for problem in seen.problems] == [f"{table}:6"]
    assert_sentences(seen.problems[0])
    assert (seen.counts, seen.both) == ({"pass": 1, "fail": 2}, 1)


def test_without_a_name_the_same_text_is_the_same_group_so_that_no_split_divides_it(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("text,label\nsame,pass\nother,pass\nsame,fail\n")
    found = tickets_of(table)
    assert [ticket.key for ticket in found] == ["line-2::pass", "line-3::pass", "line-2::fail"]
    assert found[0].cluster == found[2].cluster != found[1].cluster


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_tables_come_with_any_separator_a_byte_order_mark_and_windows_lines(tmp_path: Path, delimiter: str) -> None:
    table = tmp_path / "t.csv"
    lines = [delimiter.join(row) for row in (("id", "text", "label"), ("A", "né", "pass"), ("B", "二", "fail"))]
    table.write_bytes(b"\xef\xbb\xbf" + "\r\n".join(lines).encode() + b"\r\n")
    assert [(ticket.key, ticket.text) for ticket in tickets_of(table)] == [("A::pass", "né"), ("B::fail", "二")]


def test_a_line_in_another_encoding_is_named_and_the_others_are_still_looked_at(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_bytes("id,text,label\nA,caf\xe9,pass\nB,b,fail\nC,c,maybe\n".encode("latin-1"))
    first, second = refused(table)
    assert str(table) in first
    assert_sentences(first)
    assert second.startswith(f"{table}:4: 'maybe'")
    table.write_text("id,text,label\nA,a,pass\n", encoding="utf-16")
    assert "UTF-16" in refused(table)[0]


@pytest.mark.parametrize(
    "content",
    [
        "",
        "id,text,label\n",
        "\n\n",
        "label\npass\n",
        "id,text,label,text\nA,a,pass,b\n",
        'id,text,label\nA,"never closed,pass\nB,b,fail\n',
        "id,text,label\nA,a,pass\n",
    ],
)
def test_a_broken_table_says_how_it_is_broken(tmp_path: Path, content: str) -> None:
    table = tmp_path / "t.csv"
    table.write_text(content)
    assert_sentences(" ".join(refused(table)))


@pytest.mark.parametrize(
    "content",
    [
        '{"id": "A", "text": "a", "label": "pass"}\n{"id": "B", "te',
        '{"id": "A", "text": "a", "label": true}\n[1]\n',
        '[{"id": "A"}]',
        '{"id": "A", "text": {"a": 1}, "label": 1}\n',
        '{"id": "A", "evidence": {"a": 1}, "label": 1}\n',
        '{"id": "A", "text": "\\ud800", "label": 1}\n',
        '{"id": "A\\u001b[2J", "text": "a", "label": 1}\n',
        '{"id": "A", "text": "a", "label": 1, "mission": "x"}\n{"id": "B", "label": 0, "mission": "y"}',
    ],
)
def test_broken_lines_of_json_say_how_they_are_broken(tmp_path: Path, content: str) -> None:
    lines = tmp_path / "t.jsonl"
    lines.write_text(content)
    assert_sentences(" ".join(refused(lines)))


def test_lines_that_are_tickets_already_stay_what_they_are(tmp_path: Path) -> None:
    lines = tmp_path / "t.jsonl"
    rows = [
        {"group_id": "A", "mission": "old", "label": "pass", "per_image": {"image_1": "a"}, "label_source": "ann"},
        {"group_id": "A", "mission": "old", "label": "fail", "evidence": {"x": "b", "y": "c"}, "cluster": "k"},
        {"group_id": "B", "mission": "old", "label": "fail", "text": "d"},
    ]
    lines.write_text("\n".join(map(json.dumps, rows)))
    understood, seen = looked_at(lines)
    assert (understood.mission, understood.unused, seen.problems) == ("old", (), ())
    assert understood.guessed == set()
    first, second, third = tickets_of(lines)
    assert (first.key, dict(first.evidence), first.label_source) == ("A::pass", {"image_1": "a"}, "ann")
    assert (second.key, dict(second.evidence), second.cluster) == ("A::fail", {"x": "b", "y": "c"}, "k")
    assert dict(third.evidence) == {"text": "d"}


@pytest.mark.parametrize(
    "content",
    [
        "id,text,label\nA,a,1\nB,b,0\n",
        '{"id": "A", "text": "a", "label": 1.0}\n{"id": "B", "text": "b", "label": false}',
    ],
)
def test_a_file_whose_name_says_nothing_is_known_by_how_it_begins(tmp_path: Path, content: str) -> None:
    (tmp_path / "verdicts").write_text(content)
    assert [ticket.key for ticket in tickets_of(tmp_path / "verdicts")] == ["A::pass", "B::fail"]


@pytest.mark.parametrize(
    "wishes",
    [
        ColumnChoices(label="lable"),
        ColumnChoices(texts=("text", "body")),
        ColumnChoices(group="gruop"),
        ColumnChoices(cluster="k"),
        ColumnChoices(group="text"),
    ],
)
def test_a_column_that_is_not_there_is_said_with_those_that_are(tmp_path: Path, wishes: ColumnChoices) -> None:
    table = tmp_path / "t.csv"
    table.write_text("id,text,label\n,a,pass\n,b,fail\n")
    assert_sentences(refused(table, wishes))


def test_columns_may_be_named_in_another_case(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text("ID,Text,Label\nA,a,pass\nB,b,fail\n")
    understood, _ = looked_at(table, ColumnChoices(label="label", texts=("TEXT",), group="id"))
    assert (understood.label, understood.texts, understood.group) == ("Label", ("Text",), "ID")


def test_a_pipe_is_no_source_because_it_is_read_more_than_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(TicketError) as caught:
        find_source(tmp_path / "pipe.csv")
    assert_sentences(caught.value)


def folder_of(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, content in files.items():
        path = root / "texts" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return root / "texts"


def test_a_folder_of_folders_named_after_labels_is_read(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        {
            "ok/a.txt": "one",
            "nok/a.txt": "two",
            "nok/b/front.md": "three",
            "nok/b/back.md": "four",
            "nok/b/.draft": "five",
            "ok/.DS_Store": b"\0",
            ".git/config": "six",
        },
    )
    understood, seen = looked_at(folder)
    assert understood.values == {"nok": "fail", "ok": "pass"}
    hidden = (".git", "nok/b/.draft", "ok/.DS_Store")
    assert [case.where for case in seen.left_out] == [str(folder / name) for name in hidden]
    assert_sentences({case.why for case in seen.left_out})
    assert seen.problems == ()
    found = {
        ticket.key: dict(ticket.evidence)
        for ticket in import_tickets(find_source(folder), understood, "m")
        if isinstance(ticket, Ticket)
    }
    assert found == {
        "a.txt::fail": {"text": "two"},
        "b::fail": {"back.md": "four", "front.md": "three"},
        "a.txt::pass": {"text": "one"},
    }


def test_what_does_not_belong_into_a_folder_of_texts_is_named(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        {"pass/a.txt": "one", "fail/b.txt": "two", "fail/c.png": b"\x89PNG\xff", "maybe/d.txt": "x", "e.txt": "y"},
    )
    (folder / "pass" / "link.txt").symlink_to("/etc/hostname")
    (folder / "fail" / "empty").mkdir()
    os.mkfifo(folder / "pass" / "pipe")
    lines = refused(folder)
    assert len(lines) == 6
    for name in ("e.txt", "fail/c.png", "fail/empty", "maybe/d.txt", "pass/link.txt", "pass/pipe"):
        assert any(line.startswith(f"{folder / name}: ") for line in lines), name
    assert_sentences(sorted(lines))


def test_texts_with_a_table_of_labels_are_read_and_every_file_needs_its_row(tmp_path: Path) -> None:
    files = {"a.txt": "one", "sub/b.txt": "two", "labels.csv": "file,label,cluster\na.txt,1,k\nsub/b.txt,0,\n"}
    folder = folder_of(tmp_path, dict(files))
    assert [(ticket.key, ticket.text, ticket.cluster) for ticket in tickets_of(folder)] == [
        ("a.txt::pass", "one", "k"),
        ("sub/b.txt::fail", "two", "sub/b.txt"),
    ]
    (folder / "c.txt").write_text("three")
    with (folder / "labels.csv").open("a") as table:
        table.write("../../secret,1,\n/etc/hostname,0,\nmissing.txt,1,\n,1,\n")
    lines = refused(folder)
    labels = folder / "labels.csv"
    assert [line.partition(": ")[0] for line in lines] == [
        *(f"{labels}:{line}" for line in (4, 5, 6, 7)),
        str(folder / "c.txt"),
    ]
    assert_sentences(lines[0])
    assert_sentences(lines[2])


def test_a_new_mission_is_sound_and_its_comments_tell_the_defaults(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    table.write_text('id,text,label\nA,one,pass\nB,"two\nlines",fail\nC,three,fail\n')
    found = tickets_of(table)
    mission = create_mission(tmp_path / "new", "m", "en", found)
    checked = check_mission(tmp_path / "new")
    assert (checked.problems, checked.passes, checked.fails) == ((), 1, 2)
    assert list(mission.tickets()) == found
    assert mission.initial_guidance().rules == {"G0": default_rule("pass", "en")}
    text = (tmp_path / "new" / "mission.toml").read_text()
    uncommented = "\n".join(
        line.removeprefix("# ") for line in text.split("\n") if re.match(r"(?:# )?(?:\[|\w+ = )", line)
    )
    data = tomllib.loads(uncommented)
    assert data["verdict"] == {"pass": "pass", "fail": "fail"}
    assert [(sampler["temperature"], sampler["samples"]) for sampler in data["sampler"]] == [
        (sampler.temperature, sampler.samples) for sampler in DEFAULT_SAMPLERS
    ]
    assert data["manual_review"]["min_verdict_agreement"] == ManualReview().min_verdict_agreement
    assert data["trial"]["min_tickets"] == Trial().min_tickets
    assert data["split"] == {item: getattr(Split(), item) for item in ("train", "validation", "test")}


def test_the_first_rule_is_in_the_language_of_the_mission(tmp_path: Path) -> None:
    ticket = Ticket("A", "退款", "pass", {"text": "x"}, "A")
    mission = create_mission(tmp_path / "zh", "退款", "zh", [ticket])
    assert mission.initial_guidance().rules == {"G0": default_rule("pass", "zh")}


@pytest.mark.parametrize("name", ['quo"te', "back\\slash", "#[x]", "a = 1", "''' \"\"\"", "emoji 🎉", "名"])
def test_any_name_that_can_be_shown_survives_the_settings_file(tmp_path: Path, name: str) -> None:
    mission = create_mission(tmp_path / "m", name, "en", [Ticket("A", name, "pass", {"text": "x"}, "A")])
    assert mission.name == name


@pytest.mark.parametrize("name", ["", " ", "two\nlines", "\x1b[2J", "x" * 101, "a\u202eb", "\ud800"])
def test_a_name_that_can_not_be_shown_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError) as caught:
        create_mission(tmp_path / "m", name, "en", [])
    assert_sentences(caught.value)
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize("there", ["mission.toml", "tickets.jsonl", "initial_guidance.json", "guidance.json"])
def test_nothing_of_a_mission_is_written_over(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(UsageError) as caught:
        create_mission(tmp_path, "m", "en", [])
    assert_sentences(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_a_mission_that_can_not_be_finished_leaves_nothing_behind(tmp_path: Path) -> None:
    def breaking() -> object:
        yield Ticket("A", "m", "pass", {"text": "x"}, "A")
        raise TicketError("It broke.")

    with pytest.raises(TicketError, match="It broke"):
        create_mission(tmp_path / "m", "m", "en", breaking())  # type: ignore[arg-type]
    assert not (tmp_path / "m").exists()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "notes.txt").write_text("mine")
    with pytest.raises(TicketError, match="It broke"):
        create_mission(tmp_path / "kept", "m", "en", breaking())  # type: ignore[arg-type]
    assert [path.name for path in (tmp_path / "kept").iterdir()] == ["notes.txt"]


CELL = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(CELL, CELL, st.sampled_from(["ok", "nok", "?", ""])), min_size=1, max_size=8))
def test_every_row_of_any_table_ends_as_a_ticket_as_left_out_or_as_a_problem(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]
) -> None:
    written = io.StringIO()
    csv.writer(written).writerows([("id", "text", "label"), *rows])
    table = tmp_path_factory.mktemp("any") / "t.csv"
    table.write_bytes(written.getvalue().encode())
    source = find_source(table)
    read = [row for row in source.rows() if isinstance(row, SourceRow)]
    lines = [item for row in rows if any(part.strip() for part in row) for item in [row]]
    assert [tuple(row.fields.values()) for row in read] == lines
    if lines:
        outcomes = list(import_tickets(source, read_columns(source, ColumnChoices()), "m"))
        assert len(outcomes) == len(lines)
        for outcome, (name, text, label) in zip(outcomes, lines, strict=True):
            if isinstance(outcome, Ticket):
                assert (outcome.group_id, outcome.text) == (" ".join(name.split()), text)
                assert {"ok": "pass", "nok": "fail"}[label] == outcome.label
