"""Builds candidate rules and ranks them by how much they would help, given the existing rules.

A single condition is seldom good; a vote of several different conditions is better. Such rules are built from all
studied cases as if there were no other rule, since earlier rules leave only a few, mostly noisy cases. They are ranked
by their effect under the existing rules: cases turned right, minus cases turned wrong, minus a margin for chance.
Chance is estimated by cluster, because tickets of a cluster are alike.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.candidates import Candidate, CaseSets, StudiedCase, clusters_in
from donewhen.models.contrast.judge import read_rules
from donewhen.models.contrast.rules import WEIGHTS, Rule, Strength, applies, condition_subjects
from donewhen.models.contrast.sentences import LONGEST, write_rule

CAUTION = 2.0
"""Standard errors subtracted from a condition that was picked out of thousands."""
PICKED_CAUTION = 1.0
"""The same for a rule out of the few that were built."""
BALANCE = 0.5
"""Extra weight of the rarer label: 0 for none, 1 for equal total weights."""
RELEASE = 2.0
"""How much worse it is to turn a failing case to pass than the reverse."""
VIEWS = 6
"""How often rules are built; each time after the first without some clusters."""
VOTERS = (5, 7)
"""Numbers of conditions in a voting rule."""
ALIKE = 0.6
"""Two sets with more than this share in common are nearly the same."""
SURE = 0.75
"""A rule with a lower precision becomes weak."""
_LEFT_OUT = 0.25
_WEIGHED = 600
_LEADERS = 40
_SHORTEST = 14
_SUPPORT = 3
_OTHERS = 0.25
_STRENGTHS: tuple[Strength, ...] = ("plain", "weak", "strong")
_VERDICTS: tuple[Binary, ...] = ("fail", "pass")


class RuleState(NamedTuple):
    """The studied cases under a set of rules."""

    levels: Mapping[float, int]
    """Sets of cases by total weight, without those that the scaffold decides."""
    default: Binary
    masks: Mapping[str, int]
    """The cases to which each rule of the guidance applies, without those that the scaffold decides."""


class Stakes(NamedTuple):
    """The cases that a rule of one verdict and strength could turn right or wrong, with their weights."""

    verdict: Binary
    strength: Strength
    right: int
    wrong: int
    gain: float
    loss: float
    clusters: tuple[tuple[int, int], ...]


class FoundRule(NamedTuple):
    """A rule, the cases that it applies to, and its worth."""

    rule: Rule
    mask: int
    worth: float


def state_under_rules(rules: Mapping[str, str], cases: Sequence[StudiedCase], *, without: str = "") -> RuleState:
    """Return the state of the studied cases under the rules, optionally without one of them."""
    read = read_rules(tuple(rules.items()))
    levels: dict[float, int] = {}
    masks: dict[str, int] = {key: 0 for key, _, _ in read.guidance}
    for index, case in enumerate(cases):
        bit = 1 << index
        if sum(weight for _, rule, weight in read.scaffold if applies(rule, case.features)):
            continue
        total = 0
        for key, rule, weight in read.guidance:
            if applies(rule, case.features):
                masks[key] |= bit
                total += weight if key != without else 0
        levels[total] = levels.get(total, 0) | bit
    return RuleState(levels, read.default, masks)


def state_without_rules(everyone: int, verdict: Binary) -> RuleState:
    """Return the state of all cases under a default alone."""
    return RuleState({0: everyone}, verdict, {})


def state_as_judged(rules: Mapping[str, str], cases: Sequence[StudiedCase], passed: int) -> RuleState:
    """Return the state if another model judged what the rules leave open; its verdicts weigh less than any rule."""
    now = state_under_rules(rules, cases)
    levels: dict[float, int] = {}
    for level, mask in now.levels.items():
        levels |= {level + _OTHERS: mask & passed, level - _OTHERS: mask & ~passed}
    return now._replace(levels=levels)


def cases_turned(now: RuleState, verdict: Binary, weight: int) -> int:
    """Return the cases whose verdict another rule of this weight would change."""
    signed = weight if verdict == "pass" else -weight
    cases = 0
    for level, mask in now.levels.items():
        if _verdict(level, now.default) != verdict == _verdict(level + signed, now.default):
            cases |= mask
    return cases


def _verdict(level: float, default: Binary) -> Binary:
    return default if level == 0 else "pass" if level > 0 else "fail"


def stakes_of(now: RuleState, field: CaseSets, sample: int) -> Iterator[Stakes]:
    """Yield the stakes for each verdict and each strength that makes a difference."""
    for verdict in _VERDICTS:
        wanted = field.failing if verdict == "fail" else field.passing
        seen = {0}
        for strength in _STRENGTHS:
            moved = cases_turned(now, verdict, WEIGHTS[strength]) & sample
            if moved in seen:
                continue
            seen.add(moved)
            right, wrong = moved & wanted, moved & ~wanted
            half = moved.bit_count() / 2
            gain = (half / max(1, right.bit_count())) ** BALANCE
            loss = (half / max(1, wrong.bit_count())) ** BALANCE
            clusters = tuple((right & cluster, wrong & cluster) for cluster in field.clusters if moved & cluster)
            yield Stakes(verdict, strength, right, wrong, gain, loss, clusters)


def worth_of(mask: int, stakes: Stakes, caution: float) -> float:
    """Return the gain of a rule with these cases, minus a margin for chance."""
    total = squares = 0.0
    for right, wrong in stakes.clusters:
        here = stakes.gain * (mask & right).bit_count() - stakes.loss * (mask & wrong).bit_count()
        total += here
        squares += here * here
    return total - caution * math.sqrt(squares)


def best_signs(candidates: Iterable[Candidate], field: CaseSets, verdict: Binary, sample: int) -> list[FoundRule]:
    """Return the best single conditions for a verdict, all with different subjects and cases."""
    stakes = next(
        stakes_of(state_without_rules(field.everyone, "pass" if verdict == "fail" else "fail"), field, sample), None
    )
    if stakes is None or not stakes.right or not stakes.wrong:
        return []
    kept: list[FoundRule] = []
    used_subjects: set[str] = set()
    for find in _singles(candidates, stakes):
        subjects = condition_subjects(find.rule.conditions[0])
        if (
            find.worth > 0
            and not subjects & used_subjects
            and not any(nearly_same(find.mask, other.mask) for other in kept)
        ):
            kept.append(find)
            used_subjects |= subjects
            if len(kept) == _LEADERS:
                break
    return kept


def _singles(candidates: Iterable[Candidate], stakes: Stakes) -> list[FoundRule]:
    rough = []
    for number, candidate in enumerate(candidates):
        right = (candidate.mask & stakes.right).bit_count()
        wrong = (candidate.mask & stakes.wrong).bit_count()
        rough.append((stakes.loss * wrong - stakes.gain * right, number, candidate))
    rough.sort(key=lambda entry: entry[:2])
    fine = [
        FoundRule(
            Rule((candidate.condition,), stakes.verdict), candidate.mask, worth_of(candidate.mask, stakes, CAUTION)
        )
        for _, _, candidate in rough[:_WEIGHED]
    ]
    return sorted(fine, key=lambda find: -find.worth)


def nearly_same(first: int, second: int) -> bool:
    """Whether two sets are nearly the same."""
    return (first & second).bit_count() > ALIKE * (first | second).bit_count()


def rule_pool(candidates: Sequence[Candidate], field: CaseSets, language: str) -> list[FoundRule]:
    """Return candidate rules, built with and without some of the clusters."""
    pool: dict[Rule, FoundRule] = {}
    for view in range(VIEWS):
        chance = random.Random(view)
        sample = field.everyone
        for cluster in field.clusters if view else ():
            if chance.random() < _LEFT_OUT:
                sample &= ~cluster
        for verdict in _VERDICTS:
            leaders = best_signs(candidates, field, verdict, sample)
            for find in leaders[:4]:
                pool.setdefault(find.rule, find)
            for voters in VOTERS:
                for find in _votes(leaders, voters, verdict, language):
                    pool.setdefault(find.rule, find)
    return list(pool.values())


def _votes(leaders: Sequence[FoundRule], voters: int, verdict: Binary, language: str) -> Iterator[FoundRule]:
    """Yield voting rules of the best leaders that fit into one sentence, for each number of votes that may suffice."""
    rule = Rule((), verdict, enough=voters)
    masks: list[int] = []
    for find in leaders:
        wider = msgspec.structs.replace(rule, conditions=(*rule.conditions, *find.rule.conditions))
        # Leave space in the sentence for the remaining conditions.
        if len(write_rule(wider, language)) + (voters - len(masks) - 1) * _SHORTEST <= LONGEST:
            rule = wider
            masks.append(find.mask)
            if len(masks) == voters:
                for enough, mask in enumerate(at_least(masks)[2:-1], start=2):
                    yield FoundRule(msgspec.structs.replace(rule, enough=enough), mask, 0.0)
                return


def at_least(masks: Sequence[int]) -> list[int]:
    """Return the cases that are in at least 0, 1, 2, … of the sets."""
    levels = [-1] + [0] * len(masks)
    for number, mask in enumerate(masks, start=1):
        for level in range(number, 0, -1):
            levels[level] |= mask & levels[level - 1]
    return levels


def rank_rules(now: RuleState, pool: Iterable[FoundRule], field: CaseSets, language: str) -> list[FoundRule]:
    """Return the helpful rules of the pool, each with its best strength, best first."""
    best: dict[Rule, FoundRule] = {}
    pool = list(pool)
    for stakes in stakes_of(now, field, field.everyone):
        careful = stakes._replace(loss=stakes.loss * RELEASE) if stakes.verdict == "pass" else stakes
        for find in pool:
            if find.rule.verdict != stakes.verdict:
                continue
            right, wrong = find.mask & stakes.right, find.mask & stakes.wrong
            if right.bit_count() <= wrong.bit_count() or clusters_in(right, field) < _SUPPORT:
                continue
            rule = msgspec.structs.replace(find.rule, strength=stakes.strength)
            worth = worth_of(find.mask, careful, PICKED_CAUTION)
            known = best.get(find.rule)
            if worth > 0 and (known is None or known.worth < worth) and len(write_rule(rule, language)) <= LONGEST:
                weak = msgspec.structs.replace(rule, strength="weak")
                if _unsure(stakes, right, wrong, now) and len(write_rule(weak, language)) <= LONGEST:
                    rule = weak
                best[find.rule] = FoundRule(rule, find.mask, worth)
    return sorted(best.values(), key=lambda ranked: (-ranked.worth, write_rule(ranked.rule, language)))


def _unsure(stakes: Stakes, right: int, wrong: int, now: RuleState) -> bool:
    """Whether a rule is often wrong, and a weak rule would turn the same cases."""
    moved = stakes.right | stakes.wrong
    often_wrong = right.bit_count() < SURE * (right | wrong).bit_count()
    return often_wrong and cases_turned(now, stakes.verdict, WEIGHTS["weak"]) & moved == moved
