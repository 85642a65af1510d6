"""The same words for the page and for the terminal: numbers, headlines, and what codes mean."""

from __future__ import annotations

from collections import Counter

from donewhen.learning.after.report_data import Baseline, LearningReport, QueueRow, Status
from donewhen.learning.after.report_notes import SIGNIFICANT, beats
from donewhen.learning.measuring import trial
from donewhen.learning.measuring.metrics import Estimate, McNemar
from donewhen.learning.reflection import rejections, unlearnable
from donewhen.learning.reflection.unlearnable import ReasonCode

NOTHING = "—"
STATUS: dict[Status, str] = {
    "finished": "finished",
    "budget_exhausted": "stopped: the budget was used up",
    "no_usable_reflection": "stopped: no answer of the reflecting model could be used",
    "interrupted": "interrupted",
    "audit": "audit only, nothing was learned",
}
FOR_PEOPLE: dict[ReasonCode, str] = {
    "suspected_label_noise": "Labels that may be wrong",
    "policy_question": "Questions of policy",
}
_MEANINGS: dict[str, str] = {
    code: told
    for meanings in (rejections.MEANINGS, unlearnable.MEANINGS, trial.MEANINGS)
    for code, told in meanings.items()
}


def meaning(code: str) -> str:
    """What a code of the learner says, as a sentence; what is no code stands for itself."""
    return _MEANINGS.get(code, code)


def minus(number: str) -> str:
    """A number that was written by a program, as people write it."""
    return number.replace("-", "−")


def share(found: Estimate | None) -> str:
    return NOTHING if found is None else minus(f"{found.value:.3f}")


def bounds(found: Estimate) -> str:
    return minus(f"{found.low:.2f} to {found.high:.2f}")


def with_interval(found: Estimate | None) -> str:
    return NOTHING if found is None else f"{share(found)} ({bounds(found)})"


def p_value(found: McNemar) -> str:
    return "p < 0.001" if found.p < 0.001 else f"p = {found.p:.3f}"


def signed_number(number: float, digits: int = 0) -> str:
    """With its sign, and without one where there is nothing."""
    return minus(f"{number:+.{digits}f}") if round(number, digits) else "0"


def large_count(number: float) -> str:
    """A count that may be large."""
    return f"{number:,.0f}"


def duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def money(cost: float) -> str:
    return "0" if not cost else f"{cost:.4f}" if cost < 1 else f"{cost:.2f}"


def headline(report: LearningReport) -> str:
    """What came out, in one sentence or two."""
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
    return " ".join([message, *(f"{one}." for one in [against_words(report)] if one)])


def comparison_sentence(found: McNemar) -> str:
    """Two judges on the same tickets."""
    chance = "" if found.p < SIGNIFICANT else ", within chance"
    return f"{found.better} better, {found.worse} worse (McNemar {p_value(found)}{chance})"


def against_words(report: LearningReport) -> str:
    """Whether the judge beats word counts; empty where nobody counted words."""
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
    """How many tickets for each reason, the commonest first; one that is queued in several epochs is one."""
    once = dict.fromkeys((row.reason_code, row.ticket_key) for row in queue)
    return Counter(reason for reason, _ in once).most_common()


def right_since(rows: tuple[QueueRow, ...]) -> int:
    """How many of them the judge has right by now."""
    return len({row.ticket_key for row in rows if row.right_since})
