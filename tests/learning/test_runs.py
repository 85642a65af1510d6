"""Runs on disk: one writer, what they leave behind, replay, adoption, and a process that is really killed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from learning_kit import (
    MIN_TRIAL,
    ONE_VOTE,
    RULES,
    TRIAL_OFF,
    Ran,
    add,
    answer,
    captcha_model,
    cases_in,
    learn,
    mentions,
    mission_in,
    obedient,
    row,
    small,
    substance,
)

from donewhen.foundation.locks import LockedError
from donewhen.judging.guidance import GuidanceChange, GuidanceError
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import TicketError
from donewhen.learning.after.learn_mission import learn as learn_mission
from donewhen.learning.after.replay import replay_run
from donewhen.learning.after.report_data import report_from_json
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.running.artifacts import write_artifacts
from donewhen.learning.running.events import EventLog, RunError, RunEvent, each_event, first_event, read_events
from donewhen.learning.running.recorder import NoWatcher
from donewhen.learning.running.run_folders import (
    EVENTS,
    adopt_guidance,
    find_run,
    is_over,
    lock_runs,
    run_folders,
    run_state_of,
    unfinished_run,
)
from donewhen.learning.running.run_state import RunState
from donewhen.models.roles import ReflectionRequest
from donewhen.testing.clock import ManualClock
from donewhen.testing.models import ScriptedJudge
from sentences import assert_sentences

TOML = "epochs = 2\n" + ONE_VOTE + MIN_TRIAL + "[reflection]\nbatch_size = 4\n"


def two_changes(request: ReflectionRequest) -> dict[str, Any]:
    """One rule an epoch."""
    keys = [case.key for case in cases_in(request)]
    word = "captcha" if mentions("captcha") not in request.prompt.shared else "timeout"
    return answer([add(mentions(word), keys)])


def two_words() -> list[dict[str, Any]]:
    return small(24, 10) + [row(f"t{at}", "fail", f"timeout {at}") for at in range(10)]


def left_behind(folder: Path, tickets: list[dict[str, Any]] | None = None) -> Ran:
    run = learn(mission_in(folder, tickets or small(), TOML), captcha_model())
    write_artifacts(run.folder, run.events, run.state, run.mission.clock)
    return run


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


# Artifacts


def test_a_run_leaves_everything_behind_and_all_of_it_comes_from_the_events(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    names = {path.name for path in run.folder.iterdir() if not path.name.startswith(".")}
    assert names == {
        *("events.jsonl", "guidance.json", "guidance.history.jsonl", "snapshots", "trajectories.jsonl"),
        *("selections.jsonl", "reflections.jsonl", "hypothesis_events.jsonl", "hypotheses.json", "trials.jsonl"),
        *("stop_gradient.jsonl", "metrics.json", "manifest.json"),
    }
    trajectories = lines(run.folder / "trajectories.jsonl")
    assert len(trajectories) == sum(epoch.rolled for epoch in run.state.epochs)
    assert trajectories[0]["epoch"] == 1
    assert lines(run.folder / "stop_gradient.jsonl") == run.state.queue
    reflections = lines(run.folder / "reflections.jsonl")
    assert [reflection["type"] for reflection in reflections][:3] == ["decided", "proposed", "closed"]
    assert reflections[0]["prompt"] == run.mission.language.hashes["decision"]
    assert reflections[1]["prompt"] == run.mission.language.hashes["ops"]
    assert lines(run.folder / "trials.jsonl")[0]["accepted"] is True
    pool = json.loads((run.folder / "hypotheses.json").read_text())
    assert [(hypothesis["text"], hypothesis["fate"], hypothesis["key"]) for hypothesis in pool] == [
        (mentions("captcha"), "promoted", "G1")
    ]
    assert [line["type"] for line in lines(run.folder / "hypothesis_events.jsonl")] == ["supported"] * 2 + ["fated"]
    manifest = json.loads((run.folder / "manifest.json").read_text())
    assert manifest["settings"]["reflection"]["batch_size"] == 4
    assert {"model", "version", "prompts", "splits", "tickets", "guidance"} <= set(manifest)
    metrics = json.loads((run.folder / "metrics.json").read_text())
    assert [epoch["epoch"] for epoch in metrics["epochs"]] == [1, 2]
    assert metrics["epochs"][0]["validation_after"] == 1.0
    assert metrics["spent"]["calls"] == run.state.spent["calls"]
    again = tmp_path / "again"
    shutil.copytree(run.folder, again)
    for path in again.iterdir():
        if path.name != "events.jsonl" and path.is_file():
            path.unlink()
    shutil.rmtree(again / "snapshots")
    write_artifacts(again, each_event(again / "events.jsonl"), run_state_of(again), run.mission.clock)
    for name in names - {"snapshots", "guidance.history.jsonl"}:
        if name.endswith(".jsonl"):
            assert lines(again / name) == lines(run.folder / name), name
        else:
            assert json.loads((again / name).read_text()) == json.loads((run.folder / name).read_text()), name


def test_a_rejection_is_in_the_reflection_log_with_its_reason_and_what_was_said(tmp_path: Path) -> None:
    bad = {"op": "delete", "key": "S1", "rationale": "", "evidence": ["x"]}
    model = ScriptedJudge(obedient, None, lambda _: answer([bad]))
    run = learn(mission_in(tmp_path, small(), TOML), model)
    write_artifacts(run.folder, run.events, run.state, run.mission.clock)
    proposed = [line for line in lines(run.folder / "reflections.jsonl") if line["type"] == "proposed"]
    assert proposed[0]["rejections"] == [
        {"what": "operation", "reason": "evidence_not_learnable", "detail": "x", "item": bad}
    ]


# Replay


def test_replay_rebuilds_the_guidance_from_the_events_alone(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    found = replay_run(run.folder)
    assert found.differences == ()
    assert found.finished
    assert found.events == len(run.events)
    assert found.guidance == run.state.guidance
    assert found.guidance.experiences["G1"] == mentions("captcha")


def test_replay_sees_a_guidance_that_was_written_by_somebody_else(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    path = run.folder / "guidance.json"
    good = path.read_text(encoding="utf-8")
    for old, new, expected in (
        ("captcha", "receipt", "G1 is"),
        ("Only what the page shows", "Whatever somebody says", "S1 is"),
        ("a hypothesis with", "a whim with", "the evidence of G1"),
        ('"hit_count": 6', '"hit_count": 60', "the evidence of G1"),
    ):
        assert old in good
        path.write_text(good.replace(old, new, 1), encoding="utf-8")
        [difference] = replay_run(run.folder).differences
        assert difference.startswith(expected)
    path.unlink()
    assert_sentences(replay_run(run.folder).differences)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("guidance_changed", b"mentions", b"mentioned"),
        ("guidance_changed", b'"op":"add"', b'"op":"delete"'),
        ("run_started", b"Only what the page", b"Whatever the page"),
    ],
)
def test_events_that_were_changed_do_not_lead_to_the_guidance_that_they_speak_of(
    tmp_path: Path, kind: str, old: bytes, new: bytes
) -> None:
    run = left_behind(tmp_path)
    edit_event(run, kind, old, new)
    [difference] = replay_run(run.folder).differences
    assert difference.startswith(f"Event {_first_wrong(run, kind)} ")
    assert_sentences(difference)


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        ("guidance_changed", b'"op":"add"', b'"op":"explode"'),
        ("guidance_changed", b'"change":', b'"chance":'),
        ("epoch_started", b'"epoch":', b'"epic":'),
        ("supported", b'"cycles":[', b'"cycles":7,"x":['),
        ("run_started", b'"step":', b'"stop":'),
    ],
)
def test_an_event_with_a_field_that_is_missing_or_of_another_type_is_named_with_its_line(
    tmp_path: Path, kind: str, old: bytes, new: bytes
) -> None:
    run = left_behind(tmp_path)
    line = edit_event(run, kind, old, new)
    with pytest.raises(RunError) as caught:
        replay_run(run.folder)
    assert caught.value.where == f"{run.folder / EVENTS}:{line}"
    assert_sentences(caught.value)


def test_an_event_of_a_newer_version_is_no_broken_event(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    path = run.folder / EVENTS
    content = path.read_bytes().splitlines(keepends=True)
    assert content[2].endswith(b',"v":2}\n')
    content[2] = content[2].replace(b',"v":2}', b',"v":3}').replace(b'"type":"', b'"type":"re')
    path.write_bytes(b"".join(content))
    with pytest.raises(RunError) as caught:
        replay_run(run.folder)
    assert caught.value.where == f"{path}:3"
    assert "Update donewhen" in str(caught.value.next_step)


def test_a_mistake_of_ours_is_not_taken_for_a_broken_event(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = left_behind(tmp_path)
    monkeypatch.setattr(RunState, "_apply_rolled", lambda *_: [][1])
    with pytest.raises(IndexError):
        replay_run(run.folder)


def edit_event(run: Ran, kind: str, old: bytes, new: bytes) -> int:
    """Change the first event of this kind by hand; its line."""
    path = run.folder / EVENTS
    content = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, event in enumerate(run.events) if event.type == kind)
    assert old in content[at]
    content[at] = content[at].replace(old, new, 1)
    path.write_bytes(b"".join(content))
    return at + 1


def _first_wrong(run: Ran, kind: str) -> int:
    """A scaffold that was changed at the beginning shows when the guidance changes, and the rest at once."""
    shows = "guidance_changed" if kind == "run_started" else kind
    return next(event.number for event in run.events if event.type == shows)


def test_evidence_that_was_changed_in_the_events_is_a_difference(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    path = run.folder / EVENTS
    content = path.read_bytes().splitlines(keepends=True)
    at = next(number for number, event in enumerate(run.events) if event.type == "guidance_changed")
    content[at] = content[at].replace(b'"evidence":["captcha', b'"evidence":["receipt', 1)
    path.write_bytes(b"".join(content))
    assert_sentences(replay_run(run.folder).differences)


def test_a_last_event_that_names_another_guidance_is_a_difference(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    path = run.folder / EVENTS
    content = path.read_bytes()
    assert content.count(run.state.guidance.hash.encode()) >= 2
    head, _, tail = content.rpartition(run.state.guidance.hash.encode())
    path.write_bytes(head + b"sha256:0" + tail)
    assert_sentences(replay_run(run.folder).differences)


def test_a_snapshot_that_was_changed_is_a_difference(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    [snapshot] = (run.folder / "snapshots").iterdir()
    snapshot.write_text(snapshot.read_text().replace("Only what", "Whatever"))
    assert_sentences(replay_run(run.folder).differences)
    snapshot.unlink()
    assert_sentences(replay_run(run.folder).differences)


def test_a_run_without_events_cannot_be_replayed(tmp_path: Path) -> None:
    (tmp_path / EVENTS).write_bytes(b"")
    with pytest.raises(RunError) as caught:
        replay_run(tmp_path)
    assert_sentences(caught.value)


def test_a_run_that_was_cut_off_replays_as_far_as_it_goes(tmp_path: Path) -> None:
    run = left_behind(tmp_path)
    path = run.folder / EVENTS
    content = path.read_bytes().splitlines(keepends=True)
    changed = next(number for number, event in enumerate(run.events) if event.type == "guidance_changed")
    path.write_bytes(b"".join(content[: changed + 1]) + b'{"half')
    found = replay_run(run.folder)
    assert not found.finished
    assert found.events == changed + 1
    assert found.guidance.experiences == run.state.guidance.experiences


# Events


def test_lines_that_are_no_events_are_named(tmp_path: Path) -> None:
    path = tmp_path / EVENTS
    log = EventLog(path, clock=ManualClock())
    first = log.append("epoch_started", {"epoch": 1, "step": 0, "keys": ("a", "b")}, {"calls": 3})
    assert first.data == {"epoch": 1, "step": 0, "keys": ["a", "b"]}
    log.append("selected", {"candidates": []}, {})
    log.close()
    good = path.read_bytes()
    assert [event.number for event in read_events(path)] == [1, 2]
    assert first_event(path) == first
    for bad in (b"no\n", b"[]\n", b"{}\n", b'{"number":3}\n', good.splitlines(keepends=True)[0]):
        path.write_bytes(good + bad)
        with pytest.raises(RunError) as caught:
            read_events(path)
        assert caught.value.where == f"{path}:3"
    path.write_bytes(good.replace(b'"selected"', b'"elected"'))
    with pytest.raises(RunError) as caught:
        read_events(path)
    assert_sentences(caught.value)
    with pytest.raises(RunError) as caught:
        read_events(tmp_path / "none.jsonl")
    assert_sentences(caught.value)


def test_a_torn_line_is_cut_off_before_anything_is_appended(tmp_path: Path) -> None:
    path = tmp_path / EVENTS
    for torn in (b'{"number":1', b'{"number":1' + b"x" * 200_000):
        path.write_bytes(torn)
        log = EventLog(path)
        assert log.earlier() is None
        log.append("selected", {"candidates": []}, {})
        log.close()
        assert [event.type for event in read_events(path)] == ["selected"]


def test_a_full_disk_is_said_with_what_to_do(tmp_path: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this machine has no /dev/full")
    log = EventLog(tmp_path / EVENTS)
    log._file.close()
    log._file = Path("/dev/full").open("wb")  # noqa: SIM115 - it can't be closed without an error
    with pytest.raises(RunError) as caught:
        log.append("selected", {"candidates": []}, {})
    assert_sentences(caught.value)
    with pytest.raises(OSError) as caught:
        log._file.close()
    assert_sentences(caught.value)


# One writer


def test_a_second_writer_is_told_at_once(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    with lock_runs(mission), pytest.raises(RunError) as caught:
        learn(mission, captcha_model())
    assert_sentences(caught.value)
    assert str(os.getpid()) in str(caught.value)
    assert run_folders(mission) == ()
    learn(mission, captcha_model())


def test_a_lock_that_somebody_else_holds_inside_of_a_run_is_not_taken_for_another_run(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    with pytest.raises(LockedError) as caught, lock_runs(mission):
        raise LockedError("the guidance is locked.")
    assert_sentences(caught.value)


SCRIPT = """
import sys, time
sys.path.insert(0, {kit!r})
from pathlib import Path
import learning_kit as kit
from donewhen.judging.mission import read_mission
from donewhen.learning.running.run_folders import unfinished_run
from donewhen.testing.models import ScriptedJudge

def slow(request):
    time.sleep({pause})
    return kit.obedient(request)

asked = Path({asked!r}).open("ab", buffering=0)

class Counted(ScriptedJudge):
    async def roll(self, request):
        answer = await super().roll(request)
        asked.write(b"r")
        return answer

mission = read_mission(Path({folder!r}))
model = Counted(slow, None, kit.says_captcha)
print("ready", flush=True)
run = kit.learn(mission, model, resume=unfinished_run(mission))
print("done", flush=True)
"""


def process(mission: Mission, asked: Path, pause: float, **environment: str) -> subprocess.Popen[str]:
    kit = str(Path(__file__).parent)
    script = SCRIPT.format(kit=kit, pause=pause, asked=str(asked), folder=str(mission.folder))
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment,
    )


def test_another_process_is_told_who_is_at_work(tmp_path: Path) -> None:
    mission = mission_in(tmp_path / "m", small(), TOML)
    with lock_runs(mission):
        second = process(mission, tmp_path / "asked", 0)
        _, errors = second.communicate(timeout=60)
    assert second.returncode != 0
    assert_sentences(errors.splitlines()[-1])
    assert not (tmp_path / "asked").exists() or (tmp_path / "asked").read_bytes() == b""


def test_a_process_that_is_killed_again_and_again_ends_where_one_ends_that_was_not(tmp_path: Path) -> None:
    whole = learn(mission_in(tmp_path / "whole", small(), TOML), captcha_model())
    mission = mission_in(tmp_path / "m", small(), TOML)
    dice = random.Random(20260214)
    kills = 0
    for _ in range(40):
        running = process(mission, tmp_path / "asked", 0.004)
        assert running.stdout is not None
        assert running.stdout.readline() == "ready\n"
        if kills < 6:
            time.sleep(dice.uniform(0.0, 0.12))
            running.send_signal(signal.SIGKILL)
        said, problem = running.communicate(timeout=60)
        if running.returncode == 0:
            assert said == "done\n"
            break
        assert running.returncode == -signal.SIGKILL, problem
        kills += 1
    assert kills >= 3
    [folder] = [name for name in run_folders(mission) if first_event(name / EVENTS) is not None]
    events = read_events(folder / EVENTS)
    assert substance(events)[1:] == substance(whole.events)[1:]
    assert events[-1].spent["calls"] == whole.events[-1].spent["calls"]
    # What was in flight at a kill is asked again, and nothing else.
    asked = len((tmp_path / "asked").read_bytes())
    assert asked <= whole.state.spent["rollout_calls"] + kills


def test_events_do_not_depend_on_how_a_process_hashes(tmp_path: Path) -> None:
    found = []
    for seed in ("1", "2"):
        tickets = [*small(10, 10), *(row(f"noise{at}", "fail", f"receipt{at} noise shows receipt") for at in range(4))]
        mission = mission_in(tmp_path / seed, tickets, TOML)
        done = process(mission, tmp_path / "asked", 0, PYTHONHASHSEED=seed)
        said, problem = done.communicate(timeout=60)
        assert said.endswith("done\n"), problem
        [folder] = run_folders(mission)
        found.append(substance(read_events(folder / EVENTS))[1:])
    assert found[0] == found[1]


# Which run?


def test_runs_are_found_by_name_and_the_newest_without(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    with pytest.raises(RunError) as caught:
        find_run(mission, None)
    assert_sentences(caught.value)
    first, two = learn(mission, captcha_model()), learn(mission, captcha_model())
    assert [first.folder.name, two.folder.name] == ["20260101-001", "20260101-002"]
    assert run_folders(mission) == (first.folder, two.folder)
    assert find_run(mission, None) == two.folder
    assert find_run(mission, "20260101-001") == first.folder
    with pytest.raises(RunError) as caught:
        find_run(mission, "20260101-003")
    assert_sentences(caught.value)
    assert "20260101-001, 20260101-002" in str(caught.value)


# Learning as a program calls it, and adoption


class Stop(BaseException):
    pass


class StopAt(NoWatcher):
    def __init__(self, kind: str) -> None:
        self._kind = kind

    def event(self, event: RunEvent, state: RunState) -> None:
        if event.type == self._kind:
            raise Stop


def test_what_was_learned_becomes_the_guidance_of_the_mission(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    learned = learn_mission(mission, captcha_model())
    assert learned.guidance == mission.guidance()
    assert learned.problem is None
    assert mission.guidance().experiences == RULES | {"G1": mentions("captcha")}
    assert mission.guidance().metadata["G1"].hit_count == learned.state.guidance.metadata["G1"].hit_count > 0
    assert [revision.by for revision in mission.store.history()] == ["run 20260101-001"]
    assert is_over(learned.prepared.folder)
    assert unfinished_run(mission) is None
    report = report_from_json((learned.prepared.folder / "report.json").read_bytes())
    assert report == learned.report
    assert report.before.accuracy is not None
    assert report.after is not None
    assert report.after.accuracy is not None
    assert report.after.accuracy.value > report.before.accuracy.value


def test_it_can_be_left_where_it_is(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    learned = learn_mission(mission, captcha_model(), adopting=False)
    assert learned.guidance is None
    assert not mission.store.exists
    assert learned.state.guidance.experiences == RULES | {"G1": mentions("captcha")}


@pytest.mark.parametrize("kind", ["run_started", "proposed", "guidance_changed", "run_finished"])
def test_a_run_that_was_interrupted_has_its_files_and_is_adopted_once_it_is_through(tmp_path: Path, kind: str) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    with pytest.raises(Stop):
        learn_mission(mission, captcha_model(), StopAt(kind))
    folder = unfinished_run(mission)
    assert folder is not None
    assert not mission.store.exists
    assert replay_run(folder).differences == ()
    learned = learn_mission(mission, captcha_model(), resume=folder)
    assert learned.guidance is not None
    assert mission.guidance().experiences == RULES | {"G1": mentions("captcha")}
    again = learn_mission(mission, captcha_model(), resume=folder)
    assert again.problem is None
    assert len(mission.store.history()) == 1


def test_an_adoption_that_was_cut_off_is_finished(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, two_words(), TOML.replace("batch_size = 4", "batch_size = 40"))
    run = learn(mission, ScriptedJudge(obedient, None, two_changes))
    assert len(run.state.changes) == 2
    store = mission.store
    store.seed(mission.initial_guidance())
    store.apply(run.state.applied[0], f"run {run.folder.name}")
    adopt_guidance(mission, run.state, run.folder.name)
    assert mission.guidance().experiences == run.state.guidance.experiences
    assert [revision.step for revision in store.history()] == [1, 2]
    assert adopt_guidance(mission, run.state, run.folder.name).step == 2
    assert [revision.step for revision in store.history()] == [1, 2]


def test_a_guidance_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    run = learn(mission, captcha_model())
    store = mission.store
    store.seed(mission.initial_guidance())
    store.apply(GuidanceChange(op="add", text="By hand: fail.", evidence=("a::fail",)), "ada")
    with pytest.raises(GuidanceError) as caught:
        adopt_guidance(mission, run.state, run.folder.name)
    assert_sentences(caught.value)
    assert mission.guidance().experiences == RULES | {"G1": "By hand: fail."}
    learned = learn_mission(mission, captcha_model(), resume=run.folder)
    assert learned.problem is not None
    assert learned.guidance is None


def test_a_guidance_that_went_on_after_the_adoption_is_left_alone(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    learned = learn_mission(mission, captcha_model())
    mission.store.apply(GuidanceChange(op="add", text="By hand: fail.", evidence=("a::fail",)), "ada")
    again = learn_mission(mission, captcha_model(), resume=learned.prepared.folder)
    assert again.problem is None
    assert mission.guidance().experiences == RULES | {"G1": mentions("captcha"), "G2": "By hand: fail."}


def test_a_run_whose_settings_are_of_another_world_cannot_go_on(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    run = learn(mission, captcha_model())
    path = run.folder / EVENTS
    path.write_bytes(path.read_bytes().replace(b'"batch_size":4', b'"batch_size":"four"', 1))
    with pytest.raises(RunError) as caught:
        learn(mission, captcha_model(), resume=run.folder)
    assert_sentences(caught.value)


def test_a_report_that_cannot_be_written_leaves_a_run_that_can_be_taken_up(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(), TOML)
    with pytest.raises(Stop):
        learn_mission(mission, captcha_model(), StopAt("run_finished"))
    folder = unfinished_run(mission)
    assert folder is not None
    assert is_over(folder)
    (folder / "report.json").mkdir()
    with pytest.raises(RunError) as caught:
        learn_mission(mission, captcha_model(), resume=folder)
    assert_sentences(caught.value)
    (folder / "report.json").rmdir()
    assert learn_mission(mission, captcha_model(), resume=folder).problem is None
    assert unfinished_run(mission) is None


def test_a_second_run_begins_where_the_first_has_ended(tmp_path: Path) -> None:
    toml = TOML.replace("epochs = 2", "epochs = 1").replace("= 4", "= 40")
    # The first run finds one of two flaws, so it still lets many bad tickets through.
    toml = toml.replace("[trial]\n", "[trial]\nmax_false_release = 0.5\n")
    timeouts = [row(f"t{at}", "fail", f"timeout {at}") for at in range(16)]
    mission = mission_in(tmp_path, small(30, 40) + timeouts, toml)
    first = learn_mission(mission, ScriptedJudge(obedient, None, two_changes))
    second = learn_mission(mission, ScriptedJudge(obedient, None, two_changes))
    assert first.adoption.accepted, first.adoption.reason
    assert first.state.guidance.step == 1
    assert second.state.manifest["guidance"]["step"] == 1
    assert mission.guidance().step == 2
    assert mission.guidance().experiences == RULES | {"G1": mentions("captcha"), "G2": mentions("timeout")}
    assert second.report.splits.test_openings == 2


def test_with_the_trial_off_the_report_says_so(tmp_path: Path) -> None:
    toml = TOML.replace(MIN_TRIAL, "").replace(ONE_VOTE, ONE_VOTE + TRIAL_OFF)
    learned = learn_mission(mission_in(tmp_path, small(), toml), captcha_model())
    assert "trial_off" in {note.code for note in learned.report.notes}


# The book


def test_a_bad_ticket_is_named_with_its_line_and_nothing_is_skipped(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(2, 2))
    path = tmp_path / "tickets.jsonl"
    good = path.read_text(encoding="utf-8")
    path.write_text(good + "\n" + good.splitlines()[1] + "\n", encoding="utf-8")
    with pytest.raises(TicketError) as caught:
        TicketReader(mission)
    assert_sentences(caught.value)
    assert caught.value.where == f"{path}:6"
    assert f"{path}:2" in str(caught.value)
    path.write_text(good + "nonsense\n", encoding="utf-8")
    with pytest.raises(TicketError) as caught:
        TicketReader(mission)
    assert caught.value.where == f"{path}:5"
    path.write_text("\n", encoding="utf-8")
    with pytest.raises(TicketError) as caught:
        TicketReader(mission)
    assert_sentences(caught.value)
    path.unlink()
    with pytest.raises(Exception) as caught:
        TicketReader(mission)
    assert_sentences(caught.value)


def test_tickets_that_change_under_the_book_are_noticed(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(2, 2))
    book = TicketReader(mission)
    path = tmp_path / "tickets.jsonl"
    lines_there = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines_there[2:], *lines_there[:2]]), encoding="utf-8")
    with pytest.raises(TicketError):
        [book.ticket(member.key) for member in book.members]


@pytest.mark.parametrize(
    "change",
    [{"type": []}, {"type": {}}, {"spent": "x"}, {"spent": None}, {"spent": [1]}, {"spent": {"calls": "many"}},
     {"spent": {"calls": None}}, {"at": 5}],
    ids=str,
)  # fmt: skip
def test_an_event_with_a_value_of_the_wrong_type_is_named_with_its_line(tmp_path: Path, change: dict[str, Any]) -> None:
    good = {"number": 1, "type": "closed", "at": "2026-02-14T10:00:00Z", "data": {}, "spent": {}, "v": 2}
    file = tmp_path / "events.jsonl"
    file.write_text(json.dumps(good | change) + "\n")
    with pytest.raises(RunError, match="not a valid event with number 1") as caught:
        read_events(file)
    assert caught.value.where == f"{file}:1"
