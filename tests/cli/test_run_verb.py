"""Making evidence, and asking where it stands, at the command line: `donewhen run` and `donewhen why`."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

Donewhen = Callable[..., subprocess.CompletedProcess[str]]
Person = Callable[..., Any]

DONEWHEN = [sys.executable, "-m", "donewhen"]
CHECK = f"{sys.executable} check.py"


def surroundings(**extra: str) -> dict[str, str]:
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
    return {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1"} | extra


def envelope(done: subprocess.CompletedProcess[str], command: str = "run") -> dict[str, Any]:
    told: dict[str, Any] = json.loads(done.stdout)
    assert set(told) == {"schema", "command", "ok", "data", "findings"}
    assert (told["schema"], told["command"], told["ok"]) == ("donewhen/v1", command, done.returncode == 0)
    assert all(set(one) == {"code", "message", "where", "next"} for one in told["findings"])
    return told


def codes(done: subprocess.CompletedProcess[str], command: str = "run") -> list[str]:
    return [one["code"] for one in envelope(done, command)["findings"]]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    (tmp_path / "check.py").write_text("print('checked')\n")
    return create_project(tmp_path, "Shop")


@pytest.fixture
def job(shop: Workspace) -> Job:
    return add_job(shop, "Greet", criteria=[f"It is checked\n  check: run {CHECK}"])


def seal(shop: Workspace, *jobs: Job) -> None:
    for proposal in agreement_proposals(shop, jobs):
        agree(shop, proposal, Approval(person_at_terminal()))


def ran(shop: Workspace, job: Job) -> list[bool]:
    return [entry.data["passed"] for entry in shop.ledger.read(job.id).entries if entry.type == "ran"]


@pytest.mark.parametrize("verb", ["run", "why"])
def test_they_explain_themselves(donewhen: Donewhen, tmp_path: Path, verb: str) -> None:
    shown = donewhen([verb, "-h"], tmp_path)
    assert shown.returncode == 0
    assert shown.stdout.startswith(f"Usage: donewhen {verb}")
    assert "--json" in shown.stdout
    assert "--project" in shown.stdout


def test_what_a_job_has_to_show_is_run_recorded_and_reused_while_it_is_fresh(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    first = envelope(donewhen(["run", "001", "--json"], shop.root))["data"]["runs"][0]
    assert (first["passed"], first["reused"], first["exit_code"]) == (True, False, 0)
    assert first["evidence"] == CHECK
    second = donewhen(["run", "001"], shop.root)
    assert second.returncode == 0
    assert_sentences(second.stdout)
    assert ran(shop, job) == [True]
    assert envelope(donewhen(["run", "001", "--again", "--json"], shop.root))["data"]["runs"][0]["reused"] is False
    assert ran(shop, job) == [True, True]


def test_a_command_that_fails_is_evidence_too_and_shows_how_it_ended(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    (shop.root / "check.py").write_text("print('3 of 7 are wrong'); raise SystemExit(4)\n")
    done = donewhen(["run", "001"], shop.root)
    assert done.returncode == 1
    assert f"✗ {CHECK}\n  3 of 7 are wrong\n  exited, exit status 4" in done.stdout
    assert ran(shop, job) == [False]
    assert codes(donewhen(["run", "001", "--json"], shop.root)) == ["evidence_failed"]
    why = donewhen(["why", "001", "--json"], shop.root)
    assert "evidence_failed" in codes(why, "why")
    assert_sentences(why.stdout)


def test_why_is_satisfied_only_when_it_is_agreed_shown_and_fresh(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    assert codes(donewhen(["why", "001", "--json"], shop.root), "why") == ["proposed", "proposed", "not_shown"]
    donewhen(["run", "001"], shop.root)
    assert codes(donewhen(["why", "001", "--json"], shop.root), "why") == ["proposed", "proposed"]
    seal(shop, job)
    done = donewhen(["why", "001", "--json"], shop.root)
    assert (done.returncode, envelope(done, "why")["data"]["needs"][0]["state"]) == (0, "passed")
    (shop.root / "check.py").write_text("print('checked again')\n")
    stale = donewhen(["why", "001"], shop.root)
    assert stale.returncode == 1
    assert_sentences(stale.stdout)
    assert codes(donewhen(["why", "001", "--json"], shop.root), "why") == ["evidence_stale"]


def test_options_after_two_dashes_belong_to_the_command(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    options = ["--json", "--again", "--project", "/nowhere", "--no-color", "-h", "--", "--criterion"]
    done = donewhen(["run", "001", "--", "echo", *options], shop.root)
    assert done.returncode == 0
    assert done.stdout.startswith(f"✓ echo {' '.join(options)}\n")
    told = envelope(donewhen(["run", "001", "--json", "--", "echo", *options], shop.root))
    assert told["data"]["runs"][0]["evidence"] == shlex.join(["echo", *options])
    assert told["data"]["runs"][0]["reused"] is True


def test_a_command_that_nobody_asked_for_is_kept_and_shows_nothing(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    seal(shop, job)
    done = donewhen(["run", "001", "--", "true"], shop.root)
    assert done.returncode == 0
    assert_sentences(done.stdout)
    assert codes(donewhen(["why", "001", "--json"], shop.root), "why") == ["not_shown"]


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["001", "--criterion", "AC-9"], 2, "config"),
        (["001", "--criterion", "AC-1", "--", "true"], 2, "usage"),
        (["002"], 2, "usage"),
        (["002", "--criterion", "AC-1"], 2, "usage"),
        (["001", "--", "no-such-program"], 3, "command_not_found"),
        (["001", "--timeout", "0"], 2, "usage"),
        (["009"], 2, "usage"),
        (["greet"], 2, "usage"),
        ([], 2, "usage"),
    ],
    ids=["criterion", "other command", "nothing", "manual", "program", "timeout", "unknown", "ambiguous", "no job"],
)
def test_what_can_not_be_meant_is_said_and_records_nothing(
    shop: Workspace, job: Job, donewhen: Donewhen, arguments: list[str], status: int, code: str
) -> None:
    add_job(shop, "Greet", criteria=["It is friendly"])
    done = donewhen(["run", "--json", *arguments], shop.root)
    assert (done.returncode, codes(done)) == (status, [code])
    assert_sentences(envelope(done)["findings"][0]["message"])
    assert shop.ledger.chains() == ()


def test_a_command_that_takes_too_long_is_ended_and_has_not_passed(
    shop: Workspace, job: Job, donewhen: Donewhen
) -> None:
    done = donewhen(["run", "001", "--timeout", "0.2", "--json", "--", "sleep", "60"], shop.root)
    assert (done.returncode, codes(done)) == (1, ["evidence_failed"])
    assert envelope(done)["data"]["runs"][0]["ending"] == "timed_out"


def test_what_a_command_prints_can_not_drive_the_terminal(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    text = r"print('\x1b]0;owned\x07\x1b[2Jgone\u202eright [bold]loud[/bold]'); raise SystemExit(1)"
    (shop.root / "check.py").write_text(text)
    shown = donewhen(["run", "001"], shop.root).stdout
    assert not set("\x1b\x07\u202e") & set(shown)
    assert "goneright [bold]loud[/bold]" in shown


def test_a_command_in_rich_markup_is_shown_as_it_is_on_a_terminal(shop: Workspace, job: Job, as_person: Person) -> None:
    played = as_person(["run", "001", "--", "echo", "[red]{task.id}[/nothing]"], shop.root)
    assert played.status == 0
    assert "✓ echo '[red]{task.id}[/nothing]'" in played.screen


def test_it_finds_the_project_from_below_and_from_elsewhere(
    shop: Workspace, job: Job, donewhen: Donewhen, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    assert donewhen(["run", "001", "--json"], job.folder).returncode == 0
    assert envelope(donewhen(["-C", str(shop.root), "run", "001", "--json"], elsewhere))["data"]["job"] == job.id
    told = envelope(donewhen(["run", "001", "--project", str(shop.root), "--json"], elsewhere))
    assert told["data"]["runs"][0]["reused"] is True
    assert ran(shop, job) == [True]


@pytest.mark.parametrize("verb", ["run", "why"])
def test_without_a_project_or_with_a_wrong_one_it_says_so(tmp_path: Path, donewhen: Donewhen, verb: str) -> None:
    assert codes(donewhen([verb, "001", "--json"], tmp_path), verb) == ["workspace"]
    (tmp_path / "file").write_text("")
    for folder in ("nowhere", "file"):
        done = donewhen([verb, "001", "--project", folder, "--json"], tmp_path)
        assert (done.returncode, codes(done, verb)) == (2, ["usage"])


def test_a_broken_plan_stops_only_its_own_job(shop: Workspace, job: Job, donewhen: Donewhen) -> None:
    add_job(shop, "Broken").path.write_text("---\ntitle: [\n---\n")
    assert donewhen(["run", "001"], shop.root).returncode == 0
    done = donewhen(["run", "002", "--json"], shop.root)
    assert (done.returncode, codes(done)) == (2, ["document"])
    assert envelope(done)["findings"][0]["where"].endswith("plan.md:3:1")


@pytest.mark.parametrize("verb", ["run", "why"])
def test_a_broken_configuration_or_a_folder_for_a_plan_is_named(
    shop: Workspace, job: Job, donewhen: Donewhen, verb: str
) -> None:
    (shop.root / "donewhen.toml").write_text("jobs = 3\n")
    done = donewhen([verb, "001", "--json"], shop.root)
    assert (done.returncode, codes(done, verb)) == (2, ["config"])
    (shop.root / "donewhen.toml").unlink()
    job.path.unlink()
    job.path.mkdir()
    done = donewhen([verb, "001", "--json"], shop.root)
    assert (done.returncode, codes(done, verb)) == (2, ["document"])
    assert_sentences(envelope(done, verb)["findings"][0]["message"])


def test_where_nothing_can_be_written_the_run_is_an_error_and_the_chain_stays_as_it_was(
    shop: Workspace, job: Job
) -> None:
    seal(shop, job)
    before = shop.ledger.read(job.id)
    # What a full disk does to a writer: the first bytes fit, the rest is refused.
    limited = (
        "import os, resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (60, 60)); os.execv(sys.argv[1], "
        "sys.argv[1:])"
    )
    done = subprocess.run(
        [sys.executable, "-c", limited, *DONEWHEN, "run", "001", "--json"],
        cwd=shop.root,
        env=surroundings(PYTHONDONTWRITEBYTECODE="1"),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, codes(done)) == (3, ["io"])
    assert shop.ledger.read(job.id) == before


def start(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    def interruptible() -> None:
        # Whoever runs the tests in the background has it ignored, and children inherit that.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    return subprocess.Popen(
        [*DONEWHEN, *arguments],
        cwd=folder,
        env=surroundings(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    )


def waited_for(path: Path, process: subprocess.Popen[str]) -> int:
    give_up = time.monotonic() + 60
    while not (path.exists() and path.read_text().endswith("\n")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < give_up
        time.sleep(0.02)
    return int(path.read_text())


def test_ctrl_c_ends_the_command_and_leaves_nothing_half_recorded(
    shop: Workspace, job: Job, donewhen: Donewhen, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seal(shop, job)
    before = shop.ledger.read(job.id)
    mark = tmp_path_factory.mktemp("mark") / "pid"
    slow = f"import os, time; open({str(mark)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(60)"
    process = start(shop.root, "run", "001", "--json", "--", sys.executable, "-c", slow)
    command = waited_for(mark, process)
    process.send_signal(signal.SIGINT)
    printed, errors = process.communicate(timeout=60)
    done = subprocess.CompletedProcess(process.args, process.returncode, printed, errors)
    assert (done.returncode, codes(done)) == (130, ["interrupted"])
    with pytest.raises(ProcessLookupError):
        os.kill(command, 0)
    assert shop.ledger.read(job.id) == before
    assert not list((shop.folder / "evidence").rglob("*.tmp"))
    assert envelope(donewhen(["audit", "--json"], shop.root), "audit")["data"]["clean"] is True


def test_two_runs_at_once_both_end_well_and_the_chain_holds(
    shop: Workspace, job: Job, donewhen: Donewhen, tmp_path_factory: pytest.TempPathFactory
) -> None:
    seal(shop, job)
    meeting = tmp_path_factory.mktemp("meeting")
    # Each waits until the other is there, so that they do run at the same time.
    (shop.root / "check.py").write_text(
        "import os, pathlib, time\n"
        f"place = pathlib.Path({str(meeting)!r})\n"
        "(place / str(os.getpid())).touch()\n"
        "give_up = time.monotonic() + 60\n"
        "while len(list(place.iterdir())) < 2 and time.monotonic() < give_up:\n"
        "    time.sleep(0.01)\n"
    )
    both = [start(shop.root, "run", "001", "--json") for _ in range(2)]
    ended = [(one.communicate(timeout=90), one.returncode) for one in both]
    assert [status for _, status in ended] == [0, 0], ended
    assert len(list(meeting.iterdir())) == 2
    assert ran(shop, job) == [True, True]
    assert shop.ledger.read(job.id).breaks == ()
    assert donewhen(["audit"], shop.root).returncode == 0
    assert donewhen(["why", "001"], shop.root).returncode == 0
