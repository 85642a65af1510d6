"""How far people agree with each other and a judge with them: against numbers that were worked out by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from court_kit import label, said, write_mission

from donewhen.judging.labels import add_label
from donewhen.judging.mission import Mission, read_mission
from donewhen.reports.reviews_page import reviews_data, reviews_page, reviews_text
from donewhen.review.judge_drift import Drift, judge_drift
from donewhen.review.people_agreement import people_agreement
from sentences import assert_sentences


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_mission(tmp_path / "reports")


def mission(folder: Path) -> Mission:
    return read_mission(folder)


def both(folder: Path, words: str, one: str = "ada", other: str = "ben") -> None:
    """What two people say of tickets: two letters for each."""
    spelt = {"p": "pass", "f": "fail"}
    for number, pair in enumerate(words.split()):
        add_label(folder, "reports", label(f"T{number}", spelt[pair[0]], one))
        add_label(folder, "reports", label(f"T{number}", spelt[pair[1]], other))


def judged(folder: Path, right: str, *, decided: bool = True) -> Drift:
    """Verdicts of a judge that people have looked at: + where they agree, - where not."""
    for number, sign in enumerate(right):
        given = said("pass" if sign == "+" else "fail", decided=decided)
        add_label(folder, "reports", label(f"T{number:03d}", "pass", number=number % 60, said=given))
    return judge_drift(mission(folder))


# People


def test_kappa_is_what_it_comes_to_by_hand(folder: Path) -> None:
    # 10 tickets: both pass 4, both fail 3, ada pass and ben fail 2, ada fail and ben pass 1.
    # Agreement 7/10. ada passes 6 of 10, ben 5 of 10: by chance 0.6*0.5 + 0.4*0.5 = 0.5. Kappa (0.7-0.5)/0.5 = 0.4.
    both(folder, "pp pp pp pp ff ff ff pf pf fp")
    (pair,) = people_agreement(mission(folder)).pairs
    assert (pair.first, pair.second, pair.tickets, pair.same) == ("ada", "ben", 10, 7)
    assert pair.kappa is not None and pair.kappa.value == pytest.approx(0.4)
    assert pair.agreement is not None and pair.agreement.value == pytest.approx(0.7)
    assert pair.differing == ("T7", "T8", "T9")


@pytest.mark.parametrize(
    ("words", "kappa"),
    [
        ("pp pp ff ff", 1.0),
        ("pf pf fp fp", -1.0),
        # 8 tickets: agreement 4/8; ada passes 4, ben 4: chance 0.5; kappa 0.
        ("pp pp ff ff pf pf fp fp", 0.0),
        # 5 tickets: agreement 4/5; ada passes 3/5, ben 2/5: chance 0.24 + 0.24 = 0.48; (0.8-0.48)/0.52 = 0.6154.
        ("pp pp ff ff pf", 0.32 / 0.52),
    ],
)
def test_kappa_at_the_ends_and_in_between(folder: Path, words: str, kappa: float) -> None:
    both(folder, words)
    (pair,) = people_agreement(mission(folder)).pairs
    assert pair.kappa is not None and pair.kappa.value == pytest.approx(kappa)


@pytest.mark.parametrize("words", ["pp pp pp", "ff ff"])
def test_kappa_can_not_be_told_where_only_one_label_was_given(folder: Path, words: str) -> None:
    both(folder, words)
    (pair,) = people_agreement(mission(folder)).pairs
    assert pair.kappa is None
    assert pair.same == pair.tickets


def test_kappa_does_not_depend_on_who_is_named_first(tmp_path: Path) -> None:
    found = []
    for number, people in enumerate((("ada", "ben"), ("zoe", "ben"))):
        folder = write_mission(tmp_path / f"m{number}" / "reports")
        both(folder, "pp pp ff pf", *people)
        (pair,) = people_agreement(mission(folder)).pairs
        assert pair.kappa is not None
        found.append(pair.kappa.value)
    assert found[0] == pytest.approx(found[1])


def test_kappa_can_not_be_told_where_one_of_the_two_gave_one_label_only(tmp_path: Path) -> None:
    """Whoever of the two it is, the answer is the same."""
    found = []
    for number, words in enumerate(("pp pf pp", "pp fp pp")):
        folder = write_mission(tmp_path / f"m{number}" / "reports")
        both(folder, words)
        (pair,) = people_agreement(mission(folder)).pairs
        found.append(None if pair.kappa is None else pair.kappa.value)
    assert found == [None, None]


def test_the_last_word_of_each_is_compared_and_only_where_both_spoke(folder: Path) -> None:
    both(folder, "pf pp ff")
    add_label(folder, "reports", label("T0", "fail", "ada"))
    add_label(folder, "reports", label("X", "pass", "ada"))
    add_label(folder, "reports", label("Y", "pass", "cem"))
    found = people_agreement(mission(folder))
    assert found.labelled == 5
    assert found.by_person == {"ada": 4, "ben": 3, "cem": 1}
    (pair,) = found.pairs
    assert (pair.tickets, pair.same) == (3, 3)


def test_three_people_are_three_pairs(folder: Path) -> None:
    both(folder, "pp ff")
    add_label(folder, "reports", label("T0", "pass", "cem"))
    assert [(pair.first, pair.second) for pair in people_agreement(mission(folder)).pairs] == [
        ("ada", "ben"),
        ("ada", "cem"),
        ("ben", "cem"),
    ]


def test_nobody_agrees_with_nobody(folder: Path) -> None:
    found = people_agreement(mission(folder))
    assert (found.labelled, found.by_person, found.pairs) == (0, {}, ())


# Drift


def test_agreement_is_told_over_the_newest_verdicts(folder: Path) -> None:
    write_mission(folder, "[manual_review]\ndrift_window = 5")
    found = judged(folder, "++++++--+-")
    assert [point.of for point in found.points] == [1, 2, 3, 4, 5, 5, 5, 5, 5, 5]
    assert [round(point.share, 2) for point in found.points] == [1, 1, 1, 1, 1, 1, 0.8, 0.6, 0.6, 0.4]
    assert [point.number for point in found.points] == list(range(1, 11))
    assert found.now is not None and (found.now.value, found.now.of) == (pytest.approx(0.4), 5)


@pytest.mark.parametrize(
    ("right", "alarm"),
    [
        ("----", False),
        ("-----", True),
        ("+++++++---", False),
        ("++++++----", True),
        ("----------" + "+" * 10, False),
        ("+" * 10 + "----------", True),
    ],
)
def test_the_alarm_is_below_the_threshold_and_not_before_half_a_window(folder: Path, right: str, alarm: bool) -> None:
    write_mission(folder, "[manual_review]\ndrift_window = 10\nalarm_below = 0.7")
    assert judged(folder, right).alarm is alarm


def test_what_a_judge_left_to_people_says_nothing_about_its_verdicts(folder: Path) -> None:
    found = judged(folder, "--------", decided=False)
    assert (found.points, found.now, found.alarm, found.undecided) == ((), None, False, 8)


def test_labels_of_what_no_judge_has_seen_are_not_compared(folder: Path) -> None:
    for number in range(20):
        add_label(folder, "reports", label(f"T{number}", "pass"))
    found = judge_drift(mission(folder))
    assert (found.now, found.undecided, found.alarm) == (None, 0, False)


def test_a_point_names_the_step_of_the_guidance(folder: Path) -> None:
    add_label(folder, "reports", label("A", "pass", said=msgspec.structs.replace(said("pass"), guidance_step=4)))
    assert [point.guidance_step for point in judge_drift(mission(folder)).points] == [4]


# How it is shown


def test_a_terminal_is_told_in_a_few_lines(folder: Path) -> None:
    write_mission(folder, "[manual_review]\ndrift_window = 5")
    judged(folder, "++---")
    both(folder, "pp pp ff pf", "ben", "cem")
    judged(folder, "+", decided=False)
    people, drifted = people_agreement(mission(folder)), judge_drift(mission(folder))
    lines = list(reviews_text(people, drifted))
    assert lines[0].startswith("labelled by people: 9 ticket(s) (ada 5, ben 4, cem 4)")
    assert any("3 of 4, κ 0.50" in line for line in lines)
    assert_sentences(lines)
    assert any(set(line.split()[0]) <= set("▁▂▃▄▅▆▇█") for line in lines if line.strip())


def test_where_nobody_has_said_anything_that_is_said(folder: Path) -> None:
    people, drifted = people_agreement(mission(folder)), judge_drift(mission(folder))
    assert_sentences(list(reviews_text(people, drifted)))
    page = reviews_page("reports", people, drifted)
    assert "<svg" not in page
    assert reviews_data(people, drifted)["agreement"] is None


def test_names_put_no_markup_into_a_page(folder: Path) -> None:
    evil = "<script>alert(1)</script>"
    both(folder, "pp ff pf", evil, "<img src=x onerror=alert(1)>")
    write_mission(folder, "[manual_review]\ndrift_window = 5")
    add_label(folder, "reports", label(evil, "pass", evil, said=said("fail")))
    people, drifted = people_agreement(mission(folder)), judge_drift(mission(folder))
    page = reviews_page(f"{evil}</title>", people, drifted)
    assert "<svg" in page
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "</title></title>" not in page


def test_data_for_programs_has_every_pair_and_point(folder: Path) -> None:
    write_mission(folder, "[manual_review]\ndrift_window = 5")
    judged(folder, "+++--")
    both(folder, "pp ff pf", "ben", "cem")
    data = reviews_data(people_agreement(mission(folder)), judge_drift(mission(folder)))
    assert data["pairs"][0]["people"] == ["ben", "cem"]
    assert data["pairs"][0]["differing"] == ["T2"]
    assert (data["agreement"], data["of"], data["alarm"]) == (pytest.approx(0.6), 5, True)
    assert len(data["points"]) == 5
