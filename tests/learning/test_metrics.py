"""Measures of a judge, against published numbers and numbers worked out by hand."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.learning.measuring.metrics import (
    Confusion,
    Estimate,
    cohens_kappa,
    corrected_prevalence,
    count_confusion,
    mcnemar,
    measure,
    measures_of,
    paired_bootstrap,
    wilson,
)
from sentences import assert_sentences

PAIRS: Any = st.lists(
    st.tuples(st.sampled_from(["pass", "fail"]), st.sampled_from(["pass", "fail", None])), max_size=60
)


def bounds(found: Estimate | None, digits: int = 4) -> tuple[float, float]:
    assert found is not None
    return round(found.low, digits), round(found.high, digits)


def value(found: Estimate | None) -> float:
    assert found is not None
    return found.value


# Counting


def test_every_pair_of_label_and_verdict_is_counted_in_its_place() -> None:
    judged: Any = (
        [("pass", "pass")] * 1
        + [("fail", "pass")] * 2
        + [("fail", "fail")] * 3
        + [("pass", "fail")] * 4
        + [("pass", None)] * 5
        + [("fail", None)] * 6
    )
    found = count_confusion(judged)
    assert found == Confusion(true_pass=1, false_pass=2, true_fail=3, false_fail=4, invalid_pass=5, invalid_fail=6)
    assert (found.passes, found.fails, found.tickets) == (10, 11, 21)
    assert (found.right, found.wrong, found.invalid) == (4, 17, 11)


def test_a_missing_verdict_is_wrong_and_neither_a_release_nor_a_block() -> None:
    found = measure([("pass", "pass"), ("pass", None), ("fail", "fail"), ("fail", None)])
    assert value(found.accuracy) == 0.5
    assert (value(found.tpr), value(found.tnr)) == (0.5, 0.5)
    assert (value(found.false_release), value(found.false_block)) == (0, 0)
    assert found.false_release is not None
    assert found.false_release.of == 2


def test_each_rate_is_of_the_tickets_that_it_speaks_of() -> None:
    found = measures_of(Confusion(true_pass=30, false_fail=10, false_pass=6, true_fail=14))
    assert found.confusion.tickets == 60
    assert (value(found.accuracy), value(found.base_rate)) == (44 / 60, 40 / 60)
    assert (value(found.tpr), value(found.false_block)) == (0.75, 0.25)
    assert (value(found.tnr), value(found.false_release)) == (0.7, 0.3)
    of = [found.accuracy, found.tpr, found.tnr, found.false_release, found.false_block, found.base_rate, found.kappa]
    assert [item.of for item in of if item] == [60, 40, 20, 20, 40, 60, 60]


def test_without_tickets_nothing_is_said() -> None:
    found = measure([])
    assert found.confusion == Confusion()
    said = (found.accuracy, found.kappa, found.tpr, found.tnr, found.false_release, found.false_block, found.base_rate)
    assert said == (None,) * 7


@pytest.mark.parametrize("label", ["pass", "fail"])
def test_with_one_label_only_what_needs_the_other_is_not_said(label: Any) -> None:
    found = measure([(label, "pass"), (label, "fail"), (label, None)])
    assert found.kappa is None
    assert ((found.tpr is None), (found.false_block is None)) == ((label == "fail"),) * 2
    assert ((found.tnr is None), (found.false_release is None)) == ((label == "pass"),) * 2
    assert value(found.accuracy) == pytest.approx(1 / 3)


@given(PAIRS)
def test_no_ticket_is_lost_and_no_share_leaves_its_interval(judged: Any) -> None:
    found = measure(judged)
    assert found.confusion.tickets == len(judged)
    assert found.confusion.right == sum(label == verdict for label, verdict in judged)
    for estimate in (found.accuracy, found.tpr, found.tnr, found.false_release, found.false_block, found.base_rate):
        assert estimate is None or 0 <= estimate.low <= estimate.value <= estimate.high <= 1
    assert found.kappa is None or -1 <= found.kappa.low <= found.kappa.value <= found.kappa.high <= 1


# Intervals


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    # The examples of Newcombe (1998), Statistics in Medicine 17, table I, method 3.
    [(81, 263, 0.2553, 0.3662), (15, 148, 0.0624, 0.1605), (0, 20, 0.0, 0.1611), (1, 29, 0.0061, 0.1718)],
)
def test_intervals_are_those_that_were_published(hits: int, of: int, low: float, high: float) -> None:
    found = wilson(hits, of)
    assert found is not None
    assert found.value == hits / of
    assert bounds(found) == (low, high)


def test_intervals_mirror_one_another_and_end_where_shares_end() -> None:
    assert bounds(wilson(20, 20)) == (0.8389, 1.0)
    for hits in range(21):
        low, high = bounds(wilson(hits, 20), 10)
        other = bounds(wilson(20 - hits, 20), 10)
        assert (low, high) == pytest.approx((1 - other[1], 1 - other[0]))


@pytest.mark.parametrize(("hits", "of"), [(-1, 5), (6, 5), (1, 0)])
def test_what_is_no_share_is_an_error(hits: int, of: int) -> None:
    with pytest.raises(ValueError) as caught:
        wilson(hits, of)
    assert_sentences(caught.value)


# Kappa


@pytest.mark.parametrize(
    ("both", "first", "second", "neither", "kappa"),
    # Textbook tables of two readers of 50 and of 100 cases.
    [(20, 5, 10, 15, 0.4), (45, 15, 25, 15, 0.1304), (25, 35, 5, 35, 0.2593)],
)
def test_kappa_is_what_the_textbooks_have(both: int, first: int, second: int, neither: int, kappa: float) -> None:
    found = cohens_kappa(Confusion(true_pass=both, false_fail=first, false_pass=second, true_fail=neither))
    assert found is not None
    assert round(found.value, 4) == kappa


def test_equal_accuracy_hides_opposite_errors_and_kappa_tells_little_of_it() -> None:
    """Two judges of 1187 runs of agents, as published: accuracy .865 and .869, TPR .898 and .734, TNR .851 and .926."""
    first = measures_of(Confusion(true_pass=318, false_fail=36, true_fail=709, false_pass=124))
    two = measures_of(Confusion(true_pass=260, false_fail=94, true_fail=771, false_pass=62))
    for found, expected in ((first, (0.865, 0.898, 0.851, 0.70)), (two, (0.869, 0.734, 0.926, 0.68))):
        shown = (value(found.accuracy), value(found.tpr), value(found.tnr), value(found.kappa))
        assert shown == pytest.approx(expected, abs=0.0051)


def test_a_missing_verdict_is_a_category_of_its_own_to_kappa() -> None:
    # Agreement 20/30; chance (15 * 12 + 15 * 10) / 900, for no label is "missing".
    found = cohens_kappa(
        Confusion(true_pass=11, false_pass=1, true_fail=9, false_fail=1, invalid_pass=3, invalid_fail=5)
    )
    assert found is not None
    assert found.value == pytest.approx((20 / 30 - 330 / 900) / (1 - 330 / 900))


def test_a_judge_that_always_says_the_same_has_kappa_nothing_and_one_that_errs_always_less() -> None:
    assert value(cohens_kappa(Confusion(true_fail=30, false_fail=20))) == pytest.approx(0)
    assert value(cohens_kappa(Confusion(false_pass=10, false_fail=10))) == -1


def test_the_interval_of_kappa_is_that_of_the_agreement() -> None:
    # Agreement 35 of 50 is 0.5625 to 0.8090 by Wilson, chance is a half.
    found = cohens_kappa(Confusion(true_pass=20, false_fail=5, false_pass=10, true_fail=15))
    assert bounds(found) == (0.125, 0.6179)


def test_a_few_tickets_that_are_all_right_do_not_prove_a_perfect_judge() -> None:
    found = cohens_kappa(Confusion(true_pass=5, true_fail=5))
    assert found is not None
    assert (found.value, found.high) == (1, 1)
    assert found.low == pytest.approx(0.4449, abs=1e-4)


def test_intervals_of_kappa_hold_the_truth_as_often_as_they_say() -> None:
    rng = random.Random(5)
    cells = (("pass", "pass"), ("pass", "fail"), ("fail", "fail"), ("fail", "pass"))
    weights = (0.21, 0.09, 0.6, 0.1)
    chance = 0.3 * 0.31 + 0.7 * 0.69
    truth = (0.81 - chance) / (1 - chance)
    held = 0
    for _ in range(400):
        found = measure(rng.choices(cells, weights, k=80)).kappa  # type: ignore[arg-type]
        assert found is not None
        held += found.low <= truth <= found.high
    assert 0.92 <= held / 400 <= 0.99


# The same tickets twice


def wrongs(better: int, worse: int, both: int = 3, neither: int = 5) -> tuple[list[bool], list[bool]]:
    pairs = [(True, False)] * better + [(False, True)] * worse + [(True, True)] * both + [(False, False)] * neither
    return [item for item, _ in pairs], [two for _, two in pairs]


@pytest.mark.parametrize(
    ("better", "worse", "p"),
    [
        (9, 1, 2 * 11 / 1024),
        (1, 9, 2 * 11 / 1024),
        (16, 6, 0.0525),
        (5, 0, 2 / 32),
        (3, 3, 1.0),
        (1, 0, 1.0),
        (0, 0, 1.0),
        (60, 20, 8.6e-06),
    ],
)
def test_mcnemar_is_exact_and_two_sided(better: int, worse: int, p: float) -> None:
    found = mcnemar(*wrongs(better, worse))
    assert found is not None
    assert (found.better, found.worse) == (better, worse)
    assert found.p == pytest.approx(p, rel=0.005)


def test_mcnemar_takes_thousands_of_tickets_that_differ() -> None:
    found = mcnemar(*wrongs(3000, 2900))
    assert found is not None
    assert 0.15 < found.p < 0.25


def test_mcnemar_says_nothing_without_tickets_and_refuses_other_ones() -> None:
    assert mcnemar([], []) is None
    with pytest.raises(ValueError) as caught:
        mcnemar([True, False], [True])
    assert_sentences(caught.value)


def test_one_ticket_that_got_better_is_in_as_many_resamples_as_chance_has_it() -> None:
    before, after = wrongs(1, 0, both=10, neither=29)
    found = paired_bootstrap(before, after, 4000, 1)
    # In a resample of 40 it is missing with probability (39/40) ** 40.
    assert found.share_lower == pytest.approx(1 - (39 / 40) ** 40, abs=0.03)
    assert found.share_no_higher == 1
    assert found.mean_difference == -1 / 40


def test_what_evens_out_is_lower_as_often_as_higher() -> None:
    found = paired_bootstrap(*wrongs(6, 6), 4000, 3)
    assert found.mean_difference == 0
    assert found.share_lower == pytest.approx(1 - found.share_no_higher, abs=0.03)
    assert 0.4 < found.share_lower < 0.5
    assert found.low == pytest.approx(-found.high, abs=0.06)


def test_worse_is_above_nothing() -> None:
    found = paired_bootstrap(*wrongs(0, 30, both=0, neither=0), 50, 3)
    assert (found.share_lower, found.share_no_higher) == (0, 0)
    assert (found.mean_difference, found.low, found.high) == (1, 1, 1)


def test_the_bounds_of_a_resampled_difference_are_those_of_the_binomial() -> None:
    found = paired_bootstrap(*wrongs(10, 0, both=20, neither=70), 4000, 11)
    # Of 100 draws with probability .1, 5 to 16 are the middle 95 %.
    assert found.low == pytest.approx(-0.16, abs=0.011)
    assert found.high == pytest.approx(-0.05, abs=0.011)


def test_the_bounds_leave_out_one_resample_in_forty_at_each_end() -> None:
    rng = random.Random(1)
    sums = sorted(sum(rng.choices([-1] * 10 + [0] * 30, k=40)) for _ in range(41))
    assert sums[0] < sums[1] < sums[2] < sums[38] < sums[39] < sums[40]
    found = paired_bootstrap(*wrongs(10, 0, both=10, neither=20), 41, 1)
    assert (found.low, found.high) == (sums[1] / 40, sums[39] / 40)
    lone = paired_bootstrap(*wrongs(10, 0, both=10, neither=20), 1, 1)
    assert lone.low == lone.high


def test_resampling_is_the_same_for_a_seed_and_another_for_another() -> None:
    pair = wrongs(8, 5, 10, 40)
    assert paired_bootstrap(*pair, 300, 4) == paired_bootstrap(*pair, 300, 4)
    assert len({paired_bootstrap(*pair, 300, seed).share_lower for seed in range(8)}) > 1


@pytest.mark.parametrize(("before", "after", "resamples"), [([], [], 10), ([True], [True], 0), ([True], [], 10)])
def test_there_must_be_something_to_resample(before: Sequence[bool], after: Sequence[bool], resamples: int) -> None:
    with pytest.raises(ValueError) as caught:
        paired_bootstrap(before, after, resamples, 1)
    assert_sentences(caught.value)


# Prevalence


def test_prevalence_is_corrected_for_what_the_judge_gets_wrong() -> None:
    found = corrected_prevalence(300, 1000, wilson(90, 100), wilson(80, 100))
    assert found is not None
    assert found.value == pytest.approx((0.3 + 0.8 - 1) / (0.9 + 0.8 - 1))
    assert found.of == 1000
    assert bounds(found) == (0.0211, 0.2362)


def test_on_the_tickets_that_its_errors_were_measured_on_it_is_the_truth() -> None:
    found = measures_of(Confusion(true_pass=30, false_fail=10, false_pass=6, true_fail=14))
    corrected = corrected_prevalence(36, 60, found.tpr, found.tnr)
    assert value(corrected) == pytest.approx(value(found.base_rate))


@pytest.mark.parametrize(("passed", "expected"), [(0, 0.0), (1000, 1.0)])
def test_prevalence_stays_a_share(passed: int, expected: float) -> None:
    found = corrected_prevalence(passed, 1000, wilson(90, 100), wilson(80, 100))
    assert found is not None
    assert found.value == expected
    assert 0 <= found.low <= expected <= found.high <= 1


def test_a_judge_no_better_than_chance_says_nothing_about_prevalence() -> None:
    assert corrected_prevalence(30, 100, wilson(30, 100), wilson(70, 100)) is None
    assert corrected_prevalence(30, 100, None, wilson(70, 100)) is None
    assert corrected_prevalence(30, 100, wilson(90, 100), None) is None
    assert corrected_prevalence(0, 0, wilson(90, 100), wilson(80, 100)) is None
    assert corrected_prevalence(30, 100, wilson(31, 100), wilson(70, 100)) is not None
    # One good ticket of one is not enough to make up for one of a hundred.
    assert corrected_prevalence(30, 100, wilson(1, 1), wilson(1, 100)) is None


def test_intervals_of_prevalence_hold_the_truth_as_often_as_they_say() -> None:
    rng = random.Random(2)
    held = 0
    for _ in range(500):
        tpr = wilson(sum(rng.random() < 0.85 for _ in range(60)), 60)
        tnr = wilson(sum(rng.random() < 0.8 for _ in range(80)), 80)
        passed = sum(rng.random() < 0.3 * 0.85 + 0.7 * 0.2 for _ in range(200))
        found = corrected_prevalence(passed, 200, tpr, tnr)
        assert found is not None
        held += found.low <= 0.3 <= found.high
    assert 0.92 <= held / 500 <= 0.985
