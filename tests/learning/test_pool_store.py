"""Hypotheses that outlive a run."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from donewhen.judging.mission import read_mission
from donewhen.learning.after.learn_mission import learn
from donewhen.learning.reflection.hypotheses import PooledHypothesis
from donewhen.learning.running.events import RunError
from donewhen.learning.running.pool_store import POOL, carried_over_hypotheses, save_waiting_hypotheses
from donewhen.learning.running.run_folders import run_state_of
from donewhen.learning.running.run_state import RunState
from donewhen.models.roles import ReflectionRequest, RolloutRequest
from donewhen.testing.models import ScriptedJudge
from sentences import assert_sentences

RULE = 'When it mentions "captcha", the verdict is fail.'


def waiting(signature: str = "a", *, cycles: tuple[str, ...] = ("1.1",), fate: str = "waiting") -> PooledHypothesis:
    data = {"signature": signature, "text": RULE, "falsifier": "one that passed", "dimension": "", "fate": fate}
    return msgspec.convert(
        {**data, "cycles": cycles, "evidence": ("T1::fail", "T2::fail"), "tried_with": 2}, PooledHypothesis
    )


def mission_in(folder: Path, *, epochs: int = 1, count: int = 60) -> None:
    rows = []
    for number in range(count):
        bad = number % 3 == 0
        text = f"a captcha was shown, part {number}" if bad else f"all is well, part {number}"
        label = "fail" if bad else "pass"
        rows.append(json.dumps({"group_id": f"T{number}", "mission": "m", "label": label, "text": text}))
    (folder / "tickets.jsonl").write_text("\n".join(rows) + "\n")
    (folder / "initial_guidance.json").write_text('{"G0": "Decide."}')
    (folder / "mission.toml").write_text(f'mission = "m"\nepochs = {epochs}\n[trial]\nmin_tickets = 5\n')


def judge(request: RolloutRequest) -> str:
    text = " ".join(request.evidence.values())
    known = any("captcha" in rule for rule in request.rules.values())
    return f"Verdict: {'fail' if known and 'captcha' in text else 'pass'}\nReason: as the rules say"


def propose(request: ReflectionRequest) -> dict[str, object]:
    evidence = [case.ticket_key for case in request.cases]
    hypothesis = {"text": RULE, "falsifier": "a captcha that passed", "evidence": evidence}
    return {"has_evidence": True, "evidence_analysis": "", "operations": [], "hypotheses": [hypothesis]}


def test_support_adds_up_over_runs_and_promotes_in_the_second(tmp_path: Path) -> None:
    mission_in(tmp_path)
    first = learn(read_mission(tmp_path), ScriptedJudge(judge, propose=propose))
    assert first.state.changes == []
    kept = carried_over_hypotheses(read_mission(tmp_path), first.prepared.splits.train)
    assert [(entry.text, entry.fate, entry.cycles) for entry in kept] == [
        (RULE, "waiting", (f"{first.prepared.id}:1.1",))
    ]
    # The same question gets the same answer, which is counted once.
    again = learn(read_mission(tmp_path), ScriptedJudge(judge, propose=propose))
    assert again.state.changes == []
    assert [entry.cycles for entry in again.state.pool.values()] == [(f"{first.prepared.id}:1.1",)]
    # More tickets are another question, and its answer is new support.
    mission_in(tmp_path, count=90)
    second = learn(read_mission(tmp_path), ScriptedJudge(judge, propose=propose))
    assert second.guidance is not None
    assert second.guidance.learned["G1"] == RULE
    assert carried_over_hypotheses(read_mission(tmp_path), second.prepared.splits.train) == ()
    assert run_state_of(second.prepared.folder).pool == second.state.pool


def test_without_adoption_the_mission_keeps_what_it_had(tmp_path: Path) -> None:
    mission_in(tmp_path)
    learn(read_mission(tmp_path), ScriptedJudge(judge, propose=propose), adopting=False)
    assert not (tmp_path / POOL).exists()


def test_a_ticket_that_is_kept_back_now_is_no_support(tmp_path: Path) -> None:
    mission_in(tmp_path)
    mission = read_mission(tmp_path)
    state = RunState(pool={"a": waiting("a"), "b": waiting("b", fate="promoted")})
    save_waiting_hypotheses(mission, state, "run-1")
    (hypothesis,) = carried_over_hypotheses(mission, {"T1::fail", "T9::pass"})
    assert (hypothesis.signature, hypothesis.evidence, hypothesis.tried_with, hypothesis.cycles) == (
        "a",
        ("T1::fail",),
        1,
        ("run-1:1.1",),
    )
    assert carried_over_hypotheses(mission, {"T9::pass"}) == ()


def test_cycles_keep_the_name_of_the_run_that_they_are_from(tmp_path: Path) -> None:
    mission_in(tmp_path)
    mission = read_mission(tmp_path)
    save_waiting_hypotheses(mission, RunState(pool={"a": waiting(cycles=("run-1:1.1", "1.1"))}), "run-2")
    assert carried_over_hypotheses(mission, {"T1::fail"})[0].cycles == ("run-1:1.1", "run-2:1.1")


def test_a_broken_file_is_an_error_with_its_place(tmp_path: Path) -> None:
    mission_in(tmp_path)
    (tmp_path / POOL).write_text('[{"signature": ')
    with pytest.raises(RunError) as caught:
        carried_over_hypotheses(read_mission(tmp_path), ())
    assert_sentences(caught.value)
    assert caught.value.where == str(tmp_path / POOL)
    (tmp_path / POOL).unlink()
    (tmp_path / POOL).mkdir()
    with pytest.raises(RunError) as caught:
        carried_over_hypotheses(read_mission(tmp_path), ())
    assert_sentences(caught.value)
