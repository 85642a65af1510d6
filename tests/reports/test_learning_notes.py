"""What a report says about itself: the remarks, and the file."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from report_kit import a_run, an_audit, an_empty_one

from donewhen.learning.after.report_data import (
    Baseline,
    LearningReport,
    PartSizes,
    QueueRow,
    RuleRow,
    SplitSizes,
    report_from_json,
    report_to_json,
)
from donewhen.learning.after.report_notes import beats, notes_of, with_notes
from donewhen.learning.measuring.metrics import Confusion, McNemar, Measures, measures_of
from sentences import assert_sentences

SIZES = SplitSizes(
    train=PartSizes(passes=100, fails=100, clusters=200),
    validation=PartSizes(passes=50, fails=50, clusters=100),
    test=PartSizes(passes=100, fails=100, clusters=200),
)


def judge(true_pass: int, true_fail: int, of: int = 100, invalid: int = 0) -> Measures:
    found = Confusion(
        true_pass=true_pass - invalid,
        false_fail=of - true_pass,
        invalid_pass=invalid,
        true_fail=true_fail,
        false_pass=of - true_fail,
    )
    return measures_of(found)


READ = 'When "undo" occurs, the verdict is fail.'


def flawless(**changes: Any) -> LearningReport:
    """A report about which there is nothing to say."""
    report = LearningReport(
        mission="m",
        run="r",
        model="contrast/1",
        status="finished",
        finished_at="",
        seed=1,
        splits=SIZES,
        before=judge(80, 80),
        after=judge(95, 96),
        comparison=McNemar(33, 2, 0.0001),
        guidance_before=0,
        guidance_after=3,
        baselines=(
            Baseline(name="majority", measures=judge(0, 100)),
            Baseline(name="word_counts", measures=judge(85, 85)),
        ),
        rules=(
            RuleRow(key="S1", text="When a box is unchecked, the verdict is fail."),
            RuleRow(key="G1", text=READ, hits=3, misses=1, measured_on=50),
        ),
        votes=600,
    )
    return msgspec.structs.replace(report, **changes)


def codes(report: LearningReport) -> dict[str, bool]:
    return {note.code: note.serious for note in notes_of(report)}


def told(report: LearningReport, code: str) -> str:
    (found,) = (note.text for note in notes_of(report) if note.code == code)
    return found


def sizes(**test: int) -> SplitSizes:
    return msgspec.structs.replace(SIZES, test=PartSizes(**test))


def test_there_is_nothing_to_say_about_a_flawless_run() -> None:
    assert notes_of(flawless()) == ()


# The tickets


def test_without_held_out_tickets_nothing_is_measured() -> None:
    found = codes(flawless(splits=SplitSizes(train=PartSizes(passes=5, fails=5, clusters=10))))
    assert found == {"nothing_held_out": True}


@pytest.mark.parametrize(("passes", "serious"), [(0, True), (1, None)])
def test_fewer_than_a_hundred_labels_are_few(passes: int, serious: bool | None) -> None:
    splits = SplitSizes(
        train=PartSizes(passes=passes, fails=29, clusters=50),
        validation=PartSizes(passes=10, fails=10, clusters=20),
        test=PartSizes(passes=25, fails=25, clusters=50),
    )
    assert codes(flawless(splits=splits)).get("few_labels") == serious
    if serious:
        assert_sentences(told(flawless(splits=splits), "few_labels"))


@pytest.mark.parametrize(("passes", "few"), [(49, True), (50, False)])
def test_few_held_out_tickets_tell_little(passes: int, few: bool) -> None:
    report = flawless(splits=sizes(passes=passes, fails=50, clusters=passes + 50))
    assert codes(report) == ({"few_held_out": False} if few else {})
    if few:
        assert_sentences(told(report, "few_held_out"))


@pytest.mark.parametrize(("passes", "fails", "rare"), [(20, 80, None), (19, 81, "pass"), (81, 19, "fail")])
def test_a_label_that_is_rare_is_said_to_be(passes: int, fails: int, rare: str | None) -> None:
    report = flawless(splits=sizes(passes=passes, fails=fails, clusters=100))
    if rare is None:
        assert "unbalanced" not in codes(report)
    else:
        assert codes(report)["unbalanced"] is False
        assert rare in told(report, "unbalanced")
        assert_sentences(told(report, "unbalanced"))


@pytest.mark.parametrize(("passes", "fails", "missing"), [(0, 80, "pass"), (80, 0, "fail")])
def test_a_label_that_is_missing_is_worse(passes: int, fails: int, missing: str) -> None:
    report = flawless(splits=sizes(passes=passes, fails=fails, clusters=80))
    assert codes(report) == {"one_label": True, "few_held_out": False}
    assert missing in told(report, "one_label")
    assert_sentences(told(report, "one_label"))


def test_clusters_make_intervals_narrow() -> None:
    report = flawless(splits=sizes(passes=50, fails=50, clusters=99))
    assert codes(report) == {"clustered": False}
    assert_sentences(told(report, "clustered"))


def test_a_test_split_that_was_opened_before_is_no_longer_unseen() -> None:
    report = flawless(splits=msgspec.structs.replace(SIZES, test_openings=2))
    assert codes(report) == {"opened_again": False}
    assert "2" in told(report, "opened_again")
    assert_sentences(told(report, "opened_again"))


def test_test_tickets_that_rules_rest_on_flatter_the_judge() -> None:
    report = flawless(splits=msgspec.structs.replace(SIZES, test_learned_from=3))
    assert codes(report) == {"learned_from": True}
    assert_sentences(told(report, "learned_from"))


# The judge


def test_missing_verdicts_and_malformed_votes_are_told_apart() -> None:
    report = flawless(after=judge(95, 96, invalid=3), malformed={"no_reason_line": 5, "cut_off": 2})
    assert codes(report) == {"invalid_verdicts": True, "malformed_votes": False}
    assert_sentences(told(report, "invalid_verdicts"))
    assert_sentences(told(report, "malformed_votes"))


@pytest.mark.parametrize(
    ("right", "serious"),
    [(79, True), (80, False), (89, False), (90, None)],
)
@pytest.mark.parametrize("rate", ["tpr", "tnr"])
def test_both_rates_have_a_floor_and_an_aim(rate: str, right: int, serious: bool | None) -> None:
    now = judge(right, 96) if rate == "tpr" else judge(96, right)
    report = flawless(after=now)
    found = {code: serious for code, serious in codes(report).items() if code in ("tpr_low", "tnr_low")}
    assert found == ({} if serious is None else {f"{rate}_low": serious})
    if serious is not None:
        text = told(report, f"{rate}_low")
        assert_sentences(text)
        assert text.startswith(f"{rate.upper()} is {right / 100:.2f} (")


def test_a_good_rate_from_few_tickets_may_be_a_bad_one() -> None:
    report = flawless(after=judge(18, 20, of=20), before=judge(10, 10, of=20), baselines=())
    assert codes(report) == {"tpr_low": False}
    assert_sentences(told(report, "tpr_low"))


def test_an_audit_is_about_the_judge_as_it_was() -> None:
    report = flawless(status="audit", after=None, comparison=None, guidance_after=None)
    assert codes(report) == {"tpr_low": False, "tnr_low": False, "below_word_counts": True}


@pytest.mark.parametrize(("right", "below"), [(50, True), (51, False)])
def test_a_judge_must_beat_the_commoner_label(right: int, below: bool) -> None:
    report = flawless(after=judge(right, 50), baselines=(Baseline(name="majority", measures=judge(0, 100)),))
    assert codes(report).get("below_majority", False) is below


def test_a_judge_must_beat_word_counts() -> None:
    report = flawless(after=judge(90, 90), baselines=(Baseline(name="word_counts", measures=judge(91, 90)),))
    assert codes(report) == {"below_word_counts": True}
    assert_sentences(told(report, "below_word_counts"))


def test_more_right_with_less_agreement_beyond_chance_is_no_better() -> None:
    lopsided = measures_of(Confusion(true_pass=2, false_fail=18, true_fail=180))
    fair = measures_of(Confusion(true_pass=15, false_fail=5, true_fail=166, false_pass=14))
    assert lopsided.confusion.right > fair.confusion.right
    assert not beats(lopsided, fair)
    assert not beats(fair, lopsided)
    assert beats(judge(91, 90), judge(90, 90))
    assert beats(measures_of(Confusion(true_pass=9, true_fail=9)), measures_of(Confusion(true_pass=8, true_fail=8)))
    assert not beats(judge(90, 90), judge(90, 90))
    one_label = measures_of(Confusion(true_fail=9, false_pass=1))
    assert beats(one_label, measures_of(Confusion(true_fail=8, false_pass=2)))


def test_a_model_that_is_another_one_tomorrow_is_named() -> None:
    assert codes(flawless(model="acme/Judge-Latest")) == {"unpinned_model": False}


# The learning


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("finished", {}),
        ("budget_exhausted", {"stopped_early": False}),
        ("interrupted", {"stopped_early": True}),
        ("no_usable_reflection", {"no_usable_reflection": True}),
    ],
)
def test_a_run_that_did_not_come_to_its_end_says_so(status: Any, expected: dict[str, bool]) -> None:
    assert codes(flawless(status=status)) == expected


def test_a_run_without_trials_says_so() -> None:
    assert codes(flawless(trial_off=True)) == {"trial_off": True}


def test_a_run_that_changed_nothing_says_so_and_compares_nothing() -> None:
    report = flawless(guidance_after=0, after=judge(80, 79), baselines=(), comparison=McNemar(0, 1, 1.0))
    assert {"nothing_learned", "got_worse", "not_significant"} & codes(report).keys() == {"nothing_learned"}


def test_a_judge_that_got_worse_is_not_called_better() -> None:
    report = flawless(before=judge(96, 96), after=judge(95, 96), comparison=McNemar(0, 1, 1.0))
    assert codes(report) == {"got_worse": True}
    assert_sentences(told(report, "got_worse"))


def test_a_judge_that_errs_as_often_as_before_did_not_get_worse() -> None:
    report = flawless(before=judge(96, 96), after=judge(95, 97), comparison=McNemar(1, 1, 1.0))
    assert codes(report) == {"not_significant": False}


@pytest.mark.parametrize(("p", "noted_down"), [(0.05, True), (0.049, False)])
def test_a_difference_within_chance_is_called_that(p: float, noted_down: bool) -> None:
    report = flawless(comparison=McNemar(9, 3, p))
    assert codes(report) == ({"not_significant": False} if noted_down else {})
    if noted_down:
        assert_sentences(told(report, "not_significant"))


def test_more_false_releases_are_serious_even_if_the_error_is_lower() -> None:
    report = flawless(before=judge(80, 96), after=judge(99, 95))
    assert codes(report) == {"more_false_releases": True}
    assert "from 4 to 5" in told(report, "more_false_releases")


def test_rules_that_would_not_be_missed_are_named() -> None:
    rules = (
        RuleRow(key="S1", text="When a box is unchecked, the verdict is fail.", hits=0, misses=1, measured_on=9),
        RuleRow(key="G0", text=READ, hits=0, misses=1, measured_on=9),
        RuleRow(key="G1", text=READ, hits=2, misses=1, measured_on=9),
        RuleRow(key="G2", text=READ, hits=2, misses=2, measured_on=9),
        RuleRow(key="G3", text=READ, hits=0, misses=4, measured_on=9),
        RuleRow(key="G4", text=READ),
    )
    report = flawless(rules=rules)
    assert codes(report) == {"idle_rules": False}
    assert_sentences(told(report, "idle_rules"))


def test_what_people_must_decide_is_counted() -> None:
    def row(at: int, code: Any) -> QueueRow:
        return QueueRow(ticket_key=f"t{at}::pass", reason_code=code, label="pass")

    report = flawless(
        queue=(
            row(1, "suspected_label_noise"),
            row(2, "policy_question"),
            row(3, "policy_question"),
            row(4, "budget_exhausted"),
        )
    )
    assert codes(report) == {"label_noise": False, "policy": False}
    assert told(report, "label_noise").startswith("1 ticket may")
    assert told(report, "policy").startswith("2 tickets may")


def test_the_serious_come_first() -> None:
    found = [note.serious for note in notes_of(a_run())]
    assert found == sorted(found, reverse=True)
    assert len(set(found)) == 2


# The file


@pytest.mark.parametrize("report", [a_run(), an_audit(), an_empty_one()], ids=["run", "audit", "empty"])
def test_a_report_is_read_as_it_was_written(report: LearningReport) -> None:
    written = with_notes(report)
    assert report_from_json(report_to_json(written)) == written
    assert written.notes == notes_of(report) == notes_of(written) != ()
    data = msgspec.json.decode(report_to_json(written))
    assert data["schema"] == "donewhen/learning-report/v1"
    assert data["notes"][0].keys() == {"code", "text", "serious"}


def test_a_file_of_another_shape_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        report_from_json(b'{"mission": "m"}')


def test_what_is_worked_out_follows_from_what_is_there() -> None:
    report = a_run()
    assert report.now is report.after
    assert an_audit().now is not None
    assert (report.splits.tickets, report.splits.test.tickets) == (700, 140)
    assert [rule.effect for rule in report.rules] == [None, 0, 17, 5, -3, None]
    assert [rule.scaffold for rule in report.rules] == [True] + [False] * 5
    assert (report.cost.calls, report.cost.tokens) == (5576, 4_975_235)
    assert len(report.queued("reflection_no_evidence_after_gt")) == 70
    assert report.baseline("majority") is report.baselines[0]
    assert an_empty_one().baseline("majority") is None


def test_a_scaffold_rule_that_the_model_cannot_read_is_a_serious_note() -> None:
    rules = (RuleRow(key="S1", text="Judge only by what is shown."), RuleRow(key="G1", text=READ))
    assert codes(flawless(rules=rules)) == {"unread_scaffold": True}
    assert codes(flawless(rules=rules, model="openai:gpt/1")) == {}


def test_a_rule_that_the_model_cannot_read_is_a_serious_note_and_not_called_useless() -> None:
    rules = (
        RuleRow(key="G0", text="Unless a rule says otherwise, the verdict is pass."),
        RuleRow(key="G1", text="Loose screws always fail.", measured_on=9),
        RuleRow(key="G2", text=READ, measured_on=9),
    )
    report = flawless(rules=rules)
    assert codes(report) == {"unread_guidance": True, "idle_rules": False}
    assert "G1" in told(report, "unread_guidance")
    assert "G1" not in told(report, "idle_rules")
    assert codes(flawless(rules=rules, model="openai:gpt/1")) == {"idle_rules": False}
