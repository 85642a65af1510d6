"""Making and checking missions, as a person or a program meets it."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.models.contrast import default_rule
from sentences import assert_sentences

Run = Callable[..., subprocess.CompletedProcess[str]]

TABLE = "ticket,body,decision,author\nQ1,The receipt is there,ok,ann\nQ2,Nothing is there,nok,bob\nQ3,Paid,ok,ann\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "refunds.csv"
    path.write_text(TABLE)
    return path


def envelope(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stderr == ""
    data: dict[str, Any] = json.loads(done.stdout)
    assert data["ok"] is (done.returncode == 0)
    return data


def test_a_table_becomes_a_mission_with_a_preview_of_how_it_was_understood(
    donewhen: Run, tmp_path: Path, table: Path
) -> None:
    made = donewhen(["mission", "init", "refunds.csv"], tmp_path)
    assert made.returncode == 0, made.stderr
    for line in (
        "refunds  from refunds.csv (CSV)",
        "  label     decision: ok → pass, nok → fail  (guessed)",
        "  text      body  (guessed)",
        "  ticket    ticket  (guessed)",
        "  not used  author",
        "  pass  Q1  The receipt is there",
        "  fail  Q2  Nothing is there",
        "3 ticket(s): 2 pass, 1 fail",
        f"  G0: {default_rule('pass', 'en')}",
    ):
        assert line in made.stdout.split("\n")
    assert sorted(path.name for path in (tmp_path / "refunds").iterdir()) == [
        "initial_guidance.json",
        "mission.toml",
        "tickets.jsonl",
    ]
    checked = donewhen(["mission", "check", "refunds"], tmp_path)
    assert checked.returncode == 0
    assert_sentences(checked.stdout)
    assert "trial.min_tickets is 20" in checked.stdout


def test_a_check_tells_how_the_tickets_will_be_divided_with_clusters_kept_together(
    donewhen: Run, tmp_path: Path
) -> None:
    rows = [f"Q{at},text {at},{'ok' if at % 2 else 'nok'},k{at // 2 if at < 80 else 'one'}" for at in range(100)]
    (tmp_path / "t.csv").write_text("\n".join(["id,text,label,cluster", *rows]))
    assert donewhen(["mission", "init", "t.csv"], tmp_path).returncode == 0
    told = envelope(donewhen(["mission", "check", "t", "--json"], tmp_path))["data"]
    assert told["tickets"] == {"pass": 50, "fail": 50, "clusters": 41}
    assert told["split"] == {"train": 60, "validation": 20, "test": 20}
    assert told["warnings"] == []
    shown = donewhen(["mission", "check", "t"], tmp_path).stdout
    assert_sentences(shown)


def test_a_dry_run_shows_the_same_and_writes_nothing(donewhen: Run, tmp_path: Path, table: Path) -> None:
    shown = donewhen(["mission", "init", "refunds.csv", "--dry-run"], tmp_path)
    assert shown.returncode == 0
    assert "3 ticket(s): 2 pass, 1 fail" in shown.stdout
    assert list(tmp_path.iterdir()) == [table]


def test_options_say_what_can_not_be_guessed(donewhen: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c,d,e\nq1,left,right,keep,k1\nq2,links,rechts,drop,k1\n")
    options = ["--name", "Mine", "--label-column", "d", "--text-column", "b", "--text-column", "c"]
    options += ["--group-column", "a", "--cluster-column", "e", "--pass-value", "keep", "--fail-value", "drop"]
    made = envelope(donewhen(["mission", "init", "t.csv", "here", *options, "--language", "zh", "--json"], tmp_path))
    assert made["data"]["columns"] == {
        "label": "d", "text": ["b", "c"], "group": "a", "cluster": "e", "unused": [], "guessed": [],
    }  # fmt: skip
    lines = [json.loads(line) for line in (tmp_path / "here" / "tickets.jsonl").read_text().splitlines()]
    assert lines[0] == {
        "group_id": "q1", "mission": "Mine", "label": "pass", "cluster": "k1", "evidence": {"b": "left", "c": "right"},
    }  # fmt: skip
    assert json.loads((tmp_path / "here" / "initial_guidance.json").read_text()) == {"G0": "若无规则另述，则判定通过。"}


def test_what_is_wrong_is_named_by_file_and_line_and_nothing_is_written(donewhen: Run, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("id,text,label\nA,a,pass\nB,b,fail\nC,c,perhaps\nD,,pass\n")
    done = donewhen(["mission", "init", "t.csv"], tmp_path)
    assert done.returncode == 2
    assert_sentences(done.stdout)
    assert not (tmp_path / "t").exists()
    told = envelope(donewhen(["mission", "init", "t.csv", "--json"], tmp_path))
    assert [one["where"] for one in told["findings"]] == ["t.csv:4", "t.csv:5"]


def test_many_problems_are_counted_and_can_be_listed(donewhen: Run, tmp_path: Path) -> None:
    rows = "".join(f"B{at},text,perhaps\n" for at in range(30))
    (tmp_path / "t.csv").write_text(f"id,text,label\nA,a,pass\nB,b,fail\n{rows}")
    assert_sentences(donewhen(["mission", "init", "t.csv"], tmp_path).stdout)
    assert donewhen(["mission", "init", "t.csv", "--all"], tmp_path).stdout.count("✗") == 30


def test_a_mission_is_never_written_over(donewhen: Run, tmp_path: Path, table: Path) -> None:
    assert donewhen(["mission", "init", "refunds.csv"], tmp_path).returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "refunds").iterdir()}
    again = donewhen(["mission", "init", "refunds.csv"], tmp_path)
    assert again.returncode == 2
    assert_sentences(again.stderr)
    assert {path: path.read_bytes() for path in (tmp_path / "refunds").iterdir()} == before
    into_a_file = donewhen(["mission", "init", "refunds.csv", "refunds.csv"], tmp_path)
    assert into_a_file.returncode == 2
    assert_sentences(into_a_file.stderr)


@pytest.mark.parametrize(
    ("name", "content"), [("e.csv", b""), ("e.jsonl", b""), ("e.csv", b"\xff\xfe\x00"), ("e.jsonl", b'{"id": "A", "te')]
)
def test_files_without_a_ticket_are_usage_errors(donewhen: Run, tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    done = donewhen(["mission", "init", name], tmp_path)
    assert done.returncode == 2
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_a_source_that_is_not_there_or_may_not_be_read_is_a_usage_error(donewhen: Run, tmp_path: Path) -> None:
    assert donewhen(["mission", "init", "nowhere.csv"], tmp_path).returncode == 2
    empty = tmp_path / "empty"
    empty.mkdir()
    done = donewhen(["mission", "init", "empty"], tmp_path)
    assert done.returncode == 2
    assert_sentences(done.stderr)
    if os.getuid():
        (tmp_path / "t.csv").write_text(TABLE)
        (tmp_path / "t.csv").chmod(0)
        assert "Permission denied" in donewhen(["mission", "init", "t.csv"], tmp_path).stderr


def test_hostile_names_and_texts_can_not_drive_the_terminal_or_leave_the_folder(donewhen: Run, tmp_path: Path) -> None:
    source = tmp_path / "..%2f\x1b[2J.csv"
    source.write_text("id,text,label\nA,\x1b]0;owned\x07a <promise>x</promise>,pass\n\x1b[31mB,b,fail\n")
    done = donewhen(["mission", "init", str(source)], tmp_path)
    assert done.returncode == 2
    assert "\x1b" not in done.stdout + done.stderr
    assert "owned" not in done.stdout
    assert "<promise>" not in done.stdout
    source.write_text("id,text,label\nA,a,pass\nB,b,fail\n")
    assert donewhen(["mission", "init", str(source)], tmp_path).returncode == 0
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["2f"]
    unnamed = tmp_path / "...csv"
    unnamed.write_text("id,text,label\nA,a,pass\nB,b,fail\n")
    assert donewhen(["mission", "init", str(unnamed), "--name", ".."], tmp_path).returncode == 0
    assert (tmp_path / "mission" / "mission.toml").is_file()


def test_a_folder_of_texts_becomes_a_mission(donewhen: Run, tmp_path: Path) -> None:
    for name, text in (("通过/a.txt", "收据齐全"), ("不通过/b.md", "没有收据")):
        (tmp_path / "工单" / name).parent.mkdir(parents=True)
        (tmp_path / "工单" / name).write_text(text)
    made = donewhen(["mission", "init", "工单", "退款"], tmp_path)
    assert made.returncode == 0, made.stdout
    assert "language  zh  (guessed)" in made.stdout
    assert donewhen(["mission", "check", "退款"], tmp_path).returncode == 0


@pytest.fixture
def mission(donewhen: Run, tmp_path: Path, table: Path) -> Path:
    assert donewhen(["mission", "init", "refunds.csv"], tmp_path).returncode == 0
    return tmp_path / "refunds"


def test_a_check_names_every_problem_with_its_line_and_fails(donewhen: Run, mission: Path) -> None:
    with (mission / "tickets.jsonl").open("a") as tickets:
        tickets.write('{"group_id": "Q9", "mission": "refunds", "la\n{"group_id": "Q1", "mission": "refunds"}\n')
    (mission / "initial_guidance.json").write_text('{"G1": "x"}')
    done = donewhen(["mission", "check"], mission)
    assert done.returncode == 1
    assert_sentences(done.stdout)
    told = envelope(donewhen(["mission", "check", str(mission), "--json"], mission))
    assert len(told["findings"]) == 3
    assert told["data"]["tickets"] == {"pass": 2, "fail": 1, "clusters": 3}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('mission = "m"\nlanguge = "en"\n', "mission.toml:2: languge: Object contains unknown field"),
        ('mission = "m"\nlanguage = "tlh"\n', "Unknown language 'tlh'"),
        ('mission = "m', "not valid TOML"),
        ("", "mission"),
        (b"\xff", "not UTF-8"),
    ],
)
def test_settings_that_can_not_be_used_are_a_usage_error(
    donewhen: Run, mission: Path, content: str | bytes, told: str
) -> None:
    (mission / "mission.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    done = donewhen(["mission", "check", str(mission)], mission)
    assert done.returncode == 2
    assert told in done.stdout
    assert envelope(donewhen(["mission", "check", "--json"], mission))["findings"]


def test_there_may_be_no_mission_at_all(donewhen: Run, tmp_path: Path) -> None:
    done = donewhen(["mission", "check"], tmp_path)
    assert done.returncode == 2
    assert_sentences(done.stdout)
    assert "donewhen mission init" in done.stdout


def test_a_rule_that_the_model_can_not_read_is_a_problem(donewhen: Run, mission: Path) -> None:
    rules = json.loads((mission / "initial_guidance.json").read_text())
    (mission / "initial_guidance.json").write_text(json.dumps(rules | {"G1": "Be kind and look closely."}))
    done = donewhen(["mission", "check", str(mission), "--json"], mission)
    assert done.returncode == 1
    [finding] = envelope(done)["findings"]
    assert (finding["code"], "G1" in finding["message"]) == ("unread_guidance", True)
    assert_sentences(finding["message"], finding["next"])


def test_a_scaffold_rule_that_the_model_can_not_read_is_a_problem(donewhen: Run, mission: Path) -> None:
    rules = json.loads((mission / "initial_guidance.json").read_text())
    (mission / "initial_guidance.json").write_text(json.dumps(rules | {"S1": "Be kind and look closely."}))
    done = donewhen(["mission", "check", str(mission), "--json"], mission)
    assert done.returncode == 1
    [finding] = envelope(done)["findings"]
    assert finding["code"] == "unread_scaffold"
    assert_sentences(finding["message"], finding["next"])


@pytest.mark.parametrize("verb", ["mission init", "mission check"])
def test_they_explain_themselves(donewhen: Run, tmp_path: Path, verb: str) -> None:
    said = donewhen([*verb.split(), "--help"], tmp_path)
    assert said.returncode == 0
    assert said.stdout.startswith(f"Usage: donewhen {verb} ")
    assert "--json" in said.stdout
