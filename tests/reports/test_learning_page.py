"""The report as a page: all of it is there, nothing in it is more than text, and it fits a phone."""

from __future__ import annotations

import html
import json
import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import msgspec
import pytest
from report_kit import a_run, an_audit, an_empty_one

from browsers import CHROMIUM
from donewhen.learning.after.report_data import (
    BudgetRow,
    EpochRow,
    LearningReport,
    PartSizes,
    Prevalence,
    QueueRow,
    RuleRow,
    SplitSizes,
    TrialRow,
)
from donewhen.learning.after.report_notes import notes_of
from donewhen.learning.measuring.metrics import PairedResult, measure
from donewhen.reports.learning_page import learning_page
from sentences import assert_sentences, lines_with, visible

ATTACK = "<script>document.title='owned'</script><img src=x onerror=alert(1)></td></table></svg>{body} & \"q\" 'q'"
HOSTILE = {
    "markup": ATTACK,
    "long": "x" * 10_000,
    "rtl": "\u202e" + "שלום עולם مرحبا " * 30 + "\u2067",
    "broken": "\ud800\x00\x1b[31m\ufffe]]>",
}
# What the headings and pictures of a whole report are about, in the order of the page.
PARTS = [
    "labels",
    "curve",
    "rules",
    "gone",
    "trials",
    "hypotheses",
    "people",
    "unlearned",
    "dropped",
    "cost",
    "tickets",
]
FIGURES = ["accuracy", "kappa", "before", "after", "curve", "effects", "cost"]
VOID = {"meta", "br", "line", "circle", "rect"}


class Seen(HTMLParser):
    """What a browser would see: every tag, in its place, and every text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.classes: list[str] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not any(name.startswith("on") or name in ("src", "href", "style") for name, _ in attrs)
        self.tags.append(tag)
        self.classes += (dict(attrs).get("class") or "").split()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if data.strip() and "style" not in self.open:
            self.texts.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self.texts)


def seen(report: LearningReport) -> Seen:
    return Seen(learning_page(report))


def headings(report: LearningReport) -> list[str]:
    return re.findall(r"<h2>(.*?)</h2>", learning_page(report))


def figures(report: LearningReport) -> dict[str, ElementTree.Element]:
    page = learning_page(report)
    found = re.findall(r"<figcaption>(.*?)</figcaption>(<svg.*?</svg>)", page)
    names = dict(zip(re.findall(r"<figcaption>(.*?)</figcaption>", learning_page(a_run())), FIGURES, strict=True))
    return {names.get(title, title): ElementTree.fromstring(svg) for title, svg in found}  # noqa: S314 - ours


def poisoned(report: LearningReport, text: str) -> LearningReport:
    """The report with a text in every place where a ticket, a person or a model could have put it."""
    closed = {"status", "name", "state", "reason_code", "label", "verdict", "schema", "code"}

    def bad(value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {text if name == "malformed" else key: bad(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [bad(one, name) for one in value]
        return text if isinstance(value, str) and name not in closed else value

    return msgspec.convert(bad(msgspec.to_builtins(report)), LearningReport)


# What is there


def test_everything_in_the_report_is_on_the_page() -> None:
    report = a_run()
    shown = seen(report).text
    expected = [report.mission, report.run, report.model, "seed 7", report.finished_at, "0 → 5"]
    expected += [note.text for note in notes_of(report)]
    for rule in report.rules:
        expected += [rule.key, rule.text, rule.rationale, *rule.evidence]
    for gone in report.removed:
        expected += [gone.key, gone.text, gone.why]
    for hypothesis in report.hypotheses:
        expected += [hypothesis.text, hypothesis.falsifier, hypothesis.why, hypothesis.dimension, *hypothesis.evidence]
    for tried in report.trials:
        expected += [tried.change, tried.text]
    for dropped in report.dropped:
        expected += [dropped.reason, *dropped.examples]
    expected += [part.hash for part in (report.splits.train, report.splits.validation, report.splits.test)]
    expected += ["RF-81::pass", "RF-90::fail", "RF-99::pass", "RF-159::fail", "and 10 more"]
    expected += ["three of three votes say fail in every epoch", "RF-91 is alike and labelled pass"]
    expected += ["accepted", "refused", "42 → 34", "25 → 17", "99%"]
    expected += ["5,576", "8,000", "4,975,235", "3.42", "5.00", "31 min 33 s", "now G10", "0.87"]
    assert [one for one in expected if one not in shown] == []
    assert len(headings(report)) == len(PARTS)
    assert_sentences(visible(learning_page(report)))


def stripped(markup: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", markup)).split())


def part(report: LearningReport, name: str) -> str:
    title = headings(a_run())[PARTS.index(name)]
    found = re.search(rf"<section><h2>{re.escape(title)}</h2>(.*?)</section>", learning_page(report), re.DOTALL)
    assert found is not None
    return found[1]


def rows_of(markup: str) -> list[list[str]]:
    return [list(map(stripped, re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row))) for row in markup.split("<tr>")[1:]]


def test_a_rule_is_shown_with_what_is_known_of_it_and_no_more() -> None:
    articles = list(map(stripped, re.findall(r"<article>(.*?)</article>", part(a_run(), "rules"))))
    assert articles[0].startswith("S1 When the text has under 5 words, the verdict is fail.")
    assert articles[2].endswith(
        "RF-11::fail RF-12::fail RF-13::fail RF-14::fail RF-15::fail RF-16::fail RF-17::fail RF-18::fail RF-19::fail"
    )
    assert_sentences(articles[:3])
    assert articles[5] == (
        "G10 If the agent names the policy that it applies, the verdict is pass. effect not measured "
        "Evidence: RF-3::pass"
    )


@pytest.mark.parametrize(("count", "folded"), [(3, False), (4, True), (60, True), (61, True)])
def test_many_tickets_are_folded(count: int, folded: bool) -> None:
    rule = RuleRow(key="G1", text="t", evidence=tuple(f"E-{at}::fail" for at in range(count)))
    shown = part(msgspec.structs.replace(a_run(), rules=(rule,)), "rules")
    assert ("<details>" in shown) is folded
    assert_sentences(lines_with(visible(shown), "E-0::fail"))


def test_hypotheses_stand_under_what_became_of_them() -> None:
    shown = stripped(part(a_run(), "hypotheses"))
    texts = (
        "a second agent takes over",
        "RF-58::fail",
        "now G10",
        "Tickets in capitals fail.",
        "29 → 31",
        "RF-70::fail",
    )
    places = [shown.index(text) for text in texts]
    assert places == sorted(places)
    assert_sentences(visible(part(a_run(), "hypotheses")))


def test_a_trial_is_a_row_with_its_outcome() -> None:
    rows = rows_of(part(a_run(), "trials"))
    assert_sentences(rows[0])
    assert rows[2][2:6] == ["140", "29 → 31", "14 → 14", "12%"]
    assert rows[1][2:] == ["140", "42 → 34", "25 → 17", "99%", "accepted"]
    assert_sentences(rows[2])
    assert '<span class="good">accepted</span>' in learning_page(a_run())
    untried = TrialRow(change="add", text="t", accepted=False, tickets=3)
    row = rows_of(part(msgspec.structs.replace(a_run(), trials=(untried,)), "trials"))[1]
    assert row == ["add", "t", "3", "0 → 0", "0 → 0", "—", "refused"]


def test_tables_set_numbers_to_the_right() -> None:
    page = part(a_run(), "trials")
    right = re.findall(r'<th scope="col" class="number">(.*?)</th>', page)
    assert_sentences(right)
    assert re.findall(r'<td data-of="([^"]*)" class="number">', page) == right * 2
    counts = {"labels": 4, "gone": 1, "unlearned": 2, "dropped": 1, "cost": 2, "tickets": 4, "curve": 7}
    for name, count in counts.items():
        right = re.findall(r'<th scope="col" class="number">(.*?)</th>', part(a_run(), name))
        assert len(right) == count
        assert_sentences(right)


def test_what_was_not_learned_from_and_what_was_not_taken_are_counted_the_commonest_first() -> None:
    queue = rows_of(part(a_run(), "unlearned"))[1:]
    assert [(row[0].split()[0], row[1]) for row in queue] == [
        ("reflection_no_evidence_after_gt", "70"),
        ("suspected_label_noise", "1"),
        ("policy_question", "1"),
        ("budget_exhausted", "1"),
    ]
    assert_sentences(rows_of(part(a_run(), "dropped"))[1:])
    people = rows_of(part(a_run(), "people"))
    assert people[1] == ["RF-81::pass", "pass", "fail", "three of three votes say fail in every epoch"]


def test_the_cost_is_a_row_for_each_thing_that_can_run_out() -> None:
    rows = rows_of(part(a_run(), "cost"))[1:]
    assert [row[1:] for row in rows] == [
        ["5,576", "8,000"],
        ["4,975,235", ""],
        ["3.42", "5.00"],
        ["31 min 33 s", ""],
        ["12", ""],
        ["1", ""],
    ]
    assert_sentences(row[0] for row in rows)
    cost = msgspec.structs.replace(a_run().cost, budget=BudgetRow(tokens=9_000_000, seconds=3600))
    rows = rows_of(part(msgspec.structs.replace(a_run(), cost=cost), "cost"))
    assert [row[2] for row in rows[1:5]] == ["", "9,000,000", "", "1 h 0 min"]


def test_the_cards_have_the_judge_as_it_is_with_what_it_was() -> None:
    cards = list(map(stripped, re.findall(r'<div class="card">(.*?)</div>', learning_page(a_run()))))
    assert [re.findall(r"\d[\d.]*", card) for card in cards] == [
        ["0.850", "0.78", "0.90", "0.721"],
        ["0.672", "0.52", "0.78", "0.397"],
        ["0.771", "0.63", "0.87", "0.646"],
        ["0.891", "0.81", "0.94", "0.761"],
        ["10", "92", "22"],
    ]
    assert_sentences(cards)
    cards = list(map(stripped, re.findall(r'<div class="card">(.*?)</div>', learning_page(an_audit()))))
    assert_sentences(cards)


def test_the_measures_stand_beside_one_another_with_their_intervals() -> None:
    page = learning_page(a_run())
    table = page[page.index("<table>") : page.index("</table>")]
    rows = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in re.findall(r"<tr>(.*?)</tr>", table)]
    assert rows[1][1:] == [
        "0.657 (0.58 to 0.73)",
        "0.750 (0.67 to 0.81)",
        "0.721 (0.64 to 0.79)",
        "0.850 (0.78 to 0.90)",
    ]
    assert_sentences(rows[0])
    assert_sentences([row[0] for row in rows[1:]])
    assert rows[-1][1:] == ["0", "0", "0", "2"]
    assert rows[2][1] == "0.000 (−0.24 to 0.21)"


def test_what_was_compared_is_said_below() -> None:
    assert_sentences(lines_with(visible(learning_page(a_run())), "0.343", "p = 0.013", "p = 0.059", "Rogan–Gladen"))
    difference = PairedResult(0.99, 0.995, -0.12857, -0.2214, 0.0363)
    told = learning_page(msgspec.structs.replace(a_run(), difference=difference))
    assert_sentences(lines_with(visible(told), "−12.9"))
    chance = msgspec.structs.replace(a_run(), prevalence=Prevalence(tickets=10, judged_pass=4))
    assert_sentences(lines_with(visible(learning_page(chance)), " 4 of "))


def test_a_serious_note_looks_serious() -> None:
    classes = seen(a_run()).classes
    serious = [note.serious for note in notes_of(a_run())]
    assert (classes.count("serious"), classes.count("note")) == (serious.count(True), serious.count(False))


def test_an_audit_shows_the_judge_and_nothing_about_learning() -> None:
    report = an_audit()
    assert headings(report) == [headings(a_run())[PARTS.index(name)] for name in ("labels", "rules", "cost", "tickets")]
    shown = seen(report).text
    assert_sentences(visible(learning_page(report)))
    assert not re.search(r"\bbefore\b|\bafter\b|→", shown)
    assert_sentences(list(figures(report)))


def test_a_run_that_came_to_nothing_is_still_a_page() -> None:
    report = an_empty_one()
    assert headings(report) == [headings(a_run())[PARTS.index("cost")]]
    assert figures(report) == {}
    assert_sentences(visible(learning_page(report)))


def test_what_cannot_be_measured_is_not_drawn_as_nothing() -> None:
    report = msgspec.structs.replace(
        an_audit(), before=measure([("fail", "fail")] * 5 + [("fail", "pass")]), baselines=()
    )
    assert_sentences(figures(report))
    assert_sentences(visible(learning_page(report)))


def test_of_many_tickets_sixty_are_shown_and_the_rest_is_counted() -> None:
    queue = tuple(
        QueueRow(ticket_key=f"N-{at}::pass", reason_code="suspected_label_noise", label="pass") for at in range(75)
    )
    shown = seen(msgspec.structs.replace(a_run(), queue=queue)).text
    assert shown.count("N-59::pass") == 2
    assert "N-60::pass" not in shown
    report = msgspec.structs.replace(a_run(), queue=queue)
    assert_sentences(lines_with(visible(learning_page(report)), " 15 ", "75 "))
    just = seen(msgspec.structs.replace(a_run(), queue=queue[:60])).text
    assert "N-59::pass" in just
    assert just.count("queue file") < shown.count("queue file")
    assert "N-0::pass pass —" in just


# Pictures


def texts_of(svg: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in svg.iter("text")]


def places(svg: ElementTree.Element, tag: str, group: str, *names: str) -> list[tuple[float, ...]]:
    return [
        tuple(float(one.get(name, "nan")) for name in names)
        for part in svg.iter("g")
        if part.get("class") == f"t-{group}"
        for one in part.iter(tag)
    ]


class Box(NamedTuple):
    """Where something is drawn, as far as it can be told without a browser."""

    what: str
    left: float
    top: float
    right: float
    bottom: float

    def covers(self, other: Box) -> bool:
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return across > 0.5 and down > 0.5


def box_of(tree: ElementTree.Element) -> Box:
    def at(name: str) -> float:
        return float(tree.get(name, "nan"))

    if tree.tag == "rect":
        return Box("rect", at("x"), at("y"), at("x") + at("width"), at("y") + at("height"))
    if tree.tag == "circle":
        return Box("circle", at("cx") - at("r"), at("cy") - at("r"), at("cx") + at("r"), at("cy") + at("r"))
    if tree.tag == "line":
        return Box(
            "line", min(at("x1"), at("x2")), min(at("y1"), at("y2")), max(at("x1"), at("x2")), max(at("y1"), at("y2"))
        )
    large = tree.get("class") == "big"
    wide = len(tree.text or "") * (11 if large else 5.6)
    left = at("x") - {"start": 0.0, "middle": wide / 2, "end": wide}[tree.get("text-anchor", "")]
    return Box(f"text {tree.text}", left, at("y") - (15 if large else 9), left + wide, at("y") + 2)


def boxes_of(svg: ElementTree.Element) -> list[Box]:
    return [box_of(one) for one in svg.iter() if one.tag in ("rect", "circle", "line", "text")]


@pytest.mark.parametrize("report", [a_run(), an_audit()], ids=["run", "audit"])
def test_nothing_is_drawn_outside_of_its_picture_or_over_a_word(report: LearningReport) -> None:
    for title, svg in figures(report).items():
        width, height = map(float, svg.get("viewBox", "").split()[2:])
        boxes = boxes_of(svg)
        outside = [
            box for box in boxes if box.left < -0.5 or box.top < -0.5 or box.right > width + 0.5 or box.bottom > height
        ]
        assert (title, outside) == (title, [])
        words = [box for box in boxes if box.what.startswith("text")]
        solid = [box for box in boxes if box.what in ("rect", "circle")]
        over = [(one, two) for at, one in enumerate(words) for two in words[at + 1 :] if one.covers(two)]
        # A count stands on its cell.
        beside = (
            []
            if title.startswith(("Verdicts", "before", "after", "now"))
            else [(word, two) for word in words for two in solid if word.covers(two)]
        )
        bars = [box for box in boxes if box.what == "rect"]
        crossed = [(one, two) for at, one in enumerate(bars) for two in bars[at + 1 :] if one.covers(two)]
        assert (title, over, beside, crossed) == (title, [], [], [])
        assert height - max(box.bottom for box in boxes) < 24


def test_the_fuller_a_cell_the_stronger_its_colour() -> None:
    svg = figures(a_run())["before"]
    strength = [float(one.get("opacity", "")) for one in svg.iter("rect")]
    # 31 and 17 of 48; 22 and 70 of 92.
    assert strength[0] > strength[1]
    assert strength[3] > strength[2]
    assert strength == pytest.approx([0.08 + 0.42 * share for share in (31 / 48, 17 / 48, 22 / 92, 70 / 92)], abs=0.006)
    assert [(one.left < 200, one.top > 80) for one in map(box_of, svg.iter("rect"))] == [
        (True, False),
        (False, False),
        (True, True),
        (False, True),
    ]


def test_the_count_of_a_bar_stands_at_its_end() -> None:
    svg = figures(a_run())["effects"]
    bars = [box_of(one) for one in svg.iter("rect")]
    counts = [one for one in svg.iter("text") if (one.text or "")[0] not in "GS"]
    for bar, count in zip(bars, counts, strict=True):
        value = float((count.text or "").replace("−", "-"))
        end = bar.left - 6 if value < 0 else bar.right + 6
        assert float(count.get("x", "")) == pytest.approx(end, abs=0.2)
        assert count.get("text-anchor") == ("end" if value < 0 else "start")
        assert bar.top < float(count.get("y", "")) < bar.bottom


def test_a_scale_of_close_numbers_is_not_a_single_line() -> None:
    epochs = (EpochRow(number=1, train_accuracy=1.0, validation_before=1.0, validation_after=1.0),)
    assert [
        text for text in texts_of(figures(msgspec.structs.replace(a_run(), epochs=epochs))["curve"]) if "." in text
    ] == ["0.9", "1.0"]
    epochs = (EpochRow(number=1, train_accuracy=0.62, validation_before=0.64, validation_after=0.65),)
    assert [
        text for text in texts_of(figures(msgspec.structs.replace(a_run(), epochs=epochs))["curve"]) if "." in text
    ] == ["0.6", "0.7", "0.8"]
    epochs = (EpochRow(number=1, train_accuracy=0.0, validation_before=0.1, validation_after=1.0),)
    assert [
        text for text in texts_of(figures(msgspec.structs.replace(a_run(), epochs=epochs))["curve"]) if "." in text
    ] == ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]


def test_whiskers_stand_where_their_numbers_are() -> None:
    svg = figures(a_run())["accuracy"]
    ticks = {float(one.text or ""): float(one.get("x", "")) for one in svg.iter("text") if one.get("class") == "soft"}
    assert sorted(ticks) == [0.5, 0.6, 0.7, 0.8, 0.9]
    scale = (ticks[0.9] - ticks[0.5]) / 0.4
    after = a_run().after
    assert after is not None
    assert after.accuracy is not None
    ((x,),) = places(svg, "circle", "now", "cx")
    ((low, high),) = places(svg, "line", "now", "x1", "x2")
    for drawn, number in ((x, after.accuracy.value), (low, after.accuracy.low), (high, after.accuracy.high)):
        assert (drawn - ticks[0.5]) / scale + 0.5 == pytest.approx(number, abs=0.001)
    assert len(places(svg, "circle", "base", "cx")) == 2
    assert len(places(svg, "circle", "then", "cx")) == 1
    assert svg.get("aria-label", "").endswith("after 0.850, 0.78 to 0.90")


def test_rules_that_help_point_right_and_those_that_harm_left() -> None:
    svg = figures(a_run())["effects"]
    (axis,) = (float(one.get("x1", "")) for one in svg.iter("line"))
    good = places(svg, "rect", "good", "x", "width")
    ((left, width),) = places(svg, "rect", "bad", "x", "width")
    assert [x for x, _ in good] == [axis, axis]
    assert left + width == pytest.approx(axis, abs=0.1)
    assert [round(wide / width * 3) for _, wide in good] == [17, 5]
    assert places(svg, "rect", "base", "width") == [(0.0,)]
    assert texts_of(svg) == ["G0", "0", "G1", "+17", "G2", "+5", "G4", "−3"]


def test_the_curve_has_a_point_for_every_epoch_that_was_measured() -> None:
    epochs = tuple(
        EpochRow(
            number=at,
            validation_before=0.55,
            train_accuracy=0.5 + at / 100,
            validation_after=None if at == 2 else 0.6,
            accepted=at,
            refused=1,
        )
        for at in range(1, 6)
    )
    svg = figures(msgspec.structs.replace(a_run(), epochs=epochs))["curve"]
    # A dot in the legend, too.
    training, validation = places(svg, "circle", "then", "cx", "cy")[:-1], places(svg, "circle", "now", "cx", "cy")[:-1]
    assert (len(training), len(validation)) == (5, 5)
    assert [y for _, y in training] == sorted((y for _, y in training), reverse=True)
    assert len(places(svg, "line", "then", "x1")) == 4
    # Nothing is drawn across a gap.
    assert len(places(svg, "line", "now", "x1")) == 3
    assert {"0", "5", "1 of 2", "5 of 6", "training", "validation"} <= set(texts_of(svg))
    assert "validation: 0.550, 0.600, —, 0.600" in svg.get("aria-label", "")


def test_both_lines_begin_before_the_first_change() -> None:
    """Training tickets are judged before the changes of an epoch, validation tickets after them."""
    epochs = (
        EpochRow(number=1, train_accuracy=0.5, validation_before=0.5, validation_after=0.7),
        EpochRow(number=2, train_accuracy=0.7, validation_before=0.7, validation_after=0.9),
    )
    svg = figures(msgspec.structs.replace(a_run(), epochs=epochs))["curve"]
    training, validation = places(svg, "circle", "then", "cx", "cy")[:-1], places(svg, "circle", "now", "cx", "cy")[:-1]
    assert training == validation[:2]
    assert [x for x, _ in validation] == [40, 198, 356]
    assert [y for _, y in validation] == [180, 105, 30]


@pytest.mark.parametrize("count", [1, 2, 9, 200])
def test_a_curve_of_any_length_has_few_marks_and_stays_inside(count: int) -> None:
    epochs = tuple(EpochRow(number=at, train_accuracy=0.9, validation_after=1.0) for at in range(1, count + 1))
    svg = figures(msgspec.structs.replace(a_run(), epochs=epochs))["curve"]
    assert sum(text == "0 of 0" for text in texts_of(svg)) <= 8
    xs = [x for x, _ in places(svg, "circle", "now", "cx", "cy")[:-1]]
    assert len(xs) == count
    assert xs == sorted(xs)
    assert min(xs) >= 40
    assert max(xs) <= 356


def test_the_square_has_every_count_and_names_both_errors() -> None:
    found = figures(a_run())
    before = texts_of(found["before"])
    assert [one for one in before if one.isdigit()] == ["31", "17", "22", "70"]
    assert_sentences(before)
    after = texts_of(found["after"])
    assert (after[4], after[5], after[7]) == ("37", "9", "2")
    assert_sentences(after[2:8])


def test_costs_are_parts_of_a_bar() -> None:
    svg = figures(a_run())["cost"]
    (calls, prompt), (cached,) = places(svg, "rect", "now", "width"), places(svg, "rect", "base", "width")
    reflection, answers = places(svg, "rect", "warn", "width")
    assert calls[0] / (calls[0] + reflection[0]) == pytest.approx(5380 / 5576, abs=0.01)
    assert cached[0] / (prompt[0] + cached[0] + answers[0]) == pytest.approx(3_900_120 / 4_975_235, abs=0.01)
    assert {"5,380", "196", "3,900,120", "912,113"} <= {text.split()[-1] for text in texts_of(svg) if text}
    assert_sentences(texts_of(svg))


# Nobody's words are more than words


def test_the_page_may_load_and_run_nothing() -> None:
    page = learning_page(a_run())
    assert "content=\"default-src 'none'; style-src 'unsafe-inline'\"" in page
    assert page.index("Content-Security-Policy") < page.index("<title>") < page.index("<style>")
    assert not re.search(r"https?://|src=|href=|@import|url\(|<script|<link", page)


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("kind", ["run", "audit"])
def test_hostile_words_are_words(kind: str, name: str) -> None:
    clean = a_run() if kind == "run" else an_audit()
    shown = seen(poisoned(clean, HOSTILE[name]))
    # Folding long texts adds tags of its own.
    folds = ("details", "summary", "span")
    assert [tag for tag in shown.tags if tag not in folds] == [tag for tag in seen(clean).tags if tag not in folds]
    page = learning_page(poisoned(clean, HOSTILE[name]))
    assert not re.search("[\x00-\x08\x1b\u202a-\u202e\u2066-\u2069\ud800-\udfff]", page)
    assert page.encode("utf-8")
    for svg in figures(poisoned(clean, HOSTILE[name])).values():
        assert svg.tag == "svg"


def test_a_long_rule_is_folded_and_not_cut() -> None:
    words = " ".join(f"word{at}" for at in range(1500))
    shown = seen(msgspec.structs.replace(a_run(), rules=(RuleRow(key="G1", text=words),)))
    assert words in shown.texts
    assert [text for text in shown.texts if text.startswith("word0") and text.endswith("…")]
    short = seen(msgspec.structs.replace(a_run(), rules=(RuleRow(key="G1", text="word0 word1"),)))
    assert short.texts.count("word0 word1") == 1


def test_every_text_of_others_has_its_own_direction() -> None:
    page = learning_page(a_run())
    for text in ("Long transcripts fail.", "A polite closing alone is a pass.", "Tickets in capitals fail."):
        assert f'<span dir="auto" class="foreign">{text}</span>' in page


# In a browser

MEASURING = """<!doctype html><meta charset="utf-8"><body>
<iframe id="f" style="border:0;width:%dpx;height:900px"></iframe>
<pre id="out"></pre><script>
const frame = document.getElementById("f");
frame.onload = () => {
  const page = frame.contentDocument, outside = [];
  for (const text of page.querySelectorAll("svg text")) {
    const box = text.getBBox(), view = text.ownerSVGElement.viewBox.baseVal;
    if (box.x < -2 || box.y < -1 || box.x + box.width > view.width + 1 || box.y + box.height > view.height + 1)
      outside.push(text.textContent);
  }
  for (const one of page.querySelectorAll("details")) one.open = true;
  document.getElementById("out").textContent = JSON.stringify({
    wide: page.documentElement.scrollWidth, outside, title: page.title, scripts: page.scripts.length,
    images: page.images.length, svgs: page.querySelectorAll("svg").length,
    back: frame.contentWindow.getComputedStyle(page.body).backgroundColor,
  });
};
frame.srcdoc = %s;
</script>"""


def looked_at(page: str, width: int, folder: Path, *flags: str) -> dict[str, Any]:
    """The page in a frame of some width, as a browser lays it out."""
    assert CHROMIUM is not None
    path = folder / "frame.html"
    path.write_text(MEASURING % (width, json.dumps(page).replace("</", "<\\/")), encoding="utf-8")
    common = [
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        f"--user-data-dir={folder}/user",
    ]
    shown = subprocess.run(
        [
            CHROMIUM,
            *common,
            *flags,
            "--virtual-time-budget=4000",
            "--window-size=1300,900",
            "--dump-dom",
            f"file://{path}",
        ],
        capture_output=True,
        text=True,
        timeout=100,
    )
    found = re.search(r'<pre id="out">(.+?)</pre>', shown.stdout, re.DOTALL)
    assert found is not None, shown.stderr
    result: dict[str, Any] = json.loads(html.unescape(found[1]))
    return result


@pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM: nobody has looked at the report's page")
@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("kind", ["run", "audit", "markup", "long", "rtl"])
def test_a_browser_shows_it_without_running_off_the_screen(kind: str, width: int, tmp_path: Path) -> None:
    reports = {"run": a_run(), "audit": an_audit()}
    report = reports.get(kind) or poisoned(a_run(), HOSTILE[kind])
    found = looked_at(learning_page(report), width, tmp_path)
    assert found["wide"] <= width
    assert (found["scripts"], found["images"]) == (0, 0)
    assert found["svgs"] == len(figures(report)) > 3
    assert "owned" not in found["title"] or "<script>" in found["title"]
    if kind in reports:
        assert found["outside"] == []


@pytest.mark.skipif(CHROMIUM is None, reason="NO CHROMIUM: nobody has looked at the report's page")
def test_a_browser_shows_it_by_night_too(tmp_path: Path) -> None:
    page = learning_page(a_run())
    day = looked_at(page, 800, tmp_path)
    night = looked_at(page, 800, tmp_path, "--blink-settings=preferredColorScheme=0")
    assert (day["back"], night["back"]) == ("rgb(255, 255, 255)", "rgb(18, 22, 27)")


def test_the_numbers_of_tickets_follow_the_splits() -> None:
    report = msgspec.structs.replace(
        an_audit(), splits=SplitSizes(test=PartSizes(passes=3, fails=4, clusters=6, hash="h9"))
    )
    shown = seen(report).text
    assert "test 7 3 4 6 h9" in shown
    assert "training" not in shown
