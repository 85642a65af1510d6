"""Real processes that learn, and what happens to them: Ctrl-C, kills at any moment, full disks, other processes."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.demo.example_mission import make_mission
from donewhen.judging.guidance_store import read_guidance
from donewhen.learning.running.events import RunEvent, read_events
from donewhen_kit import run_main, scaled
from sentences import assert_sentences

NAME = "agent-reports"
DONEWHEN = [sys.executable, "-m", "donewhen"]

# Sends itself a signal when so many events are on record.
AT_EVENT = """
import os, signal, sys
from donewhen.learning.running import events
append = events.EventLog.append
def appended(self, kind, data, spent):
    event = append(self, kind, data, spent)
    if event.number == int(sys.argv[1]):
        os.kill(os.getpid(), getattr(signal, sys.argv[2]))
    return event
events.EventLog.append = appended
from donewhen.cli import main
sys.exit(main(sys.argv[3:]))
"""

# Is killed when so many of its changes have become the mission's.
IN_ADOPTION = """
import os, signal, sys
from donewhen.judging.guidance_store import GuidanceStore
apply, made = GuidanceStore.apply, []
def applied(self, change, by):
    if (self.path.parent / "mission.toml").exists():
        if len(made) == int(sys.argv[1]):
            os.kill(os.getpid(), signal.SIGKILL)
        made.append(by)
    return apply(self, change, by)
GuidanceStore.apply = applied
from donewhen.cli import main
sys.exit(main(sys.argv[2:]))
"""

# May write no file that is longer than so much.
SMALL_FILES = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
from donewhen.cli import main
sys.exit(main(sys.argv[2:]))
"""

ANOTHER_VERSION = """
import sys
import donewhen
donewhen.__version__ = "99.0"
from donewhen.cli import main
sys.exit(main(sys.argv[1:]))
"""


def ran(command: list[str], cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, env=os.environ | {"NO_COLOR": "1"}
    )


def learn(mission: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return run_main(["learn", *options], mission)


def learn_until(event: int, signal_name: str, mission: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return ran([sys.executable, "-c", AT_EVENT, str(event), signal_name, "learn", *options], mission)


def two_epochs(folder: Path) -> None:
    make_mission(folder, 160)
    with (folder / "mission.toml").open("a") as settings:
        settings.write("epochs = 2\n")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mission whose run nothing has happened to."""
    folder = tmp_path_factory.mktemp("whole") / "reports"
    two_epochs(folder)
    assert learn(folder, "--quiet").returncode == 0
    return folder


@pytest.fixture
def mission(tmp_path: Path) -> Path:
    """The same mission, where nothing has run yet."""
    two_epochs(tmp_path / "reports")
    return tmp_path / "reports"


def run_of(mission: Path) -> Path:
    return max(path.parent for path in mission.glob("runs/*/events.jsonl"))


def recorded(mission: Path) -> tuple[RunEvent, ...]:
    return read_events(run_of(mission) / "events.jsonl")


def substance(events: tuple[RunEvent, ...]) -> list[tuple[str, Any, Any]]:
    """What happened, and what it had cost by then, but for times and for the run's name."""
    return [
        (
            event.type,
            {name: value for name, value in event.data.items() if name != "run"},
            {name: value for name, value in event.spent.items() if name != "seconds"},
        )
        for event in events
    ]


def artifacts(mission: Path) -> dict[str, Any]:
    """What a run leaves behind, but for times."""
    run = run_of(mission)
    found: dict[str, Any] = {
        path.name: path.read_bytes()
        for path in run.glob("*.jsonl")
        if path.name not in ("events.jsonl", "guidance.history.jsonl")
    }
    report = json.loads((run / "report.json").read_text())
    report["cost"].pop("seconds")
    found["report"] = {name: value for name, value in report.items() if name not in ("finished_at", "run")}
    found["hypotheses"] = (run / "hypotheses.json").read_bytes()
    found["snapshots"] = sorted(path.name for path in (run / "snapshots").iterdir())
    found["left"] = sorted(path.name for path in run.iterdir())
    return found


def ends_like(mission: Path, whole: Path) -> None:
    """The same events, the same files, and the same guidance as if nothing had happened."""
    assert substance(recorded(mission)) == substance(recorded(whole))
    assert artifacts(mission) == artifacts(whole)
    for path in (Path("guidance.json"), run_of(mission).relative_to(mission) / "guidance.json"):
        other = path if len(path.parts) == 1 else run_of(whole).relative_to(whole) / "guidance.json"
        found, expected = read_guidance(mission / path, NAME), read_guidance(whole / other, NAME)
        assert (found.step, found.experiences) == (expected.step, expected.experiences)
        assert {key: one.sources for key, one in found.metadata.items()} == {
            key: one.sources for key, one in expected.metadata.items()
        }
    assert run_main(["replay", "--json"], mission).returncode == 0


# Ctrl-C.


@pytest.mark.parametrize("part", [0.02, 0.4, 0.95])
def test_ctrl_c_ends_it_cleanly_and_says_how_to_go_on(mission: Path, whole: Path, part: float) -> None:
    at = max(1, round(part * len(recorded(whole))))
    stopped = learn_until(at, "SIGINT", mission)
    assert stopped.returncode == 130, stopped.stderr
    assert_sentences(stopped.stderr.splitlines()[-2:])
    assert "Traceback" not in stopped.stderr
    # It is heard at once, not when the epoch is over.
    assert at <= len(recorded(mission)) <= at + 1
    run = run_of(mission)
    assert json.loads((run / "metrics.json").read_text())["status"] == "running"
    assert {"manifest.json", "trajectories.jsonl", "reflections.jsonl", "guidance.json"} <= {
        path.name for path in run.iterdir()
    }
    assert not (mission / "guidance.json").exists()
    assert run_main(["replay"], mission).returncode == 0
    assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


def test_ctrl_c_is_answered_in_json_where_json_was_asked_for(mission: Path) -> None:
    stopped = learn_until(12, "SIGINT", mission, ".", "--json", "--no-adopt")
    assert (stopped.returncode, stopped.stderr) == (130, "")
    told = json.loads(stopped.stdout)
    assert [one["code"] for one in told["findings"]] == ["interrupted"]
    # What was asked for is still asked for when it goes on.
    assert told["findings"][0]["next"] == "donewhen learn --resume --no-adopt"


# Says Ctrl-C to itself while the tickets are being read.
TOO_EARLY = """
import os, signal, sys
from donewhen.learning.running import run_folders
def split_tickets(*_):
    os.kill(os.getpid(), signal.SIGINT)
run_folders.split_tickets = split_tickets
from donewhen.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_ctrl_c_before_anything_was_done_does_not_promise_that_it_can_go_on(mission: Path) -> None:
    stopped = ran([sys.executable, "-c", TOO_EARLY, "learn"], mission)
    assert stopped.returncode == 130
    assert_sentences(stopped.stderr.splitlines()[-2:])


def test_a_process_that_is_asked_to_end_leaves_everything_in_order(mission: Path, whole: Path) -> None:
    stopped = learn_until(30, "SIGTERM", mission)
    assert stopped.returncode == 143
    assert (run_of(mission) / "metrics.json").is_file()
    assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


# Killed.


def test_a_run_that_is_killed_again_and_again_ends_like_one_that_never_was(mission: Path, whole: Path) -> None:
    chance = random.Random(6)
    total = len(recorded(whole))
    moments = sorted(chance.sample(range(1, total), 11))
    for number, at in enumerate(moments):
        killed = learn_until(at, "SIGKILL", mission, *(["--resume"] if number else []))
        assert killed.returncode == -signal.SIGKILL
        assert len(recorded(mission)) == at
    assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


def test_a_run_that_was_interrupted_and_then_killed_still_replays(mission: Path, whole: Path) -> None:
    changes = [one.number for one in recorded(whole) if one.type == "guidance_changed"]
    assert learn_until(changes[0] - 1, "SIGINT", mission).returncode == 130
    assert learn_until(changes[-1] + 1, "SIGKILL", mission, "--resume").returncode == -signal.SIGKILL
    # The files are those of the interruption, and the events know better.
    found = json.loads((run_of(mission) / "guidance.json").read_text())[NAME]
    assert found["step"] < len(changes)
    assert run_main(["replay"], mission).returncode == 0
    (run_of(mission) / "guidance.json").write_text(json.dumps({NAME: found | {"experiences": {"G0": "Mine."}}}))
    assert run_main(["replay"], mission).returncode == 1


def test_a_kill_between_two_events_is_no_different(mission: Path, whole: Path) -> None:
    chance = random.Random(7)
    kills = 0
    while kills < 4:
        going_on = bool(list(mission.glob("runs/*/events.jsonl"))) and bool(recorded(mission))
        size = (run_of(mission) / "events.jsonl").stat().st_size if going_on else 0
        process = subprocess.Popen(
            [*DONEWHEN, "learn", "--quiet", *(["--resume"] if going_on else [])],
            cwd=mission,
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        wanted = size + chance.randint(1, 60_000)
        while process.poll() is None and _size(mission) < wanted:
            time.sleep(0.001)
        process.kill()
        process.communicate()
        kills += 1
        if process.returncode == 0:
            break
    else:
        assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


def _size(mission: Path) -> int:
    return sum(path.stat().st_size for path in mission.glob("runs/*/events.jsonl"))


@pytest.mark.parametrize("changes", [0, 1])
def test_a_kill_while_the_guidance_is_adopted_leaves_nothing_half_done(
    mission: Path, whole: Path, changes: int
) -> None:
    killed = ran([sys.executable, "-c", IN_ADOPTION, str(changes), "learn", "--quiet"], mission)
    assert killed.returncode == -signal.SIGKILL
    assert recorded(mission)[-1].type == "run_finished"
    resumed = learn(mission, "--resume", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    ends_like(mission, whole)
    history = (mission / "guidance.history.jsonl").read_text().splitlines()
    assert len(history) == read_guidance(mission / "guidance.json", NAME).step


def test_a_kill_right_after_the_last_event_loses_no_report_and_no_rule(mission: Path, whole: Path) -> None:
    killed = learn_until(len(recorded(whole)), "SIGKILL", mission)
    assert killed.returncode == -signal.SIGKILL
    assert not (run_of(mission) / "report.json").exists()
    resumed = learn(mission, "--resume", "--quiet")
    assert resumed.returncode == 0, resumed.stderr
    ends_like(mission, whole)
    assert learn(mission, "--resume").returncode == 2


@pytest.mark.parametrize("torn", [1, 4000])
def test_half_a_line_at_the_end_has_not_happened(mission: Path, whole: Path, torn: int) -> None:
    learn_until(40, "SIGKILL", mission)
    path = run_of(mission) / "events.jsonl"
    path.write_bytes(path.read_bytes()[:-torn])
    assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


def test_a_run_that_never_began_is_in_nobodys_way(mission: Path, whole: Path) -> None:
    learn_until(20, "SIGKILL", mission)
    begun = run_of(mission)
    empty = begun.with_name("29991231-001")
    empty.mkdir()
    (empty / "events.jsonl").write_bytes(b"")
    assert learn(mission, "--resume", "--quiet").returncode == 0
    shutil.rmtree(empty)
    ends_like(mission, whole)


# What has changed since.


def _edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


def _own_prompt(mission: Path) -> None:
    import donewhen.judging.language as language

    shutil.copytree(Path(language.__file__).parent / "languages" / "en", mission / "languages" / "en")
    prompt = next((mission / "languages" / "en").rglob("rollout*.md"))
    prompt.write_text(prompt.read_text() + "\nBe kind.\n")


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda one: _edited(one / "tickets.jsonl", "Unreviewed files: ", "Unreviewed  files: "), "tickets"),
        (lambda one: _edited(one / "tickets.jsonl", '"label": "pass"', '"label": "fail"'), "tickets"),
        (lambda one: _edited(one / "mission.toml", "mission =", 'verdict.pass = "ok"\nmission ='), "language"),
        (lambda one: _edited(one / "mission.toml", "mission =", 'language = "zh"\nmission ='), "language, prompts"),
        (_own_prompt, "prompts"),
    ],
)
def test_a_run_does_not_go_on_when_what_it_began_with_has_changed(
    mission: Path, change: Callable[[Path], None], named: str
) -> None:
    learn_until(20, "SIGKILL", mission)
    before = (run_of(mission) / "events.jsonl").read_bytes()
    change(mission)
    refused = learn(mission, "--resume")
    assert refused.returncode == 2
    assert_sentences(refused.stderr)
    assert named in refused.stderr
    assert (run_of(mission) / "events.jsonl").read_bytes() == before


def test_a_run_does_not_go_on_under_another_version(mission: Path) -> None:
    learn_until(20, "SIGKILL", mission)
    refused = ran([sys.executable, "-c", ANOTHER_VERSION, "learn", "--resume"], mission)
    assert refused.returncode == 2
    assert_sentences(refused.stderr)


def test_a_run_goes_on_with_the_settings_that_it_began_with(mission: Path, whole: Path) -> None:
    learn_until(20, "SIGKILL", mission)
    (mission / "stern.py").write_text("def stern(ticket, vote):\n    return 'fail'\n")
    _edited(mission / "mission.toml", "epochs = 2", 'epochs = 1\nseed = 9\noverrides = ["stern.py:stern"]')
    assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


# Others, and places where nothing can be written.


def test_a_second_run_is_told_who_is_at_work_and_does_not_harm_the_first(mission: Path, whole: Path) -> None:
    first = subprocess.Popen(
        [sys.executable, "-c", AT_EVENT, "30", "SIGSTOP", "learn", "--quiet"], cwd=mission, stdin=subprocess.DEVNULL
    )
    try:
        _, status = os.waitpid(first.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)
        for options in ([], ["--resume"]):
            second = learn(mission, *options)
            assert second.returncode == 2
            assert_sentences(second.stderr)
            assert f"process {first.pid}" in second.stderr
        assert ran([*DONEWHEN, "audit-mission", "--quiet"], mission).returncode == 0
        assert run_main(["replay"], mission).returncode == 0
    finally:
        first.send_signal(signal.SIGCONT)
    assert first.wait(60) == 0
    assert len(list(mission.glob("runs/*/events.jsonl"))) == 1
    ends_like(mission, whole)


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_full_disk_is_said_with_its_place_and_the_run_goes_on_when_there_is_room(
    mission: Path, whole: Path, share: float
) -> None:
    limit = round(share * (run_of(whole) / "events.jsonl").stat().st_size)
    full = ran([sys.executable, "-c", SMALL_FILES, str(limit), "learn"], mission)
    assert full.returncode == 2
    assert run_of(mission).name in full.stderr
    assert_sentences(full.stderr.splitlines()[-2:])
    assert "--resume" in full.stderr
    assert "Traceback" not in full.stderr
    assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


def test_a_disk_that_is_full_when_the_run_has_ended_loses_nothing(mission: Path, whole: Path) -> None:
    """What comes last is longer than what came before: the page needs more room than is left."""
    learn_until(len(recorded(whole)), "SIGKILL", mission)
    full = ran([sys.executable, "-c", SMALL_FILES, "50000", "learn", "--resume"], mission)
    assert full.returncode == 2
    assert run_of(mission).name in full.stderr
    assert "File too large" in full.stderr
    assert "--resume" in full.stderr
    assert learn(mission, "--resume", "--quiet").returncode == 0
    ends_like(mission, whole)


def test_a_mission_that_can_not_be_written_to_can_still_be_audited(mission: Path) -> None:
    setpriv = shutil.which("setpriv")
    if not os.getuid() and setpriv is None:
        pytest.skip("NO SETPRIV: whoever is root may write anywhere")
    powerless = [] if os.getuid() else [str(setpriv), "--bounding-set=-dac_override,-dac_read_search"]
    mission.chmod(0o555)
    try:
        refused = ran([*powerless, *DONEWHEN, "learn"], mission)
        audited = ran([*powerless, *DONEWHEN, "audit-mission", "--quiet"], mission)
    finally:
        mission.chmod(0o755)
    assert refused.returncode == 3
    assert "donewhen: runs: Permission denied." in refused.stderr
    assert audited.returncode == 0, audited.stderr


# A process starts with the peak of the one that it was forked from, and a test process has a large one: this is small.
_MEASURED = """
import os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(os.waitstatus_to_exitcode(status), usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))
"""


def test_thousands_of_tickets_are_learned_from_in_little_memory(tmp_path: Path) -> None:
    count = scaled(1000, 3000)
    make_mission(tmp_path / "many", count)
    measured = ran(
        [sys.executable, "-c", _MEASURED, *DONEWHEN, "learn", "--max-calls", str(3 * count + 100), "--quiet"],
        tmp_path / "many",
    )
    status, memory = map(int, measured.stdout.split())
    # The budget ends the run early, so what it has learned may not be good enough.
    assert status == 0 or (status == 1 and "was not adopted" in measured.stderr), measured.stderr
    assert memory < 300 * 1024 * 1024
    judged = len((run_of(tmp_path / "many") / "trajectories.jsonl").read_text().splitlines())
    assert judged == recorded(tmp_path / "many")[0].data["splits"]["sizes"]["train"] > count * 0.56
