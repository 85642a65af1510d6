"""The verdict on a ticket, with signals for its reliability."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.judging.ticket import Ticket
from donewhen.judging.vote import Vote


class Signals(NamedTuple):
    """Signals from the votes and, if there is one, from the label."""

    vote_strength: float
    low_agreement: bool
    contradiction: bool
    label_match: bool | None
    """Whether the final verdict equals the label; None without a label."""
    conflict_flag: bool
    needs_manual_review: bool


class Verdict(NamedTuple):
    """One judged ticket."""

    ticket_key: str
    group_id: str
    verdict: Binary | None
    """None if no answer was well formed; this counts as a wrong verdict."""
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
    """Each answer as pass, fail or the kind of malformation, with its reason."""
    prompt: str = ""
    """Hash of the language's prompt file."""
    unread_rules: tuple[str, ...] = ()
    """The rules that the model can't read and that might change the verdict."""

    @property
    def score(self) -> float | None:
        """The margin with the sign of the verdict: positive for pass."""
        if self.margin is None or self.verdict is None:
            return None
        return self.margin if self.verdict == "pass" else -self.margin

    @property
    def uncertain(self) -> bool:
        """Whether the answers call for a review: they contradict each other, agree too little, or are malformed."""
        return self.signals.contradiction or self.signals.low_agreement or self.malformed > 0

    def as_dict(self) -> dict[str, Any]:
        """The verdict as a flat dict for JSON."""
        data = self._asdict()
        signals = data.pop("signals")._asdict()
        data["unread_rules"] = list(self.unread_rules)
        data["answers"] = [{"vote": vote, "reason": reason} for vote, reason in self.answers]
        return {**data, **signals}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Verdict:
        """Rebuild a verdict from ``as_dict``."""
        own = {name: data[name] for name in cls._fields if name not in ("signals", "answers", "unread_rules")}
        answers = tuple((answer["vote"], answer["reason"]) for answer in data["answers"])
        signals = Signals(*(data[name] for name in Signals._fields))
        # Runs of earlier versions don't have it.
        unread = tuple(data.get("unread_rules", ()))
        return cls(**own, signals=signals, answers=answers, unread_rules=unread)


def signals_of(
    vote: Vote, final: Binary | None, label: Binary | None, min_agreement: float, *, doubtful: bool = False
) -> Signals:
    """Compute the signals from the votes and from the verdict after overrides.

    ``doubtful``: the model could not read a rule that might change the verdict.
    """
    low = vote.strength < min_agreement
    match = None if label is None else final == label
    review = vote.contradicts or low or vote.malformed > 0 or doubtful
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
    unread_rules: tuple[str, ...] = (),
) -> Verdict:
    """Build the verdict on a ticket."""
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
        signals_of(vote, final, ticket.label, min_agreement, doubtful=bool(unread_rules)),
        overridden_by,
        step,
        answers,
        prompt,
        unread_rules,
    )
