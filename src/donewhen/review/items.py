"""One question for a person, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.canonical import digest_of
from donewhen.judging.labels import JudgeStatement, Label
from donewhen.judging.ticket import Ticket

Kind = Literal[
    "low_agreement",
    "outside_work_area",
    "tests_changed",
    "signs_found",
    "flaky",
    "disputed",
    "unverified",
    "asked",
    "label_noise",
    "policy",
    "hypothesis",
    "spot_check",
    "second_opinion",
]

KINDS: dict[Kind, str] = {
    "low_agreement": "The judge could not decide.",
    "outside_work_area": "A check passes only with changes outside the work area.",
    "tests_changed": "A check passes only with the changed tests.",
    "signs_found": "Changed lines of the work that a person should look at.",
    "flaky": "A check failed, and then passed on the same files.",
    "disputed": "The agent disputes a refusal.",
    "unverified": "An agent was released unverified.",
    "asked": "An agent asks a question and waits for the answer.",
    "label_noise": "This label looks wrong.",
    "policy": "The labels contradict each other.",
    "hypothesis": "A rule is close to being tried.",
    "spot_check": "Spot check of a clear verdict: is the judge right?",
    "second_opinion": "Another person has labelled this. What do you say?",
}
"""The kinds of items and why a person is asked, most urgent first."""


class Answer(NamedTuple):
    """An answer to an item, and its key."""

    key: str
    word: str
    verdict: Binary


VERDICTS = (Answer("p", "pass", "pass"), Answer("f", "fail", "fail"))
_ABOUT_CHANGES = (Answer("a", "accept", "pass"), Answer("x", "refuse", "fail"))
"""Other keys, so that whoever passes one verdict after the other accepts no files by habit."""


class ReviewItem(NamedTuple):
    """One item in the review queue."""

    kind: Kind
    title: str
    question: str
    why: str
    since: str
    evidence: Mapping[str, str]
    job: str | None = None
    criteria: tuple[str, ...] = ()
    mission: str | None = None
    said: JudgeStatement | None = None
    labels: tuple[Label, ...] = ()
    subject: str = ""
    """The hash of the material: a verdict is about exactly this."""
    ticket: Ticket | None = None
    key: str = ""
    """Distinguishes items of the same kind: a ticket key, or the signature of a hypothesis."""
    next: str = ""
    """The command that settles it, if a verdict does not."""
    files: Mapping[str, str] = {}
    """The changed files that it is about, with the names of their contents; empty for a removed file. For lines, the
    files with the ids of these lines."""

    @property
    def id(self) -> str:
        """A short id that is stable as long as the question is the same."""
        return digest_of([self.kind, self.job, list(self.criteria), self.mission, self.subject, self.key])[7:17]

    @property
    def criterion(self) -> str | None:
        """The criterion, if the item is about exactly one."""
        return self.criteria[0] if len(self.criteria) == 1 else None

    @property
    def answers(self) -> tuple[Answer, ...]:
        """The answers that settle it."""
        if self.kind == "asked":
            return ()
        return _ABOUT_CHANGES if self.about_changes else VERDICTS

    @property
    def about_changes(self) -> bool:
        """Whether it is about changed files or lines that a person accepts or refuses."""
        return self.kind in ("outside_work_area", "tests_changed", "signs_found")

    @property
    def settles(self) -> tuple[Binary, ...]:
        """The verdicts that can be given."""
        return tuple(answer.verdict for answer in self.answers)
