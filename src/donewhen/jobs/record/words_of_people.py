"""What people have said about a job, with their words: answers, verdicts and decisions, for the agent on it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import (
    Answered,
    ChangesAccepted,
    ChangesRefused,
    Completed,
    Decided,
    Overridden,
    SignedOff,
    SignOffRefused,
    SignsAccepted,
    SignsRefused,
    TermsDecided,
)

SHOWN = 5
_LONGEST_WORDS, _LONGEST_QUESTION = 4000, 200


class WordsOfPerson(NamedTuple):
    """What a person decided, and their words if they gave any."""

    entry: Entry
    about: str
    words: str

    @property
    def text(self) -> str:
        words = one_line(self.words, _LONGEST_WORDS)
        return f"{self.entry.who} {self.about}{f': {words}' if words else ''}"


def sentences(words: Iterable[str]) -> list[str]:
    """The words for an agent, each as a sentence of its own that says where it comes from."""
    return [f"From a person: {text.rstrip('.')}." for text in words]


def words_of_people(chain: str, entries: Sequence[Entry], policy: Policy) -> tuple[WordsOfPerson, ...]:
    """What people have said since the job was last completed, oldest first, at most ``SHOWN``.

    They are not marked as read when they are shown: nobody knows which of several agents, or of several contexts of
    one, has read them, and an answer must not get lost.
    """
    found: list[WordsOfPerson] = []
    for entry in reversed(entries):
        if isinstance(entry.content, Completed) or len(found) == SHOWN:
            break
        about = _about(entry)
        if about is not None and is_approval(entry, chain, policy):
            found.append(WordsOfPerson(entry, about[0], about[1]))
    return tuple(reversed(found))


def _about(entry: Entry) -> tuple[str, str] | None:
    match entry.content:
        case Answered() as answer:
            return f"answers “{one_line(answer.value.asked, _LONGEST_QUESTION)}”", answer.reason
        case Overridden() as override:
            return f"says {override.verdict} about {override.criterion}", override.reason
        case SignedOff() as signed:
            return f"signed off {signed.value.criterion}", signed.reason
        case SignOffRefused() as refused:
            return f"says that {refused.value.criterion} is not met", refused.reason
        case ChangesAccepted() as accepted:
            return "accepted changed files", accepted.reason
        case ChangesRefused() as refused:
            return "refused changed files", refused.reason
        case SignsAccepted() as accepted:
            return "accepted changed lines", accepted.reason
        case SignsRefused() as refused:
            return "refused changed lines", refused.reason
        case TermsDecided(decision="raise_budget") as decided:
            return f"raised the budget to {decided.value} iterations", decided.reason
        case TermsDecided() as decided:
            return f"set the {decided.decision} to {decided.value}", decided.reason
        case Decided(decision="rescope" | "split" | "cancel") as decided:
            return _DECIDED[decided.decision], decided.reason
        case _:
            return None


_DECIDED = {
    "rescope": "wants the job to be rescoped",
    "split": "wants the job to be split",
    "cancel": "cancelled the job",
}
