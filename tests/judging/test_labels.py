"""What people have said about tickets: a log that only grows, and the tickets that it comes to."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import label, said, write_mission

from donewhen.judging.labels import (
    LABELLED,
    LOG,
    JudgeStatement,
    add_label,
    current_labels,
    label_for,
    labelled_tickets,
    read_label_log,
    ticket_hash,
    update_tickets,
)
from donewhen.judging.mission import check_mission, read_mission
from donewhen.judging.ticket import Ticket, TicketError
from donewhen.learning.measuring.ticket_reader import TicketReader
from sentences import assert_sentences

SHIPPED = [
    {"group_id": "A", "label": "pass", "text": "what A shows"},
    {"group_id": "B", "label": "fail", "text": "what B shows"},
]

_LABELLER = """
import sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from court_kit import label
from donewhen.judging.labels import add_label
for number in range(25):
    add_label(Path(sys.argv[2]), "reports", label(f"{sys.argv[3]}-{number}", "pass", sys.argv[3]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_mission(tmp_path / "reports", tickets=SHIPPED)


def give(folder: Path, *labels: object) -> None:
    for given in labels:
        add_label(folder, "reports", given)  # type: ignore[arg-type]


def rows(folder: Path) -> list[tuple[str, str, str]]:
    """The tickets that people's labels come to: group, label, who."""
    lines = (folder / LABELLED).read_text().splitlines()
    return [(record["group_id"], record["label"], record["label_source"]) for record in map(json.loads, lines)]


def learnable(folder: Path) -> dict[str, str]:
    """The tickets that a learner reads, with who labelled them."""
    return {ticket.key: ticket.label_source for ticket in read_mission(folder).tickets()}


# The log


def test_a_label_is_on_record_with_all_that_belongs_to_it(folder: Path) -> None:
    ticket = Ticket("WI-1.AC-1.x", "reports", None, {"output": "text"}, "WI-1")
    given = label_for(ticket, "fail", "ada", "2026-02-14T10:00:00Z", reason="no date", asked="disputed", entry="sha")
    give(folder, given)
    (found,) = read_label_log(folder)
    assert found == given
    assert (found.cluster, dict(found.evidence), found.entry) == ("WI-1", {"output": "text"}, "sha")


def test_a_log_that_is_not_there_has_nothing_in_it(folder: Path) -> None:
    assert read_label_log(folder) == ()
    update_tickets(folder, "reports")
    assert not (folder / LABELLED).exists()


def test_labels_are_only_ever_added(folder: Path) -> None:
    give(folder, label("A", "pass"))
    before = (folder / LOG).read_bytes()
    give(folder, label("A", "fail"), label("B", "pass"))
    assert (folder / LOG).read_bytes().startswith(before)
    assert len(read_label_log(folder)) == 3


def test_half_a_line_at_the_end_was_never_given_and_spoils_nothing(folder: Path) -> None:
    give(folder, label("A", "pass"))
    with (folder / LOG).open("ab") as file:
        file.write(b'{"group_id": "B", "lab')
    assert [label.group_id for label in read_label_log(folder)] == ["A"]
    give(folder, label("C", "fail"))
    assert [label.group_id for label in read_label_log(folder)] == ["A", "C"]


def test_a_whole_label_that_lacks_only_the_end_of_its_line_is_not_lost(folder: Path) -> None:
    give(folder, label("A", "pass"), label("B", "fail"))
    path = folder / LOG
    path.write_bytes(path.read_bytes().removesuffix(b"\n"))
    assert [label.group_id for label in read_label_log(folder)] == ["A", "B"]
    give(folder, label("C", "pass"))
    assert [label.group_id for label in read_label_log(folder)] == ["A", "B", "C"]


@pytest.mark.parametrize(
    "line",
    [b"not JSON", b'{"group_id": "B"}', b'{"group_id":"B","label":"maybe","by":"a","at":"x"}', b"\xff\xfe", b"[]"],
)
def test_a_line_in_the_middle_that_is_no_label_is_an_error_with_its_place(folder: Path, line: bytes) -> None:
    give(folder, label("A", "pass"), label("B", "fail"))
    path = folder / LOG
    first, second, _ = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([first, line, second, b""]))
    for read in (lambda: read_label_log(folder), lambda: learnable(folder), lambda: give(folder, label("C", "pass"))):
        with pytest.raises(TicketError) as caught:
            read()
        assert_sentences(caught.value)
        assert caught.value.where == f"{path}:2"


def test_a_broken_log_is_a_problem_of_the_mission_like_others(folder: Path) -> None:
    (folder / LOG).write_text("not JSON\n\n")
    (problem,) = [problem for problem in check_mission(folder).problems if "not a label" in str(problem)]
    assert problem.where == f"{folder / LOG}:1"


def test_a_log_that_can_not_be_read_is_an_error_with_its_place(folder: Path) -> None:
    (folder / LOG).mkdir()
    with pytest.raises(TicketError) as caught:
        read_label_log(folder)
    assert_sentences(caught.value)
    assert caught.value.where == str(folder / LOG)


def test_two_processes_that_label_at_once_lose_nothing(folder: Path) -> None:
    kit = str(Path(__file__).parents[1] / "review")
    running = [
        subprocess.Popen([sys.executable, "-c", _LABELLER, kit, str(folder), name]) for name in ("ada", "ben", "cem")
    ]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert len(read_label_log(folder)) == 75
    assert len({label.group_id for label in read_label_log(folder)}) == 75
    assert len(rows(folder)) == 75


# What holds


def test_the_last_word_of_each_person_holds(folder: Path) -> None:
    give(folder, label("A", "pass"), label("A", "fail", "ben"), label("A", "fail"))
    status = current_labels(read_label_log(folder))["A"]
    assert {by: label.label for by, label in status.items()} == {"ben": "fail", "ada": "fail"}
    assert list(status) == ["ben", "ada"]


def test_two_people_who_agree_make_one_ticket_and_two_who_differ_make_two(folder: Path) -> None:
    give(folder, label("A", "pass"), label("A", "pass", "ben"), label("B", "pass"), label("B", "fail", "ben"))
    assert rows(folder) == [("A", "pass", "ada, ben"), ("B", "pass", "ada"), ("B", "fail", "ben")]
    assert set(learnable(folder)) == {"A::pass", "B::pass", "B::fail"}


def test_somebody_who_comes_round_leaves_one_ticket(folder: Path) -> None:
    give(folder, label("B", "pass"), label("B", "fail", "ben"), label("B", "fail"))
    assert rows(folder) == [("B", "fail", "ben, ada")]


def test_a_ticket_of_a_review_has_what_the_learner_needs(folder: Path) -> None:
    give(folder, label("C", "fail", cluster="job-1", said=said("pass")))
    (row,) = labelled_tickets(read_label_log(folder), "reports")
    assert row == {
        "group_id": "C",
        "mission": "reports",
        "label": "fail",
        "evidence": {"text": "what C shows"},
        "cluster": "job-1",
        "label_source": "ada",
        "label_timestamp": "2026-02-14T10:00:00Z",
    }
    assert [ticket.cluster for ticket in read_mission(folder).tickets()][-1] == "job-1"


def test_what_a_person_says_supersedes_what_the_file_said_of_the_same_work(folder: Path) -> None:
    give(folder, label("A", "fail"))
    assert learnable(folder) == {"B::fail": "", "A::fail": "ada"}
    give(folder, label("A", "pass"))
    assert learnable(folder) == {"B::fail": "", "A::pass": "ada"}


def test_the_learner_reads_what_people_said(folder: Path) -> None:
    give(folder, label("A", "fail"), label("C", "pass"))
    book = TicketReader(read_mission(folder))
    assert {member.key for member in book.members} == {"B::fail", "A::fail", "C::pass"}
    check = check_mission(folder)
    assert (check.passes, check.fails, check.problems) == (1, 2, ())


def test_no_ticket_is_dropped_because_a_label_has_not_come_that_far(folder: Path) -> None:
    """Between the log and the tickets somebody can be killed, and the tickets can be lost."""
    give(folder, label("A", "fail"))
    (folder / LABELLED).unlink()
    assert learnable(folder) == {"A::pass": "", "B::fail": ""}
    update_tickets(folder, "reports")
    assert learnable(folder) == {"B::fail": "", "A::fail": "ada"}


def test_bringing_up_to_date_writes_nothing_where_nothing_is_behind(folder: Path) -> None:
    give(folder, label("A", "fail"))
    before = (folder / LABELLED).stat().st_ino
    update_tickets(folder, "reports")
    assert (folder / LABELLED).stat().st_ino == before


def test_a_broken_line_of_the_tickets_is_told_by_who_reads_them(folder: Path) -> None:
    give(folder, label("A", "fail"))
    path = folder / LABELLED
    path.write_text(path.read_text() + "not JSON\n")
    with pytest.raises(TicketError) as caught:
        learnable(folder)
    assert_sentences(caught.value)
    assert caught.value.where == f"{path}:2"


# The parts


def test_what_a_ticket_shows_has_one_name_whoever_labels_it() -> None:
    ticket = Ticket("A", "reports", None, {"a": "1", "b": "2"}, "A")
    assert ticket_hash(ticket) == ticket_hash(
        ticket._replace(group_id="B", label="pass", cluster="C", label_source="x")
    )
    assert ticket_hash(ticket) != ticket_hash(ticket._replace(evidence={"a": "1", "b": "3"}))
    assert ticket_hash(ticket) != ticket_hash(ticket._replace(mission="other"))


def test_the_agreement_of_votes_counts_those_that_could_not_be_used() -> None:
    assert said("pass", 2, 1).agreement == pytest.approx(2 / 3)
    assert said(None, 0, 0).agreement == 0.0
    assert JudgeStatement(verdict="pass", passes=1, fails=0, malformed=2).agreement == pytest.approx(1 / 3)
