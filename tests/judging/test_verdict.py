"""The signals of a verdict, each by its definition."""

from __future__ import annotations

import json

import pytest
from judging_kit import ticket

from donewhen.judging.answer import JudgeAnswer, MalformedAnswer
from donewhen.judging.verdict import Signals, Verdict, signals_of, verdict_of
from donewhen.judging.vote import count_votes
from donewhen.models.roles import Binary

P, F, M = JudgeAnswer("pass", "yes"), JudgeAnswer("fail", "no"), MalformedAnswer("empty")


def signals(
    *answers: JudgeAnswer | MalformedAnswer,
    label: Binary | None = "pass",
    final: Binary | None = None,
    least: float = 0.67,
) -> Signals:
    vote = count_votes(answers)
    return signals_of(vote, final or vote.verdict, label, least)


def test_two_to_one_is_low_agreement_by_default_because_it_is_below_067() -> None:
    found = signals(P, P, F)
    assert found.vote_strength == 2 / 3
    assert found.vote_strength < 0.67
    assert found.low_agreement


def test_low_agreement_is_less_than_the_threshold_and_not_as_much() -> None:
    assert not signals(P, P, F, least=2 / 3).low_agreement
    assert not signals(P, F, least=0.5).low_agreement
    assert signals(P, F, least=0.51).low_agreement
    assert not signals(P, P, P, least=1.0).low_agreement
    assert signals(P, P, F, least=1.0).low_agreement


def test_malformed_votes_do_not_lower_the_agreement_of_the_others() -> None:
    found = signals(P, P, M)
    assert (found.vote_strength, found.low_agreement) == (1.0, False)


@pytest.mark.parametrize(
    ("answers", "least", "expected"),
    [
        ([P, P, P], 0.67, False),
        ([P, P, F], 0.67, True),
        ([P, P, F], 0.5, True),
        ([P, P, M], 0.67, True),
        ([M, M, M], 0.67, True),
        ([M], 0.0, True),
        ([F], 0.67, False),
    ],
    ids=["all agree", "both", "both though agreed enough", "malformed", "nothing", "nothing, threshold 0", "one"],
)
def test_people_look_where_both_occur_or_agreement_is_low_or_a_vote_was_malformed(
    answers: list[JudgeAnswer | MalformedAnswer], least: float, expected: bool
) -> None:
    for label in ("pass", "fail", None):
        assert signals(*answers, label=label, least=least).needs_manual_review is expected


def test_low_agreement_alone_asks_for_people() -> None:
    vote = count_votes([P, P])._replace(strength=0.5)
    assert not vote.contradicts
    assert signals_of(vote, "pass", "pass", 0.67).needs_manual_review


def test_the_label_is_compared_with_the_final_verdict_and_not_with_the_vote() -> None:
    found = signals(P, P, P, label="fail", final="fail")
    assert (found.label_match, found.conflict_flag) == (True, False)
    found = signals(P, P, P, label="pass", final="fail")
    assert (found.label_match, found.conflict_flag) == (False, True)


def test_a_right_verdict_may_need_people_and_stays_right() -> None:
    found = signals(P, P, F, label="pass")
    assert (found.needs_manual_review, found.label_match, found.conflict_flag) == (True, True, False)


def test_a_wrong_verdict_may_need_nobody_and_stays_wrong() -> None:
    found = signals(P, P, P, label="fail")
    assert (found.needs_manual_review, found.label_match, found.conflict_flag) == (False, False, True)


def test_no_verdict_is_a_wrong_one() -> None:
    found = signals(M, M, M, label="fail")
    assert found == Signals(0.0, True, False, False, True, True)


def test_without_a_label_nothing_matches_and_nothing_conflicts() -> None:
    found = signals(P, P, P, label=None)
    assert (found.label_match, found.conflict_flag) == (None, False)


def test_a_verdict_has_the_ticket_the_votes_and_where_it_comes_from() -> None:
    vote = count_votes([P._replace(margin=0.5), F, M])
    answers = (("pass", "yes"), ("fail", "no"), ("empty", ""))
    found = verdict_of(ticket("QC-7", "fail"), vote, "pass", "rules.py:safe", 0.67, 12, answers)
    assert (found.ticket_key, found.group_id, found.label) == ("QC-7::fail", "QC-7", "fail")
    assert (found.verdict, found.overridden_by, found.guidance_step) == ("pass", "rules.py:safe", 12)
    assert (found.passes, found.fails, found.malformed, found.margin, found.reason) == (1, 1, 1, 0.5, "no")
    assert found.signals == signals_of(vote, "pass", "fail", 0.67)
    assert found.answers == answers


def test_a_verdict_as_data_is_flat_and_goes_through_json() -> None:
    found = verdict_of(ticket("QC-7", None), count_votes([P, F, F]), "fail", None, 0.67, 3, (("pass", "yes"),))
    data = found.as_dict()
    assert json.loads(json.dumps(data)) == data
    assert data["answers"] == [{"vote": "pass", "reason": "yes"}]
    assert "signals" not in data
    assert {name: data[name] for name in Signals._fields} == found.signals._asdict()
    assert {name: data[name] for name in ("ticket_key", "verdict", "label", "guidance_step", "overridden_by")} == {
        "ticket_key": "QC-7",
        "verdict": "fail",
        "label": None,
        "guidance_step": 3,
        "overridden_by": None,
    }


def test_a_verdict_comes_back_from_a_file_as_it_was() -> None:
    answers = (("pass", "yes"), ("empty", ""))
    for label, vote, by in (
        ("fail", count_votes([P._replace(margin=0.5), M]), "mine.py:f"),
        (None, count_votes([M]), None),
    ):
        found = verdict_of(ticket("QC-7", label), vote, vote.verdict, by, 0.67, 3, answers)  # type: ignore[arg-type]
        back = Verdict.from_dict(json.loads(json.dumps(found.as_dict())))
        assert back == found
        assert isinstance(back.signals, Signals)
        assert back.answers == answers
