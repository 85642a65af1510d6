"""A whole run of learning, recorded against a server and replayed without it."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from donewhen.demo.example_mission import make_mission
from donewhen.judging.mission import Mission, read_mission
from donewhen.learning.after.learn_mission import LearnResult, learn
from donewhen.learning.running.events import RunEvent, read_events
from donewhen.models.registry import open_model
from donewhen.models.roles import Model
from donewhen.testing import Cassette, CassetteError, ManualClock
from donewhen.testing.chat_api import ChatCall, ChatServer, Reply
from sentences import assert_sentences

pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")

KEY = "sk-loopback-0123456789abcdef"
RULE = "Reports that speak of skipped tests fail."
CASE = re.compile(r'<case key="([^"]+::fail)".*?</case>', re.DOTALL)


def said(call: ChatCall) -> Reply:
    """Knows nothing by itself, does what its rules say, and has one idea."""
    if call.schema is None:
        skipped = RULE in call.system and "skipped" in call.user
        return Reply("Verdict: fail\nReason: tests were skipped" if skipped else "Verdict: pass\nReason: no rule")
    if "no_evidence_group_ids" in call.schema["properties"]:
        return Reply(json.dumps({"no_evidence_group_ids": [], "decision_analysis": "all can teach"}))
    cases = [match[1] for match in CASE.finditer(call.user) if "skipped" in match[0]]
    change = {"op": "add", "text": RULE, "rationale": "they are sent back", "evidence": cases}
    operations = [change] if cases and RULE not in call.system else []
    payload = {"has_evidence": bool(operations), "evidence_analysis": "", "operations": operations, "hypotheses": []}
    return Reply(json.dumps(payload))


def mission_in(folder: Path) -> Mission:
    make_mission(folder, 200)
    with (folder / "mission.toml").open("a") as settings:
        settings.write("epochs = 1\nconcurrency = 8\nsampler = [{ temperature = 0.1 }]\n")
    return read_mission(folder, clock=ManualClock())


def events_of(learned: LearnResult) -> list[RunEvent]:
    """What happened, but for how long it took."""
    return [
        dataclasses.replace(event, spent=dict(event.spent, seconds=0.0))
        for event in read_events(learned.prepared.folder / "events.jsonl")
    ]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("DONEWHEN_CASSETTES", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(said, limit=100_000, key=KEY) as started:
        yield started


def recorded(server: ChatServer, tape: Path, mission: Mission) -> LearnResult:
    model: Model = open_model(f"openai:any@{server.base_url}")
    with Cassette(tape, model) as cassette:
        return learn(mission, cassette)


def test_a_run_is_recorded_and_replayed_without_the_server(
    tmp_path: Path, server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = tmp_path / "tape.jsonl"
    first = recorded(server, tape, mission_in(tmp_path / "first"))
    assert RULE in first.state.guidance.rules.values()
    assert KEY not in tape.read_text()
    asked = len(server.calls)
    assert asked > 200
    server.stop()
    monkeypatch.delenv("OPENAI_API_KEY")

    again = learn(mission_in(tmp_path / "again"), Cassette(tape))
    assert events_of(again) == events_of(first)
    assert again.state.guidance.rules == first.state.guidance.rules
    assert len(server.calls) == asked


def test_a_replay_under_other_rules_stops_and_names_the_question(tmp_path: Path, server: ChatServer) -> None:
    tape = tmp_path / "tape.jsonl"
    recorded(server, tape, mission_in(tmp_path / "first"))
    changed = mission_in(tmp_path / "changed")
    rules = json.loads((changed.folder / "initial_guidance.json").read_text())
    (changed.folder / "initial_guidance.json").write_text(json.dumps(rules | {"S9": "Be brief."}))
    with pytest.raises(CassetteError) as caught:
        learn(read_mission(changed.folder, clock=ManualClock()), Cassette(tape))
    assert_sentences(caught.value)
    assert caught.value.where == str(tape)
