"""The report on a terminal."""

from __future__ import annotations

import msgspec
import pytest
from report_kit import a_run, an_audit, an_empty_one

from donewhen.learning.after.report_data import (
    EpochRow,
    HypothesisRow,
    LearningReport,
    PartSizes,
    QueueRow,
    RuleRow,
    SplitSizes,
    TrialRow,
)
from donewhen.learning.after.report_notes import notes_of
from donewhen.learning.measuring.metrics import McNemar
from donewhen.reports.learning_text import learning_text
from donewhen.reports.phrases import (
    comparison_sentence,
    duration,
    headline,
    large_count,
    money,
    p_value,
    queue_counts,
    right_since,
    signed_number,
)
from donewhen.reports.text_columns import aligned, columns, wrapped
from sentences import assert_sentences

REPORTS = {"run": a_run(), "audit": an_audit(), "empty": an_empty_one()}


def text(report: LearningReport, width: int = 80) -> str:
    return "\n".join(learning_text(report, width))


def joined(report: LearningReport, width: int = 80) -> str:
    return " ".join(text(report, width).split())


# The headline


def test_the_headline_says_what_came_out_and_whether_it_is_worth_it() -> None:
    assert_sentences(headline(a_run()))


def test_the_headline_of_an_audit_has_no_before() -> None:
    assert_sentences(headline(an_audit()))


def test_the_headline_says_so_where_there_is_nothing_to_say() -> None:
    assert_sentences(headline(an_empty_one()))
    waiting = msgspec.structs.replace(an_empty_one(), splits=SplitSizes(test=PartSizes(passes=3, fails=3)))
    assert_sentences(headline(waiting))


def test_chance_is_mentioned_where_it_may_be_chance() -> None:
    report = a_run()
    sure = tuple(msgspec.structs.replace(baseline, against=McNemar(30, 10, 0.049)) for baseline in report.baselines)
    assert_sentences(headline(msgspec.structs.replace(report, baselines=sure)))
    assert_sentences(headline(msgspec.structs.replace(report, baselines=())))
    assert "p = 0.050" in comparison_sentence(McNemar(5, 4, 0.05))
    assert "p = 0.021" in comparison_sentence(McNemar(9, 1, 0.0215))
    assert_sentences(comparison_sentence(McNemar(5, 4, 0.05)), comparison_sentence(McNemar(9, 1, 0.0215)))
    assert p_value(McNemar(60, 2, 0.00099)) == "p < 0.001"
    assert p_value(McNemar(60, 2, 0.001)) == "p = 0.001"
    unsure = tuple(msgspec.structs.replace(baseline, against=McNemar(30, 10, 0.05)) for baseline in report.baselines)
    assert_sentences(headline(msgspec.structs.replace(report, baselines=unsure)))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (signed_number(3), "+3"),
        (signed_number(-3), "−3"),
        (signed_number(0), "0"),
        (signed_number(-0.04, 1), "0"),
        (signed_number(-12.86, 1), "−12.9"),
        (large_count(999), "999"),
        (large_count(4_812_233), "4,812,233"),
        (duration(59.94), "59.9 s"),
        (duration(60), "1 min 0 s"),
        (duration(1893.2), "31 min 33 s"),
        (duration(3600), "1 h 0 min"),
        (duration(7325), "2 h 2 min"),
        (money(0), "0"),
        (money(0.00123), "0.0012"),
        (money(1), "1.00"),
        (money(1.5), "1.50"),
        (money(3.4182), "3.42"),
    ],
)
def test_numbers_are_written_for_people(found: str, expected: str) -> None:
    assert found == expected


# The whole


def test_the_headline_comes_first_and_then_the_notes() -> None:
    report = a_run()
    lines = learning_text(report)
    assert lines[0] == "refunds: finished · scripted/1 · run 20260214-101500-7f3a · seed 7"
    assert "0.721 → 0.850" in lines[1]
    assert_sentences(lines)
    notes = [line for line in lines if line.startswith(("! ", "- "))]
    assert [line[0] for line in notes] == ["!" if note.serious else "-" for note in notes_of(report)]
    assert all(note.text in joined(report) for note in notes_of(report))


def test_the_table_has_the_judge_before_and_after_beside_the_baselines() -> None:
    lines = learning_text(a_run())
    at = next(place for place, line in enumerate(lines) if line.lstrip().startswith("before"))
    assert_sentences(lines[at].split("  ")[-1])
    assert lines[at + 1].endswith("0.721 (0.64 to 0.79)  0.850 (0.78 to 0.90)     0.657        0.750")
    assert_sentences([line.split("  ")[0] for line in lines[at + 2 : at + 8]])
    assert lines[at + 7].split()[2:] == ["0", "2", "0", "0"]


def test_an_audit_has_one_judge_and_nothing_about_learning() -> None:
    found = text(an_audit())
    assert_sentences(found)
    assert not any(word in found for word in ("before", "after", "Trials", "Hypotheses", "epoch"))
    assert "140" in found


def test_an_interrupted_run_without_anything_is_still_a_report() -> None:
    lines = learning_text(an_empty_one())
    assert lines[0].startswith("refunds: interrupted")
    assert lines[-1].startswith("0 calls")


def test_epochs_are_rows_and_of_many_the_last_are_shown() -> None:
    lines = learning_text(a_run())
    assert "1         0.690       0.700  0.760         2        5  1,420" in lines
    many = msgspec.structs.replace(a_run(), epochs=tuple(EpochRow(number=at) for at in range(1, 31)))
    rows = [line.split() for line in learning_text(many) if line.split()[1:4] == ["—", "—", "—"]]
    assert [row[0] for row in rows] == [str(at) for at in range(21, 31)]


def test_every_rule_stands_there_with_what_it_does() -> None:
    lines = learning_text(a_run())
    assert "  S1  fixed  When the text has under 5 words, the verdict is fail." in lines
    assert_sentences(lines)
    assert "  G1    +17  If the refund was promised and no refund call follows, the verdict" in lines
    assert "             is fail." in lines
    assert "  G4     −3  A polite closing alone is a pass." in lines
    assert any(line.startswith("  G10     ?  If the agent") for line in lines)
    assert "  G3   gone  Long transcripts fail. Removed: confidence 0.25 after 6 misses" in lines


def test_what_was_refused_waits_or_was_dropped_is_there() -> None:
    found = joined(a_run())
    assert_sentences(found)
    for value in ("29 → 31", "Tickets in capitals fail.", "RF-81::pass", "three of three votes", "RF-91 is alike"):
        assert value in found


def test_the_cost_stands_beside_what_was_allowed() -> None:
    found = joined(a_run())
    for value in ("5,576", "5,380", "196", "8,000", "4,975,235", "3,900,120", "3.42", "5.00", "31 min 33 s", "420"):
        assert value in found
    assert_sentences(learning_text(a_run())[-3:])


def test_long_lists_end_with_how_many_more_there_are() -> None:
    refused = tuple(TrialRow(change=f"add {at}", text="t", accepted=False, tickets=20) for at in range(13))
    waiting = tuple(
        HypothesisRow(text=f"h{at}", falsifier="f", state="waiting", cycles=1, evidence=("a::pass",))
        for at in range(11)
    )
    lines = learning_text(msgspec.structs.replace(a_run(), trials=refused, hypotheses=waiting))
    assert lines.count("  and 3 more") == 1
    assert lines.count("  and 1 more") == 1
    assert sum(line.startswith("  add ") for line in lines) == 10
    just = learning_text(msgspec.structs.replace(a_run(), trials=refused[:10], hypotheses=()))
    assert not any("more" in line for line in just if line.startswith("  and"))
    assert_sentences(text(msgspec.structs.replace(a_run(), queue=())))


# Widths


@pytest.mark.parametrize("width", [24, 40, 60, 80, 120])
@pytest.mark.parametrize("name", REPORTS)
def test_no_line_is_wider_than_the_terminal(name: str, width: int) -> None:
    wide = msgspec.structs.replace(
        REPORTS[name],
        rules=(
            RuleRow(key="G1", text="如果订单号与客户所述不符，则判定不通过。" * 9),
            RuleRow(key="G2", text="x" * 500),
            RuleRow(key="G3", text="e\u0301" * 70 + " שלום"),
        ),
    )
    lines = learning_text(wide, width)
    assert max(map(columns, lines)) <= width
    assert all(line == line.rstrip() for line in lines)
    assert "x" * 500 in "".join(line.strip() for line in lines)


def test_nothing_of_a_ticket_drives_the_terminal() -> None:
    hostile = "\x1b[31mred\x1b]0;owned\x07 a\u202eb\nnext\x00"
    report = msgspec.structs.replace(
        a_run(), mission=hostile, model=hostile, rules=(RuleRow(key=hostile, text=hostile),)
    )
    lines = learning_text(report)
    assert not any(letter in line for line in lines for letter in "\x1b\x07\x00\n\u202e")
    assert lines[0].startswith("red ab next: finished")


def test_text_is_wrapped_by_the_columns_that_it_takes() -> None:
    assert wrapped("one two three four five six", 24, "* ") == ["* one two three four", "  five six"]
    assert wrapped("图片清晰图片清晰图片清晰图片清晰", 24) == ["图片清晰图片清晰图片清晰", "图片清晰"]
    assert wrapped("twelve chars and eleven!! more", 24) == ["twelve chars and", "eleven!! more"]
    assert wrapped("twelve chars and eleven! more", 24) == ["twelve chars and eleven!", "more"]
    assert wrapped("x" * 60, 24) == ["x" * 24, "x" * 24, "x" * 12]
    assert wrapped("", 24, "* ") == ["*"]
    assert wrapped("a b", 24, "- ", "    ") == ["- a b"]
    assert (columns("图a"), columns("e\u0301"), columns("\u200d")) == (3, 1, 0)


def test_a_table_that_is_too_wide_becomes_a_list() -> None:
    rows = [["", "before", "after"], ["accuracy", "0.7", "0.8"], ["图片", "1", "22"]]
    assert aligned(rows, 40) == ["          before  after", "accuracy     0.7    0.8", "图片           1     22"]
    assert aligned(rows, 23) == aligned(rows, 40)
    assert aligned(rows, 22) == ["accuracy", "  before 0.7", "  after 0.8", "图片", "  before 1", "  after 22"]


def test_a_ticket_that_is_queued_in_two_epochs_is_one_and_says_whether_it_is_right_since() -> None:
    rows = [
        QueueRow(ticket_key=key, reason_code="budget_exhausted", label="pass", epoch=epoch, right_since=right)
        for key, epoch, right in (("a::pass", 1, True), ("a::pass", 2, True), ("b::pass", 1, False))
    ]
    assert queue_counts(tuple(rows)) == [("budget_exhausted", 2)]
    assert right_since(tuple(rows)) == 1
