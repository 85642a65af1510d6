"""The pool: rules that may hold wait here until enough tickets, in enough cycles, have said so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.judging.language import Language
from donewhen.learning.reflection.proposals import HypothesisProposal
from donewhen.learning.reflection.wording import normalise_rule, polarity

Fate = Literal["waiting", "promoted", "refused"]


class PooledHypothesis(msgspec.Struct, frozen=True):
    """A hypothesis and its support."""

    signature: str
    text: str
    falsifier: str
    dimension: str
    cycles: tuple[str, ...]
    """The reflection cycles that proposed it; retries belong to the cycle that they retry."""
    evidence: tuple[str, ...]
    fate: Fate = "waiting"
    key: str = ""
    why: str = ""
    tried_with: int = 0
    """How many tickets supported it when it was last tried."""


Pool = Mapping[str, PooledHypothesis]


def rule_signature(text: str, language: Language) -> str:
    """The same rule, however it is written; two rules with opposite verdicts are never the same."""
    return digest_of([normalise_rule(text, language), polarity(text, language)])[7:23]


def add_support(pool: Pool, hypothesis: HypothesisProposal, cycle: str, language: Language) -> PooledHypothesis:
    """A hypothesis with the support that a cycle adds."""
    signature = rule_signature(hypothesis.text, language)
    known = pool.get(signature)
    if known is None:
        evidence = tuple(dict.fromkeys(hypothesis.evidence))
        return PooledHypothesis(
            signature, hypothesis.text, hypothesis.falsifier, hypothesis.dimension, (cycle,), evidence
        )
    return msgspec.structs.replace(
        known,
        cycles=known.cycles if cycle in known.cycles else (*known.cycles, cycle),
        evidence=tuple(dict.fromkeys((*known.evidence, *hypothesis.evidence))),
    )


def promotable_hypotheses(pool: Pool, min_cycles: int, min_tickets: int) -> tuple[PooledHypothesis, ...]:
    """Those that have enough support, the best supported first. One that was refused needs new tickets."""
    ripe = (one for one in pool.values() if is_promotable(one, min_cycles, min_tickets))
    return tuple(sorted(ripe, key=lambda one: (-len(one.evidence), -len(one.cycles), one.signature)))


def is_promotable(hypothesis: PooledHypothesis, min_cycles: int, min_tickets: int) -> bool:
    """Whether a hypothesis may be tried now."""
    enough = len(hypothesis.cycles) >= min_cycles and len(hypothesis.evidence) >= min_tickets
    return enough and hypothesis.fate != "promoted" and len(hypothesis.evidence) > hypothesis.tried_with


def missing_support(hypothesis: PooledHypothesis, min_cycles: int, min_tickets: int) -> str:
    """What a waiting hypothesis waits for."""
    if hypothesis.fate == "refused":
        return f"tried and refused ({hypothesis.why}); it is tried again with new tickets"
    lacking = []
    if len(hypothesis.cycles) < min_cycles:
        lacking.append(f"{min_cycles - len(hypothesis.cycles)} more cycle(s)")
    if len(hypothesis.evidence) < min_tickets:
        lacking.append(f"{min_tickets - len(hypothesis.evidence)} more ticket(s)")
    return ", ".join(lacking) or "its turn"


def opposed_pairs(
    pool: Iterable[PooledHypothesis], language: Language
) -> tuple[tuple[PooledHypothesis, PooledHypothesis], ...]:
    """Pairs that say opposite verdicts of the same condition: the labels disagree about what the rule is."""
    words = [normalise_rule(word, language) for word in (language.answer.pass_, language.answer.fail, *language.plain)]
    by_condition: dict[str, list[PooledHypothesis]] = {}
    for one in pool:
        condition = normalise_rule(one.text, language)
        for word in sorted(words, key=len, reverse=True):
            condition = condition.replace(word, "")
        by_condition.setdefault(condition, []).append(one)
    return tuple(
        (first, second)
        for found in by_condition.values()
        for at, first in enumerate(found)
        for second in found[at + 1 :]
        if polarity(first.text, language) != polarity(second.text, language)
    )
