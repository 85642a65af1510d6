"""The pool of hypotheses: proposed rules that wait for enough supporting tickets and cycles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.judging.guidance import same_text
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
    """Number of supporting tickets at its last trial."""
    answers: tuple[str, ...] = ()
    """The answers that proposed it, each with its question, in this run and in earlier ones."""


Pool = Mapping[str, PooledHypothesis]


def rule_signature(text: str, language: Language) -> str:
    """A signature that is equal for rules that differ only in notation, and differs for opposite verdicts."""
    return digest_of([normalise_rule(text, language), polarity(text, language)])[7:23]


def add_support(
    pool: Pool, hypothesis: HypothesisProposal, cycle: str, language: Language, answer: str = ""
) -> PooledHypothesis:
    """The pooled hypothesis with the support of a cycle added.

    ``answer`` identifies the model's answer and its question. An answer that was counted before, also in an earlier
    run, is no new support: a cached answer says nothing new.
    """
    signature = rule_signature(hypothesis.text, language)
    known = pool.get(signature)
    if known is None:
        evidence = tuple(dict.fromkeys(hypothesis.evidence))
        return PooledHypothesis(
            signature,
            hypothesis.text,
            hypothesis.falsifier,
            hypothesis.dimension,
            (cycle,),
            evidence,
            answers=(answer,) if answer else (),
        )
    repeated = bool(answer) and answer in known.answers
    return msgspec.structs.replace(
        known,
        cycles=known.cycles if repeated or cycle in known.cycles else (*known.cycles, cycle),
        answers=known.answers if repeated or not answer else (*known.answers, answer),
        evidence=tuple(dict.fromkeys((*known.evidence, *hypothesis.evidence))),
    )


def settle_adopted(hypothesis: PooledHypothesis, rules: Mapping[str, str]) -> PooledHypothesis:
    """The hypothesis as promoted if a rule says the same, however the rule was adopted: it no longer waits."""
    key = None if hypothesis.fate == "promoted" else key_of_rule(hypothesis.text, rules)
    return hypothesis if key is None else msgspec.structs.replace(hypothesis, fate="promoted", key=key, why="adopted")


def key_of_rule(text: str, rules: Mapping[str, str]) -> str | None:
    """The key of the rule with this text; None if there is none."""
    return next((key for key, rule in rules.items() if same_text(rule, text)), None)


def promotable_hypotheses(pool: Pool, min_cycles: int, min_tickets: int) -> tuple[PooledHypothesis, ...]:
    """The hypotheses with enough support, best supported first. A refused hypothesis needs new tickets."""
    ready = (hypothesis for hypothesis in pool.values() if is_promotable(hypothesis, min_cycles, min_tickets))
    return tuple(sorted(ready, key=lambda item: (-len(item.evidence), -len(item.cycles), item.signature)))


def is_promotable(hypothesis: PooledHypothesis, min_cycles: int, min_tickets: int) -> bool:
    """Whether a hypothesis may be tried now."""
    enough = len(hypothesis.cycles) >= min_cycles and len(hypothesis.evidence) >= min_tickets
    return enough and hypothesis.fate != "promoted" and len(hypothesis.evidence) > hypothesis.tried_with


def missing_support(hypothesis: PooledHypothesis, min_cycles: int, min_tickets: int) -> str:
    """What a waiting hypothesis still needs."""
    if hypothesis.fate == "refused":
        return f"refused ({hypothesis.why}); it will be tried again with new tickets"
    missing = []
    if len(hypothesis.cycles) < min_cycles:
        missing.append(f"{min_cycles - len(hypothesis.cycles)} more cycle(s)")
    if len(hypothesis.evidence) < min_tickets:
        missing.append(f"{min_tickets - len(hypothesis.evidence)} more ticket(s)")
    return ", ".join(missing) or "ready to be tried"


def opposed_pairs(
    pool: Iterable[PooledHypothesis], language: Language
) -> tuple[tuple[PooledHypothesis, PooledHypothesis], ...]:
    """Pairs of hypotheses with the same condition and opposite verdicts."""
    words = [normalise_rule(word, language) for word in (language.answer.pass_, language.answer.fail, *language.plain)]
    by_condition: dict[str, list[PooledHypothesis]] = {}
    for hypothesis in pool:
        condition = normalise_rule(hypothesis.text, language)
        for word in sorted(words, key=len, reverse=True):
            condition = condition.replace(word, "")
        by_condition.setdefault(condition, []).append(hypothesis)
    return tuple(
        (first, second)
        for hypotheses in by_condition.values()
        for index, first in enumerate(hypotheses)
        for second in hypotheses[index + 1 :]
        if polarity(first.text, language) != polarity(second.text, language)
    )
