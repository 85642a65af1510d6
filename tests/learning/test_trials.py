"""Before guidance changes, it is tried on unseen tickets; and rules are measured by leaving them out."""

from __future__ import annotations

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
    careless,
    cases_in,
    guess,
    learn,
    mentions,
    mission_in,
    obedient,
    row,
    small,
)

from donewhen.learning.measuring.metrics import measure
from donewhen.learning.measuring.splits import split_tickets
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.models.roles import ReflectionRequest
from donewhen.testing.models import ScriptedJudge

QUICK = ONE_VOTE + "epochs = 3\n"


def accuracy(run: Ran, when: str) -> float:
    found = measure((label, verdict) for _, label, verdict, _ in run.state.evaluations[when])
    assert found.accuracy is not None
    return found.accuracy.value


def test_a_careless_reflector_makes_it_worse_without_a_trial_and_not_with_one(tmp_path: Path) -> None:
    # Every page is of "today": the rule fails all that should pass. Nobody cleans up after it.
    toml = "[rules]\ncredit_tickets = 0\n"
    model = ScriptedJudge(obedient, None, careless("today"))
    without = learn(mission_in(tmp_path / "off", small(20, 40), QUICK + TRIAL_OFF + toml), model)
    assert accuracy(without, "after") < accuracy(without, "before")
    assert mentions("today") in without.rules.values()
    tried = learn(mission_in(tmp_path / "on", small(20, 40), QUICK + MIN_TRIAL + toml), model)
    assert accuracy(tried, "after") == accuracy(tried, "before")
    assert tried.rules == RULES
    assert {event["reason"] for event in tried.of("trialled")} == {"more_errors"}
    assert tried.of("guidance_changed") == []


def test_clean_up_does_away_with_what_a_careless_reflector_has_added(tmp_path: Path) -> None:
    model = ScriptedJudge(obedient, None, careless("today"))
    run = learn(mission_in(tmp_path, small(20, 40), QUICK + TRIAL_OFF), model)
    assert [(event["change"]["op"], event["origin"]) for event in run.of("guidance_changed")][:2] == [
        ("add", "1.1.1"),
        ("delete", "clean-up"),
    ]


def test_a_refused_trial_is_on_record_and_does_not_reopen_closure(tmp_path: Path) -> None:
    model = ScriptedJudge(obedient, None, careless("today"))
    run = learn(mission_in(tmp_path, small(10, 20), QUICK.replace("3", "1") + MIN_TRIAL), model)
    [trial] = run.of("trialled")
    assert not trial["accepted"]
    assert trial["broken"]
    assert trial["change"]["text"] == mentions("today")
    assert run.state.epochs[0].refused == 1
    # The cases are covered: they were evidence of something valid.
    assert [len(event["retry"]) for event in run.of("closed")] == [0]
    assert run.state.epochs[0].covered == run.state.epochs[0].candidates
    assert {proposal.attempt for proposal in model.proposals} == {0}


def test_with_too_few_unseen_tickets_nothing_is_changed(tmp_path: Path) -> None:
    toml = QUICK + "[reflection]\nbatch_size = 4\n"
    run = learn(mission_in(tmp_path / "few", small(20, 20), toml), captcha_model())
    assert run.rules == RULES
    assert [event["reason"] for event in run.of("trialled")] == ["too_few_tickets"]
    [hypothesis] = run.state.pool.values()
    assert (hypothesis.fate, hypothesis.why) == ("refused", "too_few_tickets")
    enough = learn(mission_in(tmp_path / "enough", small(20, 20), toml + "[trial]\nmin_tickets = 8\n"), captcha_model())
    assert enough.rules == RULES | {"G1": mentions("captcha")}


def test_without_any_unseen_ticket_nothing_is_changed_unless_trials_are_off(tmp_path: Path) -> None:
    none = "[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n[reflection]\nbatch_size = 4\n"
    run = learn(mission_in(tmp_path / "on", small(), QUICK + none), captcha_model())
    assert run.rules == RULES
    off = learn(mission_in(tmp_path / "off", small(), QUICK + TRIAL_OFF + none), captcha_model())
    assert off.rules == RULES | {"G1": mentions("captcha")}
    assert off.of("trialled") == []
    assert off.state.guidance.metadata["G1"].sources


def test_a_trial_judges_both_guidances_on_validation_tickets_with_the_same_decodes(tmp_path: Path) -> None:
    mission = mission_in(tmp_path, small(20, 20), "epochs = 1\n" + MIN_TRIAL + "[reflection]\nbatch_size = 6\n")
    model = captcha_model()
    run = learn(mission, model)
    splits = split_tickets(TicketReader(mission).members, mission.settings.split, mission.settings.seed)
    texts = {TicketReader(mission).ticket(key).text for key in splits.validation}
    [trial] = run.of("trialled")
    assert trial["tickets"] == len(splits.validation)
    assert set(trial["fixed"]) <= set(splits.validation)
    assert trial["errors_before"] == len(trial["fixed"])
    asked: dict[bool, set[tuple[str, float, int]]] = {True: set(), False: set()}
    for request in model.rollouts:
        if request.evidence["text"] in texts:
            asked[mentions("captcha") in request.prompt.shared].add(
                (request.evidence["text"], request.decode.temperature, request.decode.sample)
            )
    assert asked[True] == asked[False]
    assert len(asked[True]) == len(texts) * 3


def test_an_added_rule_that_changes_nothing_is_refused_and_an_update_that_does_not_harm_is_made(tmp_path: Path) -> None:
    def propose(request: ReflectionRequest) -> dict[str, Any]:
        keys = [case.key for case in cases_in(request)]
        update = {"op": "update", "key": "G1", "text": mentions("unicorns"), "evidence": keys}
        return answer([add(mentions("dragons"), keys), update])

    rules = RULES | {"G1": mentions("griffins")}
    toml = QUICK.replace("3", "1") + MIN_TRIAL
    run = learn(mission_in(tmp_path, small(10, 10), toml, rules), ScriptedJudge(obedient, None, propose))
    assert [(event["change"]["op"], event["reason"]) for event in run.of("trialled")] == [
        ("add", "not_better"),
        ("update", "no_worse"),
    ]
    assert run.rules == RULES | {"G1": mentions("unicorns")}


def test_a_rule_that_lets_bad_work_through_is_refused_however_many_errors_it_mends(tmp_path: Path) -> None:
    """The judge blocks all that is blue. Most pages of that are fine, some are not."""
    tickets = [
        row(f"b{at}", "pass" if at % 6 else "fail", f"blue {'sheet' if at in (0, 12, 30) else 'page'} {at}")
        for at in range(48)
    ]
    rules = RULES | {"G1": mentions("blue")}

    def propose(request: ReflectionRequest) -> dict[str, Any]:
        return answer([add(mentions("page", "pass"), [case.key for case in cases_in(request)])])

    toml = QUICK.replace("3", "1")
    run = learn(mission_in(tmp_path / "no", tickets, toml + MIN_TRIAL, rules), ScriptedJudge(obedient, None, propose))
    assert {event["reason"] for event in run.of("trialled")} == {"more_false_releases"}
    allowed = toml + MIN_TRIAL + "max_more_false_releases = 9\n"
    run = learn(mission_in(tmp_path / "yes", tickets, allowed, rules), ScriptedJudge(obedient, None, propose))
    assert mentions("page", "pass") in run.rules.values()


def test_the_same_change_of_the_same_guidance_is_not_tried_twice(tmp_path: Path) -> None:
    def propose(request: ReflectionRequest) -> dict[str, Any]:
        return answer([add(mentions("today"), [case.key for case in cases_in(request)])])

    toml = QUICK + MIN_TRIAL + "[reflection]\nbatch_size = 3\n"
    run = learn(mission_in(tmp_path, small(10, 20), toml), ScriptedJudge(obedient, None, propose))
    assert len(run.of("trialled")) == 1
    assert len(run.of("proposed")) > 2


def test_a_hypothesis_that_was_refused_is_tried_again_only_with_new_tickets(tmp_path: Path) -> None:
    def propose(request: ReflectionRequest) -> dict[str, Any]:
        return answer(hypotheses=[guess(mentions("today"), [case.key for case in cases_in(request)])])

    toml = "epochs = 4\n" + ONE_VOTE + MIN_TRIAL + "[reflection]\nbatch_size = 6\n"
    run = learn(mission_in(tmp_path, small(20, 40), toml), ScriptedJudge(obedient, None, propose))
    [hypothesis] = run.state.pool.values()
    assert hypothesis.fate == "refused"
    assert hypothesis.tried_with == len(hypothesis.evidence)
    assert len(run.of("fated")) < len(run.of("supported"))


# Credit and clean-up


def test_credit_is_measured_by_leaving_the_rule_out(tmp_path: Path) -> None:
    """The newest rule does nothing; the old one does it all, and gets the credit."""
    rules = RULES | {"G1": mentions("captcha"), "G2": mentions("unicorns")}
    tickets = [*small(10, 10), row("odd", "fail", "an odd page")]
    toml = QUICK.replace("3", "1") + "[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n"
    run = learn(mission_in(tmp_path, tickets, toml, rules), ScriptedJudge(obedient))
    [credit] = run.of("credited")
    assert len(credit["rules"]["G1"]["hits"]) == 10
    assert credit["rules"]["G1"]["misses"] == []
    assert credit["rules"]["G2"] == {"hits": [], "misses": []}
    measured_of = run.state.guidance.metadata
    assert (measured_of["G1"].hit_count, measured_of["G1"].miss_count) == (10, 0)
    assert measured_of["G1"].confidence == round(11 / 12, 4)
    assert (measured_of["G2"].hit_count, measured_of["G2"].confidence) == (0, 0.5)
    assert run.state.credited_on == 21


@pytest.mark.parametrize("trial", [MIN_TRIAL, TRIAL_OFF])
def test_a_rule_that_does_not_pay_goes_with_the_tickets_that_say_so(tmp_path: Path, trial: str) -> None:
    rules = RULES | {"G1": mentions("receipt"), "G2": mentions("captcha")}
    toml = QUICK.replace("3", "1") + trial
    run = learn(mission_in(tmp_path, small(20, 20), toml, rules), ScriptedJudge(obedient))
    [change] = run.of("guidance_changed")
    assert (change["change"]["op"], change["key"], change["origin"]) == ("delete", "G1", "clean-up")
    misses = run.of("credited")[0]["rules"]["G1"]["misses"]
    assert change["change"]["evidence"] == misses
    assert len(misses) >= 3
    assert run.rules == RULES | {"G2": mentions("captcha")}
    trials = [(event["origin"], event["accepted"]) for event in run.of("trialled")]
    assert trials == ([("clean-up", True)] if trial == MIN_TRIAL else [])


def test_clean_up_keeps_a_rule_that_unseen_tickets_need(tmp_path: Path) -> None:
    """On the training tickets the rule does harm; on the others it does good, and they decide."""
    rules = RULES | {"G1": mentions("blue")}
    tickets = small(4, 12) + [row(f"b{at}", "pass", f"blue page {at}") for at in range(24)]
    mission = mission_in(tmp_path, tickets, QUICK.replace("3", "1") + MIN_TRIAL, rules)
    unseen = set(split_tickets(TicketReader(mission).members, mission.settings.split, mission.settings.seed).validation)
    tickets = [
        ticket | {"text": f"{ticket['text']} unseen"} if f"{ticket['group_id']}::pass" in unseen else ticket
        for ticket in tickets
    ]

    def sees(request: Any) -> str:
        # To this judge the rule means the opposite where it was never looked at.
        if "unseen" in request.prompt.own and "blue" in request.prompt.own:
            return f"Verdict: {'pass' if mentions('blue') in request.prompt.shared else 'fail'}\nReason: so it is"
        return obedient(request)

    mission = mission_in(tmp_path, tickets, QUICK.replace("3", "1") + MIN_TRIAL, rules)
    run = learn(mission, ScriptedJudge(sees))
    assert len(run.of("credited")[0]["rules"]["G1"]["misses"]) >= 3
    assert [(event["origin"], event["reason"]) for event in run.of("trialled")] == [("clean-up", "more_errors")]
    assert run.rules == rules


def test_clean_up_makes_no_more_changes_than_the_epoch_may(tmp_path: Path) -> None:
    rules = RULES | {"G1": mentions("receipt"), "G2": mentions("today"), "G3": mentions("page")}
    tickets = [row(f"p{at}", "pass", f"receipt {at}") for at in range(12)] + small(2, 0)
    toml = QUICK.replace("3", "1") + TRIAL_OFF + "[reflection]\nmax_changes_per_epoch = 0\n"
    run = learn(mission_in(tmp_path, tickets, toml, rules), ScriptedJudge(obedient))
    assert run.rules == RULES | rules
    assert run.of("guidance_changed") == []


def test_credit_can_be_switched_off(tmp_path: Path) -> None:
    rules = RULES | {"G1": mentions("receipt")}
    toml = QUICK.replace("3", "1") + "[rules]\ncredit_tickets = 0\n"
    run = learn(mission_in(tmp_path, small(20, 20), toml, rules), ScriptedJudge(obedient))
    assert run.of("credited") == []
    assert run.rules == rules


def test_a_deleted_rules_key_is_not_given_to_another(tmp_path: Path) -> None:
    def propose(request: ReflectionRequest) -> dict[str, Any]:
        keys = [case.key for case in cases_in(request)]
        if "[G1]" in request.prompt.shared:
            return answer([{"op": "delete", "key": "G1", "evidence": keys}])
        return answer([add(mentions("captcha"), keys)])

    toml = QUICK.replace("3", "2") + TRIAL_OFF + "[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n"
    rules = RULES | {"G1": mentions("unicorns")}
    run = learn(mission_in(tmp_path, small(10, 10), toml, rules), ScriptedJudge(obedient, None, propose))
    assert run.rules == RULES | {"G2": mentions("captcha")}
    [gone] = [change["gone"] for change in run.state.changes if change["gone"]]
    assert gone == {"G1": mentions("unicorns")}
