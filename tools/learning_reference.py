"""Generate docs/reference/learning-reasons.md: every code that a learning run writes."""

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
# Codes of a learning run

A run writes only these codes. `events.jsonl` has all events in order; the other files of a run are generated from it.
`donewhen explain CODE` explains rejections, trials and the queue on the command line.
"""


class Section(NamedTuple):
    """One closed set of codes: its title, a description, the codes and their meanings."""

    title: str
    about: str
    codes: Any
    meanings: Mapping[str, str]


_SIGNALS = {
    "label_mismatch": "The final verdict differs from the label.",
    "contradiction": "The well-formed votes have both verdicts.",
    "low_agreement": "The majority is smaller than `manual_review.min_verdict_agreement`.",
    "conflict_flag": "The same as `label_mismatch`, under its name in the specification.",
    "needs_manual_review": "Both verdicts occur, agreement is low, or a vote was malformed. Unread rules don't count.",
}
_MALFORMED = {
    "empty": "The answer is empty.",
    "cut_off": "The answer was truncated.",
    "no_verdict_line": "The first line is not the verdict.",
    "unknown_verdict": "The verdict is not one of the two words.",
    "no_reason_line": "The second line is not the reason.",
    "no_reason": "The reason is empty.",
    "extra_lines": "There are more than two lines.",
    "no_answer": "The model gave no answer.",
}
_EVENTS = {
    "run_started": "The run started: settings, model, hashes of prompts, tickets and splits, the guidance.",
    "evaluated": "The held-out tickets were judged, before or after learning.",
    "epoch_started": "An epoch begins, with the guidance of this step.",
    "rolled": "Training tickets were judged: every vote, the verdict, the signals.",
    "selected": "The tickets that may be learned from, with the reasons.",
    "decided": "A decision pass: the tickets that are set aside, and the rejected parts of the answer.",
    "proposed": "An ops pass: the accepted operations and hypotheses, and the rejected ones with the reason.",
    "closed": "The result for the tickets of one question: covered, to be asked about again, or given up.",
    "supported": "A hypothesis gained support.",
    "trialled": "A change was tried on unseen tickets.",
    "guidance_changed": "The guidance was changed by one step.",
    "fated": "A hypothesis was promoted or refused.",
    "queued": "Tickets were added to the queue for people.",
    "credited": "Each rule was left out, to measure its effect.",
    "epoch_ended": "An epoch has ended: accuracy in training and validation, changes, calls.",
    "assessed": "The validation tickets under the guidance before and after the run, to decide about adoption.",
    "budget_hit": "A limit was reached.",
    "run_finished": "The run has ended; the hash of its final guidance.",
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
    "waiting": "It needs more support, or was not tried yet.",
    "promoted": "It passed its trial and is a rule.",
    "refused": "Failed its trial. It is tried again when new tickets support it.",
}
_STATUS = {
    "running": "It has not ended: running, interrupted, or killed. `donewhen learn --resume` continues it.",
    "finished": "The run is complete.",
    "budget_exhausted": "A limit of the whole run was reached; what was learned before that is kept.",
    "no_usable_reflection": "No answer of reflection could be used, so nothing was learned. Exit status 1.",
}
_NOTES = {
    "stopped_early": "The run is not complete: the budget was used up, or it was interrupted (then serious).",
    "no_usable_reflection": "Serious. No answer of reflection could be used.",
    "nothing_held_out": "Serious. There are no test tickets, so nothing is measured on unseen tickets.",
    "few_labels": "Serious. Fewer than 100 labels.",
    "few_held_out": "Fewer than 100 tickets are held out, so the intervals are wide.",
    "unbalanced": "Fewer than a fifth of the test tickets have the rarer label.",
    "one_label": "Serious. One label does not occur among the test tickets.",
    "clustered": "Several test tickets share a cluster, so the intervals are somewhat narrow.",
    "learned_from": "Serious. Test tickets are evidence of the initial rules.",
    "opened_again": "Other runs have used the same test tickets.",
    "invalid_verdicts": "Serious. Test tickets without any well-formed answer; they count as wrong.",
    "malformed_votes": "Some answers were not valid votes.",
    "tpr_low": "TPR is below the floor of 0.8 (serious), below the target of 0.9, or might be below the floor.",
    "tnr_low": "The same for TNR.",
    "below_majority": "Serious. Always giving the more frequent label is as good.",
    "below_word_counts": "Serious. Word counts are as good.",
    "got_worse": "Serious. More errors on the test tickets than before.",
    "more_false_releases": "Serious. More false releases than before.",
    "not_significant": "The difference between before and after is not significant.",
    "nothing_learned": "No change was accepted.",
    "not_adopted": "Serious. What was learned is not better than nothing or than the guidance before.",
    "trial_off": "Serious. Changes were applied without a trial.",
    "idle_rules": "Without these rules, as many tickets or more would be judged correctly.",
    "label_noise": "Tickets in the queue whose label looks wrong.",
    "policy": "Tickets in the queue whose labels contradict each other.",
    "unpinned_model": "The model's name does not identify its version.",
    "unread_scaffold": "The model can't read a scaffold rule, so a verdict that it might change needs manual review.",
    "unread_guidance": "The model can't read a rule, so a verdict that the rule might change needs manual review.",
}


def learning_reasons_page() -> str:
    """Return the page with every code, set by set."""
    rejected = _by_name(MEANINGS)
    answers = {code: rejected[code] for code in get_args(AnswerReason)}
    items = {code: rejected[code] for code in get_args(ItemReason)}
    sections = (
        Section("Why a ticket is selected for learning", "`signals` in `selections.jsonl`.", Signal, _SIGNALS),
        Section("Why an answer is not a vote", "`vote` in `trajectories.jsonl`.", Malformation, _MALFORMED),
        Section(
            "Why nothing was learned from a ticket",
            "`reason_code` in `stop_gradient.jsonl`, one row per ticket. "
            "[What to do with them](../howto/label-tickets.md#what-to-do-with-the-queue).",
            ReasonCode,
            _by_name(QUEUED),
        ),
        Section(
            "Why a reflection answer was not used",
            "`unusable` in `reflections.jsonl`. The whole answer is ignored; it is never repaired.",
            AnswerReason,
            answers,
        ),
        Section(
            "Why an operation or hypothesis was rejected",
            "`rejections` in `reflections.jsonl`. Each one is accepted or rejected separately.",
            ItemReason,
            items,
        ),
        Section(
            "Results of trials",
            "`reason` in `trials.jsonl`. A change is made with `better`, `better_scores` and `no_worse`, and "
            "refused with the others.",
            TrialReason,
            _by_name(TRIED),
        ),
        Section("States of a hypothesis", "`fate` in `hypotheses.json`.", Fate, _FATES),
        Section("Status of a run", "`status` in `metrics.json`.", RunStatus, _STATUS),
        Section("Notes of a report", "`notes` in `report.json`. Serious notes come first.", NoteCode, _NOTES),
    )
    lines = [_INTRO]
    for section in sections:
        lines += [f"## {section.title}", "", section.about, "", "| code | meaning |", "| --- | --- |"]
        lines += [f"| `{code}` | {meaning} |" for code, meaning in _whole(section.codes, section.meanings)]
        lines.append("")
    lines += ["## Events", "", "`type` in `events.jsonl`.", ""]
    lines += ["| type | meaning | also in |", "| --- | --- | --- |"]
    lines += [f"| `{kind}` | {meaning} | {_file_of(kind)} |" for kind, meaning in _whole(EventType, _EVENTS)]
    return "\n".join([*lines, ""])


def _by_name(meanings: Mapping[Any, str]) -> dict[str, str]:
    return {str(code): meaning for code, meaning in meanings.items()}


def _whole(codes: Any, meanings: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the codes with their meanings, in order; a missing or an obsolete meaning is an error."""
    known = [str(code) for code in get_args(codes)]
    differing = set(known) ^ set(meanings)
    if differing:
        message = ", ".join(sorted(differing))
        raise LookupError(f"{message}: in the code or in tools/learning_reference.py, but not in both.")
    return [(code, meanings[code]) for code in known]


def _file_of(kind: str) -> str:
    return next((f"`{name}`" for name, kinds in _ALSO_IN.items() if kind in kinds), "")
