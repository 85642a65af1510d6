"""Ends that no Stop hook of Claude Code sees leave a record: the real CLI, a scripted model on loopback."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest
from claude_kit import clean_environment
from test_claude_code import MISSING, WRITE, Project

from donewhen.adapters.stop_record import RECORD, UnverifiedEnd, unverified_ends
from donewhen.testing import MessagesServer, ToolCall
from donewhen.testing.messages_api import MessagesRequest, Reply

pytestmark = pytest.mark.claude

ECHO = Reply(tools=(ToolCall("Bash", {"command": "echo x", "description": "x"}),))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.donewhen("hooks", "install", "--claude")
    return project


def ends(project: Project) -> list[UnverifiedEnd]:
    return unverified_ends(project.root / ".donewhen" / "state" / RECORD)


def rows(project: Project) -> list[dict[str, Any]]:
    path = project.root / ".donewhen" / "state" / "unverified.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def only_end(project: Project) -> tuple[str, str, str | None]:
    (end,) = ends(project)
    return end.status, end.how, end.code


UNFINISHED = ("incomplete", "session-end: other", "files_missing")


def test_the_turn_limit_leaves_a_record(project: Project) -> None:
    _, result = project.run(lambda request: ECHO, "--max-turns", "2")
    assert result["subtype"] == "error_max_turns"
    assert only_end(project) == UNFINISHED


def test_the_budget_leaves_a_record(project: Project) -> None:
    _, result = project.run(lambda request: ECHO, "--max-budget-usd", "0.0001")
    assert result["subtype"] == "error_max_budget_usd"
    assert only_end(project) == UNFINISHED


def test_an_api_error_leaves_one_record_though_two_hooks_see_it(project: Project) -> None:
    _, result = project.run(lambda request: Reply("bad request", status=400) if request.tool_results else ECHO)
    assert result["is_error"] is True
    (end,) = ends(project)
    assert (end.status, end.code) == ("incomplete", "files_missing")
    # The client starts the second hook before the first has answered.
    assert end.how.startswith(("stop-failure: unknown", "session-end: other"))


def started(project: Project, server: MessagesServer, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(project.cli), "-p", "Write out.txt.", "--output-format", "json", "--allowedTools", "Bash", *arguments],
        cwd=project.root,
        env=clean_environment(server.base_url, project.home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["interrupt", "terminate"])
def test_an_interruption_leaves_a_record(project: Project, number: signal.Signals) -> None:
    asked, ended = threading.Event(), threading.Event()

    def model(request: MessagesRequest) -> Reply:
        asked.set()
        ended.wait(100)
        return Reply("Too late.")

    with MessagesServer(model) as server:
        process = started(project, server)
        try:
            assert asked.wait(100)
            process.send_signal(number)
            process.communicate(timeout=100)
        finally:
            ended.set()
            process.kill()
    assert only_end(project) == UNFINISHED


def test_the_clients_own_cap_leaves_a_record(project: Project) -> None:
    # Ours is set so high that the client's comes first.
    project.settings('[stop]\nfiles = ["out.txt"]\nmax_stalled = 30\n')
    server, _ = project.run(lambda request: Reply("Done!"))
    assert len(server.calls()) == 9
    assert only_end(project) == UNFINISHED


def test_a_clock_in_the_output_does_not_get_an_agent_to_the_clients_cap(project: Project) -> None:
    project.settings('[stop]\ncommands = ["./clock"]\n')
    (project.root / "clock").write_text("#!/bin/sh\ndate +%H:%M:%S.%N; exit 1\n")
    (project.root / "clock").chmod(0o755)
    server, _ = project.run(lambda request: Reply("Done!"))
    assert len(server.calls()) == 8
    (row,) = rows(project)
    assert (row["status"], row["attempts"], row["code"]) == ("capped", 8, "command_failed")


def test_a_verified_run_leaves_no_record(project: Project) -> None:
    _, result = project.run([Reply("Done!"), WRITE, Reply("Done!")])
    assert result["result"] == "Done!"
    assert rows(project) == []


def test_work_undone_after_the_verified_stop_is_on_record(project: Project) -> None:
    # Another hook lets the agent go on after ours has found the work complete.
    path = project.root / ".claude" / "settings.json"
    data = json.loads(path.read_text())
    once = "[ -f once ] && exit 0; touch once; sleep 3; echo go on >&2; exit 2"
    data["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": once}]})
    path.write_text(json.dumps(data))
    undo = Reply(tools=(ToolCall("Bash", {"command": "rm out.txt", "description": "x"}),))
    project.run([WRITE, Reply("Done!"), undo, ECHO, ECHO, ECHO], "--max-turns", "5")
    assert only_end(project) == UNFINISHED


def test_an_agent_in_plan_mode_is_not_held_for_work(project: Project) -> None:
    server, _ = project.run([Reply("Here is the plan.")], "--permission-mode", "plan")
    assert len(server.calls()) == 1
    assert rows(project) == []


def test_the_model_reads_the_reason_and_no_word_of_the_fallback(project: Project) -> None:
    server, _ = project.run([Reply("Done!"), WRITE, Reply("Done!")])
    refused = server.calls()[1]
    assert refused.mentions(MISSING)
    text = json.dumps(refused.body["messages"][-2:])
    for word in ("remove its hooks", "Install it", "could not be run", "grep", "stop_hook_active", "not verified"):
        assert word not in text


def test_an_end_where_donewhen_is_missing_is_on_record(project: Project) -> None:
    script = project.root / ".claude" / "donewhen" / "hook"
    starts = next(line for line in script.read_text().splitlines() if line.startswith("program()"))
    script.write_text(script.read_text().replace(starts, 'program() { /nowhere/donewhen "$@"; }'))
    server, _ = project.run(lambda request: Reply("Done!"))
    assert len(server.calls()) == 2
    assert server.calls()[1].mentions("donewhen could not be run")
    (end,) = ends(project)
    assert (end.status, end.feedback) == ("unverified", "donewhen could not be run.")


def test_a_line_of_an_earlier_version_still_holds(project: Project) -> None:
    path = project.root / ".claude" / "settings.json"
    old = (
        """e=$(cat); printf %s "$e" | PROGRAM hook stop --runtime claude || { printf %s "$e" | """
        """grep -q '"stop_hook_active": *true' && exit 0; echo "donewhen could not be run, so this stop is not """
        """verified. Install it, or remove its hooks." >&2; exit 2; }"""
    )
    from donewhen.config.hook_script import program_of

    program = program_of((project.root / ".claude" / "donewhen" / "hook").read_text())
    assert program is not None
    command = {"type": "command", "command": old.replace("PROGRAM", program), "timeout": 1800}
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [command]}]}}))
    server, _ = project.run([Reply("Done!"), WRITE, Reply("Done!")])
    assert server.calls()[1].mentions(MISSING)
