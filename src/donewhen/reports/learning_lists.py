"""The lists of a report: rules with their evidence, trials, hypotheses, and unused tickets."""

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
"""Maximum number of tickets in a list; the number of the others is shown."""


def rules_list(report: LearningReport) -> str:
    effects = [(rule.key, rule.effect) for rule in report.rules if rule.effect is not None]
    drawn = plots.diverging("Additional correct tickets with the rule", effects)
    return (f'<div class="plots">{drawn}</div>' if drawn else "") + "\n".join(map(_rule, report.rules))


def _rule(rule: RuleRow) -> str:
    facts = ["scaffold, can’t be changed"] if rule.scaffold else []
    if rule.effect is not None:
        facts.append(
            f"tested on {rule.measured_on} tickets: {rule.hits} right only with the rule, {rule.misses} only without"
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
    rows = [
        [key(rule.key), foreign_text(rule.text), foreign_text(rule.why), str(rule.epoch)] for rule in report.removed
    ]
    return table(["rule", "text", "why", "epoch"], rows, numbers=[3]) if rows else ""


def trials_list(report: LearningReport) -> str:
    if not report.trials:
        return ""
    taken = sum(trial.accepted for trial in report.trials)
    message = f"<p>{plural(len(report.trials), 'change')} tried, {taken} accepted.</p>"
    headings = ["change", "text", "tickets", "errors", "false releases", "lower in", "outcome"]
    return message + table(headings, [_trial(trial) for trial in report.trials], numbers=[2, 3, 4, 5])


def _trial(row: TrialRow) -> list[str]:
    outcome = '<span class="good">accepted</span>' if row.accepted else '<span class="bad">refused</span>'
    return [
        key(row.change),
        foreign_text(row.text),
        str(row.tickets),
        f"{row.errors_before} → {row.errors_after}",
        f"{row.false_releases_before} → {row.false_releases_after}",
        NOTHING if row.share_lower is None else f"{row.share_lower:.0%}",
        outcome + (f" {foreign_text(meaning(row.why))}" if row.why else ""),
    ]


def hypotheses_list(report: LearningReport) -> Iterator[str]:
    states: dict[HypothesisState, str] = {"waiting": "Waiting", "promoted": "Promoted", "refused": "Refused"}
    for state, title in states.items():
        rows = [hypothesis for hypothesis in report.hypotheses if hypothesis.state == state]
        if rows:
            yield f"<h3>{title} ({len(rows)})</h3>" + "\n".join(map(_hypothesis, rows))


def _hypothesis(row: HypothesisRow) -> str:
    facts = [f"{plural(row.cycles, 'cycle')}, {plural(len(row.evidence), 'ticket')}"]
    if row.became:
        facts.append(f"now {escape_line(row.became, 20)}")
    if row.dimension:
        facts.append(escape_line(row.dimension, 60))
    lines = [f"<p>{foreign_text(row.text)}</p>", f'<p class="about">{" · ".join(facts)}</p>']
    if row.why:
        lines.append(f'<p class="about">{"Missing" if row.state == "waiting" else "Why"}: {foreign_text(row.why)}</p>')
    lines.append(f'<p class="about">Wrong if: {foreign_text(row.falsifier)}</p>')
    lines.append(f'<div class="about">{ticket_names("Evidence: ", row.evidence, _TICKETS)}</div>')
    return f"<article>{''.join(lines)}</article>"


def for_people(report: LearningReport) -> Iterator[str]:
    for reason, title in FOR_PEOPLE.items():
        rows = report.queued(reason)
        if rows:
            yield f'<h3>{title} ({len(rows)})</h3><p class="about">{meaning(reason)}</p>' + _queued(rows)


def _queued(rows: Sequence[QueueRow]) -> str:
    cells = [
        [f"<code>{escape_line(row.ticket_key, 120)}</code>", row.label, row.verdict or NOTHING, foreign_text(row.note)]
        for row in rows[:_TICKETS]
    ]
    more = f'<p class="quiet">and {len(rows) - _TICKETS} more in the queue file</p>' if len(rows) > _TICKETS else ""
    return table(["ticket", "label", "judged", "note"], cells) + more


def queue_list(report: LearningReport) -> str:
    rows = [
        [
            _reason(reason),
            str(count),
            str(right_since(report.queued(reason))),
            ticket_names("", list(dict.fromkeys(row.ticket_key for row in report.queued(reason))), _TICKETS),
        ]
        for reason, count in queue_counts(report.queue)
    ]
    return table(["reason", "tickets", "correct since", "ticket keys"], rows, numbers=[1, 2]) if rows else ""


def dropped_list(report: LearningReport) -> str:
    rows = [
        [_reason(kind.reason), str(kind.count), "<br>".join(map(foreign_text, kind.examples))]
        for kind in sorted(report.dropped, key=lambda kind: (-kind.count, kind.reason))
    ]
    return table(["reason", "count", "examples"], rows, numbers=[1]) if rows else ""


def _reason(code: str) -> str:
    text = meaning(code)
    return f"<code>{escape_line(code, 60)}</code>" + (f" {escape_line(text)}" if text != code else "")
