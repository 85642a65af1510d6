"""Whose job it is: real git, real processes that are named like agents, and nobody released by what an agent writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.git_clone import CLONE_FILE, clone_of
from donewhen.foundation.process_tree import ancestors_of, read_process, running_process
from donewhen.jobs.board.entry_text import entry_text
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Started, Worker
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from donewhen.jobs.record.workers import this_worker, whose, worker_on_record

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only /proc says which session still runs")
Git = Callable[..., str]
BOT = Actor("bot")
# An agent runtime, as far as donewhen can know: a process with its name that runs commands for its agent.
RUNTIME = """#!{python}
import json, os, subprocess, sys
for line in sys.stdin:
    order = json.loads(line)
    done = subprocess.run(order["argv"], cwd=order["cwd"], input=order["input"], env={{**os.environ, **order["env"]}},
                          capture_output=True, text=True)
    print(json.dumps([done.returncode, done.stdout, done.stderr]), flush=True)
"""


class Agent:
    """A process called ``claude`` that runs commands and, as a runtime does, the hook."""

    def __init__(self, folder: Path, session: str, beside: Path) -> None:
        program = beside / "claude"
        if not program.exists():
            program.write_text(RUNTIME.format(python=sys.executable))
            program.chmod(0o755)
        self.folder, self.session = folder, session
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, *argv: str, given: str = "", **env: str) -> tuple[int, str, str]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        order = {"argv": argv, "cwd": str(self.folder), "input": given, "env": {"CLAUDECODE": "1", **env}}
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        status, out, err = json.loads(self._process.stdout.readline())
        return status, out, err

    def donewhen(self, *words: str, **env: str) -> str:
        status, out, err = self.run(sys.executable, "-m", "donewhen", *words, **env)
        assert status == 0, err
        return out

    def stop(self, *, session: str | None = None, agent: str | None = None, **env: str) -> str | None:
        """What the stop hook answers: the reason why the agent may not stop; None if it may."""
        event = {"session_id": session or self.session, "cwd": str(self.folder), "hook_event_name": "Stop"}
        event |= {"agent_id": agent} if agent else {}
        words = ("hook", "stop", "--runtime", "claude")
        status, out, err = self.run(sys.executable, "-m", "donewhen", *words, given=json.dumps(event), **env)
        assert status == 0, err
        reason: str | None = json.loads(out).get("reason")
        return reason

    def end(self) -> None:
        self._process.communicate(timeout=60)


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    agents: list[Agent] = []

    def start(folder: Path, session: str) -> Agent:
        agents.append(Agent(folder, session, tmp_path))
        return agents[-1]

    yield start
    for each in agents:
        each.end()


@pytest.fixture
def shop(repository: Path, git: Git) -> tuple[Workspace, list[Job]]:
    """Two agreed jobs in a repository whose stop hook looks after jobs."""
    (repository / "donewhen.toml").write_text("[stop]\njobs = true\nrequire_job = 'off'\n")
    workspace = create_project(repository, "Shop")
    jobs = [
        add_job(workspace, title, criteria=[f"It is there\n  check: file /{title}.txt"]) for title in ("One", "Two")
    ]
    for job in jobs:
        for proposal in agreement_proposals(workspace, [job]):
            if proposal.agreement.state != "agreed":
                agree(workspace, proposal, Approval(Actor("ada", "person")))
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Jobs")
    return workspace, jobs


def recorded(workspace: Workspace, job: Job) -> Started:
    entries = workspace.ledger.read(job.id).entries
    return next(entry for entry in reversed(entries) if entry.type == "started").read_as(Started)


def test_two_agents_in_one_work_tree_are_held_for_their_own_jobs_only(
    shop: tuple[Workspace, list[Job]], agent: Callable[..., Agent]
) -> None:
    workspace, (one, two) = shop
    first, second = agent(workspace.root, "s-1"), agent(workspace.root, "s-2")
    first.donewhen("start", one.id, DONEWHEN_SESSION="s-1")
    assert second.stop() is None
    second.donewhen("start", two.id)
    for each, own, other in ((first, one, two), (second, two, one)):
        reason = each.stop() or ""
        assert own.id in reason
        assert other.id not in reason
    worker = recorded(workspace, one).worker
    assert worker is not None
    assert (worker.runtime, worker.session, worker.clone) == ("claude", "s-1", clone_of(workspace.root).id)
    # A stop that is not verified is put on record for the agent's own job.
    second.run(
        sys.executable,
        "-c",
        f"import pathlib; from donewhen.jobs.lifecycle.setting_aside import "
        f"record_unverified_stop as r; r(pathlib.Path({str(workspace.root)!r}), 'capped')",
    )
    types = {job.id: [entry.type for entry in workspace.ledger.read(job.id).entries] for job in (one, two)}
    assert ("unverified" in types[one.id], "unverified" in types[two.id]) == (False, True)


def test_resumed_compacted_sub_agents_and_ended_sessions_count_as_the_same_owner(
    shop: tuple[Workspace, list[Job]], agent: Callable[..., Agent]
) -> None:
    workspace, (one, _) = shop
    first = agent(workspace.root, "s-1")
    first.donewhen("start", one.id, DONEWHEN_SESSION="s-1")
    # The same process with another id: after a compaction, `/clear` or a fork.
    assert one.id in (first.stop(session="s-other") or "")
    assert one.id in (first.stop(agent="sub-1") or "")
    # Resumed in another process while the first still runs: the runtime gives the same id.
    resumed = agent(workspace.root, "s-1")
    assert one.id in (resumed.stop() or "")
    stranger = agent(workspace.root, "s-9")
    assert stranger.stop() is None
    first.end()
    assert one.id in (stranger.stop() or "")


def test_the_start_of_a_session_hands_its_id_to_the_shell_and_start_records_it(
    shop: tuple[Workspace, list[Job]], agent: Callable[..., Agent], tmp_path: Path
) -> None:
    workspace, (one, _) = shop
    variables = tmp_path / "variables.sh"
    first = agent(workspace.root, "s-1")
    hook = (sys.executable, "-m", "donewhen", "hook", "session-start", "--runtime", "claude")
    event = json.dumps({"session_id": "s-1", "cwd": str(workspace.root), "source": "startup"})
    assert first.run(*hook, given=event, CLAUDE_ENV_FILE=str(variables))[:2] == (0, "{}\n")
    # As Claude Code runs each command of its agent.
    first.run("sh", "-c", f". {variables}; {sys.executable} -m donewhen start {one.id}")
    worker = recorded(workspace, one).worker
    assert worker is not None
    assert worker.session == "s-1"


def test_no_id_that_an_agent_writes_releases_it(shop: tuple[Workspace, list[Job]], agent: Callable[..., Agent]) -> None:
    workspace, (one, two) = shop
    first, second = agent(workspace.root, "s-1"), agent(workspace.root, "s-2")
    second.donewhen("start", two.id, DONEWHEN_SESSION="s-2")
    # As if the other agent had started it.
    first.donewhen("start", one.id, DONEWHEN_SESSION="s-2", CODEX_THREAD_ID="s-2", CLAUDE_SESSION_ID="s-2")
    assert one.id in (first.stop() or "")
    assert one.id in (first.stop(DONEWHEN_SESSION="s-2", DONEWHEN_AGENT="other") or "")
    # Another clone's id in the git folder, and none.
    place = workspace.root / ".git" / CLONE_FILE
    place.write_text("0" * 32 + "\n")
    assert one.id in (first.stop() or "")
    place.write_bytes(b"\xff" * 100)
    assert one.id in (first.stop() or "")
    shutil.rmtree(place.parent)
    assert one.id in (first.stop() or "")
    # Started by a process that has left its parents: whose it is isn't known.
    code = "import os, subprocess, sys; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); "
    first.run(
        sys.executable,
        "-c",
        code + f"subprocess.run([sys.executable, '-m', 'donewhen', 'start', {two.id!r}]); "
        "open('started.txt', 'w').close()",
    )
    deadline = 600
    while not (workspace.root / "started.txt").exists() and deadline:
        subprocess.run(["sleep", "0.1"], check=True)
        deadline -= 1
    assert recorded(workspace, two).worker == Worker(
        **{**worker_fields(recorded(workspace, two)), "process": "", "runtime": ""}
    )
    first.donewhen("block", one.id, "--reason", "Enough of it.")
    assert two.id in (second.stop() or "")
    assert two.id in (first.stop() or "")


def worker_fields(started: Started) -> dict[str, Any]:
    assert started.worker is not None
    return {name: getattr(started.worker, name) for name in Worker.__struct_fields__}


def test_a_job_of_another_clone_holds_nobody_here_until_it_is_taken_over(
    shop: tuple[Workspace, list[Job]], agent: Callable[..., Agent], git: Git, tmp_path: Path
) -> None:
    workspace, (one, _) = shop
    here = tmp_path / "here"
    git(tmp_path, "clone", "-q", str(workspace.root), str(here))
    there = agent(workspace.root, "s-1")
    there.donewhen("start", one.id)
    there.end()
    git(workspace.root, "commit", "-qam", "Started")
    git(here, "pull", "-q")
    mine = agent(here, "s-2")
    assert mine.stop() is None
    assert one.id in (agent(workspace.root, "s-3").stop() or "")
    assert "taken it over" in mine.donewhen("start", one.id)
    assert one.id in (mine.stop() or "")
    other = find_workspace(here)
    assert recorded(other, one).taken_over == "clone"
    assert entry_text(other.ledger.read(one.id).entries[-1]).endswith("taken over from another clone")


def test_taking_over_a_job_from_a_session_that_runs_is_on_record_and_starting_again_is_not(
    shop: tuple[Workspace, list[Job]], agent: Callable[..., Agent]
) -> None:
    workspace, (one, _) = shop
    first, second = agent(workspace.root, "s-1"), agent(workspace.root, "s-2")
    first.donewhen("start", one.id)
    first.donewhen("start", one.id)
    assert recorded(workspace, one).taken_over == ""
    second.donewhen("start", one.id)
    assert recorded(workspace, one).taken_over == "session"
    assert one.id in (second.stop() or "")
    assert first.stop() is None


def test_a_job_of_an_older_version_is_anybodys(shop: tuple[Workspace, list[Job]], git: Git, tmp_path: Path) -> None:
    workspace, (one, _) = shop
    assert start_job(workspace, one.id, BOT).started
    me = this_worker(workspace.root)
    assert whose(None, me) == whose(Worker(), me) == whose(worker_on_record(workspace.ledger.read(one.id).entries), me)
    assert whose(Worker(), me) == ""


def test_a_clone_differs_only_if_its_id_and_all_its_places_do(repository: Path, git: Git, tmp_path: Path) -> None:
    (repository / "a").write_text("a")
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "a")
    first = clone_of(repository)
    git(repository, "worktree", "add", "-q", str(tmp_path / "tree"))
    git(tmp_path, "clone", "-q", str(repository), str(tmp_path / "other"))
    tree, other = clone_of(tmp_path / "tree"), clone_of(tmp_path / "other")
    assert (tree.id, tree.places) == (first.id, first.places)
    assert tree.worktree != first.worktree
    assert first.is_other_than(other.id, other.places)
    moved = repository.rename(tmp_path / "moved")
    (moved / ".git" / CLONE_FILE).write_text("0" * 32 + "\n")
    assert not clone_of(moved).is_other_than(first.id, first.places)
    assert not first.is_other_than("", other.places)


def test_a_process_is_known_by_its_start_and_not_by_its_number() -> None:
    me = read_process(os.getpid())
    assert me is not None
    assert running_process(me.identity) == me
    assert running_process(f"{me.identity}0") is None
    assert running_process("") is running_process("x:y:z") is None
    assert next(ancestors_of(me.pid)).pid == os.getppid()
