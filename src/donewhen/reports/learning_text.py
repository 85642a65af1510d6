"""The report of a learning run, or of an audit, for a terminal: the headline first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from donewhen.foundation.plain_text import one_line
from donewhen.learning.after.report_data import LearningReport, RuleRow
from donewhen.learning.after.report_notes import notes_of
from donewhen.learning.measuring.metrics import Measures
from donewhen.reports.phrases import (
    FOR_PEOPLE,
    NOTHING,
    STATUS,
    baseline_name,
    duration,
    headline,
    large_count,
    meaning,
    money,
    plural,
    queue_counts,
    right_since,
    share,
    signed_number,
    with_interval,
)
from donewhen.reports.text_columns import aligned, wrapped

T = TypeVar("T")

_MOST = 10
"""Maximum number of lines of one kind; the page lists them all."""
_MEASURES = {
    "accuracy": "accuracy",
    "kappa": "κ",
    "tpr": "TPR",
    "tnr": "TNR",
    "false_release": "false release",
    "false_block": "false block",
}


def learning_text(report: LearningReport, width: int = 80) -> list[str]:
    """Return lines of at most ``width`` columns, without colour."""
    blocks = (
        _head(report, width),
        _notes(report, width),
        _measures(report, width),
        _epochs(report, width),
        _rules(report, width),
        _trials(report, width),
        _waiting(report, width),
        _queue(report, width),
        _dropped(report, width),
        _cost(report, width),
    )
    lines: list[str] = []
    for block in map(list, blocks):
        if block and lines:
            lines.append("")
        lines += block
    return lines


def _head(report: LearningReport, width: int) -> Iterator[str]:
    about = f"{report.mission}: {STATUS[report.status]} · {report.model} · run {report.run} · seed {report.seed}"
    yield from wrapped(about, width)
    yield from wrapped(headline(report), width)


def _notes(report: LearningReport, width: int) -> Iterator[str]:
    for note in notes_of(report):
        yield from wrapped(note.text, width, "! " if note.serious else "- ", "  ")


def _measures(report: LearningReport, width: int) -> Iterator[str]:
    if not report.before.confusion.tickets:
        return
    judges: list[tuple[str, Measures, bool]] = (
        [("judge", report.before, True)]
        if report.after is None
        else [("before", report.before, True), ("after", report.after, True)]
    )
    judges += [(baseline_name(baseline), baseline.measures, False) for baseline in report.baselines]
    rows = [["", *(name for name, _, _ in judges)]]
    for field, name in _MEASURES.items():
        estimates = [(getattr(value, field), interval) for _, value, interval in judges]
        rows.append([name, *(with_interval(value) if interval else share(value) for value, interval in estimates)])
    rows.append(["no verdict", *(str(value.confusion.invalid) for _, value, _ in judges)])
    yield from aligned(rows, width)


def _epochs(report: LearningReport, width: int) -> Iterator[str]:
    if not report.epochs:
        return
    rows = [["epoch", "training", "validation", "after", "accepted", "refused", "calls"]]
    for epoch in report.epochs[-_MOST:]:
        shares = (epoch.train_accuracy, epoch.validation_before, epoch.validation_after)
        counts = (epoch.accepted, epoch.refused, epoch.calls)
        cells = (NOTHING if value is None else f"{value:.3f}" for value in shares)
        rows.append([str(epoch.number), *cells, *map(large_count, counts)])
    yield from aligned(rows, width)


def _rules(report: LearningReport, width: int) -> Iterator[str]:
    if not report.rules:
        return
    yield from wrapped("Rules, with the change in correct tickets that each makes", width)
    for rule in report.rules:
        yield from wrapped(rule.text, width, f"  {one_line(rule.key, 8):<4}{_effect(rule):>5}  ")
    for gone in report.removed:
        yield from wrapped(f"{gone.text} Removed: {gone.why}", width, f"  {one_line(gone.key, 8):<4} gone  ")


def _effect(rule: RuleRow) -> str:
    if rule.effect is not None:
        return signed_number(rule.effect)
    return "fixed" if rule.scaffold else "?"


def _trials(report: LearningReport, width: int) -> Iterator[str]:
    if not report.trials:
        return
    taken = sum(trial.accepted for trial in report.trials)
    message = f"Trials on unseen tickets: {taken} of {plural(len(report.trials), 'change')} accepted"
    yield from wrapped(message, width)
    refused = [trial for trial in report.trials if not trial.accepted]
    for trial in refused[:_MOST]:
        errors = f"errors {trial.errors_before} → {trial.errors_after}"
        yield from wrapped(
            f"{trial.change}, {trial.why.replace('_', ' ') or 'refused'} ({errors}): {trial.text}", width, "  ", "    "
        )
    yield from _more(refused)


def _waiting(report: LearningReport, width: int) -> Iterator[str]:
    waiting = [hypothesis for hypothesis in report.hypotheses if hypothesis.state == "waiting"]
    if not waiting:
        return
    yield "Waiting hypotheses"
    for hypothesis in waiting[:_MOST]:
        support = f"{plural(hypothesis.cycles, 'cycle')}, {plural(len(hypothesis.evidence), 'ticket')}"
        missing = f"; missing: {hypothesis.why}" if hypothesis.why else ""
        yield from wrapped(f"{hypothesis.text} ({support}{missing})", width, "  ", "    ")
    yield from _more(waiting)


def _queue(report: LearningReport, width: int) -> Iterator[str]:
    if report.queue:
        yield from wrapped("Tickets not used for learning", width)
    for reason, count in queue_counts(report.queue):
        right = right_since(report.queued(reason))
        since = f" ({right} judged correctly since)" if right else ""
        yield from wrapped(f"{plural(count, 'ticket')}: {meaning(reason)}{since}", width, "  ", "    ")
        if reason in FOR_PEOPLE:
            rows = report.queued(reason)
            for row in rows[:_MOST]:
                message = f"{row.ticket_key}, judged {row.verdict or 'neither'}" + (f": {row.note}" if row.note else "")
                yield from wrapped(message, width, "    ", "      ")
            yield from _more(rows, "    ")


def _dropped(report: LearningReport, width: int) -> Iterator[str]:
    if not report.dropped:
        return
    kinds = sorted(report.dropped, key=lambda kind: (-kind.count, kind.reason))
    message = ", ".join(f"{kind.reason} {kind.count}" for kind in kinds)
    yield from wrapped(f"Proposed but not accepted: {message}", width, "", "  ")


def _cost(report: LearningReport, width: int) -> Iterator[str]:
    cost, allowed = report.cost, report.cost.budget
    parts = [
        f"{large_count(cost.calls)} calls ({large_count(cost.rollout_calls)} judging, "
        f"{large_count(cost.reflection_calls)} reflection)"
        + ("" if allowed.calls is None else f" of {large_count(allowed.calls)}"),
        f"{large_count(cost.tokens)} tokens ({large_count(cost.cached_tokens)} cached)"
        + ("" if allowed.tokens is None else f" of {large_count(allowed.tokens)}"),
        f"cost {money(cost.cost)}" + ("" if allowed.cost is None else f" of {money(allowed.cost)}"),
        duration(cost.seconds) + ("" if allowed.seconds is None else f" of {duration(allowed.seconds)}"),
    ]
    yield from wrapped(" · ".join(parts), width)
    sizes = {"training": report.splits.train, "validation": report.splits.validation, "test": report.splits.test}
    message = ", ".join(f"{name} {part.tickets}" for name, part in sizes.items() if part.tickets)
    if message:
        yield from wrapped(f"Tickets: {message}", width)


def _more(rows: Sequence[T], before: str = "  ") -> Iterator[str]:
    if len(rows) > _MOST:
        yield f"{before}and {len(rows) - _MOST} more"
