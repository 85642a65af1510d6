"""What somebody who relies on a report has to know, and would not see in a table."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from donewhen.judging.guidance import FIRST
from donewhen.learning.after.report_data import LearningReport, NoteCode, ReportNote
from donewhen.learning.measuring.metrics import Estimate, McNemar, Measures

FLOOR = 0.8
"""A judge that finds fewer of either kind is not to be relied on."""
AIM = 0.9
FEWEST_LABELS = 100
FEWEST_OF_A_KIND = 0.2
SIGNIFICANT = 0.05


def with_notes(report: LearningReport) -> LearningReport:
    """The report with its notes."""
    return msgspec.structs.replace(report, notes=notes_of(report))


def notes_of(report: LearningReport) -> tuple[ReportNote, ...]:
    """The serious first."""
    found = [*_of_the_tickets(report), *_of_the_judge(report), *_of_the_learning(report), *_for_people(report)]
    return tuple(sorted(found, key=lambda one: not one.serious))


def _of_the_tickets(report: LearningReport) -> Iterator[ReportNote]:
    splits, test = report.splits, report.splits.test
    if not test.tickets:
        text = "No ticket was held out: nothing here is measured on tickets that nobody has learned from."
        yield ReportNote(code="nothing_held_out", text=text, serious=True)
        return
    if splits.tickets < FEWEST_LABELS:
        text = f"There are {splits.tickets} labels; with fewer than {FEWEST_LABELS} a judge can hardly be measured."
        yield ReportNote(code="few_labels", text=text, serious=True)
    elif test.tickets < FEWEST_LABELS:
        text = f"Only {test.tickets} tickets are held out; to tell judges apart takes {FEWEST_LABELS} or so."
        yield ReportNote(code="few_held_out", text=text)
    rarer, rare = min((test.passes, "pass"), (test.fails, "fail"))
    if not rarer:
        text = f"No test ticket is labelled {rare}: half of what a judge must do can't be measured."
        yield ReportNote(code="one_label", text=text, serious=True)
    elif rarer < FEWEST_OF_A_KIND * test.tickets:
        text = (
            f"Only {rarer} of {test.tickets} test tickets are labelled {rare}: accuracy flatters, and what is said of "
            f"{rare} rests on few tickets. κ, TPR and TNR say more."
        )
        yield ReportNote(code="unbalanced", text=text)
    if test.clusters < test.tickets:
        text = (
            f"The {test.tickets} test tickets come in {test.clusters} clusters. The intervals count every ticket for "
            "itself, so they are somewhat narrow."
        )
        yield ReportNote(code="clustered", text=text)
    if splits.test_learned_from:
        text = (
            f"{splits.test_learned_from} of the {test.tickets} test tickets are evidence of rules that were there from "
            "the start: the judge has learned from them, so these figures flatter it."
        )
        yield ReportNote(code="learned_from", text=text, serious=True)
    if splits.test_openings > 1:
        text = (
            f"The test split was opened {splits.test_openings} times. Whoever chooses between runs by it is fitting to "
            "it; new labels would tell the truth."
        )
        yield ReportNote(code="opened_again", text=text)


def _of_the_judge(report: LearningReport) -> Iterator[ReportNote]:
    now = report.now
    total, invalid = now.confusion.tickets, now.confusion.invalid
    if invalid:
        text = (
            f"{invalid} of {total} test tickets got no verdict, because no answer was well formed. They count as wrong."
        )
        yield ReportNote(code="invalid_verdicts", text=text, serious=True)
    malformed = sum(report.malformed.values())
    if malformed:
        kinds = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in sorted(report.malformed.items()))
        text = f"{malformed} of {report.votes} answers were malformed and had no vote ({kinds})."
        yield ReportNote(code="malformed_votes", text=text)
    if now.tpr is not None:
        yield from _rate("tpr_low", "TPR", now.tpr, "good work is blocked")
    if now.tnr is not None:
        yield from _rate("tnr_low", "TNR", now.tnr, "bad work is released")
    majority, words = report.baseline("majority"), report.baseline("word_counts")
    if majority is not None and total and now.confusion.right <= majority.measures.confusion.right:
        text = (
            f"The judge has {now.confusion.right} of {total} right; always giving the commoner label has "
            f"{majority.measures.confusion.right}."
        )
        yield ReportNote(code="below_majority", text=text, serious=True)
    if words is not None and total and not beats(now, words.measures):
        counted = words.measures.confusion.right
        text = f"The model does not beat word counts: {now.confusion.right} of {total} right, word counts {counted}."
        yield ReportNote(code="below_word_counts", text=text, serious=True)
    if "latest" in report.model.casefold():
        text = f"The model is named {report.model}, which means another model tomorrow. Pin a version."
        yield ReportNote(code="unpinned_model", text=text)


def beats(judge: Measures, baseline: Measures) -> bool:
    """Whether a judge has more tickets right than a baseline, and is no worse by κ where both have one."""
    if judge.confusion.right <= baseline.confusion.right:
        return False
    return judge.kappa is None or baseline.kappa is None or judge.kappa.value >= baseline.kappa.value


def _rate(code: NoteCode, name: str, found: Estimate, meaning: str) -> Iterator[ReportNote]:
    message = f"{name} is {found.value:.2f} ({found.low:.2f} to {found.high:.2f}, {found.of} tickets)"
    if found.value < FLOOR:
        yield ReportNote(code=code, text=f"{message}, below the floor of {FLOOR:g}: {meaning}.", serious=True)
    elif found.value < AIM:
        yield ReportNote(code=code, text=f"{message}, below the aim of {AIM:g}.")
    elif found.low < FLOOR:
        yield ReportNote(code=code, text=f"{message}: good, but with so few tickets it may be below {FLOOR:g}.")


def _of_the_learning(report: LearningReport) -> Iterator[ReportNote]:
    if report.status == "budget_exhausted":
        text = "The budget was used up before the run was through."
        yield ReportNote(code="stopped_early", text=text)
    elif report.status == "interrupted":
        text = "The run was interrupted; what is shown is what it had reached."
        yield ReportNote(code="stopped_early", text=text, serious=True)
    elif report.status == "no_usable_reflection":
        text = "Not one answer of the reflecting model could be used, so nothing was learned. Try another model."
        yield ReportNote(code="no_usable_reflection", text=text, serious=True)
    if report.status in ("audit", "no_usable_reflection"):
        return
    if report.trial_off:
        text = "Trials were off: changes were made without a look at what they do to unseen tickets."
        yield ReportNote(code="trial_off", text=text, serious=True)
    if report.guidance_after == report.guidance_before:
        text = "No change of the guidance was accepted: the judge is the one that the run began with."
        yield ReportNote(code="nothing_learned", text=text)
    elif report.after is not None:
        yield from _change(report.before, report.after, report.comparison)
    # G0 always stays, so that there is nothing to be done about it.
    own = [rule for rule in report.rules if not rule.scaffold and rule.key != FIRST]
    idle = [rule.key for rule in own if rule.effect is not None and rule.effect <= 0]
    if idle:
        text = f"Left out, {', '.join(idle)} would not be missed: no more tickets are right with than without."
        yield ReportNote(code="idle_rules", text=text)


def _change(before: Measures, after: Measures, comparison: McNemar | None) -> Iterator[ReportNote]:
    if after.confusion.wrong > before.confusion.wrong:
        errors = f"{before.confusion.wrong} errors before, {after.confusion.wrong} now"
        text = f"On the test split the judge got worse: {errors}."
        yield ReportNote(code="got_worse", text=text, serious=True)
    elif comparison is not None and comparison.p >= SIGNIFICANT:
        text = (
            f"{comparison.better} test tickets got better and {comparison.worse} worse; that is within chance "
            f"(p = {comparison.p:.2f})."
        )
        yield ReportNote(code="not_significant", text=text)
    if after.confusion.false_pass > before.confusion.false_pass:
        rise = f"from {before.confusion.false_pass} to {after.confusion.false_pass}"
        text = f"False releases rose on the test split, {rise}."
        yield ReportNote(code="more_false_releases", text=text, serious=True)


def _for_people(report: LearningReport) -> Iterator[ReportNote]:
    noisy, unclear = report.queued("suspected_label_noise"), report.queued("policy_question")
    if noisy:
        text = f"{_tickets(len(noisy))} may be labelled wrongly: for somebody to look at."
        yield ReportNote(code="label_noise", text=text)
    if unclear:
        text = f"{_tickets(len(unclear))} may be a question of policy: the labels disagree about what the rule is."
        yield ReportNote(code="policy", text=text)


def _tickets(count: int) -> str:
    return "1 ticket" if count == 1 else f"{count} tickets"
