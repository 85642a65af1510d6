"""How far one word was from the other, and which of them is drawn."""

from __future__ import annotations

import math

import pytest

from donewhen.models.logprobs import draw_option, logprob_margin

WORDS = ("pass", "fail")


def test_the_margin_is_the_difference_of_the_log_probabilities() -> None:
    assert logprob_margin([("pass", -0.5), ("fail", -2.0)], WORDS) == pytest.approx(1.5)


def test_each_way_to_begin_a_word_counts_for_it() -> None:
    top = [(" pass", math.log(0.3)), (" Pass", math.log(0.2)), ("PA", math.log(0.1)), (" fail", math.log(0.2))]
    assert logprob_margin(top, WORDS) == pytest.approx(math.log(0.6 / 0.2))


def test_a_token_that_goes_on_after_the_word_is_another_word() -> None:
    assert logprob_margin([("passenger", -0.1), (" fail", -1.0), ("pass", -3.0)], WORDS) == pytest.approx(-2.0)


def test_a_token_that_begins_both_words_says_nothing() -> None:
    top = [("不", -0.1), ("不通过", -1.0), ("不可", -2.5)]
    assert logprob_margin(top, ("不可", "不通过")) == pytest.approx(-1.5)


def test_words_of_which_one_begins_the_other_way_are_told_apart_by_their_first_token() -> None:
    assert logprob_margin([("通", -0.2), ("不", -1.7)], ("通过", "不通过")) == pytest.approx(1.5)


def test_blank_tokens_begin_nothing() -> None:
    assert logprob_margin([(" ", -0.01), ("\n", -0.5)], WORDS) is None


def test_a_word_that_is_not_among_the_likeliest_is_as_likely_as_the_last_of_them() -> None:
    assert logprob_margin([(" fail", -0.1), ("maybe", -4.0)], WORDS) == pytest.approx(-3.9)
    assert logprob_margin([(" pass", -0.1), ("maybe", -4.0)], WORDS) == pytest.approx(3.9)


def test_without_either_word_there_is_no_margin() -> None:
    assert logprob_margin([("perhaps", -0.1), ("1", -2.0)], WORDS) is None
    assert logprob_margin([], WORDS) is None


def test_without_temperature_the_likelier_word_is_drawn_and_a_tie_is_the_second() -> None:
    assert draw_option(0.01, 0.0, 0, "a")
    assert not draw_option(-0.01, 0.0, 0, "a")
    assert not draw_option(0.0, 0.0, 0, "a")


def test_the_same_draw_of_the_same_question_is_the_same() -> None:
    first = [draw_option(0.2, 0.7, sample, "a ticket") for sample in range(50)]
    assert first == [draw_option(0.2, 0.7, sample, "a ticket") for sample in range(50)]
    assert first != [draw_option(0.2, 0.7, sample, "another") for sample in range(50)]
    assert len(set(first)) == 2


@pytest.mark.parametrize(("margin", "temperature"), [(0.0, 1.0), (1.0, 1.0), (0.5, 0.5), (-1.0, 0.7)])
def test_words_are_drawn_as_often_as_their_odds_at_that_temperature_say(margin: float, temperature: float) -> None:
    draws = [draw_option(margin, temperature, sample, "a ticket") for sample in range(4000)]
    expected = 1 / (1 + math.exp(-margin / temperature))
    assert sum(draws) / len(draws) == pytest.approx(expected, abs=0.03)


def test_a_draw_that_passed_passes_with_a_larger_margin_too() -> None:
    for sample in range(200):
        if draw_option(0.3, 0.7, sample, "a ticket"):
            assert draw_option(0.8, 0.7, sample, "a ticket")


def test_no_margin_is_too_large() -> None:
    assert draw_option(1e9, 0.01, 0, "a")
    assert not draw_option(-1e9, 0.01, 0, "a")
