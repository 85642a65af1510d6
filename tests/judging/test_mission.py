"""A mission is a folder, and a check of it goes on whatever it finds."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from judging_kit import RULES, Noon, line, mission_in, write_lines, write_mission

import donewhen.judging as judging
from donewhen.foundation.errors import ConfigError
from donewhen.judging.guidance import GuidanceChange, GuidanceError
from donewhen.judging.mission import check_mission, read_mission
from donewhen.judging.ticket import TicketError
from donewhen.models.roles import Decode
from sentences import assert_sentences


def test_a_mission_is_read_from_its_folder_or_from_its_file(tmp_path: Path) -> None:
    write_mission(tmp_path, name="cabinets")
    by_folder, by_file = read_mission(tmp_path), read_mission(tmp_path / "mission.toml")
    assert by_folder == by_file
    assert (by_folder.name, by_folder.folder) == ("cabinets", tmp_path)
    assert by_folder.ticket_files == (tmp_path / "tickets.jsonl",)
    assert [ticket.key for ticket in by_folder.tickets()] == ["QC-1::pass", "QC-2::fail"]


def test_a_folder_without_a_mission_says_how_to_begin_one(tmp_path: Path) -> None:
    for place in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigError) as caught:
            read_mission(place)
        assert_sentences(caught.value)
        assert caught.value.next_step == "donewhen mission init"


def test_a_mission_file_that_can_not_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "mission.toml"
    path.mkdir()
    with pytest.raises(ConfigError, match=os.strerror(21)) as caught:
        read_mission(tmp_path)
    assert caught.value.where == str(path)
    path.rmdir()
    path.write_bytes(b"mission = '\xff'")
    with pytest.raises(ConfigError) as caught:
        read_mission(tmp_path)
    assert_sentences(caught.value)
    path.write_text("mission = 'm'\nmission = 'n'\n")
    with pytest.raises(ConfigError) as caught:
        read_mission(tmp_path)
    assert_sentences(caught.value)


def test_the_decodes_are_the_grid_row_by_row(tmp_path: Path) -> None:
    assert mission_in(tmp_path).decodes == (Decode(0.1, 0), Decode(0.4, 0), Decode(0.7, 0))
    grid = "[[sampler]]\ntemperature = 0.5\nsamples = 2\n[[sampler]]\ntemperature = 0.2\n"
    assert mission_in(tmp_path, grid).decodes == (Decode(0.5, 0), Decode(0.5, 1), Decode(0.2, 0))


def test_no_two_decodes_are_the_same_question(tmp_path: Path) -> None:
    rows = "[[sampler]]\ntemperature = 0.5\nsamples = 2\n[[sampler]]\ntemperature = 1\n[[sampler]]\ntemperature = 0.5\n"
    decodes = mission_in(tmp_path, rows).decodes
    assert decodes == (Decode(0.5, 0), Decode(0.5, 1), Decode(1.0, 0), Decode(0.5, 2))


def test_the_guidance_is_what_was_learned_or_else_what_it_began_with(tmp_path: Path) -> None:
    mission = mission_in(tmp_path)
    assert mission.guidance() == mission.initial_guidance()
    assert mission.guidance().rules == RULES
    assert not mission.store.exists
    mission.store.seed(mission.initial_guidance())
    mission.store.apply(GuidanceChange(op="add", text="A seal that is torn: fail.", evidence=("QC-2::fail",)), "me")
    assert mission.guidance().rules == RULES | {"G1": "A seal that is torn: fail."}
    assert mission.initial_guidance().rules == RULES


def test_the_clock_of_a_mission_is_that_of_its_store(tmp_path: Path) -> None:
    mission = read_mission(write_mission(tmp_path), clock=Noon())
    mission.store.seed(mission.initial_guidance())
    after = mission.store.apply(
        GuidanceChange(op="update", key="G0", text="All of it.", evidence=("QC-1::pass",)), "me"
    )
    assert after.updated_at == "2026-02-14T12:00:00Z"


@pytest.mark.parametrize("name", ["../elsewhere.jsonl", "/etc/passwd", "a/../../b.jsonl"])
def test_no_file_of_a_mission_is_outside_of_it(tmp_path: Path, name: str) -> None:
    mission = mission_in(tmp_path, f'tickets = ["{name}"]\n')
    with pytest.raises(ConfigError) as caught:
        list(mission.tickets())
    assert_sentences(caught.value)
    assert caught.value.message.startswith("tickets: ")
    mission = mission_in(tmp_path, f'initial_guidance = "{name}"\n')
    with pytest.raises(ConfigError) as caught:
        mission.initial_guidance()
    assert_sentences(caught.value)


def test_several_files_of_tickets_are_one_after_the_other(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, 'tickets = ["b.jsonl", "more/a.jsonl"]\n')
    (tmp_path / "more").mkdir()
    write_lines(tmp_path / "more" / "a.jsonl", line("QC-1"))
    write_lines(tmp_path / "b.jsonl", line("QC-2"), line("QC-3"))
    assert [ticket.group_id for ticket in mission.tickets()] == ["QC-2", "QC-3", "QC-1"]


def test_a_check_of_a_good_mission_counts_what_is_in_it(tmp_path: Path) -> None:
    write_mission(tmp_path)
    rows = [line("QC-1", "pass"), line("QC-1", "fail"), line("QC-2", "pass"), line("QC-3", "pass", cluster="QC-2")]
    write_lines(tmp_path / "tickets.jsonl", *rows)
    found = check_mission(tmp_path)
    assert (found.passes, found.fails, found.clusters, found.problems) == (3, 1, 2, ())
    assert found.mission is not None
    assert found.guidance is not None
    assert found.guidance.rules == RULES


def test_a_check_names_every_problem_with_its_place(tmp_path: Path) -> None:
    write_mission(tmp_path, rules={"G1": "x"})
    path = write_lines(tmp_path / "tickets.jsonl", line("QC-1"), "{", line("QC-1"), line("QC-2", "maybe"))
    found = check_mission(tmp_path)
    assert (found.passes, found.fails, found.clusters, found.guidance) == (1, 0, 1, None)
    assert [problem.where for problem in found.problems] == [
        str(tmp_path / "initial_guidance.json"),
        f"{path}:2",
        f"{path}:3",
        f"{path}:4",
        "tickets.jsonl",
    ]
    assert_sentences(found.problems[-1].message)


def test_a_check_looks_at_the_learned_guidance_too(tmp_path: Path) -> None:
    write_mission(tmp_path)
    (tmp_path / "guidance.json").write_text("{")
    found = check_mission(tmp_path)
    assert [type(problem) for problem in found.problems] == [GuidanceError]
    assert str(found.problems[0].where).startswith(str(tmp_path / "guidance.json"))


@pytest.mark.parametrize("name", ["initial_guidance.json", "guidance.json"])
def test_a_check_sees_a_scaffold_that_was_edited_by_hand_in_either_file(tmp_path: Path, name: str) -> None:
    mission = mission_in(tmp_path)
    mission.store.seed(mission.initial_guidance())
    mission.store.apply(GuidanceChange(op="update", key="G0", text="All.", evidence=("QC-1::pass",)), "me")
    assert check_mission(tmp_path).problems == ()
    path = tmp_path / name
    path.write_text(path.read_text().replace("the whole cabinet", "anything"))
    (problem,) = check_mission(tmp_path).problems
    assert isinstance(problem, GuidanceError)
    assert "scaffold" in problem.message
    assert problem.where == str(tmp_path / "guidance.json")


def test_a_check_without_a_mission_or_with_tickets_elsewhere_has_problems(tmp_path: Path) -> None:
    found = check_mission(tmp_path)
    assert found._replace(problems=()) == (None, 0, 0, 0, None, ())
    assert len(found.problems) == 1
    write_mission(tmp_path, 'tickets = ["../t.jsonl"]\n')
    lines = [str(problem) for problem in check_mission(tmp_path).problems]
    assert len(lines) == 3
    assert_sentences(lines)
    write_mission(tmp_path, "tickets = []\n")
    assert len(check_mission(tmp_path).problems) == 2


@pytest.mark.parametrize("label", ["pass", "fail"])
def test_labels_of_one_kind_alone_are_a_problem(tmp_path: Path, label: str) -> None:
    write_mission(tmp_path)
    write_lines(tmp_path / "tickets.jsonl", line("QC-1", label))
    problems = check_mission(tmp_path).problems
    assert [type(problem) for problem in problems] == [TicketError]
    assert ("fail" if label == "pass" else "pass") in problems[0].message
    assert_sentences(problems[0].message)


def test_initial_guidance_comes_as_rules_or_as_a_whole_file(tmp_path: Path) -> None:
    mission = mission_in(tmp_path)
    path = tmp_path / "initial_guidance.json"
    for data in (RULES, {"experiences": RULES}, {"cabinets": RULES}, {"cabinets": {"step": 3, "experiences": RULES}}):
        path.write_text(json.dumps(data))
        found = mission.initial_guidance()
        assert (found.rules, found.step, found.metadata) == (RULES, 0, {})


def test_the_room_has_all_the_names_that_it_promises() -> None:
    for name in judging.__all__:
        assert getattr(judging, name).__name__ == name
    assert sorted(judging.__all__) == judging.__all__
