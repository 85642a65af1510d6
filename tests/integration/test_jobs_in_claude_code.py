"""An agent in Claude Code that works on a job: the real CLI, the project's hooks, and `[stop] jobs = true`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from claude_kit import bundled_cli, clean_environment

from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.plan.workspace import find_workspace
from donewhen.testing import MessagesServer, ToolCall
from donewhen.testing.messages_api import MessagesRequest, Reply

pytestmark = pytest.mark.claude

Model = Callable[[MessagesRequest], Reply] | Sequence[Reply]
DONE = Reply("Done!")


def bash(command: str) -> Reply:
    return Reply(tools=(ToolCall("Bash", {"command": command, "description": "Work"}),))


class Project:
    """A project with one agreed job in progress and installed hooks, and the CLI to run in it."""

    def __init__(self, folder: Path, as_person: Callable[..., Any]) -> None:
        self.cli = bundled_cli()
        self.home = folder / "home"
        self.home.mkdir()
        self.root = folder / "project"
        self.root.mkdir()
        (self.root / ".git").mkdir()
        (self.root / "donewhen.toml").write_text("[stop]\njobs = true\n")
        self.donewhen("hooks", "install", "--claude")
        self.donewhen("init", "--title", "Shop")
        criterion = "The report says so :: file /report.txt matches /^ALL GOOD$/"
        self.donewhen("add", "Report", "--criterion", criterion, "--output", "/report.txt")
        agreed = as_person(["agree"], self.root)
        assert agreed.status == 0, agreed.screen
        self.workspace = find_workspace(self.root)
        (place,) = self.workspace.places()
        self.job = place.id
        self.donewhen("start", self.job)

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "CLAUDE_CONFIG_DIR"}
        return kept | {"HOME": str(self.home)}

    def donewhen(self, *arguments: str) -> None:
        command = [sys.executable, "-m", "donewhen", *arguments]
        subprocess.run(command, cwd=self.root, env=self.environment, capture_output=True, check=True)

    def entries(self) -> tuple[Entry, ...]:
        return self.workspace.ledger.read(self.job).entries

    def run(self, model: Model) -> tuple[MessagesServer, dict[str, Any]]:
        """One `claude -p`; the server with what it saw, and the client's result."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        with MessagesServer(model) as server:
            done = subprocess.run(
                [str(self.cli), "-p", "Do the job.", "--output-format", "json", "--allowedTools", "Bash"],
                cwd=self.root,
                env=clean_environment(server.base_url, self.home, PATH=path),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=500,
            )
        assert done.stdout, done.stderr
        result = json.loads(done.stdout)
        return server, result[-1] if isinstance(result, list) else result


@pytest.fixture
def project(tmp_path: Path, as_person: Callable[..., Any]) -> Project:
    return Project(tmp_path, as_person)


def test_an_agent_is_held_by_its_job_completes_it_and_is_let_go(project: Project) -> None:
    work = bash(f"echo 'ALL GOOD' > report.txt && donewhen complete {project.job}")
    server, result = project.run([DONE, work, Reply("Done, really.")])
    calls = server.calls()
    assert len(calls) == 3
    assert calls[1].mentions(f"{project.job} is not done")
    assert calls[1].mentions("/report.txt is missing")
    assert calls[1].mentions(f"donewhen complete {project.job}")
    assert calls[2].mentions(f"<promise>{project.job}-DONE</promise>")
    assert result["result"] == "Done, really."
    assert project.workspace.job(project.job).status == "done"
    assert project.entries()[-1].type == "completed"
    assert not (project.root / ".donewhen" / "state" / "unverified.jsonl").exists()


def test_an_agent_that_cannot_go_on_blocks_its_job_with_a_reason_and_may_stop(project: Project) -> None:
    block = bash(f"donewhen block {project.job} --reason 'The numbers are not there yet.'")
    server, result = project.run([DONE, block, Reply("I have to wait.")])
    assert [request.mentions("is not done") for request in server.calls()][:2] == [False, True]
    assert len(server.calls()) == 3
    assert result["result"] == "I have to wait."
    assert project.workspace.job(project.job).status == "blocked"
    assert project.entries()[-1].data["reason"] == "The numbers are not there yet."


def test_an_agent_that_was_refused_is_held_until_the_gates_are_open(project: Project) -> None:
    early = bash(f"echo 'NOT ALL GOOD' > report.txt; donewhen complete {project.job}")
    late = bash(f"echo 'ALL GOOD' > report.txt; donewhen complete {project.job}")
    server, _ = project.run([early, DONE, late, Reply("Done, really.")])
    calls = server.calls()
    assert calls[1].mentions("criterion_failed")
    assert not calls[1].mentions("<promise>")
    assert calls[2].mentions("AC-1")
    assert calls[3].mentions(f"<promise>{project.job}-DONE</promise>")
    assert [entry.type for entry in project.entries() if entry.type in ("refused", "completed")] == [
        "refused",
        "completed",
    ]
    assert project.workspace.job(project.job).iteration == 1


def test_an_agent_that_types_done_into_the_plan_is_held_and_after_the_cap_it_is_on_record(project: Project) -> None:
    plan = project.workspace.job(project.job).path.relative_to(project.root)
    typed = bash(f"sed -i 's/^status: .*/status: done/' {plan}")
    turns = iter([DONE, typed])
    server, _ = project.run(lambda request: next(turns, DONE))
    held = [request.mentions(f"{project.job} is not done") for request in server.calls()[3:]]
    assert held
    assert all(held)
    assert project.entries()[-1].type == "unverified"
    assert (project.root / ".donewhen" / "state" / "unverified.jsonl").exists()


def test_an_agent_that_never_does_the_job_is_let_go_and_the_ledger_says_unverified(project: Project) -> None:
    server, _ = project.run(lambda request: DONE)
    assert [request.mentions(f"{project.job} is not done") for request in server.calls()] == [False] + [True] * 5
    assert project.entries()[-1].type == "unverified"
    assert project.workspace.job(project.job).status == "in_progress"
    assert project.workspace.job(project.job).iteration == 0


def test_two_agents_in_one_work_tree_are_held_for_their_own_jobs_while_both_run(project: Project) -> None:
    others: list[MessagesServer] = []

    def while_the_first_runs() -> Reply:
        others.append(project.run([DONE])[0])
        return DONE

    work = bash(f"echo 'ALL GOOD' > report.txt && donewhen complete {project.job}")
    turns: list[Callable[[], Reply]] = [
        lambda: bash(f"DONEWHEN_SESSION=forged donewhen start {project.job}"),
        while_the_first_runs,
        lambda: work,
        lambda: DONE,
    ]
    first, _ = project.run(lambda request: turns.pop(0)())
    (second,) = others
    assert [request.mentions("is not done") for request in second.calls()] == [False]
    held = first.calls()[2]
    assert held.mentions(f"{project.job} is not done")
    started = next(entry for entry in reversed(project.entries()) if entry.type == "started")
    assert started.data["worker"]["runtime"] == "claude"
    assert project.entries()[-1].type == "completed"
