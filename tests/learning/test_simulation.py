"""A simulation, and nothing but: tickets by rules that are known, some with the wrong label. What is found of them?"""

from __future__ import annotations

from pathlib import Path

import pytest
from learning_kit import (
    ONE_VOTE,
    RULES,
    captcha_model,
    decent_decision,
    decent_proposal,
    learn,
    mentions,
    mission_in,
    obedient,
    row,
    simulation,
    small,
)

from donewhen.learning.measuring.metrics import mcnemar, measure
from donewhen.learning.measuring.splits import split_tickets
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.testing.models import ScriptedJudge
from sentences import assert_sentences

HIDDEN = ("captcha", "timeout", "overdraft")


@pytest.mark.parametrize("seed", [7, 8, 9])
def test_hidden_rules_are_found_noise_is_queued_and_held_out_accuracy_rises(tmp_path: Path, seed: int) -> None:
    """Simulated: 400 tickets, three hidden rules, one label in twenty wrong; a reflector that is decent, no more."""
    world = simulation(400, HIDDEN, noise=0.05, seed=seed)
    mission = mission_in(tmp_path, world.tickets, ONE_VOTE + "[reflection]\nbatch_size = 24\n")
    run = learn(mission, ScriptedJudge(obedient, decent_decision, decent_proposal))

    assert {mentions(word) for word in HIDDEN} <= set(run.rules.values())
    assert len(run.rules) == len(RULES) + len(HIDDEN)

    before, after = run.state.evaluations["before"], run.state.evaluations["after"]
    wrong = [[label != verdict for _, label, verdict, _ in rows] for rows in (before, after)]
    compared = mcnemar(*wrong)
    assert compared is not None
    assert compared.p < 0.05
    assert compared.better > compared.worse
    found = measure((label, verdict) for _, label, verdict, _ in after)
    assert found.accuracy is not None
    assert found.accuracy.value >= 0.9

    train = set(split_tickets(TicketReader(mission).members, mission.settings.split, mission.settings.seed).train)
    noise = world.flipped & train
    queued = {row["ticket_key"] for row in run.state.queue if row["reason_code"] == "suspected_label_noise"}
    assert len(queued & noise) >= 0.6 * len(noise)
    assert len(queued - noise) <= len(queued & noise)


def test_a_group_with_both_labels_is_a_question_of_policy(tmp_path: Path) -> None:
    both = [row("both", label, "both a captcha and a receipt") for label in ("pass", "fail")]
    toml = "epochs = 1\n[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n"
    run = learn(mission_in(tmp_path, [*small(6, 6), *both], toml), captcha_model())
    rows = [row for row in run.state.queue if row["reason_code"] == "policy_question"]
    assert [row["ticket_key"] for row in rows] == ["both::fail", "both::pass"]
    assert_sentences(sorted({row["uncertainty_note"] for row in rows}))
    assert [row["gt_label"] for row in rows] == ["fail", "pass"]


def test_opposed_hypotheses_are_a_question_of_policy_to_those_who_support_them(tmp_path: Path) -> None:
    """Half of the pages with a coupon pass, and half of them fail."""
    tickets = [row(f"c{at}", "pass" if at % 2 else "fail", f"coupon {at}") for at in range(12)]

    def wavers(request: object) -> str:
        decode = request.decode  # type: ignore[attr-defined]
        return f"Verdict: {'pass' if decode.temperature > 0.3 else 'fail'}\nReason: who knows"

    toml = "epochs = 1\n[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n"
    run = learn(mission_in(tmp_path, tickets, toml), ScriptedJudge(wavers, None, decent_proposal))
    assert {hypothesis.text for hypothesis in run.state.pool.values()} == {
        mentions("coupon", "pass"),
        mentions("coupon", "fail"),
    }
    rows = [row for row in run.state.queue if row["reason_code"] == "policy_question"]
    assert len(rows) == 12
    assert_sentences(sorted({row["uncertainty_note"] for row in rows}))


def test_a_ticket_that_was_understood_once_is_not_suspected(tmp_path: Path) -> None:
    toml = ONE_VOTE + "epochs = 4\n[trial]\nmin_tickets = 2\n[reflection]\nbatch_size = 5\n"
    run = learn(mission_in(tmp_path, small(20, 20), toml), captcha_model())
    assert run.rules["G1"] == mentions("captcha")
    assert run.state.mistakes == {}
    assert "suspected_label_noise" not in {row["reason_code"] for row in run.state.queue}


def test_what_is_a_question_of_policy_is_not_suspected_as_well(tmp_path: Path) -> None:
    both = [row("both", label, "both shows captcha today") for label in ("pass", "fail")]
    rules = RULES | {"G1": mentions("captcha")}
    toml = ONE_VOTE + "epochs = 3\n[split]\ntrain = 1.0\nvalidation = 0.0\ntest = 0.0\n"
    wrong = row("wrong", "pass", "wrong shows captcha today")
    run = learn(mission_in(tmp_path, [*small(20, 20), *both, wrong], toml, rules), ScriptedJudge(obedient))
    codes = {(row["ticket_key"], row["reason_code"]) for row in run.state.queue}
    assert ("wrong::pass", "suspected_label_noise") in codes
    assert ("both::pass", "policy_question") in codes
    assert ("both::pass", "suspected_label_noise") not in codes
    [noisy] = [row for row in run.state.queue if row["reason_code"] == "suspected_label_noise"]
    assert (noisy["gt_label"], noisy["pred_verdict"]) == ("pass", "fail")
