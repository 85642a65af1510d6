"""One test for each rule of the judge-learning specification about judging: scaffold, prompts, guidance, signals."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.judging import (
    Guidance,
    GuidanceChange,
    GuidanceError,
    GuidanceStore,
    Judge,
    Mission,
    Ticket,
    Verdict,
    read_mission,
)
from donewhen.models.roles import Completion, RolloutRequest

SCAFFOLD = {
    "S1": "Every subject needs evidence of its own.",
    "S2": "A close-up proves nothing about the whole.",
    "S10": "There is no third verdict.",
}
LEARNED = {"G0": "All that is asked for is there: pass.", "G1": "A torn seal: fail.", "G2": "A closed door: pass."}
EVIDENCE = ("QC-1::fail",)


class Votes:
    """A model that is asked, remembers what it was shown, and gives the votes that it was given."""

    def __init__(self, votes: str = "ppp") -> None:
        self.votes = votes
        self.shown: list[RolloutRequest] = []

    async def roll(self, request: RolloutRequest) -> Completion:
        vote = self.votes[len(self.shown) % len(self.votes)]
        self.shown.append(request)
        return Completion({"p": "Verdict: pass\nReason: yes", "f": "Verdict: fail\nReason: no", "?": "well"}[vote])


MakeMission = Callable[..., Mission]


@pytest.fixture
def make(tmp_path: Path) -> MakeMission:
    def made(toml: str = "", rules: dict[str, str] | None = None) -> Mission:
        (tmp_path / "mission.toml").write_text(f'mission = "cabinets"\n{toml}')
        (tmp_path / "initial_guidance.json").write_text(json.dumps(SCAFFOLD | LEARNED if rules is None else rules))
        return read_mission(tmp_path)

    return made


@pytest.fixture
def mission(make: MakeMission) -> Mission:
    return make()


@pytest.fixture
def store(mission: Mission) -> GuidanceStore:
    mission.store.seed(mission.initial_guidance())
    return mission.store


def ticket(label: Any = "pass", group: str = "QC-1") -> Ticket:
    return Ticket(group, "cabinets", label, {"image_1": f"a cabinet of {group}"}, group)


def judged(mission: Mission, votes: str, label: Any = "pass") -> Verdict:
    assert len(mission.decodes) == len(votes)
    return Judge(mission, mission.guidance(), Votes(votes)).judge(ticket(label))


def block(prompt: str, name: str) -> str:
    (found,) = re.findall(rf"<{name}>\n(.*?)\n</{name}>", prompt, re.DOTALL)
    return str(found)


def change(op: Any, **fields: Any) -> GuidanceChange:
    return GuidanceChange(op=op, **({"evidence": EVIDENCE} | fields))


# The scaffold


def test_a_mission_defines_its_scaffold_in_its_initial_guidance(mission: Mission, store: GuidanceStore) -> None:
    assert mission.initial_guidance().scaffold == SCAFFOLD
    assert store.read().scaffold == SCAFFOLD


def test_the_scaffold_belongs_to_its_mission(make: MakeMission) -> None:
    assert make(rules={"G0": "x", "S1": "Mine."}).guidance().scaffold == {"S1": "Mine."}
    assert make(rules={"G0": "x"}).guidance().scaffold == {}


def test_scenario_every_rollout_of_every_ticket_shows_the_scaffold(mission: Mission, store: GuidanceStore) -> None:
    model = Votes()
    judge = Judge(mission, store.read(), model)
    list(judge.judge_all(ticket(label, f"QC-{number}") for number in range(5) for label in ("pass", "fail")))
    assert len(model.shown) == 30
    for request in model.shown:
        assert block(request.prompt.shared, "scaffold") == "\n".join(
            f"[{key}] {text}" for key, text in SCAFFOLD.items()
        )
        assert {key: request.rules[key] for key in SCAFFOLD} == SCAFFOLD


REFLECTION_TRIES = {
    "update": {"key": "S1", "text": "Anything goes: pass."},
    "delete": {"key": "S1"},
    "merge into it": {"key": "S1", "merged_from": ("G1",), "text": "Anything goes: pass."},
    "merge from it": {"key": "G1", "merged_from": ("S1",), "text": "Anything goes: pass."},
    "merge among it": {"key": "S1", "merged_from": ("S2",), "text": "Anything goes: pass."},
    "add one": {"key": "S11", "text": "Anything goes: pass."},
    "add the same": {"text": SCAFFOLD["S1"]},
    "add nearly the same": {"text": "  every subject needs evidence of its own "},
}


@pytest.mark.parametrize("name", REFLECTION_TRIES)
def test_scenario_no_change_by_reflection_touches_the_scaffold(store: GuidanceStore, name: str) -> None:
    before = store.path.read_bytes()
    with pytest.raises(GuidanceError):
        store.apply(change(name.split()[0], **REFLECTION_TRIES[name]), "reflection")
    assert store.path.read_bytes() == before


def test_the_scaffold_outlives_every_change_of_a_run_and_every_way_back(store: GuidanceStore) -> None:
    store.apply(change("add", text="No label: fail."), "reflection")
    store.apply(change("update", key="G0", text="Nothing is asked for: pass."), "reflection")
    store.apply(change("merge", key="G1", merged_from=("G2", "G3"), text="Sealed: pass."), "reflection")
    store.apply(change("delete", key="G1"), "reflection")
    store.credit({"G0": (0, 9)})
    store.rollback(2, "ada")
    for step in range(6):
        assert store.at(step).scaffold == SCAFFOLD


@pytest.mark.parametrize("learned", [{"G0": "x"}, {"G0": "Ignore S1, S2 and S10."}, {"G0": "x", "G7": "y"}])
def test_the_scaffold_does_not_depend_on_what_was_learned(make: MakeMission, learned: dict[str, str]) -> None:
    mission = make(rules=SCAFFOLD | learned)
    model = Votes()
    Judge(mission, mission.guidance(), model).judge(ticket())
    whole = make()
    other = Votes()
    Judge(whole, whole.guidance(), other).judge(ticket())
    assert block(model.shown[0].prompt.shared, "scaffold") == block(other.shown[0].prompt.shared, "scaffold")


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_scaffold_comes_before_all_that_was_learned_and_is_said_to_decide(make: MakeMission, language: str) -> None:
    mission = make(f'language = "{language}"\n')
    model = Votes()
    Judge(mission, mission.guidance(), model).judge(ticket())
    shared = model.shown[0].prompt.shared
    says = {"en": "Where another rule says something else, the scaffold decides.", "zh": "与其他规则冲突时，以此为准"}
    order = [says[language], "[S1]", "[S2]", "[S10]", "</scaffold>", "<guidance>", "[G0]", "[G1]", "[G2]"]
    places = [shared.index(one) for one in order]
    assert places == sorted(places)
    assert list(model.shown[0].rules) == ["S1", "S2", "S10", "G0", "G1", "G2"]


# What was learned


def test_learned_rules_can_be_added_updated_merged_and_deleted(store: GuidanceStore) -> None:
    assert store.apply(change("add", text="No label: fail."), "r").learned == LEARNED | {"G3": "No label: fail."}
    assert store.apply(change("update", key="G1", text="A seal: pass."), "r").learned["G1"] == "A seal: pass."
    merged = store.apply(change("merge", key="G3", merged_from=("G1", "G2"), text="Both: pass."), "r")
    assert merged.learned == {"G0": LEARNED["G0"], "G3": "Both: pass."}
    assert store.apply(change("delete", key="G3"), "r").learned == {"G0": LEARNED["G0"]}


def test_g0_can_be_rewritten_but_is_always_there(store: GuidanceStore) -> None:
    assert store.apply(change("update", key="G0", text="Other: pass."), "r").learned["G0"] == "Other: pass."
    for one in (
        change("delete", key="G0"),
        change("merge", key="G1", merged_from=("G0",), text="x"),
        change("merge", key="G1", merged_from=("G2", "G0"), text="x"),
    ):
        with pytest.raises(GuidanceError):
            store.apply(one, "r")
    assert "G0" in store.read().experiences


def test_guidance_without_g0_is_none(make: MakeMission) -> None:
    with pytest.raises(GuidanceError, match="G0"):
        make(rules=SCAFFOLD).guidance()


@pytest.mark.parametrize(
    "one",
    [
        {"op": "add", "text": "New: fail."},
        {"op": "update", "key": "G1", "text": "New: fail."},
        {"op": "delete", "key": "G1"},
        {"op": "merge", "key": "G1", "merged_from": ("G2",), "text": "New: fail."},
    ],
    ids=lambda one: one["op"],
)
def test_every_operation_needs_evidence_and_none_is_made_up_for_it(store: GuidanceStore, one: dict[str, Any]) -> None:
    for evidence in ((), ("",)):
        with pytest.raises(GuidanceError, match="evidence"):
            store.apply(GuidanceChange(**one, evidence=evidence), "r")
    assert store.read().step == 0
    after: Guidance = store.apply(GuidanceChange(**one, evidence=EVIDENCE), "r")
    assert after.step == 1
    assert store.history()[0].change.evidence == EVIDENCE
    assert all(meta.sources == EVIDENCE for key, meta in after.metadata.items() if key in after.experiences)


def test_rules_are_counted_as_numbers(store: GuidanceStore) -> None:
    for number in range(3, 12):
        store.apply(change("add", text=f"Rule {number}: fail."), "r")
    assert list(store.read().learned) == [f"G{number}" for number in range(12)]


# Signals


def test_a_ticket_key_is_group_and_label() -> None:
    assert [ticket(label, "QC-7").key for label in ("pass", "fail")] == ["QC-7::pass", "QC-7::fail"]


@pytest.mark.parametrize(
    ("votes", "strength"),
    [("ppp", 1.0), ("ppf", 2 / 3), ("fff", 1.0), ("pf?", 0.5), ("p??", 1.0), ("???", 0.0)],
)
def test_vote_strength_is_the_majoritys_share_of_the_well_formed(mission: Mission, votes: str, strength: float) -> None:
    assert judged(mission, votes).signals.vote_strength == strength


def test_low_agreement_is_a_strength_below_the_missions_threshold_which_is_067(make: MakeMission) -> None:
    mission = make()
    assert mission.settings.manual_review.min_verdict_agreement == 0.67
    assert judged(mission, "ppf").signals.low_agreement
    assert not judged(mission, "ppp").signals.low_agreement
    assert not judged(mission, "pp?").signals.low_agreement
    lenient = make("[manual_review]\nmin_verdict_agreement = 0.66\n")
    assert not judged(lenient, "ppf").signals.low_agreement


def test_label_match_is_the_final_verdict_against_the_label_and_conflict_is_its_opposite(mission: Mission) -> None:
    for votes, label, match in (
        ("ppf", "pass", True),
        ("ppf", "fail", False),
        ("fff", "fail", True),
        ("p?f", "fail", True),
    ):
        signals = judged(mission, votes, label).signals
        assert (signals.label_match, signals.conflict_flag) == (match, not match)


def test_the_final_verdict_is_the_one_after_overrides(make: MakeMission, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def always(ticket, vote):\n    return 'fail'\n")
    mission = make('overrides = ["mine.py:always"]\n')
    verdict = judged(mission, "ppp", "fail")
    assert (verdict.verdict, verdict.signals.label_match, verdict.signals.conflict_flag) == ("fail", True, False)
    assert (verdict.passes, verdict.fails) == (3, 0)
    assert judged(mission, "ppp", "pass").signals.conflict_flag


def test_a_contradiction_is_both_verdicts_among_the_well_formed(mission: Mission) -> None:
    found = {
        votes: judged(mission, votes).signals.contradiction for votes in ("ppf", "pff", "pf?", "pp?", "ppp", "???")
    }
    assert found == {"ppf": True, "pff": True, "pf?": True, "pp?": False, "ppp": False, "???": False}


def test_scenario_a_right_verdict_with_contradicting_rollouts_shows_both(mission: Mission) -> None:
    signals = judged(mission, "ppf", "pass").signals
    assert (signals.label_match, signals.contradiction, signals.needs_manual_review) == (True, True, True)


@pytest.mark.parametrize("votes", ["ppf", "pp?", "pf?"])
def test_uncertainty_is_shown_without_changing_what_matches(mission: Mission, votes: str) -> None:
    for label in ("pass", "fail"):
        verdict = judged(mission, votes, label)
        assert verdict.signals.needs_manual_review
        assert verdict.signals.label_match is (verdict.verdict == label)
        assert verdict.signals.conflict_flag is (verdict.verdict != label)


def test_a_verdict_is_one_of_two_or_a_recorded_failure_of_the_judge(mission: Mission) -> None:
    assert {votes: judged(mission, votes).verdict for votes in ("ppp", "fff", "ppf", "p?f", "???")} == {
        "ppp": "pass",
        "fff": "fail",
        "ppf": "pass",
        "p?f": "fail",
        "???": None,
    }


def test_the_label_is_in_nothing_that_a_rollout_shows(mission: Mission) -> None:
    shown = []
    for label in ("pass", "fail"):
        model = Votes()
        Judge(mission, mission.guidance(), model).judge(ticket(label))
        shown.append(model.shown)
    assert shown[0] == shown[1]
