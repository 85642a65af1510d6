"""One test for each rule of the judge-learning specification about learning: reflection, hypotheses, closure."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "learning"))

from learning_kit import (
    RULES,
    TRIAL_OFF,
    Ran,
    add,
    answer,
    captcha_model,
    cases_in,
    guess,
    learn,
    mentions,
    mission_in,
    obedient,
    row,
    says_captcha,
    set_aside,
    small,
)

from donewhen.judging.mission_settings import ManualReview, Reflection
from donewhen.learning.running.artifacts import write_artifacts
from donewhen.learning.running.run_folders import run_state_of
from donewhen.models.roles import ReflectionRequest, RolloutRequest
from donewhen.testing.models import ScriptedJudge

ALL_TO_LEARN = "[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n"
BARE = f"epochs = 1\n{TRIAL_OFF}{ALL_TO_LEARN}"
"""The behaviour of the specification alone: no trial."""


def keys_of(request: ReflectionRequest) -> list[str]:
    return [case.key for case in cases_in(request)]


def reflect(folder: Path, said: Any, toml: str = BARE, rules: dict[str, str] | None = None, **more: Any) -> Ran:
    """Ten pages with a captcha that the judge lets through, and a reflector that says something about them."""
    propose = said if callable(said) else lambda request: said
    model = ScriptedJudge(more.pop("roll", obedient), more.pop("decide", None), propose)
    return learn(mission_in(folder, more.pop("tickets", small(10, 4)), toml, rules or RULES), model)


# Scaffold


SCAFFOLD = {
    "S1": "What can't be seen is a fail.",
    "S2": "The whole page counts.",
    "G0": "Decide.",
    "G1": mentions("unicorns"),
}


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "update", "key": "S1", "text": mentions("x", "pass")},
        {"op": "delete", "key": "S2"},
        {"op": "merge", "key": "S1", "merged_from": ["G1"], "text": mentions("x", "pass")},
        {"op": "merge", "key": "G1", "merged_from": ["S2"], "text": mentions("x", "pass")},
        {"op": "add", "text": "what can't be seen is a FAIL"},
        {"op": "add", "key": "S3", "text": mentions("x", "pass")},
    ],
    ids=["update", "delete", "merge into", "merge from", "add the same", "add a key"],
)
def test_reflection_must_not_change_the_scaffold(tmp_path: Path, operation: dict[str, Any]) -> None:
    run = reflect(tmp_path, lambda request: answer([{**operation, "evidence": keys_of(request)}]), rules=SCAFFOLD)
    assert run.rules == SCAFFOLD
    assert run.state.rejections


def test_the_scaffold_is_in_every_rollout_prompt_of_a_run_however_the_guidance_changes(tmp_path: Path) -> None:
    def rewrites(request: ReflectionRequest) -> dict[str, Any]:
        operations = [
            {"op": "update", "key": "G0", "text": mentions("today"), "evidence": keys_of(request)},
            {"op": "delete", "key": "G1", "evidence": keys_of(request)},
        ]
        return answer(operations)

    model = ScriptedJudge(obedient, None, rewrites)
    run = learn(mission_in(tmp_path, small(10, 4), f"epochs = 2\n{TRIAL_OFF}{ALL_TO_LEARN}", SCAFFOLD), model)
    assert run.state.guidance.learned == {"G0": mentions("today")}
    for request in model.rollouts:
        shown = request.prompt.shared
        assert shown.index("[S1] What can't be seen") < shown.index("[S2] The whole") < shown.index("[G0]")


# Hypotheses


def test_hypotheses_must_be_persisted_and_accumulate_support_over_cycles(tmp_path: Path) -> None:
    run = reflect(tmp_path, says_captcha, BARE + "[reflection]\nbatch_size = 2\nhypothesis_min_support_cycles = 9\n")
    [one] = run_state_of(run.folder).pool.values()
    assert one.cycles == ("1.1", "1.2", "1.3", "1.4", "1.5")
    assert sorted(one.evidence) == sorted(f"captcha{at}::fail" for at in range(10))
    assert one.fate == "waiting"
    supports = [len(event["hypothesis"]["evidence"]) for event in run.of("supported")]
    assert supports == [2, 4, 6, 8, 10]
    write_artifacts(run.folder, run.events, run.state, run.mission.clock)
    stored = json.loads((run.folder / "hypotheses.json").read_text())
    assert [row["text"] for row in stored] == [mentions("captcha")]


def test_a_hypothesis_is_promoted_only_after_repeated_support_across_cycles(tmp_path: Path) -> None:
    """Six tickets in one cycle are not enough, nor are two cycles with five: two cycles with six are."""
    defaults = Reflection()
    assert (defaults.hypothesis_min_support_cycles, defaults.hypothesis_min_unique_ticket_keys) == (2, 6)
    for name, tickets, batch, promoted in (("one", 8, 8, False), ("few", 5, 3, False), ("both", 6, 3, True)):
        toml = f"{BARE}[reflection]\nbatch_size = {batch}\n"
        run = reflect(tmp_path / name, says_captcha, toml, tickets=small(tickets, 4))
        assert run.state.guidance.learned == ({"G0": RULES["G0"]} | ({"G1": mentions("captcha")} if promoted else {}))
        before = [event for event in run.events if event.type in ("supported", "guidance_changed")]
        assert [one.type for one in before][-1] == ("guidance_changed" if promoted else "supported")


def test_a_second_proposal_in_the_same_cycle_is_no_repeated_support(tmp_path: Path) -> None:
    def half(request: ReflectionRequest) -> dict[str, Any]:
        keys = keys_of(request)
        return answer(hypotheses=[guess(mentions("captcha"), keys[: max(1, len(keys) // 2)])])

    run = reflect(tmp_path, half)
    assert len(run.of("supported")) > 1
    assert run.rules == RULES


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"text": "Somebody should look at the captcha."}, "no_verdict"),
        ({"text": "The verdict is pass, or else fail."}, "both_verdicts"),
        ({"text": "As with captcha1, the verdict is fail."}, "sample_id"),
        ({"text": "QC-31::fail shows it, so fail."}, "sample_id"),
        ({"falsifier": ""}, "no_falsifier"),
        ({"text": "With insufficient evidence the verdict is fail."}, "third_state"),
        ({"text": "If manual review is asked for, the verdict is fail."}, "third_state"),
        ({"dimension": "brand"}, "brand"),
        ({"evidence": []}, "no_evidence"),
        ({"evidence": ["receipt0::pass"]}, "evidence_not_learnable"),
        ({"dimension": "global_local"}, None),
        ({}, None),
    ],
)
def test_a_hypothesis_must_be_binary_general_falsifiable_and_without_a_third_state(
    tmp_path: Path, change: dict[str, Any], reason: str | None
) -> None:
    run = reflect(tmp_path, lambda request: answer(hypotheses=[guess(mentions("captcha"), keys_of(request)) | change]))
    assert set(run.reasons) == (set() if reason is None else {reason})
    assert bool(run.state.pool) is (reason is None)


def test_a_hypothesis_must_not_copy_the_objects_of_a_case(tmp_path: Path) -> None:
    chain = "a red kettle on a blue stove beside the old window"
    tickets = [row(f"k{at}", "fail", f"{chain} {at}") for at in range(4)] + small(0, 3)
    run = reflect(tmp_path, lambda r: answer(hypotheses=[guess(f"{chain}: fail", keys_of(r))]), tickets=tickets)
    assert set(run.reasons) == {"copied_chain"}


# Who is reflected upon


def test_reflection_runs_only_on_tickets_with_a_learnable_signal(tmp_path: Path) -> None:
    """Wrong, contradicting, of low agreement or with a malformed vote; not what was right with one voice."""

    def votes(request: RolloutRequest) -> str:
        page = request.evidence["text"]
        late = request.decode.temperature == 0.7
        if ("wavers" in page or "unsure" in page) and late:
            return "Verdict: fail\nReason: hm"
        return "perhaps" if "mumbles" in page and late else "Verdict: pass\nReason: fine"

    pages = ("wrong", "wavers", "mumbles", "clear")
    tickets = [row(name, "fail" if name == "wrong" else "pass", f"{name} page") for name in pages]
    model = ScriptedJudge(votes, None, lambda _: answer())
    run = learn(mission_in(tmp_path, tickets, BARE), model)
    told = {one["ticket_key"]: set(one["signals"]) for one in run.of("selected")[0]["candidates"]}
    assert told == {
        "wrong::fail": {"label_mismatch", "conflict_flag"},
        "wavers::pass": {"contradiction", "low_agreement", "needs_manual_review"},
        "mumbles::pass": {"needs_manual_review"},
    }
    assert {case.ticket_key for case in model.decisions[0].cases} == set(told)
    assert ManualReview().min_verdict_agreement == 0.67


def test_a_right_verdict_with_contradicting_rollouts_is_in_the_decision_pass(tmp_path: Path) -> None:
    def votes(request: RolloutRequest) -> str:
        return f"Verdict: {'fail' if request.decode.temperature == 0.1 else 'pass'}\nReason: so"

    model = ScriptedJudge(votes)
    run = learn(mission_in(tmp_path, [row("a", "pass", "a page")], BARE), model)
    [rolled] = run.of("rolled")[0]["rows"]
    assert (rolled["verdict"], rolled["label_match"]) == ("pass", True)
    assert [case.ticket_key for case in model.decisions[0].cases] == ["a::pass"]


def test_a_flag_for_review_or_conflict_never_stops_the_gradient(tmp_path: Path) -> None:
    run = reflect(tmp_path, says_captcha)
    assert all("conflict_flag" in one["signals"] for one in run.of("selected")[0]["candidates"])
    assert [one for one in run.state.queue if one["reason_code"] == "reflection_no_evidence_after_gt"] == []


# Two passes


def test_the_decision_pass_sees_the_labels_and_comes_before_the_ops_pass(tmp_path: Path) -> None:
    order: list[str] = []

    def decide(request: ReflectionRequest) -> dict[str, Any]:
        order.append("decision")
        assert {case.label for case in cases_in(request)} == {"fail"}
        return set_aside(*keys_of(request)[:2])

    def propose(request: ReflectionRequest) -> dict[str, Any]:
        order.append("ops")
        return says_captcha(request)

    run = reflect(tmp_path, propose, decide=decide)
    assert order == ["decision", "ops"]
    aside = {one["ticket_key"] for one in run.state.queue}
    assert len(aside) == 2
    assert aside.isdisjoint(run.of("proposed")[0]["cases"])
    assert len(run.of("proposed")[0]["cases"]) == 8


def test_a_decision_names_only_ticket_keys_of_its_input(tmp_path: Path) -> None:
    others = ("captcha0", "captcha0::pass", "receipt0::pass", "nobody::fail")
    run = reflect(tmp_path, says_captcha, decide=lambda _: set_aside(*others))
    assert run.reasons == ["unknown_ticket_key"] * 4
    assert run.state.queue == []


@pytest.mark.parametrize("said", ["I think all of them.", "[]", '{"no_evidence_group_ids": []}', '{"a": 1} {"a": 1}'])
def test_a_decision_must_be_one_strict_object(tmp_path: Path, said: str) -> None:
    run = reflect(tmp_path, says_captcha, decide=lambda _: said)
    assert run.of("proposed") == []
    assert run.state.status == "no_usable_reflection"
    assert {one["reason_code"] for one in run.state.queue} == {"budget_exhausted"}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda said: f"Here: {json.dumps(said)}",
        lambda said: json.dumps(said) + json.dumps(said),
        lambda said: json.dumps(said)[:-1],
        lambda said: json.dumps(said | {"more": 1}),
        lambda said: json.dumps({name: one for name, one in said.items() if name != "operations"}),
        lambda said: json.dumps([said]),
    ],
)
def test_an_ops_answer_must_be_one_strict_object_and_is_never_repaired(tmp_path: Path, spoil: Any) -> None:
    run = reflect(tmp_path, lambda request: spoil(says_captcha(request)))
    assert run.state.pool == {}
    assert run.rules == RULES


def test_an_ops_answer_may_stand_in_one_fence(tmp_path: Path) -> None:
    run = reflect(tmp_path, lambda request: f"\n```json\n{json.dumps(says_captcha(request))}\n```\n")
    assert len(run.state.pool) == 1


def test_hypotheses_may_be_left_out_and_coverage_is_only_advice(tmp_path: Path) -> None:
    def boasts(request: ReflectionRequest) -> dict[str, Any]:
        keys = keys_of(request)
        told = {"learnable_ticket_keys": keys, "covered_ticket_keys": keys, "uncovered_ticket_keys": []}
        said = answer([add(mentions("captcha"), keys[:1])] if request.attempt == 0 else [], coverage=told)
        del said["hypotheses"]
        return said

    run = reflect(tmp_path, boasts)
    assert run.rules == RULES | {"G1": mentions("captcha")}
    assert run.of("closed")[0]["covered"] == run.of("proposed")[0]["cases"][:1]
    assert run.state.epochs[0].exhausted == 9


def test_rules_from_g0_on_can_be_added_updated_deleted_and_merged(tmp_path: Path) -> None:
    rules = RULES | {"G1": mentions("a"), "G2": mentions("b"), "G3": mentions("c")}

    def everything(request: ReflectionRequest) -> dict[str, Any]:
        keys = keys_of(request)
        return answer(
            [
                add(mentions("captcha"), keys),
                {"op": "update", "key": "G0", "text": mentions("nothing"), "evidence": keys},
                {"op": "delete", "key": "G1", "evidence": keys},
                {"op": "merge", "key": "G2", "merged_from": ["G3"], "text": mentions("d"), "evidence": keys},
            ]
        )

    run = reflect(tmp_path, everything, BARE + "[reflection]\nmax_operations = 4\n", rules)
    assert run.state.guidance.learned == {"G0": mentions("nothing"), "G2": mentions("d"), "G4": mentions("captcha")}


@pytest.mark.parametrize(
    "operation",
    [{"op": "delete", "key": "G0"}, {"op": "merge", "key": "G1", "merged_from": ["G0"], "text": mentions("d")}],
)
def test_the_first_rule_is_always_there(tmp_path: Path, operation: dict[str, Any]) -> None:
    rules = RULES | {"G1": mentions("unicorns")}
    run = reflect(tmp_path, lambda r: answer([{**operation, "evidence": keys_of(r)}]), rules=rules)
    assert run.rules == rules
    assert set(run.reasons) == {"g0_removal"}


def test_there_is_one_stop_gradient_file_and_no_queue_for_manual_review(tmp_path: Path) -> None:
    run = reflect(tmp_path, answer(), decide=lambda request: set_aside(*keys_of(request)[:3]))
    write_artifacts(run.folder, run.events, run.state, run.mission.clock)
    names = [path.name for path in run.folder.iterdir()]
    assert [name for name in names if "gradient" in name or "queue" in name or "review" in name] == [
        "stop_gradient.jsonl"
    ]
    rows = [json.loads(line) for line in (run.folder / "stop_gradient.jsonl").read_text().splitlines()]
    assert Counter(one["reason_code"] for one in rows) == {"reflection_no_evidence_after_gt": 3, "budget_exhausted": 7}
    fields = (
        "ticket_key group_id mission gt_label pred_verdict pred_reason reason_code epoch reflection_cycle reflection_id"
    )
    assert all(set(one) == {*fields.split(), "uncertainty_note"} for one in rows)


# Evidence


@pytest.mark.parametrize("evidence", [None, [], ["nobody::fail"], ["receipt0::pass"]], ids=str)
@pytest.mark.parametrize(
    "item",
    [
        {"op": "add", "text": mentions("captcha")},
        {"op": "update", "key": "G1", "text": mentions("captcha")},
        {"op": "delete", "key": "G1"},
        {"op": "merge", "key": "G1", "merged_from": ["G2"], "text": mentions("captcha")},
        {"text": mentions("captcha"), "falsifier": "one that passed"},
    ],
    ids=["add", "update", "delete", "merge", "hypothesis"],
)
def test_nothing_is_taken_without_evidence_from_the_learnable_tickets_and_none_is_made_up(
    tmp_path: Path, item: dict[str, Any], evidence: list[str] | None
) -> None:
    item = item if evidence is None else item | {"evidence": evidence}
    said = answer([item]) if "op" in item else answer(hypotheses=[item])
    rules = RULES | {"G1": mentions("unicorns"), "G2": mentions("griffins")}
    run = reflect(tmp_path, said, rules=rules, tickets=small(4, 4))
    assert run.rules == rules
    assert run.state.pool == {}
    assert set(run.reasons) == {"evidence_not_learnable" if evidence else "no_evidence"}
    assert run.state.epochs[0].covered == 0
    assert run.state.epochs[0].exhausted == 4


# Closure


def test_what_is_learnable_is_what_is_covered_after_retries_that_ask_no_judge(tmp_path: Path) -> None:
    """L == E ∪ H: the operation covers some, the hypothesis others, and the rest comes again until it is covered."""

    def some(request: ReflectionRequest) -> dict[str, Any]:
        keys = keys_of(request)
        if request.attempt:
            return answer(hypotheses=[guess(mentions("today"), keys)])
        return answer([add(mentions("captcha"), keys[:3])], [guess(mentions("shows"), keys[3:6])])

    model = ScriptedJudge(obedient, None, some)
    run = learn(mission_in(tmp_path, small(10, 4), BARE), model)
    first, *again = [[case.ticket_key for case in request.cases] for request in model.proposals]
    assert len(first) == 10
    assert sorted(key for keys in again for key in keys) == sorted(first[6:])
    covered = [key for event in run.of("closed") for key in event["covered"]]
    assert sorted(covered) == sorted(first)
    assert len(model.rollouts) == len({(rollout.prompt, rollout.decode) for rollout in model.rollouts})
    judged = [event for event in run.events if event.type == "rolled"]
    assert max(one.number for one in judged) < min(one.number for one in run.events if one.type == "decided")


def test_whoever_is_never_covered_is_asked_about_within_the_budget_and_then_put_on_record(tmp_path: Path) -> None:
    assert Reflection().retry_budget_per_group_per_epoch == 2
    for budget in (None, 0, 3):
        toml = BARE if budget is None else f"{BARE}[reflection]\nretry_budget_per_group_per_epoch = {budget}\n"
        model = ScriptedJudge(obedient, None, lambda _: answer())
        run = learn(mission_in(tmp_path / str(budget), small(6, 4), toml), model)
        times = Counter(case.ticket_key for request in model.proposals for case in request.cases)
        assert set(times.values()) == {1 + (2 if budget is None else budget)}
        assert {one["ticket_key"] for one in run.state.queue} == set(times)
        assert len(run.state.queue) == 6


def test_decision_and_ops_calls_of_an_epoch_have_a_common_cap(tmp_path: Path) -> None:
    assert Reflection().max_calls_per_epoch is None
    for cap in range(6):
        model = ScriptedJudge(obedient, None, lambda _: answer())
        toml = f"{BARE}[reflection]\nbatch_size = 3\nmax_calls_per_epoch = {cap}\n"
        run = learn(mission_in(tmp_path / str(cap), small(6, 4), toml), model)
        assert len(model.decisions) + len(model.proposals) == cap
        # Nobody is dropped because of it.
        assert {one["reason_code"] for one in run.state.queue} == {"budget_exhausted"}
        assert len(run.state.queue) == run.state.epochs[0].candidates == 6


def test_a_rule_that_was_promoted_is_what_the_next_epoch_judges_by(tmp_path: Path) -> None:
    model = captcha_model()
    toml = f"epochs = 2\n{TRIAL_OFF}{ALL_TO_LEARN}[reflection]\nbatch_size = 5\n"
    run = learn(mission_in(tmp_path, small(10, 4), toml), model)
    assert [epoch.wrong for epoch in run.state.epochs] == [10, 0]
    assert [one["step"] for one in run.of("epoch_started")] == [0, 1]
