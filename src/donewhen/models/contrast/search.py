"""Which rules could help, and which would help most, given the rules that are there?

One condition alone is seldom good: of several that differ, enough agreeing is better. Such rules are built from the
studied cases as if there were no other rule yet, since what earlier rules left over is few cases, and mostly noise.
Then they are weighed by what they would turn under the rules that are there: cases from wrong to right, less cases from
right to wrong, less what luck could have done. Luck is counted by cluster: tickets of one cluster are much alike.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from donewhen.models.contrast.candidates import Candidate, CaseSets, StudiedCase, clusters_in
from donewhen.models.contrast.judge import read_rules
from donewhen.models.contrast.rules import WEIGHTS, Rule, Strength, applies, condition_subjects
from donewhen.models.contrast.sentences import LONGEST, write_rule
from donewhen.models.roles import Binary

CAUTION = 2.0
"""How many standard errors of luck are taken off a condition that was picked out of thousands."""
PICKED_CAUTION = 1.0
"""The same for a rule out of the few that were built."""
BALANCE = 0.5
"""How far the rarer label counts for more: 0 not at all, 1 until both weigh the same."""
RELEASE = 2.0
"""How much worse it is to turn a failing case to pass than the reverse."""
VIEWS = 6
"""How often rules are built; each time but the first without some of the clusters."""
VOTERS = (5, 7)
"""How many conditions vote."""
ALIKE = 0.6
"""Two sets with more than this share in common are nearly the same."""
SURE = 0.75
"""A rule that is right less often is a weak sign."""
_LEFT_OUT = 0.25
_WEIGHED = 600
_LEADERS = 40
_SHORTEST = 14
_SUPPORT = 3
_OTHERS = 0.25
_STRENGTHS: tuple[Strength, ...] = ("plain", "weak", "strong")
_VERDICTS: tuple[Binary, ...] = ("fail", "pass")


class RuleState(NamedTuple):
    """How the studied cases stand under some rules."""

    levels: Mapping[float, int]
    """The cases at each balance of signs, as sets; without those that the scaffold decides."""
    default: Binary
    masks: Mapping[str, int]
    """The cases to which each rule of the guidance applies, without those that the scaffold decides."""


class Stakes(NamedTuple):
    """What a sign of one verdict and strength would turn: to the right, to the wrong; and what each counts."""

    verdict: Binary
    strength: Strength
    right: int
    wrong: int
    gain: float
    loss: float
    clusters: tuple[tuple[int, int], ...]


class FoundRule(NamedTuple):
    """A rule, the cases that it applies to, and what it is worth."""

    rule: Rule
    mask: int
    worth: float


def state_under_rules(rules: Mapping[str, str], cases: Sequence[StudiedCase], *, without: str = "") -> RuleState:
    """Judges the studied cases, with one rule left out if so asked."""
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
    """All cases under no rule but a default."""
    return RuleState({0: everyone}, verdict, {})


def state_as_judged(rules: Mapping[str, str], cases: Sequence[StudiedCase], passed: int) -> RuleState:
    """The same where somebody else has judged what the rules leave open: less than any sign, and more than nothing."""
    now = state_under_rules(rules, cases)
    levels: dict[float, int] = {}
    for level, mask in now.levels.items():
        levels |= {level + _OTHERS: mask & passed, level - _OTHERS: mask & ~passed}
    return now._replace(levels=levels)


def cases_turned(now: RuleState, verdict: Binary, weight: int) -> int:
    """The cases whose verdict another sign would turn."""
    signed = weight if verdict == "pass" else -weight
    cases = 0
    for level, mask in now.levels.items():
        if _verdict(level, now.default) != verdict == _verdict(level + signed, now.default):
            cases |= mask
    return cases


def _verdict(level: float, default: Binary) -> Binary:
    return default if level == 0 else "pass" if level > 0 else "fail"


def stakes_of(now: RuleState, field: CaseSets, sample: int) -> Iterator[Stakes]:
    """What there is to gain, for each verdict and for each strength that makes a difference."""
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
    """What a rule with these cases gains, less what luck could have done."""
    total = squares = 0.0
    for right, wrong in stakes.clusters:
        here = stakes.gain * (mask & right).bit_count() - stakes.loss * (mask & wrong).bit_count()
        total += here
        squares += here * here
    return total - caution * math.sqrt(squares)


def best_signs(candidates: Iterable[Candidate], field: CaseSets, verdict: Binary, sample: int) -> list[FoundRule]:
    """The best single conditions for a verdict that differ: in what they look at, and in the cases they hold for."""
    stakes = next(
        stakes_of(state_without_rules(field.everyone, "pass" if verdict == "fail" else "fail"), field, sample), None
    )
    if stakes is None or not stakes.right or not stakes.wrong:
        return []
    kept: list[FoundRule] = []
    looked: set[str] = set()
    for find in _singles(candidates, stakes):
        looks = condition_subjects(find.rule.conditions[0])
        if find.worth > 0 and not looks & looked and not any(nearly_same(find.mask, other.mask) for other in kept):
            kept.append(find)
            looked |= looks
            if len(kept) == _LEADERS:
                break
    return kept


def _singles(candidates: Iterable[Candidate], stakes: Stakes) -> list[FoundRule]:
    rough = []
    for number, candidate in enumerate(candidates):
        right = (candidate.mask & stakes.right).bit_count()
        wrong = (candidate.mask & stakes.wrong).bit_count()
        rough.append((stakes.loss * wrong - stakes.gain * right, number, candidate))
    rough.sort(key=lambda one: one[:2])
    fine = [
        FoundRule(Rule((one.condition,), stakes.verdict), one.mask, worth_of(one.mask, stakes, CAUTION))
        for _, _, one in rough[:_WEIGHED]
    ]
    return sorted(fine, key=lambda one: -one.worth)


def nearly_same(one: int, other: int) -> bool:
    """Whether two sets are nearly the same."""
    return (one & other).bit_count() > ALIKE * (one | other).bit_count()


def rule_pool(candidates: Sequence[Candidate], field: CaseSets, language: str) -> list[FoundRule]:
    """The rules that could help, as seen with and without some of the clusters."""
    found: dict[Rule, FoundRule] = {}
    for view in range(VIEWS):
        chance = random.Random(view)
        sample = field.everyone
        for cluster in field.clusters if view else ():
            if chance.random() < _LEFT_OUT:
                sample &= ~cluster
        for verdict in _VERDICTS:
            leaders = best_signs(candidates, field, verdict, sample)
            for find in leaders[:4]:
                found.setdefault(find.rule, find)
            for voters in VOTERS:
                for find in _votes(leaders, voters, verdict, language):
                    found.setdefault(find.rule, find)
    return list(found.values())


def _votes(leaders: Sequence[FoundRule], voters: int, verdict: Binary, language: str) -> Iterator[FoundRule]:
    """The best leaders, as many as vote, with room for all in one sentence; for each number that may be enough."""
    rule = Rule((), verdict, enough=voters)
    masks: list[int] = []
    for find in leaders:
        wider = msgspec.structs.replace(rule, conditions=(*rule.conditions, *find.rule.conditions))
        # Those still to come must find a place, too.
        if len(write_rule(wider, language)) + (voters - len(masks) - 1) * _SHORTEST <= LONGEST:
            rule = wider
            masks.append(find.mask)
            if len(masks) == voters:
                for enough, mask in enumerate(at_least(masks)[2:-1], start=2):
                    yield FoundRule(msgspec.structs.replace(rule, enough=enough), mask, 0.0)
                return


def at_least(masks: Sequence[int]) -> list[int]:
    """The cases that are in at least 0, 1, 2, … of the sets."""
    levels = [-1] + [0] * len(masks)
    for number, mask in enumerate(masks, start=1):
        for level in range(number, 0, -1):
            levels[level] |= mask & levels[level - 1]
    return levels


def rank_rules(now: RuleState, pool: Iterable[FoundRule], field: CaseSets, language: str) -> list[FoundRule]:
    """The rules of the pool that would help, each in the strength that suits it, the best first."""
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
    return sorted(best.values(), key=lambda one: (-one.worth, write_rule(one.rule, language)))


def _unsure(stakes: Stakes, right: int, wrong: int, now: RuleState) -> bool:
    """Whether a rule is often wrong, and a weak sign would turn the same cases."""
    moved = stakes.right | stakes.wrong
    often_wrong = right.bit_count() < SURE * (right | wrong).bit_count()
    return often_wrong and cases_turned(now, stakes.verdict, WEIGHTS["weak"]) & moved == moved
