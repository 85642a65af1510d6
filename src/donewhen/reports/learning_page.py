"""The report of a learning run, or of an audit, as a self-contained page."""

from __future__ import annotations

from donewhen.foundation.plain_text import one_line
from donewhen.learning.after.report_data import LearningReport, PartSizes
from donewhen.learning.after.report_notes import notes_of
from donewhen.learning.measuring.metrics import Estimate, Measures
from donewhen.reports import learning_lists as lists
from donewhen.reports import plots
from donewhen.reports.judge_plots import EpochPoint, learning_curve
from donewhen.reports.markup import escape_line, page, section, table
from donewhen.reports.phrases import (
    NOTHING,
    STATUS,
    baseline_name,
    bounds,
    comparison_sentence,
    duration,
    headline,
    large_count,
    money,
    share,
    signed_number,
    with_interval,
)

_MEASURES = {
    "accuracy": "accuracy",
    "kappa": "κ",
    "tpr": "TPR (good work passed)",
    "tnr": "TNR (bad work failed)",
    "false_release": "false releases (bad work passed)",
    "false_block": "false blocks (good work failed)",
}


def learning_page(report: LearningReport) -> str:
    """Return the whole page."""
    what = "audit of the judge" if report.status == "audit" else "what the judge learned"
    title = f"{one_line(report.mission, 120)}: {what}"
    return page(title, f"{_head(report, title)}\n{learning_sections(report)}")


def learning_sections(report: LearningReport) -> str:
    """Return the sections below the page head, for a page that has its own head."""
    parts = (
        _cards(report),
        _notes(report),
        section("Against people’s labels", _comparison(report), _measures(report), _prevalence(report)),
        section("Learning curve", _curve(report)),
        section("Rules", lists.rules_list(report)),
        section("Removed rules", lists.removed_rules_list(report)),
        section("Trials on unseen tickets", lists.trials_list(report)),
        section("Hypotheses", *lists.hypotheses_list(report)),
        section("For people to decide", *lists.for_people(report)),
        section("Tickets not used for learning", lists.queue_list(report)),
        section("Proposed but not accepted", lists.dropped_list(report)),
        section("Cost", _cost(report)),
        section("Tickets", _splits(report)),
    )
    return "\n".join(part for part in parts if part)


def _head(report: LearningReport, title: str) -> str:
    steps = f"guidance step {report.guidance_before}"
    if report.guidance_after is not None:
        steps += f" → {report.guidance_after}"
    about = (STATUS[report.status], f"model {report.model}", steps, f"run {report.run}", f"seed {report.seed}")
    return (
        f'<header><h1>{escape_line(title)}</h1><p class="about">{" · ".join(escape_line(part) for part in about)} · '
        f'{escape_line(report.finished_at)}</p><p class="lead">{escape_line(headline(report), 600)}</p></header>'
    )


def _cards(report: LearningReport) -> str:
    before, now = report.before, report.now
    if not now.confusion.tickets:
        return ""
    names = {"accuracy": "accuracy", "kappa": "κ", "tpr": "TPR", "tnr": "TNR"}
    cards = [_card(name, getattr(before, field), getattr(now, field), report) for field, name in names.items()]
    released, was = now.confusion.false_pass, before.confusion.false_pass
    message = f"<span>of {now.confusion.fails} labelled fail</span>"
    message += "" if report.after is None else f"<span>before: {was}</span>"
    cards.append(f'<div class="card"><span>false releases</span><b>{released}</b>{message}</div>')
    return f'<div class="cards">{"".join(cards)}</div>'


def _card(name: str, before: Estimate | None, now: Estimate | None, report: LearningReport) -> str:
    if now is None:
        return f'<div class="card"><span>{name}</span><b>{NOTHING}</b><span>not measurable</span></div>'
    message = f"<span>{bounds(now)}</span>" + ("" if report.after is None else f"<span>before: {share(before)}</span>")
    return f'<div class="card"><span>{name}</span><b>{share(now)}</b>{message}</div>'


def _notes(report: LearningReport) -> str:
    notes = "".join(
        f'<li class="{"serious" if note.serious else "note"}">{escape_line(note.text, 800)}</li>'
        for note in notes_of(report)
    )
    return f'<ul class="notes">{notes}</ul>' if notes else ""


def _judges(report: LearningReport) -> list[tuple[str, Measures, plots.Tone]]:
    judges: list[tuple[str, Measures, plots.Tone]] = [
        (baseline_name(baseline), baseline.measures, "base") for baseline in report.baselines
    ]
    if report.after is None:
        return [*judges, ("judge", report.before, "now")]
    return [*judges, ("before", report.before, "then"), ("after", report.after, "now")]


def _comparison(report: LearningReport) -> str:
    judges = _judges(report)
    if not report.before.confusion.tickets:
        return ""
    drawn = [
        plots.whiskers("Accuracy, with 95 % intervals", [plots.Whisker(n, m.accuracy, t) for n, m, t in judges]),
        plots.whiskers("κ, agreement beyond chance", [plots.Whisker(n, m.kappa, t) for n, m, t in judges]),
    ]
    if report.after is None:
        drawn.append(plots.confusion_square("Verdicts", report.before.confusion))
    else:
        drawn.append(plots.confusion_square("Verdicts before", report.before.confusion))
        drawn.append(plots.confusion_square("Verdicts after", report.after.confusion))
    return f'<div class="plots">{"".join(drawn)}</div>'


def _measures(report: LearningReport) -> str:
    judges = _judges(report)
    if not report.before.confusion.tickets:
        return ""
    rows = [
        [name, *(with_interval(getattr(measures, field)) for _, measures, _ in judges)]
        for field, name in _MEASURES.items()
    ]
    rows.append(["no verdict", *(str(measures.confusion.invalid) for _, measures, _ in judges)])
    lines = [f"Share labelled pass: {with_interval(report.before.base_rate)}. Intervals are 95 %, by Wilson."]
    if report.comparison is not None:
        lines.append(f"From before to after: {comparison_sentence(report.comparison)}.")
    if report.difference is not None:
        difference = report.difference
        between = f"{signed_number(100 * difference.low, 1)} to {signed_number(100 * difference.high, 1)}"
        lines.append(
            f"Error {signed_number(100 * difference.mean_difference, 1)} points ({between}, paired bootstrap)."
        )
    lines += [
        f"From {baseline_name(baseline)} to the judge: {comparison_sentence(baseline.against)}."
        for baseline in report.baselines
        if baseline.against is not None
    ]
    numbers = range(1, len(judges) + 1)
    return (
        table(["", *(name for name, _, _ in judges)], rows, numbers=numbers) + f'<p class="about">{" ".join(lines)}</p>'
    )


def _prevalence(report: LearningReport) -> str:
    prevalence = report.prevalence
    if prevalence is None or not prevalence.tickets:
        return ""
    seen = f"The judge passes {prevalence.judged_pass} of the other {prevalence.tickets} tickets"
    if prevalence.corrected is None:
        return f'<p class="about">{seen}; it is no better than chance, so this does not show how many should pass.</p>'
    corrected = f"corrected for its errors (Rogan–Gladen), {with_interval(prevalence.corrected)} of them pass"
    return f'<p class="about">{seen}, {prevalence.judged_pass / prevalence.tickets:.3f}; {corrected}.</p>'


def _curve(report: LearningReport) -> str:
    if not report.epochs:
        return ""
    epochs = report.epochs
    drawn = learning_curve(
        [
            EpochPoint(
                epoch.number,
                epoch.train_accuracy,
                epoch.validation_before,
                epoch.validation_after,
                f"{epoch.accepted} of {epoch.accepted + epoch.refused}",
            )
            for epoch in epochs
        ]
    )
    rows = [
        [
            str(epoch.number),
            *(
                NOTHING if x is None else f"{x:.3f}"
                for x in (epoch.train_accuracy, epoch.validation_before, epoch.validation_after)
            ),
            str(epoch.accepted),
            str(epoch.refused),
            large_count(epoch.calls),
        ]
        for epoch in epochs
    ]
    headings = ["epoch", "training", "validation", "after", "accepted", "refused", "calls"]
    return f'<div class="plots">{drawn}<div>{table(headings, rows, numbers=range(7))}</div></div>'


def _cost(report: LearningReport) -> str:
    cost, allowed = report.cost, report.cost.budget
    fresh = max(0, cost.prompt_tokens - cost.cached_tokens)
    drawn = plots.stacked(
        "Calls and tokens",
        [
            (
                "calls",
                [
                    plots.BarPart("judging", cost.rollout_calls, "now"),
                    plots.BarPart("reflection", cost.reflection_calls, "warn"),
                ],
            ),
            (
                "tokens",
                [
                    plots.BarPart("prompt", fresh, "now"),
                    plots.BarPart("cached", cost.cached_tokens, "base"),
                    plots.BarPart("answers", cost.completion_tokens, "warn"),
                ],
            ),
        ],
    )
    rows = [
        ["calls", large_count(cost.calls), "" if allowed.calls is None else large_count(allowed.calls)],
        ["tokens", large_count(cost.tokens), "" if allowed.tokens is None else large_count(allowed.tokens)],
        ["money", money(cost.cost), "" if allowed.cost is None else money(allowed.cost)],
        ["time", duration(cost.seconds), "" if allowed.seconds is None else duration(allowed.seconds)],
        ["cached answers", large_count(cost.reused), ""],
        ["calls without an answer", large_count(cost.errors), ""],
    ]
    return f'<div class="plots">{drawn}<div>{table(["", "spent", "allowed"], rows, numbers=[1, 2])}</div></div>'


def _splits(report: LearningReport) -> str:
    parts: dict[str, PartSizes] = {
        "training": report.splits.train,
        "validation": report.splits.validation,
        "test": report.splits.test,
    }
    rows = [
        [
            name,
            str(part.tickets),
            str(part.passes),
            str(part.fails),
            str(part.clusters),
            f"<code>{escape_line(part.hash)}</code>",
        ]
        for name, part in parts.items()
        if part.tickets
    ]
    return table(["part", "tickets", "pass", "fail", "clusters", "hash"], rows, numbers=range(1, 5)) if rows else ""
