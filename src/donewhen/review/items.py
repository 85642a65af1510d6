"""One question for a person, with its evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.judging.labels import JudgeStatement, Label
from donewhen.judging.ticket import Ticket

Kind = Literal[
    "asked",
    "blocked",
    "disputed",
    "out_of_budget",
    "sign_off",
    "low_agreement",
    "outside_work_area",
    "tests_changed",
    "signs_found",
    "flaky",
    "evidence_weak",
    "environment_changed",
    "agreement",
    "unverified",
    "label_noise",
    "policy",
    "hypothesis",
    "spot_check",
    "second_opinion",
    "unreadable",
]

KINDS: dict[Kind, str] = {
    "asked": "An agent asks a question and waits for the answer.",
    "blocked": "A job was set aside: what it needs, and how it goes on.",
    "disputed": "The agent disputes a refusal.",
    "out_of_budget": "The iterations of a job are used up.",
    "sign_off": "A person checks this criterion: is it met?",
    "low_agreement": "The judge could not decide.",
    "outside_work_area": "A check passes only with changes outside the work area.",
    "tests_changed": "A check passes only with the changed tests.",
    "signs_found": "Changed lines of the work that a person should look at.",
    "flaky": "A check failed, and then passed on the same files.",
    "evidence_weak": "The evidence for a criterion is weaker than agreed.",
    "environment_changed": "The programs or packages of this machine differ from the accepted ones.",
    "agreement": "Nobody has agreed to this yet.",
    "unverified": "An agent was released unverified.",
    "label_noise": "This label looks wrong.",
    "policy": "The labels contradict each other.",
    "hypothesis": "A rule is close to being tried.",
    "spot_check": "Spot check of a clear verdict: is the judge right?",
    "second_opinion": "Another person has labelled this. What do you say?",
    "unreadable": "This can't be read, so what it waits for is not known.",
}
"""The kinds of items and why a person is asked, most urgent first."""

Choice = Literal["pass", "fail", "answer", "raise_budget", "rescope", "cancel"]
"""What a person can say to an item."""


class Answer(NamedTuple):
    """An answer to an item, and its key."""

    key: str
    word: str
    verdict: Choice
    about: str = ""
    """What it does, if the word alone does not say it."""
    needs_words: bool = False
    """Whether it is the person's words that count."""

    @property
    def label(self) -> str:
        return self.about or self.word


VERDICTS = (Answer("p", "pass", "pass"), Answer("f", "fail", "fail"))
_ABOUT_CHANGES = (Answer("a", "accept", "pass"), Answer("x", "refuse", "fail"))
"""Other keys, so that whoever passes one verdict after the other accepts no files by habit."""
_IN_WORDS = (Answer("a", "answer", "answer", needs_words=True),)


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
    budget: int = 0
    """The total number of iterations that is proposed, for a job whose iterations are used up."""

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
        match self.kind:
            case "asked" | "blocked":
                return _IN_WORDS
            case "out_of_budget":
                return (
                    Answer("b", "raise-budget", "raise_budget", f"raise the budget to {self.budget}"),
                    Answer("w", "rescope", "rescope"),
                    Answer("c", "cancel", "cancel", "cancel the job"),
                )
            case "environment_changed" | "agreement" | "unreadable":
                return ()
            case "evidence_weak":
                return _ABOUT_CHANGES
            case _:
                return _ABOUT_CHANGES if self.about_changes else VERDICTS

    @property
    def about_changes(self) -> bool:
        """Whether it is about changed files or lines that a person accepts or refuses."""
        return self.kind in ("outside_work_area", "tests_changed", "signs_found")

    @property
    def settles(self) -> tuple[Choice, ...]:
        """The answers that can be given."""
        return tuple(answer.verdict for answer in self.answers)
