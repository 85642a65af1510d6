"""The small functions that decide: who is eligible, who is asked again, what is ripe, what a trial and a rule do."""

from __future__ import annotations

import pytest
from learning_kit import CHINESE, ENGLISH, guidance_of, mentions, verdict_on

from donewhen.judging.mission_settings import Rules, Trial
from donewhen.learning.measuring.credit import RuleCredit, rule_credit, rules_not_paying
from donewhen.learning.measuring.label_noise import policy_questions, suspected_label_noise
from donewhen.learning.measuring.splits import SplitMember
from donewhen.learning.measuring.trial import LabelledVerdict, run_trial
from donewhen.learning.reflection.closure import ClosureResult, close_batch, mix_labels, retry_batch_size, split_batches
from donewhen.learning.reflection.eligibility import eligibility_signals, gradient_candidates
from donewhen.learning.reflection.hypotheses import (
    PooledHypothesis,
    add_support,
    is_promotable,
    missing_support,
    opposed_pairs,
    promotable_hypotheses,
    rule_signature,
)
from donewhen.learning.reflection.proposals import HypothesisProposal
from sentences import assert_sentences

# Eligibility


def test_a_wrong_verdict_is_a_candidate() -> None:
    assert eligibility_signals(verdict_on("a::fail", "pass", 3, 0)) == ("label_mismatch", "conflict_flag")


def test_a_right_verdict_with_contradicting_votes_is_one_too() -> None:
    found = eligibility_signals(verdict_on("a::pass", "pass", 5, 1))
    assert found == ("contradiction", "needs_manual_review")
    assert "low_agreement" in eligibility_signals(verdict_on("a::pass", "pass", 2, 1))


def test_so_is_a_right_verdict_with_a_malformed_vote() -> None:
    assert eligibility_signals(verdict_on("a::pass", "pass", 2, 0, malformed=1)) == ("needs_manual_review",)


def test_a_right_verdict_with_one_voice_teaches_nothing_and_neither_does_a_ticket_without_any_vote() -> None:
    assert eligibility_signals(verdict_on("a::pass", "pass", 3, 0)) == ()
    assert eligibility_signals(verdict_on("a::pass", None, 0, 0, malformed=3)) == ()
    found = gradient_candidates([verdict_on("a::pass", "pass", 3, 0), verdict_on("b::pass", "fail", 0, 3)])
    assert [item.ticket_key for item in found] == ["b::pass"]


# Closure


def test_whoever_is_not_covered_is_asked_about_again_until_the_budget_is_used_up() -> None:
    asked = ("a", "b", "c", "d")
    attempts = {"a": 1, "b": 1, "c": 2, "d": 3}
    assert close_batch(asked, {"a"}, attempts, 2) == ClosureResult(("a",), ("b", "c"), ("d",))
    assert close_batch(asked, set(), attempts, 0) == ClosureResult((), (), asked)
    assert close_batch(asked, {"a", "b", "c", "d", "z"}, attempts, 0) == ClosureResult(asked, (), ())


@pytest.mark.parametrize(("size", "sizes"), [(16, [16, 8, 4, 2, 1, 1]), (5, [5, 2, 1, 1]), (1, [1, 1, 1])])
def test_a_question_halves_at_every_try_down_to_one(size: int, sizes: list[int]) -> None:
    assert [retry_batch_size(size, attempt) for attempt in range(len(sizes))] == sizes


def test_batches_hold_everybody_in_order() -> None:
    assert split_batches("abcde", 2) == (("a", "b"), ("c", "d"), ("e",))
    assert split_batches("", 2) == ()


def test_labels_are_mixed_in_proportion() -> None:
    order = mix_labels(["p1", "p2"], ["f1", "f2", "f3", "f4"])
    assert sorted(order) == ["f1", "f2", "f3", "f4", "p1", "p2"]
    assert [key[0] for key in order] == ["f", "p", "f", "f", "p", "f"]
    assert mix_labels([], ["f1"]) == ("f1",)
    assert mix_labels([], []) == ()


# Hypotheses


def said(text: str, *evidence: str) -> HypothesisProposal:
    return HypothesisProposal(text, "a falsifier", evidence, "look")


def test_support_is_the_union_of_evidence_and_the_set_of_cycles() -> None:
    first = add_support({}, said(mentions("x"), "a", "b"), "1.1", ENGLISH)
    assert (first.cycles, first.evidence, first.fate) == (("1.1",), ("a", "b"), "waiting")
    pool = {first.signature: first}
    second = add_support(pool, said(mentions("x").upper().replace("FAIL", "fail"), "b", "c"), "1.2", ENGLISH)
    assert second.signature == first.signature
    assert second.text == mentions("x")
    assert (second.cycles, second.evidence) == (("1.1", "1.2"), ("a", "b", "c"))
    assert first.evidence == ("a", "b")


def test_the_same_cycle_again_is_evidence_and_no_further_cycle() -> None:
    first = add_support({}, said(mentions("x"), "a"), "1.1", ENGLISH)
    again = add_support({first.signature: first}, said(mentions("x"), "b"), "1.1", ENGLISH)
    assert (again.cycles, again.evidence) == (("1.1",), ("a", "b"))


def test_opposite_verdicts_are_never_one_hypothesis() -> None:
    for language, first, second in (
        (ENGLISH, mentions("x", "pass"), mentions("x", "fail")),
        (CHINESE, "若标签清晰则判定通过", "若标签清晰则判定不通过"),
    ):
        assert rule_signature(first, language) != rule_signature(second, language)


def test_numbers_belong_to_the_signature() -> None:
    assert rule_signature("at least 1.5 m: fail", ENGLISH) != rule_signature("at least 15 m: fail", ENGLISH)
    assert rule_signature("fewer than 3 (< 3): fail", ENGLISH) != rule_signature("fewer than 3 (> 3): fail", ENGLISH)


def pooled(name: str, cycles: int, tickets: int, **more: object) -> PooledHypothesis:
    fields: dict[str, object] = {"fate": "waiting", "tried_with": 0, "why": ""} | more
    return PooledHypothesis(
        name,
        mentions(name),
        "f",
        "",
        tuple(f"1.{at}" for at in range(cycles)),
        tuple(f"t{at}" for at in range(tickets)),
        **fields,  # type: ignore[arg-type]
    )


@pytest.mark.parametrize(
    ("cycles", "tickets", "more", "ripe"),
    [
        (2, 6, {}, True),
        (1, 6, {}, False),
        (1, 60, {}, False),
        (2, 5, {}, False),
        (20, 5, {}, False),
        (3, 9, {"fate": "promoted"}, False),
        (2, 6, {"fate": "refused", "tried_with": 6}, False),
        (3, 6, {"fate": "refused", "tried_with": 6}, False),
        (2, 7, {"fate": "refused", "tried_with": 6}, True),
    ],
)
def test_what_is_ripe_has_both_the_cycles_and_the_tickets(
    cycles: int, tickets: int, more: dict[str, object], ripe: bool
) -> None:
    assert is_promotable(pooled("x", cycles, tickets, **more), 2, 6) is ripe


def test_the_best_supported_are_tried_first() -> None:
    pool = {
        hypothesis.signature: hypothesis
        for hypothesis in (pooled("b", 2, 6), pooled("a", 2, 6), pooled("c", 3, 6), pooled("d", 2, 8))
    }
    pool["e"] = pooled("e", 1, 50)
    assert [hypothesis.signature for hypothesis in promotable_hypotheses(pool, 2, 6)] == ["d", "c", "a", "b"]


def test_it_is_told_what_a_hypothesis_waits_for() -> None:
    assert_sentences(missing_support(pooled("x", 1, 4), 2, 6))
    assert_sentences(missing_support(pooled("x", 2, 4), 2, 6))
    assert_sentences(missing_support(pooled("x", 2, 6), 2, 6))
    assert "not_better" in missing_support(pooled("x", 2, 6, fate="refused", why="not_better"), 2, 6)


def test_hypotheses_that_say_opposite_verdicts_of_one_condition_are_found() -> None:
    def pooled_rule(text: str) -> PooledHypothesis:
        return add_support({}, said(text, "a"), "1.1", ENGLISH)

    first, second, third = (
        pooled_rule(mentions("x", "pass")),
        pooled_rule(mentions("x", "FAIL")),
        pooled_rule(mentions("y", "fail")),
    )
    assert opposed_pairs([first, second, third], ENGLISH) == ((first, second),)
    assert opposed_pairs([first, third], ENGLISH) == ()
    clear = [add_support({}, said(text, "a"), "1.1", CHINESE) for text in ("若清晰则判定通过", "若清晰則判定不通過")]
    assert len(opposed_pairs(clear, CHINESE)) == 1


# Trial

MODEST = Trial(min_tickets=4, resamples=200)


def judged(labels: str, verdicts: str) -> dict[str, LabelledVerdict]:
    words = {"p": "pass", "f": "fail", "-": None}
    return {
        f"t{at:02d}": LabelledVerdict(words[label], words[verdict])  # type: ignore[arg-type]
        for at, (label, verdict) in enumerate(zip(labels, verdicts, strict=True))
    }


@pytest.mark.parametrize(
    ("op", "labels", "before", "after", "reason"),
    [
        ("add", "ffffpppp", "pppppppp", "ffffpppp", "better"),
        ("add", "ffffpppp", "pppppppp", "pppppppp", "not_better"),
        ("add", "ffffpppp", "fffppppp", "ffppfppp", "more_errors"),
        ("add", "ffffpppp", "ffffffff", "fffppppp", "more_false_releases"),
        ("add", "fpp", "ppp", "fpp", "too_few_tickets"),
        ("update", "ffffpppp", "pppppppp", "pppppppp", "no_worse"),
        ("delete", "ffffpppp", "pppppppp", "pppppppp", "no_worse"),
        ("merge", "ffffpppp", "ffffpppp", "fffpppfp", "more_errors"),
        ("delete", "ffffpppp", "ffffffff", "fffppppp", "more_false_releases"),
        ("add", "ffffpppp", "----pppp", "ffffpppp", "better"),
        ("update", "ffffpppp", "ffffpppp", "ffff-ppp", "more_errors"),
    ],
)
def test_a_change_is_accepted_by_what_it_does_to_unseen_tickets(
    op: str, labels: str, before: str, after: str, reason: str
) -> None:
    found = run_trial(op, judged(labels, before), judged(labels, after), MODEST, 1)  # type: ignore[arg-type]
    assert found.reason == reason
    assert found.accepted is (reason in ("better", "no_worse"))


def test_an_added_rule_must_win_in_enough_of_the_resamples() -> None:
    labels = "f" * 6 + "p" * 6
    before, after = judged(labels, "p" * 6 + "p" * 6), judged(labels, "ffff" + "pp" + "fff" + "ppp")
    strict = Trial(min_tickets=4, resamples=400, confidence=0.95)
    found = run_trial("add", before, after, strict, 1)
    assert (found.errors_before, found.errors_after, found.reason) == (6, 5, "not_sure")
    assert 0.3 < found.share_lower < 0.95
    assert run_trial("add", before, after, Trial(min_tickets=4, confidence=0.3), 1).reason == "better"
    assert run_trial("add", before, after, Trial(min_tickets=4, min_gain=2), 1).reason == "not_better"


def test_the_same_trial_comes_out_the_same_and_says_who_was_fixed_and_who_was_broken() -> None:
    before, after = judged("fffppp", "pppppp"), judged("fffppp", "fffppf")
    found = run_trial("add", before, after, MODEST, 7)
    assert found == run_trial("add", before, after, MODEST, 7)
    assert (found.fixed, found.broken) == (("t00", "t01", "t02"), ("t05",))
    assert (found.tickets, found.errors_before, found.errors_after) == (6, 3, 1)
    assert (found.false_releases_before, found.false_releases_after) == (3, 0)


def test_some_more_false_releases_can_be_allowed() -> None:
    before, after = judged("ffffpppp", "ffffffff"), judged("ffffpppp", "fffppppp")
    assert run_trial("add", before, after, Trial(min_tickets=4, max_more_false_releases=1), 1).accepted


# Credit


def test_a_rules_credit_is_what_changes_when_it_is_left_out() -> None:
    credit = rule_credit(judged("ffppf", "fffpp"), judged("ffppf", "ppppf"))
    assert credit == RuleCredit(("t00", "t01"), ("t02", "t04"))
    assert credit.confidence == 0.5


def test_rules_that_do_not_pay_go_the_worst_first() -> None:
    guidance = guidance_of(G1=mentions("a"), G2=mentions("b"), G3=mentions("c"), G4=mentions("d"))
    misses = tuple("abcdef")
    measured = {
        "G1": RuleCredit((), misses[:3]),
        "G2": RuleCredit((), misses),
        "G3": RuleCredit(("x", "y", "z"), misses[:3]),
        "G4": RuleCredit((), misses[:2]),
        "G9": RuleCredit((), misses),
    }
    assert rules_not_paying(guidance, measured, Rules()) == ("G2", "G1")
    assert rules_not_paying(guidance, measured, Rules(cleanup_misses=2)) == ("G2", "G1", "G4")
    assert rules_not_paying(guidance, measured, Rules(cleanup_below=0.15)) == ("G2",)


# For people


def test_a_label_is_suspected_where_all_votes_and_its_words_are_against_it_again_and_again() -> None:
    mistakes = {"a": {1, 2}, "b": {2}, "c": {1, 2}, "d": {1, 2, 3}}
    assert suspected_label_noise(mistakes, 3, {"a", "b", "d"}) == ("a", "d")
    assert suspected_label_noise(mistakes, 1, {"b"}) == ("b",)
    assert suspected_label_noise(mistakes, 3, set()) == ()


def test_a_group_with_both_labels_and_opposed_hypotheses_are_questions_of_policy() -> None:
    members = [
        *(SplitMember("a::pass", "a", "a", "pass"), SplitMember("a::fail", "a", "a", "fail")),
        *(SplitMember("b::pass", "b", "b", "pass"), SplitMember("c::fail", "c", "c", "fail")),
    ]
    found = policy_questions(members, [(["c::fail"], ["a::pass"])])
    assert list(found) == ["a::fail", "a::pass", "c::fail"]
    assert found["a::pass"] == found["a::fail"] != found["c::fail"]


def test_a_few_tickets_against_many_are_mistakes_and_no_policy() -> None:
    many = [f"m{at}" for at in range(12)]
    assert policy_questions([], [(many, ["a", "b", "c"])]) == {}
    assert set(policy_questions([], [(["a", "b", "c", "d"], many)])) == {*many, "a", "b", "c", "d"}
