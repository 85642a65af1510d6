"""Several answers, one verdict."""

from __future__ import annotations

import pytest

from donewhen.judging.answer import JudgeAnswer, MalformedAnswer
from donewhen.judging.vote import Vote, count_votes

P = JudgeAnswer("pass", "the first yes")
P2 = JudgeAnswer("pass", "the second yes")
F = JudgeAnswer("fail", "the first no")
F2 = JudgeAnswer("fail", "the second no")
M = MalformedAnswer("extra_lines", "?")


@pytest.mark.parametrize(
    ("answers", "verdict", "strength"),
    [
        ([P], "pass", 1.0),
        ([F], "fail", 1.0),
        ([P, P, F], "pass", 2 / 3),
        ([F, P, F], "fail", 2 / 3),
        ([P, P, P], "pass", 1.0),
        ([P, F], "fail", 0.5),
        ([P, P, F, F], "fail", 0.5),
        ([P, P, P, F, F], "pass", 0.6),
    ],
)
def test_the_majority_wins_and_a_tie_is_a_fail(answers: list[JudgeAnswer], verdict: str, strength: float) -> None:
    vote = count_votes(answers)
    assert (vote.verdict, vote.strength) == (verdict, strength)
    assert (vote.passes, vote.fails) == (answers.count(P), answers.count(F))


def test_a_malformed_vote_has_no_voice_and_is_counted() -> None:
    assert count_votes([P, M, P]) == Vote(2, 0, 1, "pass", 1.0, "the first yes", None)
    assert count_votes([M, F, M]) == Vote(0, 1, 2, "fail", 1.0, "the first no", None)


def test_a_malformed_vote_breaks_no_tie_and_makes_none() -> None:
    assert count_votes([P, P, F, M, M]).verdict == "pass"
    assert count_votes([P, F, M]) == Vote(1, 1, 1, "fail", 0.5, "the first no", None)


@pytest.mark.parametrize("answers", [[], [M], [M, M, M]])
def test_without_one_good_answer_there_is_no_verdict(answers: list[MalformedAnswer]) -> None:
    assert count_votes(answers) == Vote(0, 0, len(answers), None, 0.0, "", None)


def test_the_reason_is_the_first_that_was_given_for_the_verdict() -> None:
    assert count_votes([F, P, P2]).reason == "the first yes"
    assert count_votes([P, F, F2]).reason == "the first no"
    assert count_votes([P, F]).reason == "the first no"


def test_both_verdicts_contradict_each_other_and_malformed_ones_nobody() -> None:
    assert [count_votes(item).contradicts for item in ([P, F], [P, P, F], [P, M], [F, M], [M], [P, P])] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]


def test_the_margin_is_the_mean_of_those_that_are_known() -> None:
    assert count_votes([P._replace(margin=1.0), P, F._replace(margin=-0.5)]).margin == 0.25
    assert count_votes([P._replace(margin=0.0), P]).margin == 0.0
    assert count_votes([P, F]).margin is None
