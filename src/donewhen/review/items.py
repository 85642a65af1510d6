"""One question for a person, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.judging.labels import JudgeStatement, Label
from donewhen.judging.ticket import Ticket

Kind = Literal[
    "low_agreement",
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

    @property
    def id(self) -> str:
        """A short id that is stable as long as the question is the same."""
        return digest_of([self.kind, self.job, list(self.criteria), self.mission, self.subject, self.key])[7:17]

    @property
    def criterion(self) -> str | None:
        """The criterion, if the item is about exactly one."""
        return self.criteria[0] if len(self.criteria) == 1 else None

    @property
    def settles(self) -> tuple[str, ...]:
        """The verdicts that can be given."""
        return () if self.kind == "asked" else ("pass", "fail")
