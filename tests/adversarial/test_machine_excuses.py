"""What the machine keeps from being checked costs no iteration, gives no promise and releases no agent."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from gate_kit import CHECK, Shop

import donewhen.foundation.process as process
from donewhen.adapters.claude_code.dialect import ClaudeCodeDialect
from donewhen.adapters.command_hooks import respond_to_event
from donewhen.completion.job_checker import JobChecker
from donewhen.foundation.machine_strain import MachineStrain
from donewhen.jobs.evidence.hindrances import missing_program
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.entry_content import Refused
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lifecycle.agent_loop import LoopTurn, run_agent_loop
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.plan.job import Job
from donewhen.protocols import TaskCompletionContext
from donewhen.runtime import Session
from donewhen_kit import git_command

MISSING = "It is checked\n  check: run no-such-program-anywhere --all"
SLEEPS = f"It ends\n  check: run {sys.executable} sleep.py"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    return Shop(tmp_path / "shop")


def attempt(shop: Shop, job: Job) -> Completion:
    return complete(shop.workspace, job.id, unproved_actor())


def codes(result: Completion) -> set[str]:
    assert result.evaluation is not None
    return {reason.code.value for reason in result.evaluation.reasons} - {"score_too_low", "execution_not_logged"}


def released(shop: Shop) -> bool:
    return JobChecker(root=shop.root).check(TaskCompletionContext(session=Session())).complete


def assert_free(shop: Shop, job: Job, code: str) -> None:
    """Two attempts are refused for this reason, and neither is counted."""
    before = shop.history(job.id).iteration
    for _ in range(2):
        result = attempt(shop, job)
        assert (codes(result), result.done) == ({code}, False)
        assert result.entry.read_as(Refused).hindered
    assert shop.history(job.id).iteration == before
    assert not released(shop)


def assert_counted(shop: Shop, job: Job) -> None:
    before = shop.history(job.id).iteration
    result = attempt(shop, job)
    assert not result.done
    assert shop.history(job.id).iteration == before + 1
    assert not result.entry.read_as(Refused).hindered
    assert not released(shop)


# A missing program


def test_a_program_that_is_not_installed_costs_no_iteration(shop: Shop) -> None:
    job = shop.job(MISSING)
    shop.work()
    assert_free(shop, job, "program_missing")


def test_a_script_that_the_work_should_bring_is_the_work(shop: Shop) -> None:
    job = shop.job("It is checked\n  check: run ./tools/verify")
    shop.work()
    assert_counted(shop, job)
    script = shop.write("tools/verify", "#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    assert attempt(shop, job).done


def test_a_script_that_the_work_has_removed_is_the_work(shop: Shop) -> None:
    shop.write("tools/verify", "#!/bin/sh\nexit 1\n").chmod(0o755)
    job = shop.job("It is checked\n  check: run ./tools/verify")
    shop.work()
    assert_counted(shop, job)
    (shop.root / "tools" / "verify").unlink()
    assert_counted(shop, job)


def test_a_missing_program_excuses_no_other_check_that_fails(shop: Shop) -> None:
    job = shop.job(MISSING, f"The check passes\n  check: run {CHECK}")
    shop.write("result.txt", "bad\n")
    assert_counted(shop, job)
    shop.work()
    assert_free(shop, job, "program_missing")


def test_a_missing_program_excuses_no_missing_output(shop: Shop) -> None:
    assert_counted(shop, shop.job(MISSING))


def test_a_job_is_done_when_the_program_is_there(shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = shop.job(MISSING)
    shop.work()
    assert_free(shop, job, "program_missing")
    program = tmp_path / "environment" / "bin" / "no-such-program-anywhere"
    program.parent.mkdir(parents=True)
    (tmp_path / "environment" / "pyvenv.cfg").write_text("")
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    assert attempt(shop, job).done


@pytest.mark.parametrize(
    ("program", "path", "known", "free"),
    [
        ("pytest", "/usr/bin", False, True),
        ("/usr/bin/pytest", "/usr/bin", False, True),
        ("./check.sh", "/usr/bin", True, False),
        ("tools/check", "/usr/bin", False, False),
        ("INSIDE/tool", "/usr/bin", True, False),
        ("../other/tool", "/usr/bin", False, True),
        # The work may install a program into the environment of the project, but not one that ran before.
        ("tool", "INSIDE/.venv/bin:/usr/bin", False, False),
        ("pytest", "INSIDE/.venv/bin:/usr/bin", True, True),
    ],
)
def test_only_what_the_work_can_not_bring_is_missing_on_the_machine(
    tmp_path: Path, program: str, path: str, known: bool, free: bool
) -> None:
    root = tmp_path / "project"
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "pyvenv.cfg").write_text("")
    variables = {"PATH": path.replace("INSIDE", str(root))}
    found = missing_program(program.replace("INSIDE", str(root)), root, variables, known=known)
    assert found == (GateCode.PROGRAM_MISSING if free else None)


# A time-out


def slow_job(shop: Shop) -> Job:
    shop.write("donewhen.toml", "[jobs]\ncommand_timeout = 1\n")
    shop.write("sleep.py", "import time\ntime.sleep(600)\n")
    job = shop.job(SLEEPS)
    shop.work()
    return job


@pytest.mark.parametrize(
    "strain",
    [MachineStrain(1.0, 3600.0, 0.0, 0.0, 4), MachineStrain(1.0, 0.0, 0.9, 0.05, 4)],
    ids=["suspended", "overloaded"],
)
def test_a_check_that_the_machine_had_no_time_for_costs_no_iteration(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, strain: MachineStrain
) -> None:
    job = slow_job(shop)
    monkeypatch.setattr(process.StrainClock, "measure", lambda *_: strain)
    assert_free(shop, job, "machine_overloaded")


def test_a_check_that_sleeps_too_long_costs_an_iteration(shop: Shop) -> None:
    assert_counted(shop, slow_job(shop))


def test_a_check_that_had_no_time_does_not_refute_a_job_that_is_done(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write("donewhen.toml", "[jobs]\ncommand_timeout = 1\n")
    shop.write("sleep.py", "import os, time\ntime.sleep(600 if os.path.exists('/proc/self/nothing') else 0)\n")
    job = shop.job(SLEEPS)
    shop.work()
    done = attempt(shop, job)
    assert done.done and done.promise is not None
    monkeypatch.setattr(process.StrainClock, "measure", lambda *_: MachineStrain(1.0, 60.0, 0.0, 0.0, 4))
    monkeypatch.setattr(process, "_wait", lambda *_: "timed_out")
    shop.run("run", job.id, "--again")
    assert shop.verified(done.promise.text).real


# Excuses that an agent makes itself


def test_a_program_that_was_taken_out_of_the_environment_of_the_project_is_the_work(tmp_path: Path) -> None:
    root = tmp_path / "project"
    environment = root / ".venv"
    (environment / "bin").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("")
    variables = {"PATH": f"{environment}/bin:/usr/bin"}
    assert missing_program("pytest", root, variables, known=True, ran_here=True) is None
    # On another machine, nobody has taken it out.
    assert missing_program("pytest", root, variables, known=True) == GateCode.PROGRAM_MISSING
    shutil.rmtree(environment)
    assert missing_program("pytest", root, variables, known=True, ran_here=True) is None
    assert missing_program("pytest", root, {"PATH": "/usr/bin"}, known=True, ran_here=True) == GateCode.PROGRAM_MISSING


def test_deleting_the_checks_program_after_it_failed_costs_iterations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    subprocess.run(["git", "init", "-q", "-b", "main", str(tmp_path / "shop")], check=True)
    shop = Shop(tmp_path / "shop")
    shop.write(".gitignore", ".venv/\n")
    program = shop.write(".venv/bin/check-it", "#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    shop.write(".venv/pyvenv.cfg", "")
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    git_command(shop.root, "add", "-A")
    git_command(shop.root, "commit", "-q", "-m", "all")
    job = shop.job("It is checked\n  check: run check-it")
    shop.work()
    assert_counted(shop, job)
    program.unlink()
    assert_counted(shop, job)


def test_a_loop_ends_when_the_machine_keeps_attempts_from_being_checked(shop: Shop) -> None:
    job = shop.job(MISSING)
    shop.work()
    turns: list[LoopTurn] = []
    ended = run_agent_loop(
        shop.workspace, job.id, [sys.executable, "-S", "-c", "pass"], unproved_actor(), on_progress=turns.append
    )
    assert (ended.ending, ended.turns, len(turns)) == ("hindered", 2, 2)
    assert "no-such-program-anywhere" in ended.why
    assert shop.history(job.id).iteration == 0


def test_hooks_and_tools_say_the_same_and_release_nobody(shop: Shop) -> None:
    shop.write("donewhen.toml", "[stop]\njobs = true\n")
    job = shop.job(MISSING)
    shop.work()
    assert_free(shop, job, "program_missing")
    event = {"session_id": "s", "cwd": str(shop.root), "hook_event_name": "Stop", "stop_hook_active": False}
    answer = respond_to_event("stop", ClaudeCodeDialect(), json.dumps(event), {}, shop.root)
    assert answer["decision"] == "block"
    assert "[program_missing]" in answer["reason"]
    checked = shop.run("check", "--json")
    assert "program_missing" in checked.stdout
    before = shop.history(job.id).iteration
    ran = shop.run("run", job.id)
    assert ran.returncode != 0
    assert shop.history(job.id).iteration == before
