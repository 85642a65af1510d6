"""The execution log: a line for each command that the gate ran, and no more than a view."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.locks import locked
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.record import execution_log
from donewhen.jobs.record.execution_log import LoggedRun, log_run
from sentences import assert_sentences

Bench = Any
BOT = Actor("bot")
RUN = LoggedRun("WI-1", "AC-1", "true", "2026-02-14T10:00:00Z", "2026-02-14T10:00:01Z", 1.23456, 0, True, "fine\n")
FIELDS = [
    "timestamp", "end_timestamp", "duration_sec", "label", "level", "tags", "work_item_id", "phase", "command", "cwd",
    "exit_code", "stdout", "stderr",
]  # fmt: skip


def log_of(bench: Bench) -> Path:
    path: Path = bench.workspace.base / "logs" / "execution.jsonl"
    return path


def rows(bench: Bench) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log_of(bench).read_text().splitlines() if line.startswith("{")]


def test_a_run_has_a_line_with_exactly_the_fields_of_the_other_tool(bench: Bench) -> None:
    job = bench.job(criteria=["It runs.\n  check: run printf hello"])
    collect_evidence(bench.workspace, job, BOT)
    (row,) = rows(bench)
    assert list(row) == FIELDS
    assert row | {"timestamp": "", "end_timestamp": "", "duration_sec": 0} == {
        "timestamp": "",
        "end_timestamp": "",
        "duration_sec": 0,
        "label": "AC-1",
        "level": "info",
        "tags": ["donewhen", "gate"],
        "work_item_id": job.id,
        "phase": "verification",
        "command": "printf hello",
        "cwd": ".",
        "exit_code": 0,
        "stdout": "hello",
        "stderr": "",
    }
    assert row["timestamp"].endswith("Z") and row["timestamp"] < row["end_timestamp"]


def test_what_is_reused_is_not_logged_and_what_is_run_again_is(bench: Bench) -> None:
    job = bench.job(criteria=["It runs.\n  check: run true"])
    assert not run_as_evidence(bench.workspace, job, ("true",), BOT).reused
    assert run_as_evidence(bench.workspace, job, ("true",), BOT).reused
    assert len(rows(bench)) == 1
    run_as_evidence(bench.workspace, job, ("true",), BOT, again=True)
    assert len(rows(bench)) == 2


def test_a_failure_is_an_error_with_its_exit_status_and_what_it_said_on_both_streams(bench: Bench) -> None:
    job = bench.job(criteria=["It runs.\n  check: run true"])
    code = "import sys; print('out', flush=True); print('err', file=sys.stderr); sys.exit(3)"
    run_as_evidence(bench.workspace, job, (sys.executable, "-c", code), BOT)
    (row,) = rows(bench)
    assert (row["level"], row["exit_code"], row["stdout"], row["stderr"]) == ("error", 3, "out\nerr\n", "")
    # Nothing asked for it.
    assert row["label"] == "run"


def test_a_command_of_the_job_itself_is_labelled_as_verification(bench: Bench) -> None:
    job = bench.job(commands=["true"])
    run_as_evidence(bench.workspace, job, ("true",), BOT)
    assert rows(bench)[-1]["label"] == "verification"


def test_neither_secrets_nor_the_places_of_this_machine_are_written(bench: Bench) -> None:
    job = bench.job()
    secret = "ghp_" + "a1B2" * 8
    run_as_evidence(bench.workspace, job, ("echo", secret, f"{bench.workspace.root}/x"), BOT)
    text = log_of(bench).read_text()
    assert secret not in text
    assert str(bench.workspace.root) not in text
    assert rows(bench)[0]["stdout"] == "[redacted] ./x\n"


def test_the_home_of_a_person_is_not_written(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    log_run(bench.workspace, RUN._replace(output="/home/ada/.cache /home/adam"))
    monkeypatch.setenv("HOME", "/")
    log_run(bench.workspace, RUN._replace(output="/usr/x"))
    assert [row["stdout"] for row in rows(bench)] == ["~/.cache /home/adam", "/usr/x"]


def test_of_a_long_output_the_end_is_kept(bench: Bench) -> None:
    log_run(bench.workspace, RUN._replace(output="a" * 4000))
    log_run(bench.workspace, RUN._replace(output="a" + "b" * 4000))
    first, second = (row["stdout"] for row in rows(bench))
    assert first == "a" * 4000
    assert second.endswith("…]\n" + "b" * 4000)
    assert_sentences(second)


def test_lines_of_others_stay_and_a_torn_one_is_ended(bench: Bench) -> None:
    path = log_of(bench)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b'{"theirs": 1}\n\xff torn')
    log_run(bench.workspace, RUN)
    log_run(bench.workspace, RUN)
    content = path.read_bytes()
    assert content.startswith(b'{"theirs": 1}\n\xff torn\n{"timestamp"')
    assert content.count(b"\n") == 4
    assert content.endswith(b"}\n")


def test_text_that_can_not_be_encoded_does_not_break_the_line(bench: Bench) -> None:
    assert log_run(bench.workspace, RUN._replace(output="half \ud800 pair\u2028line\n")) is None
    (row,) = rows_by_newline(bench)
    assert row["stdout"] == "half ? pair\u2028line\n"


def rows_by_newline(bench: Bench) -> list[Any]:
    return [json.loads(line) for line in log_of(bench).read_text().split("\n") if line]


def folder(path: Path) -> None:
    path.mkdir(parents=True)


def link(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    path.symlink_to("/dev/null")


def pipe(path: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    os.mkfifo(path)


def logs_are_a_file(path: Path) -> None:
    path.parent.write_text("not a folder")


@pytest.mark.parametrize("make", [folder, link, pipe, logs_are_a_file])
def test_a_log_that_can_not_be_written_changes_no_verdict_and_is_on_record(bench: Bench, make: Any) -> None:
    job = bench.job(criteria=["It runs.\n  check: run true"])
    make(log_of(bench))
    ran = run_as_evidence(bench.workspace, job, ("true",), BOT)
    assert ran.passed
    assert str(ran.entry.data["unlogged"]).startswith("jobs/logs")
    assert [status.state for status in bench.facts(job).evidence] == ["passed"]


def test_a_folder_of_logs_that_leads_out_is_not_followed(
    bench: Bench, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (bench.workspace.base / "logs").symlink_to(outside)
    assert_sentences(log_run(bench.workspace, RUN))
    assert list(outside.iterdir()) == []


def test_a_line_that_did_not_fit_is_taken_back(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    log_run(bench.workspace, RUN)
    before = log_of(bench).read_bytes()
    write = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:10]))
    assert_sentences(log_run(bench.workspace, RUN))
    monkeypatch.undo()
    assert log_of(bench).read_bytes() == before


def test_a_log_that_somebody_holds_for_too_long_is_left_alone(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execution_log, "_LOCK_TIMEOUT", 0.0)
    with locked(bench.workspace.folder / "state" / "locks" / "execution-log.lock"):
        problem = log_run(bench.workspace, RUN)
    assert problem is not None
    assert problem.startswith("jobs/logs/execution.jsonl: The lock is held by process ")


def test_no_verdict_reads_it(bench: Bench) -> None:
    job = bench.job(criteria=["It runs.\n  check: run false"])
    path = log_of(bench)
    path.parent.mkdir(exist_ok=True)
    log_run(bench.workspace, RUN._replace(job=job.id, command="false"))
    facts = bench.facts(job)
    assert facts.runs == 0
    assert [status.state for status in facts.evidence] == ["missing"]
