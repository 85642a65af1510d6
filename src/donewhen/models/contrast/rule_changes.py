"""Finds changes of the rules (add, update, delete) that would help on the studied cases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.candidates import Candidate, CaseSets, StudiedCase
from donewhen.models.contrast.rules import DefaultRule, Rule, signed_weight
from donewhen.models.contrast.scorecard import (
    LEAST_GAIN,
    POINTS,
    Scorer,
    ScoreState,
    nearly_equal,
    shifted,
    state_of,
    topic_of,
    turned_cases,
)
from donewhen.models.contrast.sentences import LONGEST, read_rule, sentences_of, write_rule
from donewhen.models.contrast.signs import Sign
from donewhen.models.contrast.wording import RuleSentences, rule_sentences

FIRST = "G0"
_LEAST = 0.5
"""Minimum gain for a change of the points of a rule or of the base."""
_MODEL_POINTS = 1
"""What the verdict of another model counts for: less than any rule that is proposed beside it."""

Json = dict[str, Any]


class Study(NamedTuple):
    """The cases of an epoch, prepared for comparison."""

    places: dict[str, int]
    cases: tuple[StudiedCase, ...]
    field: CaseSets
    candidates: list[Candidate]
    signs: dict[Binary, list[Sign]]
    scorer: Scorer
    passed: int = 0
    """The cases with the verdict pass, as a set."""


class RuleMove(NamedTuple):
    """A change of the rules that would help on the studied cases."""

    op: Json
    """The operation, without its evidence."""
    rule: Rule | None
    """The new rule, if it is an addition."""
    mask: int
    """The cases that the new rule applies to."""
    helped: int
    """The cases that the change helps, as a set."""
    worth: float


def helpful_moves(rules: Mapping[str, str], study: Study, language: str) -> list[RuleMove]:
    """Return every change that would help, best first."""
    now = state_of(rules, study.cases)
    words = rule_sentences(language)
    moves = [
        *_additions(rules, now, study, language, words),
        *_new_points(rules, now, study, language, words),
        *_new_base(rules, now, study, language, words),
    ]
    # Deletions of harmful rules first.
    return sorted(moves, key=lambda move: (move.op["op"] != "delete", -move.worth))


def helpful_additions(rules: Mapping[str, str], study: Study, language: str) -> list[RuleMove]:
    """Return the helpful additions if another model judges what the rules leave open, best first."""
    now = state_of(rules, study.cases)
    now = shifted(now, study.passed, _MODEL_POINTS)
    now = shifted(now, study.field.everyone & ~study.passed, -_MODEL_POINTS)
    return [
        move
        for move in _additions(rules, now, study, language, rule_sentences(language))
        if move.rule is not None and move.rule.points > _MODEL_POINTS
    ]


def _additions(
    rules: Mapping[str, str], now: ScoreState, study: Study, language: str, words: RuleSentences
) -> Iterator[RuleMove]:
    """Yield new rules, but none that an existing one implies: about the same, or for nearly the same cases."""
    held = [(old, now.masks[key]) for key, old in _learned(rules)]
    for addition in study.scorer.additions(now, study.candidates):
        rule, mask = addition.rule, addition.mask
        text = write_rule(rule, language)
        if _is_implied(rule, mask, study.field.everyone, held) or text in rules.values() or len(text) > LONGEST:
            continue
        right, wrong = turned_cases(now, shifted(now, mask, signed_weight(rule)), study.field)
        op = {"op": "add", "text": text, "rationale": _rationale(words.add, study, right, wrong)}
        yield RuleMove(op, rule, mask, _correct_cases(mask, rule, study), addition.worth)


def _is_implied(rule: Rule, mask: int, everyone: int, held: Iterable[tuple[Rule, int]]) -> bool:
    """Whether another rule says nearly the same, about the same with the same verdict, or the opposite of the rest."""
    topics = set(map(topic_of, rule.conditions))
    return any(
        nearly_equal(mask, other) or not topics.isdisjoint(map(topic_of, old.conditions))
        if old.verdict == rule.verdict
        else nearly_equal(everyone & ~mask, other)
        for old, other in held
    )


def _new_points(
    rules: Mapping[str, str], now: ScoreState, study: Study, language: str, words: RuleSentences
) -> Iterator[RuleMove]:
    """Yield other points for existing rules, and deletions of rules that are better without any."""
    for key, old in _learned(rules):
        weight = signed_weight(old)
        sign = 1 if weight > 0 else -1
        rated = [
            (
                study.scorer.gain(now, now.masks[key], sign * points - weight)
                + _cost(abs(weight), study)
                - _cost(points, study),
                points,
            )
            for points in (0, *POINTS)
            if points != abs(weight)
        ]
        gain, points = max(rated)
        if gain <= _LEAST:
            continue
        right, wrong = turned_cases(now, shifted(now, now.masks[key], sign * points - weight), study.field)
        if right.bit_count() <= wrong.bit_count():
            continue
        if not points:
            op = {"op": "delete", "key": key, "rationale": _rationale(words.delete, study, right, wrong)}
            yield RuleMove(op, None, 0, right, gain)
            continue
        text = write_rule(msgspec.structs.replace(old, strength="plain", points=points), language)
        if len(text) <= LONGEST:
            rationale = _rationale(words.update, study, right, wrong)
            yield RuleMove({"op": "update", "key": key, "text": text, "rationale": rationale}, None, 0, right, gain)


def _new_base(
    rules: Mapping[str, str], now: ScoreState, study: Study, language: str, words: RuleSentences
) -> Iterator[RuleMove]:
    """Yield the base that fits the labels best, in the sentence about the default."""
    # Rules come first: a base alone only says which label is more common.
    if not now.masks or FIRST not in rules or not study.field.failing or not study.field.passing:
        return
    base, gain = study.scorer.best_base(now)
    if gain <= LEAST_GAIN:
        return
    right, wrong = turned_cases(now, shifted(now, study.field.everyone, base - now.base), study.field)
    if right.bit_count() <= wrong.bit_count():
        return
    # Keep the other sentences of the first rule.
    kept = [sentence for sentence in sentences_of(rules[FIRST]) if not isinstance(read_rule(sentence), DefaultRule)]
    default = DefaultRule("pass" if base > 0 or (base == 0 and now.default == "pass") else "fail", abs(base))
    text = " ".join((*kept, write_rule(default, language)))
    if len(text) <= LONGEST:
        rationale = _rationale(words.update, study, right, wrong)
        yield RuleMove({"op": "update", "key": FIRST, "text": text, "rationale": rationale}, None, 0, right, gain)


def _learned(rules: Mapping[str, str]) -> Iterator[tuple[str, Rule]]:
    """Yield the rules that may be changed: guidance rules of one parseable sentence."""
    for key, text in rules.items():
        rule = read_rule(text) if key.startswith("G") and key != FIRST else None
        if isinstance(rule, Rule):
            yield key, rule


def _cost(points: int, study: Study) -> float:
    return study.scorer.cost(points) + (LEAST_GAIN if points else 0.0)


def _correct_cases(mask: int, rule: Rule, study: Study) -> int:
    """Return the cases that a rule applies to and judges as labelled."""
    return mask & (study.field.failing if rule.verdict == "fail" else study.field.passing)


def _rationale(template: str, study: Study, right: int, wrong: int) -> str:
    return template.format(n=len(study.cases), right=right.bit_count(), wrong=wrong.bit_count())
