"""Describe a ledger entry in one sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.jobs.issues.mirror_status import mirror_entry_text
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import (
    Agreed,
    ChangesAccepted,
    ChangesRefused,
    CommandRun,
    Completed,
    Decided,
    EnvironmentAccepted,
    Evaluated,
    Invalidated,
    JudgeRun,
    LessonNote,
    Mirrored,
    Overridden,
    Ran,
    RecordedStrength,
    SignedOff,
    SignsAccepted,
    SignsRefused,
    Started,
    TermsDecided,
    Unverified,
)
from donewhen.jobs.ledger.evidence_levels import LEVEL_WORDS, LEVELS

_MAX_LISTED = 3


def _strength_text(strength: Mapping[str, RecordedStrength]) -> str:
    """How many criteria have evidence of each level."""
    found = Counter(recorded.level for recorded in strength.values())
    counted = [f"{found[level]} {LEVEL_WORDS[level]}" for level in reversed(LEVELS) if found[level]]
    return f"evidence: {', '.join(counted)}" if counted else ""


def entry_text(entry: Entry) -> str:
    """Return the sentence that describes an entry."""
    match entry.content:
        case Agreed() as agreed:
            return _agreement_text(agreed)
        case Ran() as run:
            return _run_text(run)
        case Evaluated() as evaluation:
            return _evaluation_text(evaluation)
        case Decided() as decided:
            what = f"{decided.decision.replace('_', ' ')} {_about(decided)}".strip()
            return one_line(f"{what}: {decided.reason}" if decided.reason else what)
        case Overridden() as override:
            reason = f": {override.reason}" if override.reason else ""
            return one_line(f"{override.criterion} {override.verdict}{reason}")
        case Started() as start:
            given = len(start.lessons)
            lessons = f", with {given} lesson(s) from earlier jobs" if given else ""
            commit = f" at commit {start.commit[:10]}" if start.commit else ""
            taken = f", taken over from another {start.taken_over}" if start.taken_over else ""
            return one_line(f"work started{commit}{lessons}{taken}")
        case LessonNote() as note:
            answer = f": {note.said}" if note.said else ""
            return one_line(f"{note.lesson} {note.how.replace('_', ' ')}{answer}")
        case Mirrored() as mirrored:
            return mirror_entry_text(mirrored)
        case Invalidated() | Unverified() as ended:
            return one_line(ended.why)
        case _:
            return ""


def _about(decided: Decided) -> str:
    match decided:
        case SignedOff():
            return decided.value.criterion
        case TermsDecided() if decided.value is not None:
            return str(decided.value)
        case ChangesAccepted() | ChangesRefused() | SignsAccepted() | SignsRefused():
            return join_limited([*decided.value.files], _MAX_LISTED)
        case EnvironmentAccepted():
            return "the programs and packages here"
        case _:
            return ""


def _run_text(run: Ran) -> str:
    explanation = "" if isinstance(run, CommandRun) else run.told
    needs_person = isinstance(run, JudgeRun) and run.needs_human
    verdict = "passed" if run.passed else "needs a person" if needs_person else "failed"
    return one_line(f"{run.evidence}: {verdict}{f', {explanation}' if explanation else ''}")


def _agreement_text(agreed: Agreed) -> str:
    seal = agreed.hash.partition(":")[2][:12]
    match agreed.how:
        case "agreed":
            return f"sealed as {seal}"
        case "tightened":
            return f"terms tightened, sealed as {seal}"
        case _:
            return "unproved, does not count"


def _evaluation_text(evaluation: Evaluated) -> str:
    # In the order of the ledger's lines, whose keys are sorted: an entry that was just written must read the same.
    closed = sorted(evaluation.closed)
    score = "" if evaluation.score is None else f"score {evaluation.score}"
    evidence = _strength_text(evaluation.strength) if isinstance(evaluation, Completed) else ""
    states = f"closed: {', '.join(closed)}" if closed else "all gates open" if evaluation.gates else ""
    return one_line(", ".join(part for part in (score, states, evidence) if part))
