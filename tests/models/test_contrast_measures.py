"""Measures of a whole ticket, numbers that measure something, and rules with points."""

from __future__ import annotations

import pytest

from donewhen.judging.language import find_language
from donewhen.learning.reflection.wording import wording_objection
from donewhen.models.contrast import unreadable_rules
from donewhen.models.contrast.candidates import StudiedCase, candidates_of, case_sets
from donewhen.models.contrast.features import Features
from donewhen.models.contrast.judge import judge_by_rules
from donewhen.models.contrast.measures import Measure
from donewhen.models.contrast.rules import DefaultRule, MeasureCondition, NumberCondition, Rule
from donewhen.models.contrast.sentences import read_rule, write_rule

DIFF = """diff --git a/src/shop/cart.py b/src/shop/cart.py
--- a/src/shop/cart.py
+++ b/src/shop/cart.py
@@ -1,2 +1,3 @@
-    return total
+    total = add_tax(total)  # noqa
+    return total
diff --git a/tests/test_cart.py b/tests/test_cart.py
--- a/tests/test_cart.py
+++ b/tests/test_cart.py
@@ -1 +1,2 @@
+    assert add_tax(1)
"""


def measures(**evidence: str) -> dict[Measure, float]:
    return dict(Features(evidence).measures)


def test_a_diff_is_measured_and_compared_with_its_task() -> None:
    found = measures(task="add_tax is missing in cart.py; see chargeCard", diff=DIFF)
    assert (found["changed_files"], found["changed_tests"]) == (2, 1)
    assert (found["added_lines"], found["removed_lines"], found["suppressions"]) == (3, 1, 1)
    assert (found["named_files"], found["shared_identifiers"]) == (1, 1)
    assert "changed_files" not in measures(task="add_tax", output="no diff here")


def test_the_answer_is_compared_with_the_terms_and_the_numbers_of_the_task() -> None:
    found = measures(task="Order 12 blue chairs", output="The chairs were ordered, 11 of them.")
    assert found["task_terms"] == 4
    assert found["covered"] == found["covered_end"] == 50
    assert found["numbers_missing"] == 1
    assert "covered" not in measures(text="Order 12 blue chairs")


def test_headings_divide_a_single_text_and_the_task_need_not_come_first() -> None:
    text = "ANSWER\nThe chairs came.\n\nTASK\nOrder chairs\n"
    assert Features({"text": text}).parts.task.strip() == "Order chairs"
    assert measures(text=text)["covered"] == 50


def test_a_claim_of_success_counts_only_beside_a_failed_run() -> None:
    run = "$ pytest\nfailed, exit status 1, 3 failed"
    assert measures(output="All tests pass.", evidence=run)["claims_despite_failure"] == 1
    assert measures(output="One test fails.", evidence=run)["claims_despite_failure"] == 0
    honest = measures(output="All tests pass.", evidence="$ pytest\npassed, exit status 0, 0 failed")
    assert honest["claims_despite_failure"] == honest["failed_runs"] == 0


def test_tone_and_repetition_are_percentages() -> None:
    found = measures(text="It does not work, however\n---\nfine\n---\nfine\n---\nfine\n")
    assert found["negations"] == pytest.approx(12.5)
    assert found["contrasts_end"] == pytest.approx(12.5)
    assert found["repeated"] == 50
    assert measures(text="")["negations"] == 0


@pytest.mark.parametrize("text", ["card: 0042", "on: 2024/05/01", "phone: 12345678901", "| a | b |\n| 1 | 2 |"])
def test_what_only_looks_like_a_number_measures_nothing(text: str) -> None:
    assert Features({"text": text}).numbers == {}


def test_numbers_in_tables_have_the_name_of_their_column_and_of_their_row() -> None:
    table = "| name | score |\n| --- | --- |\n| first try | 3 |\n| second try | **4.5** |\nend"
    assert Features({"text": table}).numbers == {"score": (3.0, 4.5), "first try": (3.0,), "second try": (4.5,)}


def test_digits_of_cards_are_no_numbers_to_learn_from_and_prices_are() -> None:
    cases = [
        StudiedCase(
            Features({"text": f"last_four: {4000 + 37 * number}\nprice: {number * number}"}),
            "pass" if number % 2 else "fail",
            str(number),
        )
        for number in range(40)
    ]
    found = candidates_of(cases, case_sets(cases), lambda _: False)
    assert {one.condition.label for one in found if isinstance(one.condition, NumberCondition)} == {"price"}


@pytest.mark.parametrize(
    ("statistic", "threshold", "holds"),
    [("recent", 4, True), ("recent", 5, False), ("rise of", 4, True), ("number of", 4, True), ("number of", 5, False)],
)
def test_a_series_has_a_recent_mean_a_rise_and_a_count(statistic: str, threshold: float, holds: bool) -> None:
    text = Features({"text": "score: 1\nscore: 3\nscore: 4\nscore: 5"})
    rule = read_rule(f'When the {statistic} "score" is at least {threshold}, the verdict is pass.')
    assert isinstance(rule, Rule)
    assert rule.conditions[0].holds(text) is holds


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "rule",
    [
        Rule((MeasureCondition("covered_end", at_least=False, amount=40),), "fail", points=3),
        Rule((NumberCondition("score", "trend", at_least=True, threshold=1.5),), "pass", points=12),
        DefaultRule("fail", 2),
    ],
)
def test_points_are_written_with_the_sign_of_the_verdict_and_read_back(rule: Rule | DefaultRule, language: str) -> None:
    text = write_rule(rule, language)
    assert read_rule(text) == rule
    assert ("+" if rule.verdict == "pass" else "-") in text


@pytest.mark.parametrize(
    "text",
    [
        'When "a" occurs, the verdict is fail (points: +3).',
        'When "a" occurs, the verdict is pass (points: -3).',
        'When "a" occurs, the verdict is pass (points: +21).',
        "Unless a rule says otherwise, the verdict is pass (points: -1).",
        "Unless a rule says otherwise, the verdict is pass (strong sign).",
    ],
)
def test_points_that_contradict_the_verdict_make_no_rule(text: str) -> None:
    assert read_rule(text) is None
    assert unreadable_rules({"G1": text}) == ("G1",)


def test_a_proposal_whose_points_contradict_its_verdict_is_rejected() -> None:
    english = find_language("en")
    for points, reason in (("+3", "points_mismatch"), ("-3", None)):
        found = wording_objection(f'When "a" occurs, the verdict is fail (points: {points}).', english, 160, (), ())
        assert (found.reason if found else None) == reason


def test_the_scaffold_carries_no_points() -> None:
    assert unreadable_rules({"S1": 'When "a" occurs, the verdict is fail (points: -3).'}) == ("S1",)


def test_points_are_added_to_the_base_and_rules_without_points_count_as_before() -> None:
    rules = {
        "G0": "Unless a rule says otherwise, the verdict is fail (points: -2).",
        "G1": 'When "good" occurs, the verdict is pass (points: +3).',
        "G2": 'When "odd" occurs, the verdict is fail (weak sign).',
    }
    for text, verdict, margin in (("x", "fail", 2), ("good", "pass", 1), ("good odd", "fail", 0), ("odd", "fail", 3)):
        found = judge_by_rules(rules, Features({"text": text}))
        assert (found.verdict, found.margin) == (verdict, margin)
    assert judge_by_rules(rules, Features({"text": "x"})).default
    # Points count at any temperature.
    assert judge_by_rules(rules, Features({"text": "good"}), 0.9).verdict == "pass"


def test_what_weighs_most_for_the_verdict_is_cited_first() -> None:
    rules = {
        "G1": 'When "a" occurs, the verdict is pass (points: +1).',
        "G2": 'When "b" occurs, the verdict is fail (points: -2).',
        "G3": 'When "c" occurs, the verdict is pass (points: +4).',
    }
    assert judge_by_rules(rules, Features({"text": "a b c"})).applied == ("G3", "G1", "G2")
