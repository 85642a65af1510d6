"""The verdict on a ticket, with the signals that say how far it can be relied on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from donewhen.judging.ticket import Ticket
from donewhen.judging.vote import Vote
from donewhen.models.roles import Binary


class Signals(NamedTuple):
    """What the votes say about a verdict, and the label about both."""

    vote_strength: float
    low_agreement: bool
    contradiction: bool
    label_match: bool | None
    """Whether the final verdict is the label; None without a label."""
    conflict_flag: bool
    needs_manual_review: bool


class Verdict(NamedTuple):
    """One judged ticket."""

    ticket_key: str
    group_id: str
    verdict: Binary | None
    """None where no answer was well formed, which is a failure of the judge and counts as a wrong verdict."""
    reason: str
    passes: int
    fails: int
    malformed: int
    margin: float | None
    label: Binary | None
    signals: Signals
    overridden_by: str | None
    guidance_step: int
    answers: tuple[tuple[str, str], ...] = ()
    """Each answer as pass, fail or what is wrong with it, with its reason."""
    prompt: str = ""
    """The hash of the prompt's text, which is a file of the language."""

    def as_dict(self) -> dict[str, Any]:
        """For files and pipes."""
        data = self._asdict()
        signals = data.pop("signals")._asdict()
        data["answers"] = [{"vote": vote, "reason": reason} for vote, reason in self.answers]
        return {**data, **signals}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """The same from a file."""
        own = {name: data[name] for name in cls._fields if name not in ("signals", "answers")}
        answers = tuple((one["vote"], one["reason"]) for one in data["answers"])
        return cls(**own, signals=Signals(*(data[name] for name in Signals._fields)), answers=answers)


def signals_of(vote: Vote, final: Binary | None, label: Binary | None, min_agreement: float) -> Signals:
    """The signals, from the votes and from the verdict after overrides."""
    low = vote.strength < min_agreement
    match = None if label is None else final == label
    review = vote.contradicts or low or vote.malformed > 0
    return Signals(vote.strength, low, vote.contradicts, match, match is False, review)


def verdict_of(
    ticket: Ticket,
    vote: Vote,
    final: Binary | None,
    overridden_by: str | None,
    min_agreement: float,
    step: int,
    answers: tuple[tuple[str, str], ...] = (),
    prompt: str = "",
) -> Verdict:
    """Put a verdict together."""
    return Verdict(
        ticket.key,
        ticket.group_id,
        final,
        vote.reason,
        vote.passes,
        vote.fails,
        vote.malformed,
        vote.margin,
        ticket.label,
        signals_of(vote, final, ticket.label, min_agreement),
        overridden_by,
        step,
        answers,
        prompt,
    )
