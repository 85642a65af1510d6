"""Notes on a report: warnings and limits that its tables don't show."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from donewhen.judging.competence import unread_problems
from donewhen.judging.guidance import FIRST
from donewhen.learning.after.report_data import LearningReport, NoteCode, ReportNote
from donewhen.learning.measuring.metrics import Estimate, McNemar, Measures
from donewhen.models.contrast import Contrast
from donewhen.models.roles import UnreadRule

FLOOR = 0.8
"""A judge with a TPR or TNR below this is not reliable."""
AIM = 0.9
FEWEST_LABELS = 100
FEWEST_OF_A_KIND = 0.2
SIGNIFICANT = 0.05


def with_notes(report: LearningReport) -> LearningReport:
    """The report with its notes."""
    return msgspec.structs.replace(report, notes=notes_of(report))


def notes_of(report: LearningReport) -> tuple[ReportNote, ...]:
    """All notes on a report, serious ones first."""
    notes = [
        *_unread_notes(report),
        *_ticket_notes(report),
        *_judge_notes(report),
        *_learning_notes(report),
        *_review_notes(report),
    ]
    return tuple(sorted(notes, key=lambda note: not note.serious))


def _unread_notes(report: LearningReport) -> Iterator[ReportNote]:
    """Rules that the model can't read, and therefore can't follow."""
    for problem in unread_problems(_unread_rules(report)):
        yield ReportNote(code=problem.code, text=problem.message, serious=True)


def _unread_rules(report: LearningReport) -> tuple[UnreadRule, ...]:
    rules = {rule.key: rule.text for rule in report.rules}
    return Contrast().unread_rules(rules) if report.model == Contrast.name else ()


def _ticket_notes(report: LearningReport) -> Iterator[ReportNote]:
    splits, test = report.splits, report.splits.test
    if not test.tickets:
        text = "No ticket was held out, so nothing was measured on unseen tickets."
        yield ReportNote(code="nothing_held_out", text=text, serious=True)
        return
    if splits.tickets < FEWEST_LABELS:
        text = f"There are {splits.tickets} labels; fewer than {FEWEST_LABELS} are too few to measure a judge."
        yield ReportNote(code="few_labels", text=text, serious=True)
    elif test.tickets < FEWEST_LABELS:
        text = f"Only {test.tickets} tickets are held out; comparing judges takes about {FEWEST_LABELS}."
        yield ReportNote(code="few_held_out", text=text)
    rarer, rare = min((test.passes, "pass"), (test.fails, "fail"))
    if not rarer:
        text = f"No test ticket is labelled {rare}, so the judge's errors on such tickets can't be measured."
        yield ReportNote(code="one_label", text=text, serious=True)
    elif rarer < FEWEST_OF_A_KIND * test.tickets:
        text = (
            f"Only {rarer} of {test.tickets} test tickets are labelled {rare}: accuracy is misleadingly high, and the "
            f"figures for {rare} rest on few tickets. Look at κ, TPR and TNR instead."
        )
        yield ReportNote(code="unbalanced", text=text)
    if test.clusters < test.tickets:
        text = (
            f"The {test.tickets} test tickets come in {test.clusters} clusters. The intervals treat tickets as "
            "independent, so they are somewhat too narrow."
        )
        yield ReportNote(code="clustered", text=text)
    if splits.test_learned_from:
        text = (
            f"{splits.test_learned_from} of the {test.tickets} test tickets are evidence of the initial rules: the "
            "judge has learned from them, so these figures are too optimistic."
        )
        yield ReportNote(code="learned_from", text=text, serious=True)
    if splits.test_openings > 1:
        text = (
            f"The test split was used {splits.test_openings} times. Choosing between runs by it overfits to it; "
            "collect new labels for an unbiased test."
        )
        yield ReportNote(code="opened_again", text=text)


def _judge_notes(report: LearningReport) -> Iterator[ReportNote]:
    now = report.now
    total, invalid = now.confusion.tickets, now.confusion.invalid
    if invalid:
        text = f"{invalid} of {total} test tickets got no verdict (all answers malformed). They count as wrong."
        yield ReportNote(code="invalid_verdicts", text=text, serious=True)
    malformed = sum(report.malformed.values())
    if malformed:
        kinds = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in sorted(report.malformed.items()))
        text = f"{malformed} of {report.votes} answers were malformed and did not count ({kinds})."
        yield ReportNote(code="malformed_votes", text=text)
    if now.tpr is not None:
        yield from _rate_notes("tpr_low", "TPR", now.tpr, "good work is blocked")
    if now.tnr is not None:
        yield from _rate_notes("tnr_low", "TNR", now.tnr, "bad work is released")
    majority, words = report.baseline("majority"), report.baseline("word_counts")
    if majority is not None and total and now.confusion.right <= majority.measures.confusion.right:
        text = (
            f"The judge has {now.confusion.right} of {total} right; always giving the more common label has "
            f"{majority.measures.confusion.right} right."
        )
        yield ReportNote(code="below_majority", text=text, serious=True)
    if words is not None and total and not beats(now, words.measures):
        counted = words.measures.confusion.right
        text = f"The model does not beat word counts: {now.confusion.right} of {total} right, word counts {counted}."
        yield ReportNote(code="below_word_counts", text=text, serious=True)
    if "latest" in report.model.casefold():
        text = f"The model name {report.model} may refer to a different model later. Pin a version."
        yield ReportNote(code="unpinned_model", text=text)


def beats(judge: Measures, baseline: Measures) -> bool:
    """Whether a judge has more tickets right than a baseline, and is no worse by κ where both have one."""
    if judge.confusion.right <= baseline.confusion.right:
        return False
    return judge.kappa is None or baseline.kappa is None or judge.kappa.value >= baseline.kappa.value


def _rate_notes(code: NoteCode, name: str, estimate: Estimate, meaning: str) -> Iterator[ReportNote]:
    message = f"{name} is {estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f}, {estimate.of} tickets)"
    if estimate.value < FLOOR:
        yield ReportNote(code=code, text=f"{message}, below the minimum of {FLOOR:g}: {meaning}.", serious=True)
    elif estimate.value < AIM:
        yield ReportNote(code=code, text=f"{message}, below the target of {AIM:g}.")
    elif estimate.low < FLOOR:
        yield ReportNote(
            code=code, text=f"{message}: good, but with few tickets the true value may be below {FLOOR:g}."
        )


def _learning_notes(report: LearningReport) -> Iterator[ReportNote]:
    if report.status == "budget_exhausted":
        text = "The budget was used up before the run was finished."
        yield ReportNote(code="stopped_early", text=text)
    elif report.status == "interrupted":
        text = "The run was interrupted; the report shows its state at that point."
        yield ReportNote(code="stopped_early", text=text, serious=True)
    elif report.status == "no_usable_reflection":
        text = "No answer of the reflection model was usable, so nothing was learned. Try another model."
        yield ReportNote(code="no_usable_reflection", text=text, serious=True)
    if report.status in ("audit", "no_usable_reflection"):
        return
    if report.trial_off:
        text = "Trials were off: changes were made without testing them on unseen tickets."
        yield ReportNote(code="trial_off", text=text, serious=True)
    if report.guidance_after == report.guidance_before:
        text = "No change of the guidance was accepted, so the judge is unchanged."
        yield ReportNote(code="nothing_learned", text=text)
    elif report.after is not None:
        yield from _change_notes(report.before, report.after, report.comparison)
    if report.not_adopted is not None:
        text = f"The learned guidance was not adopted: {report.not_adopted}."
        yield ReportNote(code="not_adopted", text=text, serious=True)
    # G0 is skipped, because it can't be removed.
    # So are rules that the model can't read: their benefit is not known.
    left_out = {FIRST, *(rule.key for rule in _unread_rules(report))}
    own = [rule for rule in report.rules if not rule.scaffold and rule.key not in left_out]
    idle = [rule.key for rule in own if rule.effect is not None and rule.effect <= 0]
    if idle:
        text = f"Rules without benefit: {', '.join(idle)}. No more tickets are right with them than without them."
        yield ReportNote(code="idle_rules", text=text)


def _change_notes(before: Measures, after: Measures, comparison: McNemar | None) -> Iterator[ReportNote]:
    if after.confusion.wrong > before.confusion.wrong:
        errors = f"{before.confusion.wrong} errors before, {after.confusion.wrong} now"
        text = f"On the test split the judge got worse: {errors}."
        yield ReportNote(code="got_worse", text=text, serious=True)
    elif comparison is not None and comparison.p >= SIGNIFICANT:
        text = (
            f"{comparison.better} test tickets got better and {comparison.worse} worse; the difference is not "
            f"significant (p = {comparison.p:.2f})."
        )
        yield ReportNote(code="not_significant", text=text)
    if after.confusion.false_pass > before.confusion.false_pass:
        rise = f"from {before.confusion.false_pass} to {after.confusion.false_pass}"
        text = f"False releases rose on the test split, {rise}."
        yield ReportNote(code="more_false_releases", text=text, serious=True)


def _review_notes(report: LearningReport) -> Iterator[ReportNote]:
    noisy, unclear = report.queued("suspected_label_noise"), report.queued("policy_question")
    if noisy:
        text = f"{_count_tickets(len(noisy))} may have a wrong label; please review."
        yield ReportNote(code="label_noise", text=text)
    if unclear:
        text = f"{_count_tickets(len(unclear))} may be a policy question: their labels contradict each other."
        yield ReportNote(code="policy", text=text)


def _count_tickets(count: int) -> str:
    return "1 ticket" if count == 1 else f"{count} tickets"
