"""Wording shared by the page and the terminal report: numbers, headlines, meanings of codes."""

from __future__ import annotations

from collections import Counter

from donewhen.learning.after.report_data import Baseline, LearningReport, QueueRow, Status
from donewhen.learning.after.report_notes import SIGNIFICANT, beats
from donewhen.learning.measuring import trial
from donewhen.learning.measuring.metrics import Confusion, Estimate, McNemar
from donewhen.learning.reflection import rejections, unlearnable
from donewhen.learning.reflection.unlearnable import ReasonCode

NOTHING = "—"
STATUS: dict[Status, str] = {
    "finished": "finished",
    "budget_exhausted": "stopped: the budget was used up",
    "no_usable_reflection": "stopped: no usable answer from the reflection model",
    "interrupted": "interrupted",
    "audit": "audit only, nothing was learned",
}
FOR_PEOPLE: dict[ReasonCode, str] = {
    "suspected_label_noise": "Labels that may be wrong",
    "policy_question": "Questions of policy",
}
_MEANINGS: dict[str, str] = {
    code: text
    for meanings in (rejections.MEANINGS, unlearnable.MEANINGS, trial.MEANINGS)
    for code, text in meanings.items()
}


def meaning(code: str) -> str:
    """Return the meaning of a learner's code; return an unknown code unchanged."""
    return _MEANINGS.get(code, code)


def minus(number: str) -> str:
    """Replace the hyphen in a number with a minus sign."""
    return number.replace("-", "−")


def share(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else minus(f"{estimate.value:.3f}")


def bounds(estimate: Estimate) -> str:
    return minus(f"{estimate.low:.2f} to {estimate.high:.2f}")


def with_interval(estimate: Estimate | None) -> str:
    return NOTHING if estimate is None else f"{share(estimate)} ({bounds(estimate)})"


def p_value(estimate: McNemar) -> str:
    return "p < 0.001" if estimate.p < 0.001 else f"p = {estimate.p:.3f}"


def signed_number(number: float, digits: int = 0) -> str:
    """Format a number with its sign; zero has none."""
    return minus(f"{number:+.{digits}f}") if round(number, digits) else "0"


def large_count(number: float) -> str:
    """Format a count with thousands separators."""
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def money(cost: float) -> str:
    return "0" if not cost else f"{cost:.4f}" if cost < 1 else f"{cost:.2f}"


def plain_sentence(counts: Confusion) -> str:
    """How good a judge is, in words that need no statistics; empty if nothing was measured."""
    if not counts.tickets:
        return ""
    parts = [f"Right in {counts.right} of {counts.tickets}"]
    if counts.fails:
        parts.append(f"lets {counts.false_pass} of {counts.fails} bad ones through")
    if counts.passes:
        parts.append(f"stops {counts.false_fail} of {counts.passes} good ones")
    if counts.invalid:
        parts.append(f"leaves {counts.invalid} undecided")
    return f"{'; '.join(parts)}."


def headline(report: LearningReport) -> str:
    """Return the result of a run in one or two sentences."""
    before, after = report.before, report.after
    tickets = before.confusion.tickets
    if not tickets:
        message = "The held-out tickets were not judged" if report.splits.test.tickets else "No ticket was held out"
        return f"{message}, so there is nothing to measure the judge by."
    on = f"on {tickets} {'labelled' if report.status == 'audit' else 'held-out'} tickets"
    if after is None:
        message = f"Accuracy {with_interval(before.accuracy)} {on}, κ {share(before.kappa)}."
    else:
        message = (
            f"Accuracy {share(before.accuracy)} → {with_interval(after.accuracy)} {on}, "
            f"κ {share(before.kappa)} → {share(after.kappa)}."
        )
        if report.comparison is not None:
            message += f" {comparison_sentence(report.comparison)}."
    return " ".join([message, *(f"{sentence}." for sentence in [against_words(report)] if sentence)])


def comparison_sentence(comparison: McNemar) -> str:
    """Return the comparison of two judges on the same tickets as a sentence."""
    chance = "" if comparison.p < SIGNIFICANT else ", within chance"
    return f"{comparison.better} better, {comparison.worse} worse (McNemar {p_value(comparison)}{chance})"


def against_words(report: LearningReport) -> str:
    """Return whether the judge beats word counts; empty if that baseline is missing."""
    words = report.baseline("word_counts")
    if words is None:
        return ""
    if not beats(report.now, words.measures):
        return f"It does not beat word counts ({share(words.measures.accuracy)})"
    chance = words.against is not None and words.against.p >= SIGNIFICANT
    return f"It beats word counts ({share(words.measures.accuracy)}){', but within chance' if chance else ''}"


def baseline_name(baseline: Baseline) -> str:
    return baseline.name.replace("_", " ")


def plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def queue_counts(queue: tuple[QueueRow, ...]) -> list[tuple[ReasonCode, int]]:
    """Count the tickets for each reason, most frequent first; a ticket queued in several epochs counts once."""
    once = dict.fromkeys((row.reason_code, row.ticket_key) for row in queue)
    return Counter(reason for reason, _ in once).most_common()


def right_since(rows: tuple[QueueRow, ...]) -> int:
    """Count the tickets that the judge gets right by now."""
    return len({row.ticket_key for row in rows if row.right_since})
