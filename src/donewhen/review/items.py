"""What a person is asked about: one thing at a time, with all that there is to look at."""

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
    "low_agreement": "The judge leaves it to a person.",
    "disputed": "It was refused, and the agent disputes that.",
    "unverified": "An agent was let go although nothing shows that the work is done.",
    "asked": "An agent asks, and waits for the answer.",
    "label_noise": "This label looks wrong.",
    "policy": "The labels disagree about what the rule is.",
    "hypothesis": "A rule is close to being tried.",
    "spot_check": "The judge was sure; is it right?",
    "second_opinion": "Somebody else has labelled this; would you say the same?",
}
"""Why a person is asked, in the order of urgency."""


class ReviewItem(NamedTuple):
    """One thing that needs a person."""

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
    """The name of what is shown: a verdict is about just that."""
    ticket: Ticket | None = None
    key: str = ""
    """What tells it from others of its kind: a ticket, or the signature of a hypothesis."""
    next: str = ""
    """The command by which it is settled, where a verdict does not."""

    @property
    def id(self) -> str:
        """A short name that stays the same as long as the question does."""
        return digest_of([self.kind, self.job, list(self.criteria), self.mission, self.subject, self.key])[7:17]

    @property
    def criterion(self) -> str | None:
        """The criterion that it is about, where it is one."""
        return self.criteria[0] if len(self.criteria) == 1 else None

    @property
    def settles(self) -> tuple[str, ...]:
        """The verdicts that can be given."""
        return () if self.kind == "asked" else ("pass", "fail")
