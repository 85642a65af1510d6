"""Real agents in the loop: small programs that work, give up, ask, crash, hang, or are interrupted."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.completion.stop_loop import StopLoopTurn, run_stop_loop
from donewhen.config import Settings, load
from donewhen.foundation.errors import UsageError
from donewhen.foundation.process import CommandNotRunnableError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.judge.person_overrides import override_gate
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle import loop_turns
from donewhen.jobs.lifecycle.agent_loop import (
    LoopResult,
    LoopTurn,
    prompt_for,
    reason_to_stop,
    run_agent_loop,
)
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.loop_turns import LoopLimits
from donewhen.jobs.lifecycle.promise import verify_promise
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.lifecycle.turn_usage import TurnUsage, usage_in
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.missions.new_mission import create_mission
from donewhen_kit import run_main
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"

# What the agents have in common: they count their runs and keep what they are told.
_BEGINNING = """
import os, sys, time, json, subprocess
from pathlib import Path
job = next(Path("jobs").glob(os.environ["DONEWHEN_JOB"] + "*"))
told = Path(sys.argv[1])
told.mkdir(exist_ok=True)
turn = len(list(told.glob("turn*"))) + 1
(told / f"turn{turn}").write_text(json.dumps({"argv": sys.argv[2:], "env": dict(os.environ), "cwd": os.getcwd()}))
def out(text): (job / "outputs" / "primary.md").write_text(text)
def donewhen(*words): subprocess.run([sys.executable, "-m", "donewhen", *words], check=True, capture_output=True)
"""


class Agent:
    """An agent, and what it was told."""

    def __init__(self, folder: Path, text: str) -> None:
        self.script = folder / "agent.py"
        self.script.write_text(_BEGINNING + text)
        self.folder = folder / "told"
        self.argv = [sys.executable, str(self.script), str(self.folder)]

    def told(self, turn: int) -> dict[str, object]:
        found: dict[str, object] = json.loads((self.folder / f"turn{turn}").read_text())
        return found

    def prompt(self, turn: int) -> str:
        env = self.told(turn)["env"]
        assert isinstance(env, dict)
        return str(env["DONEWHEN_PROMPT"])

    @property
    def turns(self) -> int:
        return len(list(self.folder.glob("turn*")))


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses after quick turns, which take no time here."""
    taken: list[float] = []
    monkeypatch.setattr(loop_turns, "wait", taken.append)
    return taken


@pytest.fixture
def agent(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Agent]:
    """``agent("out('yes')")``: a program beside the project."""
    return lambda text: Agent(tmp_path_factory.mktemp("agent"), text)


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    return made(shop, "Say yes")


def made(shop: Workspace, title: str, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    return job


def looped(shop: Workspace, job: Job, agent: Agent, *words: str, **limits: float) -> LoopResult:
    return run_agent_loop(shop, job.id, [*agent.argv, *words], BOT, limits=LoopLimits(**limits))  # type: ignore[arg-type]


def kinds(shop: Workspace, job: Job) -> list[str]:
    return [entry.type for entry in shop.ledger.read(job.id).entries]


# Endings


def test_an_agent_that_gets_it_right_at_the_second_turn_is_done_then(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    worker = agent("out('yes' if turn == 2 else 'no')")
    turns: list[LoopTurn] = []
    ended = run_agent_loop(shop, job.id, worker.argv, BOT, on_progress=turns.append)
    assert (ended.ending, ended.turns, worker.turns) == ("done", 2, 2)
    assert ended.promise is not None
    assert verify_promise(shop, ended.promise.text, approval_policy(shop)).real
    assert [(turn.number, turn.agent.exit_code, turn.completion.done) for turn in turns] == [
        (1, 0, False),
        (2, 0, True),
    ]
    assert shop.job(job.id).iteration == 1


def test_a_planned_job_is_started_and_one_in_progress_is_not_started_again(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    worker = agent("out('no' if turn == 1 else 'yes')")
    assert looped(shop, job, worker, turns=1).ending == "turns_spent"
    assert kinds(shop, job).count("started") == 1
    assert looped(shop, job, worker).ending == "done"
    assert kinds(shop, job).count("started") == 1


def test_a_job_that_waits_for_a_person_costs_no_further_run(shop: Workspace, agent: Callable[[str], Agent]) -> None:
    create_mission(shop.root / "missions" / "tone", "tone", "en", ())
    job = add_job(shop, "Say it well", criteria=["It reads well.\n  check: judge:tone"])
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    worker = agent("out('yes')")
    ended = looped(shop, job, worker)
    assert (ended.ending, ended.turns) == ("waiting", 1)
    assert_sentences(ended.why)
    override_gate(shop, shop.job(job.id), "AC-1", "pass", "It does.", ADA)
    assert reason_to_stop(shop, shop.job(job.id)) is None
    assert looped(shop, job, worker).ending == "done"


def test_a_job_that_is_done_costs_no_run_of_the_agent(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    worker = agent("out('yes')")
    first = looped(shop, job, worker)
    again = looped(shop, job, worker)
    assert (again.ending, again.turns, again.promise) == ("done", 0, first.promise)
    assert worker.turns == 1


@pytest.mark.parametrize(
    ("said", "ending", "why"),
    [
        ("donewhen('block', os.environ['DONEWHEN_JOB'], '--reason', 'No key.')", "blocked", "No key."),
        ("donewhen('ask', os.environ['DONEWHEN_JOB'], '--question', 'Which?')", "waiting", "Which?"),
    ],
    ids=["block", "ask"],
)
def test_an_agent_that_rests_ends_the_loop_honestly(
    shop: Workspace, job: Job, agent: Callable[[str], Agent], said: str, ending: str, why: str
) -> None:
    worker = agent(said)
    ended = looped(shop, job, worker)
    assert (ended.ending, ended.turns, ended.why, ended.promise) == (ending, 1, why, None)
    assert "refused" not in kinds(shop, job)
    again = looped(shop, job, worker)
    assert (again.ending, again.turns, worker.turns) == (ending, 0, 1)


def test_an_agent_may_complete_the_job_itself(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    worker = agent("out('yes'); donewhen('complete', os.environ['DONEWHEN_JOB'])")
    ended = looped(shop, job, worker)
    assert (ended.ending, ended.turns) == ("done", 1)
    assert ended.promise is not None
    assert kinds(shop, job).count("completed") == 1


def test_the_agreed_budget_ends_the_loop(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    worker = agent("out('no')")
    ended = looped(shop, job, worker)
    assert (ended.ending, ended.turns, worker.turns) == ("out_of_budget", 4, 4)
    assert "All 3 iterations" in ended.why
    assert shop.job(job.id).status == "blocked"
    assert looped(shop, job, worker).turns == 0
    decide(shop, shop.job(job.id), Decision("raise_budget", "more", 6), ADA)
    assert looped(shop, job, agent("out('yes')")).ending == "done"


def test_a_budget_that_is_spent_at_the_last_turn_is_told_as_such(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    ended = looped(shop, job, agent("out('no')"), turns=4)
    assert (ended.ending, ended.turns) == ("out_of_budget", 4)


def test_the_loop_has_a_cap_of_turns_of_its_own(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    worker = agent("out('no')")
    ended = looped(shop, job, worker, turns=2)
    assert (ended.ending, ended.turns, worker.turns) == ("turns_spent", 2, 2)
    assert shop.job(job.id).status == "in_progress"


def test_without_time_the_agent_is_not_run(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    worker = agent("out('yes')")
    ended = looped(shop, job, worker, seconds=0)
    assert (ended.ending, ended.turns, worker.turns) == ("time_spent", 0, 0)


def test_time_that_runs_out_during_a_turn_ends_the_agent_and_then_the_loop(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    worker = agent("time.sleep(600)")
    ended = looped(shop, job, worker, seconds=1.5)
    assert ended.ending == "time_spent"
    assert worker.turns <= 1


def test_a_cancelled_job_is_not_worked_on(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    start_job(shop, job.id, BOT)
    decide(shop, shop.job(job.id), Decision("cancel", "no"), ADA)
    worker = agent("out('yes')")
    ended = looped(shop, job, worker)
    assert (ended.ending, worker.turns) == ("blocked", 0)
    assert "cancelled" in ended.why


def test_what_can_not_start_says_why(shop: Workspace, agent: Callable[[str], Agent]) -> None:
    job = add_job(shop, "New", criteria=[SAYS_YES])
    worker = agent("out('yes')")
    ended = looped(shop, job, worker)
    assert (ended.ending, ended.turns, worker.turns) == ("not_started", 0, 0)
    assert "donewhen agree" in ended.why


def test_a_job_that_waits_for_others_does_not_start(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    below = made(shop, "Below", depends_on=[job.id])
    ended = looped(shop, below, agent("out('yes')"))
    assert ended.ending == "not_started"
    assert job.id in ended.why


def test_a_job_that_rests_is_told_apart(shop: Workspace, job: Job) -> None:
    assert reason_to_stop(shop, shop.job(job.id)) is None
    start_job(shop, job.id, BOT)
    assert reason_to_stop(shop, shop.job(job.id)) is None
    set_job_aside(shop, job.id, BOT, question="Which?")
    assert reason_to_stop(shop, shop.job(job.id)) == LoopResult("waiting", 0, None, "Which?")
    start_job(shop, job.id, BOT)
    assert reason_to_stop(shop, shop.job(job.id)) is None


# Agents that go wrong


def test_an_agent_that_crashes_is_asked_again(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    worker = agent("if turn == 1: os._exit(7)\nout('yes')")
    turns: list[LoopTurn] = []
    ended = run_agent_loop(shop, job.id, worker.argv, BOT, on_progress=turns.append)
    assert (ended.ending, ended.turns) == ("done", 2)
    assert [turn.agent.exit_code for turn in turns] == [7, 0]


def test_an_agent_that_crashes_after_the_work_is_done_has_done_it(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    assert looped(shop, job, agent("out('yes'); os._exit(3)")).ending == "done"


def test_an_agent_that_hangs_is_ended_with_all_it_started(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    # It hangs until it has left a child behind, so that a slow machine only costs another turn.
    worker = agent(
        "if not (told / 'child').exists():\n"
        "    child = subprocess.Popen(['sleep', '600'])\n"
        "    (told / 'child').write_text(str(child.pid))\n"
        "    time.sleep(600)\n"
        "out('yes')"
    )
    turns: list[LoopTurn] = []
    limits = LoopLimits(turn_seconds=1.5)
    ended = run_agent_loop(shop, job.id, worker.argv, BOT, limits=limits, on_progress=turns.append)
    assert ended.ending == "done"
    assert {turn.agent.ending for turn in turns[:-1]} == {"timed_out"}
    assert turns[-1].agent.ending == "exited"
    assert gone(int((worker.folder / "child").read_text()))


def test_an_agent_that_does_not_exist_is_an_error(shop: Workspace, job: Job) -> None:
    with pytest.raises(CommandNotRunnableError):
        run_agent_loop(shop, job.id, ["/nowhere/agent"], BOT)
    assert shop.job(job.id).iteration == 0


def test_an_agent_can_not_approve_from_inside_the_loop(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    worker = agent("subprocess.run([sys.executable, '-m', 'donewhen', 'decide', job.name[:15], '--target', '0',"
                   " '--reason', 'me'])")  # fmt: skip
    looped(shop, job, worker, turns=1)
    assert shop.job(job.id).reward_target == 80
    env = worker.told(1)["env"]
    assert isinstance(env, dict)
    assert env["DONEWHEN_AGENT"] == "loop"


# What the agent is told


def test_the_prompt_says_what_done_means_and_how_to_stop_honestly(shop: Workspace, job: Job) -> None:
    prompt = prompt_for(shop, job, "")
    assert f"{job.id}: Say yes" in prompt
    assert shop.where(job.path) in prompt
    assert "- AC-1: It says yes." in prompt
    assert all(f"donewhen {verb} {job.id}" in prompt for verb in ("run", "block", "ask"))
    again = prompt_for(shop, job, "- no output")
    assert "- no output" in again
    assert_sentences(prompt)
    assert_sentences(again)


def test_placeholders_are_replaced_in_every_word_and_once(shop: Workspace, agent: Callable[[str], Agent]) -> None:
    job = made(shop, "Keep {job} and {prompt} as they are")
    worker = agent("out('yes')")
    looped(shop, job, worker, "{job}", "--plan={plan}:{job}", "{prompt}", "{other}")
    message = worker.told(1)
    prompt = worker.prompt(1)
    plan = shop.where(job.path)
    assert message["argv"] == [job.id, f"--plan={plan}:{job.id}", prompt, "{other}"]
    assert "Keep {job} and {prompt} as they are" in prompt
    assert message["cwd"] == str(shop.root)
    env = message["env"]
    assert isinstance(env, dict)
    assert env["DONEWHEN_JOB"] == job.id


def test_the_agent_gets_the_whole_environment(shop: Workspace, job: Job, agent: Callable[[str], Agent]) -> None:
    worker = agent("out('yes')")
    run_agent_loop(shop, job.id, worker.argv, BOT, environ={**os.environ, "MY_API_KEY": "secret"})
    env = worker.told(1)["env"]
    assert isinstance(env, dict)
    assert env["MY_API_KEY"] == "secret"


def test_what_the_gates_missed_reaches_the_agent_at_its_next_turn(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    worker = agent("if turn == 2: out('no')\nif turn == 3: out('yes')")
    assert looped(shop, job, worker).ending == "done"
    for turn in (1, 2, 3):
        assert_sentences(worker.prompt(turn))


# Interrupted


def gone(process: int) -> bool:
    """Whether a process has ended, or does so soon; a zombie has."""
    for _ in range(2000):
        try:
            if Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
            os.kill(process, 0)
        except (ProcessLookupError, FileNotFoundError):
            return True
        time.sleep(0.05)
    return False


def test_ctrl_c_ends_the_agent_and_the_next_call_goes_on(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    worker = agent(
        "out('no' if turn == 1 else 'yes')\n"
        "if turn == 2:\n    (told / 'pid').write_text(str(os.getpid()))\n    out('half')\n    time.sleep(600)"
    )
    command = [sys.executable, "-m", "donewhen", "loop", job.id, "--", *worker.argv]
    running = subprocess.Popen(command, cwd=shop.root, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not ((worker.folder / "pid").exists() and (worker.folder / "pid").read_text()):
        assert running.poll() is None
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "Interrupted" in said
    assert gone(int((worker.folder / "pid").read_text()))
    assert (shop.job(job.id).status, shop.job(job.id).iteration) == ("in_progress", 1)
    ended = looped(shop, job, worker)
    assert (ended.ending, ended.turns, worker.turns) == ("done", 1, 3)
    assert kinds(shop, job).count("started") == 1
    assert complete(shop, job.id, BOT).repeated


# What the agent says


def test_what_the_agent_says_is_shown_at_once_and_kept_in_a_file_for_each_turn(
    shop: Workspace, job: Job, agent: Callable[[str], Agent]
) -> None:
    worker = agent(
        "sys.stdout.buffer.write(b'one \\xe2\\x82\\xac\\nhalf'); sys.stdout.flush(); go = Path(sys.argv[2])\n"
        "while not go.exists(): time.sleep(0.01)\n"
        "print(' and rest'); sys.stderr.write('no line end'); out('yes' if turn == 2 else 'no')"
    )
    go, said, turns = worker.folder.parent / "go", [], []

    def on_text(line: str) -> None:
        said.append(line)
        # The agent waits for this, so the line was there while it ran.
        go.touch()

    argv = [*worker.argv, str(go)]
    ended = run_agent_loop(shop, job.id, argv, BOT, on_progress=turns.append, on_text=on_text)
    assert ended.ending == "done"
    assert said == ["one €", "half and rest", "no line end"] * 2
    files = [turn.turn.transcript for turn in turns]
    assert [path.name for path in files] == ["turn-001.log", "turn-002.log"]
    assert [path.read_text() for path in files] == ["one €\nhalf and rest\nno line end"] * 2
    assert files[0].stat().st_mode & 0o777 == 0o600
    assert all(path.is_relative_to(shop.root / ".donewhen" / "state") for path in files)


@pytest.mark.parametrize(
    ("output", "usage"),
    [
        (
            'noise\n{"type": "result", "usage": {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}}',
            TurnUsage(12, 3),
        ),
        (
            '{"type": "turn.completed", "usage": {"input_tokens": 9, "cached_input_tokens": 4, "output_tokens": 2}}\n',
            TurnUsage(9, 2),
        ),
        ("tokens used: 12,345\n", TurnUsage(total=12345)),
        ('{"stats": {"models": {"m": {"tokens": {"prompt": 4, "candidates": 2, "total": 6}}}}}', TurnUsage(4, 2)),
        ("I used 12 tokens.", None),
        ('{"type": "result", "usage": "many"}\n{"usage": 3}\n{broken', None),
        ('{"type": "result", "usage": {"input_tokens": -5, "output_tokens": "9"}}', TurnUsage()),
    ],
    ids=["claude", "codex json", "codex", "gemini", "prose", "broken", "not numbers"],
)
def test_tokens_are_read_from_what_the_runtime_reports(output: str, usage: TurnUsage | None) -> None:
    assert usage_in(output) == usage


def test_turns_that_end_in_seconds_are_followed_by_longer_and_longer_pauses(
    shop: Workspace, job: Job, agent: Callable[[str], Agent], pauses: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    busy = agent("out(f'no {turn}')")
    assert looped(shop, job, busy).ending == "out_of_budget"
    assert pauses == [2.0, 4.0]
    pauses.clear()
    monkeypatch.setattr(loop_turns, "_QUICK", 0.0)
    assert looped(shop, made(shop, "Slow"), agent("out(f'no {turn}')")).ending == "out_of_budget"
    assert pauses == []


def test_three_turns_that_change_nothing_end_the_loop_with_a_reason(
    shop: Workspace, agent: Callable[[str], Agent]
) -> None:
    job = made(shop, "Say yes", stakes="critical")
    ended = looped(shop, job, agent("pass"))
    assert (ended.ending, ended.turns) == ("nothing_changed", 3)
    assert_sentences(ended.why)
    busy = looped(shop, made(shop, "Busy", stakes="critical"), agent("out(f'no {turn}')"))
    assert busy.ending == "out_of_budget"


# Without a job


def stop_settings(root: Path) -> Settings:
    (root / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    return load(root)


def test_without_a_job_the_checks_of_stop_hold_the_agent(tmp_path: Path) -> None:
    code = "import os, sys; p = os.environ['DONEWHEN_PROMPT']; 'report.md' in p and open('report.md', 'w').write(p)"
    results: list[StopLoopTurn] = []
    ended = run_stop_loop(stop_settings(tmp_path), [sys.executable, "-c", code], on_progress=results.append)
    assert (ended.ending, ended.turns) == ("done", 2)
    assert [turn.result.complete for turn in results] == [False, True]
    assert "report.md" in (tmp_path / "report.md").read_text()


def test_without_a_job_the_loop_ends_when_the_same_is_missing_and_refuses_to_check_nothing(tmp_path: Path) -> None:
    ended = run_stop_loop(stop_settings(tmp_path), [sys.executable, "-c", ""])
    assert (ended.ending, ended.turns) == ("nothing_changed", 3)
    assert "report.md" in ended.why
    (tmp_path / "donewhen.toml").write_text("")
    with pytest.raises(UsageError):
        run_stop_loop(load(tmp_path), ["true"])


def test_the_verb_takes_a_command_with_and_without_a_job(shop: Workspace, job: Job) -> None:
    (shop.root / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    write = "print('Dear \\x1b[31mreader <promise>X-DONE</promise>'); open('report.md', 'w').write('x')"
    done = run_main(["loop", "--max-turns", "2", "--", sys.executable, "-c", write], shop.root)
    assert done.returncode == 0
    assert "  │ Dear reader ‹promise›X-DONE‹/promise›" in done.stdout.splitlines()
    data = json.loads(run_main(["loop", "--json", "--", sys.executable, "-c", write], shop.root).stdout)["data"]
    assert (data["job"], data["ending"]) == (None, "done")
    assert (shop.root / data["transcripts"][0]["file"]).read_bytes().startswith(b"Dear \x1b[31m")
    held = run_main(["loop", job.id, "--max-turns", "1", "--json", "--", sys.executable, "-c", ""], shop.root)
    data = json.loads(held.stdout)["data"]
    assert (data["job"], data["ending"]) == (job.id, "turns_spent")
    assert run_main(["loop", job.id], shop.root).returncode == 2
