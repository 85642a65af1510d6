"""The lists of a report: rules with their evidence, trials, hypotheses, and everything that was not learned from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from donewhen.learning.after.report_data import (
    HypothesisRow,
    HypothesisState,
    LearningReport,
    QueueRow,
    RuleRow,
    TrialRow,
)
from donewhen.reports import plots
from donewhen.reports.markup import escape_line, foreign_text, key, table, ticket_names
from donewhen.reports.phrases import FOR_PEOPLE, NOTHING, meaning, plural, queue_counts, right_since

_TICKETS = 60
"""Of one kind; how many more there are is said."""


def rules_list(report: LearningReport) -> str:
    effects = [(one.key, one.effect) for one in report.rules if one.effect is not None]
    drawn = plots.diverging("Tickets more right with the rule than without it", effects)
    return (f'<div class="plots">{drawn}</div>' if drawn else "") + "\n".join(map(_rule, report.rules))


def _rule(rule: RuleRow) -> str:
    facts = ["scaffold, can’t be changed"] if rule.scaffold else []
    if rule.effect is not None:
        facts.append(
            f"left out on {rule.measured_on} tickets: {rule.hits} right only with it, {rule.misses} only without"
        )
    elif not rule.scaffold:
        facts.append("effect not measured")
    if rule.confidence is not None:
        facts.append(f"confidence {rule.confidence:.2f}")
    lines = [
        f"<p>{key(rule.key)} {foreign_text(rule.text)}</p>",
        f'<p class="about">{" · ".join(facts)}</p>',
    ]
    if rule.rationale:
        lines.append(f'<p class="about">Why: {foreign_text(rule.rationale)}</p>')
    if rule.evidence:
        lines.append(f'<div class="about">{ticket_names("Evidence: ", rule.evidence, _TICKETS)}</div>')
    return f"<article>{''.join(lines)}</article>"


def removed_rules_list(report: LearningReport) -> str:
    rows = [[key(one.key), foreign_text(one.text), foreign_text(one.why), str(one.epoch)] for one in report.removed]
    return table(["rule", "text", "why", "epoch"], rows, numbers=[3]) if rows else ""


def trials_list(report: LearningReport) -> str:
    if not report.trials:
        return ""
    taken = sum(one.accepted for one in report.trials)
    told = f"<p>{plural(len(report.trials), 'change')} tried, {taken} accepted.</p>"
    headings = ["change", "text", "tickets", "errors", "false releases", "lower in", "outcome"]
    return told + table(headings, [_trial(one) for one in report.trials], numbers=[2, 3, 4, 5])


def _trial(one: TrialRow) -> list[str]:
    outcome = '<span class="good">accepted</span>' if one.accepted else '<span class="bad">refused</span>'
    return [
        key(one.change),
        foreign_text(one.text),
        str(one.tickets),
        f"{one.errors_before} → {one.errors_after}",
        f"{one.false_releases_before} → {one.false_releases_after}",
        NOTHING if one.share_lower is None else f"{one.share_lower:.0%}",
        outcome + (f" {foreign_text(meaning(one.why))}" if one.why else ""),
    ]


def hypotheses_list(report: LearningReport) -> Iterator[str]:
    states: dict[HypothesisState, str] = {"waiting": "Waiting", "promoted": "Promoted", "refused": "Refused"}
    for state, title in states.items():
        rows = [one for one in report.hypotheses if one.state == state]
        if rows:
            yield f"<h3>{title} ({len(rows)})</h3>" + "\n".join(map(_hypothesis, rows))


def _hypothesis(one: HypothesisRow) -> str:
    facts = [f"{plural(one.cycles, 'cycle')}, {plural(len(one.evidence), 'ticket')}"]
    if one.became:
        facts.append(f"now {escape_line(one.became, 20)}")
    if one.dimension:
        facts.append(escape_line(one.dimension, 60))
    lines = [f"<p>{foreign_text(one.text)}</p>", f'<p class="about">{" · ".join(facts)}</p>']
    if one.why:
        lines.append(f'<p class="about">{"Missing" if one.state == "waiting" else "Why"}: {foreign_text(one.why)}</p>')
    lines.append(f'<p class="about">Wrong if: {foreign_text(one.falsifier)}</p>')
    lines.append(f'<div class="about">{ticket_names("Evidence: ", one.evidence, _TICKETS)}</div>')
    return f"<article>{''.join(lines)}</article>"


def for_people(report: LearningReport) -> Iterator[str]:
    for reason, title in FOR_PEOPLE.items():
        rows = report.queued(reason)
        if rows:
            yield f'<h3>{title} ({len(rows)})</h3><p class="about">{meaning(reason)}</p>' + _queued(rows)


def _queued(rows: Sequence[QueueRow]) -> str:
    cells = [
        [f"<code>{escape_line(one.ticket_key, 120)}</code>", one.label, one.verdict or NOTHING, foreign_text(one.note)]
        for one in rows[:_TICKETS]
    ]
    more = f'<p class="quiet">and {len(rows) - _TICKETS} more, in the queue’s file</p>' if len(rows) > _TICKETS else ""
    return table(["ticket", "label", "judged", "note"], cells) + more


def queue_list(report: LearningReport) -> str:
    rows = [
        [
            _reason(reason),
            str(count),
            str(right_since(report.queued(reason))),
            ticket_names("", list(dict.fromkeys(one.ticket_key for one in report.queued(reason))), _TICKETS),
        ]
        for reason, count in queue_counts(report.queue)
    ]
    return table(["reason", "tickets", "right since", "which"], rows, numbers=[1, 2]) if rows else ""


def dropped_list(report: LearningReport) -> str:
    rows = [
        [_reason(one.reason), str(one.count), "<br>".join(map(foreign_text, one.examples))]
        for one in sorted(report.dropped, key=lambda one: (-one.count, one.reason))
    ]
    return table(["reason", "times", "for instance"], rows, numbers=[1]) if rows else ""


def _reason(code: str) -> str:
    told = meaning(code)
    return f"<code>{escape_line(code, 60)}</code>" + (f" {escape_line(told)}" if told != code else "")
