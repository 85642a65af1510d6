"""Every record of a judgement says by which prompt it was made."""

from __future__ import annotations

import json
from pathlib import Path

from donewhen.demo.example_mission import make_mission
from donewhen.foundation.canonical import digest
from donewhen.judging.judge import Judge
from donewhen.judging.language import SHIPPED
from donewhen.judging.mission import read_mission
from donewhen.judging.verdict import Verdict
from donewhen.learning.after.learn_mission import learn
from donewhen.models.registry import open_model

ROLLOUT = digest((SHIPPED / "en" / "rollout.md").read_bytes())


def test_a_verdict_names_the_hash_of_its_prompt_and_keeps_it_in_files(tmp_path: Path) -> None:
    make_mission(tmp_path, 50)
    mission = read_mission(tmp_path)
    verdict = Judge(mission, mission.guidance(), open_model("contrast")).judge(next(mission.tickets()))
    assert verdict.prompt == ROLLOUT
    assert Verdict.from_dict(json.loads(json.dumps(verdict.as_dict()))) == verdict


def test_every_event_about_answers_names_its_prompt(tmp_path: Path) -> None:
    make_mission(tmp_path, 60)
    run = learn(read_mission(tmp_path), open_model("contrast")).prepared.folder
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    prompts = {name: digest((SHIPPED / "en" / f"{name}.md").read_bytes()) for name in ("decision", "ops")}
    seen = {"rolled": 0, "evaluated": 0, "decided": 0, "proposed": 0}
    for event in events:
        match event["type"]:
            case "rolled":
                assert {row["prompt"] for row in event["data"]["rows"]} == {ROLLOUT}
            case "evaluated":
                assert event["data"]["prompt"] == ROLLOUT
            case "decided":
                assert event["data"]["prompt"] == prompts["decision"]
            case "proposed":
                assert event["data"]["prompt"] == prompts["ops"]
            case _:
                continue
        seen[event["type"]] += 1
    assert all(seen.values()), seen
