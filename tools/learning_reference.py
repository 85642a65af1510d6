"""docs/reference/learning-reasons.md: every code that a learning run writes down, from the sets that the code has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, get_args

from donewhen.judging.answer import Malformation
from donewhen.learning.after.report_data import NoteCode
from donewhen.learning.measuring.trial import MEANINGS as TRIED
from donewhen.learning.measuring.trial import TrialReason
from donewhen.learning.reflection.eligibility import Signal
from donewhen.learning.reflection.hypotheses import Fate
from donewhen.learning.reflection.rejections import MEANINGS, AnswerReason, ItemReason
from donewhen.learning.reflection.unlearnable import MEANINGS as QUEUED
from donewhen.learning.reflection.unlearnable import ReasonCode
from donewhen.learning.running.events import EventType
from donewhen.learning.running.run_state import RunStatus

_INTRO = """\
# What a learning run writes down

The sets are closed: a run writes no other code than these. `events.jsonl` has everything, in the order in which it
happened; the other files of a run are made from it. `donewhen explain CODE` explains rejections, trials and the queue
on the command line.
"""


class Section(NamedTuple):
    """One closed set: what it is about, its codes, and what each means."""

    title: str
    about: str
    codes: Any
    meanings: Mapping[str, str]


_SIGNALS = {
    "label_mismatch": "The final verdict is not the label.",
    "contradiction": "Well-formed votes say both verdicts.",
    "low_agreement": "The majority is smaller than `manual_review.min_verdict_agreement`.",
    "conflict_flag": "The same as `label_mismatch`, by the name that the specification gives it.",
    "needs_manual_review": "Both verdicts occur, agreement is low, or a vote was malformed.",
}
_MALFORMED = {
    "empty": "The answer is empty.",
    "cut_off": "The model was cut off before it had finished.",
    "no_verdict_line": "The first line is not the verdict.",
    "unknown_verdict": "The verdict is neither of the two words.",
    "no_reason_line": "The second line is not the reason.",
    "no_reason": "The reason is empty.",
    "extra_lines": "There are more than two lines.",
    "no_answer": "The model gave no answer.",
}
_EVENTS = {
    "run_started": "The run begins: settings, model, hashes of prompts, tickets and splits, the guidance.",
    "evaluated": "The held-out tickets were judged, before or after.",
    "epoch_started": "An epoch begins, under the guidance of this step.",
    "rolled": "Some training tickets were judged: every vote, the verdict, the signals.",
    "selected": "The tickets that something may be learned from, with why.",
    "decided": "A decision pass: who is set aside, and what of the answer was not taken.",
    "proposed": "An ops pass: operations and hypotheses that were taken, and what was not, with the reason.",
    "closed": "What became of the tickets of one question: covered, asked about again, given up.",
    "supported": "A hypothesis got support.",
    "trialled": "A change was tried on unseen tickets.",
    "guidance_changed": "The guidance was changed, by one step.",
    "fated": "A hypothesis was promoted, or refused.",
    "queued": "Tickets were put into the queue for people.",
    "credited": "Each rule was left out, to see what it does.",
    "epoch_ended": "An epoch is over: accuracy in training and validation, changes, calls.",
    "budget_hit": "A limit was reached.",
    "run_finished": "The run is over; the hash of the guidance that it leaves behind.",
}
_ALSO_IN = {
    "manifest.json": ("run_started",),
    "trajectories.jsonl": ("rolled",),
    "selections.jsonl": ("selected",),
    "reflections.jsonl": ("decided", "proposed", "closed"),
    "hypothesis_events.jsonl": ("supported", "fated"),
    "trials.jsonl": ("trialled",),
    "stop_gradient.jsonl": ("queued",),
}
_FATES = {
    "waiting": "More support is needed, or its turn has not come.",
    "promoted": "It stood its trial, and is a rule.",
    "refused": "It was tried and refused. It is tried again when new tickets support it.",
}
_STATUS = {
    "running": "It has not ended: at work, interrupted, or killed. `donewhen learn --resume` goes on with it.",
    "finished": "It went through.",
    "budget_exhausted": "A limit of the whole run was reached; what was learned until then is kept.",
    "no_usable_reflection": "Not one answer of reflection could be used, so nothing was learned. Exit status 1.",
}
_NOTES = {
    "stopped_early": "The run did not get through: the budget was used up, or it was interrupted (then serious).",
    "no_usable_reflection": "Serious. Not one answer of reflection could be used.",
    "nothing_held_out": "Serious. No test tickets, so nothing is measured on tickets that nobody learned from.",
    "few_labels": "Serious. Fewer than 100 labels.",
    "few_held_out": "Fewer than 100 tickets are held out, so the intervals are wide.",
    "unbalanced": "Fewer than a fifth of the test tickets have the rarer label.",
    "one_label": "Serious. One label does not occur among the test tickets.",
    "clustered": "Several test tickets share a cluster, so the intervals are somewhat narrow.",
    "learned_from": "Serious. Test tickets are evidence of rules that were there from the start.",
    "opened_again": "Other runs have looked at the same test tickets.",
    "invalid_verdicts": "Serious. Test tickets without one well-formed answer; they count as wrong.",
    "malformed_votes": "Answers that were no votes.",
    "tpr_low": "TPR is below the floor of 0.8 (serious), below the aim of 0.9, or might be below the floor.",
    "tnr_low": "The same for TNR.",
    "below_majority": "Serious. Always giving the commoner label is as good.",
    "below_word_counts": "Serious. Counting words is as good.",
    "got_worse": "Serious. More errors on the test tickets than before.",
    "more_false_releases": "Serious. More bad tickets are let through than before.",
    "not_significant": "The difference between before and after is within chance.",
    "nothing_learned": "No change was accepted.",
    "trial_off": "Serious. Changes were made without a trial.",
    "idle_rules": "Rules without which as many tickets, or more, would be right.",
    "label_noise": "Tickets in the queue whose label looks wrong.",
    "policy": "Tickets in the queue about which the labels disagree.",
    "unpinned_model": "The model's name does not say which one it is.",
}


def learning_reasons_page() -> str:
    """Every code, set by set."""
    rejected = _by_name(MEANINGS)
    answers = {code: rejected[code] for code in get_args(AnswerReason)}
    items = {code: rejected[code] for code in get_args(ItemReason)}
    sections = (
        Section("Why a ticket is looked at again", "`signals` in `selections.jsonl`.", Signal, _SIGNALS),
        Section("Why an answer is no vote", "`vote` in `trajectories.jsonl`.", Malformation, _MALFORMED),
        Section(
            "Why nothing was learned from a ticket",
            "`reason_code` in `stop_gradient.jsonl`, one row for each. "
            "[What to do with them](../howto/label-tickets.md#what-to-do-with-the-queue).",
            ReasonCode,
            _by_name(QUEUED),
        ),
        Section(
            "Why an answer of reflection was not used",
            "`unusable` in `reflections.jsonl`. The whole answer counts for nothing; it is never repaired.",
            AnswerReason,
            answers,
        ),
        Section(
            "Why one operation or hypothesis was not taken",
            "`rejections` in `reflections.jsonl`. Each is taken or rejected by itself.",
            ItemReason,
            items,
        ),
        Section(
            "What became of a change",
            "`reason` in `trials.jsonl`. With `better` and `no_worse` the change was made, with the others it was not.",
            TrialReason,
            _by_name(TRIED),
        ),
        Section("What became of a hypothesis", "`fate` in `hypotheses.json`.", Fate, _FATES),
        Section("How a run ended", "`status` in `metrics.json`.", RunStatus, _STATUS),
        Section("Notes of a report", "`notes` in `report.json`. The serious ones come first.", NoteCode, _NOTES),
    )
    lines = [_INTRO]
    for section in sections:
        lines += [f"## {section.title}", "", section.about, "", "| code | meaning |", "| --- | --- |"]
        lines += [f"| `{code}` | {meaning} |" for code, meaning in _whole(section.codes, section.meanings)]
        lines.append("")
    lines += ["## Events", "", "`type` in `events.jsonl`.", ""]
    lines += ["| type | what happened | also in |", "| --- | --- | --- |"]
    lines += [f"| `{kind}` | {told} | {_file_of(kind)} |" for kind, told in _whole(EventType, _EVENTS)]
    return "\n".join([*lines, ""])


def _by_name(meanings: Mapping[Any, str]) -> dict[str, str]:
    return {str(code): meaning for code, meaning in meanings.items()}


def _whole(codes: Any, meanings: Mapping[str, str]) -> list[tuple[str, str]]:
    """The codes in their own order; one that nothing is said of, or that is no more, is an error."""
    known = [str(code) for code in get_args(codes)]
    differing = set(known) ^ set(meanings)
    if differing:
        message = ", ".join(sorted(differing))
        raise LookupError(f"{message}: in the code or in tools/learning_reference.py, but not in both.")
    return [(code, meanings[code]) for code in known]


def _file_of(kind: str) -> str:
    return next((f"`{name}`" for name, kinds in _ALSO_IN.items() if kind in kinds), "")
