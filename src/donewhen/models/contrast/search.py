"""Which rule would help most, given the rules that are there?

Rules are weighed by what they would turn: cases from wrong to right, less cases from right to wrong, less what luck
could have done. Luck is counted by cluster, since tickets of one cluster are much alike. One condition alone is seldom
good; of several good ones that differ, most agreeing is better, and so is one together with another.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import msgspec

from donewhen.models.contrast.candidates import Candidate, Field, Studied
from donewhen.models.contrast.judge import read_all
from donewhen.models.contrast.rules import WEIGHTS, Rule, Strength, applies, subjects
from donewhen.models.contrast.sentences import LONGEST, write_rule
from donewhen.models.roles import Binary

CAUTION = 2.0
"""How many standard errors of luck are taken off what a rule gains."""
BALANCE = 0.5
"""How far the rarer label counts for more: 0 not at all, 1 until both weigh the same."""
RELEASE = 2.0
"""How much worse it is to turn a failing case to pass than the reverse."""
_WEIGHED = 600
_LEADERS = 40
ALIKE = 0.7
VOTERS = (3, 5, 7, 9)
_SHORTEST = 14
PAIR_CAUTION = 3.0
PAIRED = 30


class Standing(NamedTuple):
    """How the studied cases stand under some rules."""

    levels: Mapping[int, int]
    """The cases at each balance of signs, as sets; without those that the scaffold decides."""
    default: Binary
    failed: int
    """The cases that are judged fail."""
    masks: Mapping[str, int]
    """The cases to which each rule of the guidance applies."""


class Find(NamedTuple):
    """A rule, the cases that it applies to, and what it is worth."""

    rule: Rule
    mask: int
    worth: float


class Stakes(NamedTuple):
    """What a sign of one verdict and strength would turn: to the right, to the wrong; and what each counts."""

    verdict: Binary
    strength: Strength
    right: int
    wrong: int
    gain: float
    loss: float
    clusters: tuple[tuple[int, int], ...]


def standing(rules: Mapping[str, str], cases: Sequence[Studied], *, without: str = "") -> Standing:
    """Judges the studied cases, with one rule left out if so asked."""
    read = read_all(tuple(rules.items()))
    levels: dict[int, int] = {}
    masks: dict[str, int] = {key: 0 for key, _, _ in read.guidance}
    failed = 0
    for index, case in enumerate(cases):
        bit = 1 << index
        total = sum(weight for _, rule, weight in read.scaffold if applies(rule, case.features))
        if total:
            failed |= bit if total < 0 else 0
            continue
        for key, rule, weight in read.guidance:
            if applies(rule, case.features):
                masks[key] |= bit
                total += weight if key != without else 0
        levels[total] = levels.get(total, 0) | bit
        if _verdict(total, read.default) == "fail":
            failed |= bit
    return Standing(levels, read.default, failed, masks)


def _verdict(level: int, default: Binary) -> Binary:
    return default if level == 0 else "pass" if level > 0 else "fail"


def turned(now: Standing, verdict: Binary, weight: int) -> int:
    """The cases whose verdict another sign would turn."""
    signed = weight if verdict == "pass" else -weight
    cases = 0
    for level, mask in now.levels.items():
        if _verdict(level, now.default) != verdict == _verdict(level + signed, now.default):
            cases |= mask
    return cases


def stakes_of(now: Standing, field: Field, sample: int) -> Iterator[Stakes]:
    """What there is to gain, for each verdict and for each strength that makes a difference."""
    for verdict in ("fail", "pass"):
        wanted = field.failing if verdict == "fail" else field.passing
        seen: set[int] = {0}
        for strength in ("plain", "weak", "strong"):
            moved = turned(now, verdict, WEIGHTS[strength]) & sample
            if moved in seen:
                continue
            seen.add(moved)
            right, wrong = moved & wanted, moved & ~wanted
            half = moved.bit_count() / 2
            gain = (half / max(1, right.bit_count())) ** BALANCE
            loss = (half / max(1, wrong.bit_count())) ** BALANCE * (RELEASE if verdict == "pass" else 1)
            clusters = tuple((right & one, wrong & one) for one in field.clusters if moved & one)
            yield Stakes(verdict, strength, right, wrong, gain, loss, clusters)


def worth_of(mask: int, stakes: Stakes, caution: float = -1) -> float:
    """What a rule with these cases gains, less what luck could have done."""
    total = squares = 0.0
    for right, wrong in stakes.clusters:
        here = stakes.gain * (mask & right).bit_count() - stakes.loss * (mask & wrong).bit_count()
        total += here
        squares += here * here
    return total - (CAUTION if caution < 0 else caution) * math.sqrt(squares)


def finds(now: Standing, candidates: Sequence[Candidate], field: Field, sample: int, language: str) -> list[Find]:
    """Rules that would help, the best first."""
    found: dict[tuple[Binary, int], Find] = {}
    for stakes in stakes_of(now, field, sample):
        singles = _singles(candidates, stakes)
        for find in (*singles[:_LEADERS], *_together(_diverse(singles), stakes, language)):
            helped = (find.mask & stakes.right).bit_count()
            if find.worth > 0 and helped >= 2 and helped > (find.mask & stakes.wrong).bit_count():
                known = found.get((stakes.verdict, find.mask))
                if known is None or known.worth < find.worth:
                    found[stakes.verdict, find.mask] = find
    return sorted(found.values(), key=lambda one: (-one.worth, write_rule(one.rule, language)))


def _singles(candidates: Iterable[Candidate], stakes: Stakes) -> list[Find]:
    rough = []
    for number, candidate in enumerate(candidates):
        right = (candidate.mask & stakes.right).bit_count()
        wrong = (candidate.mask & stakes.wrong).bit_count()
        rough.append((stakes.gain * right - stakes.loss * wrong, -number, candidate))
    rough.sort(reverse=True, key=lambda one: one[:2])
    fine = [
        Find(Rule(one.conditions, stakes.verdict, stakes.strength), one.mask, worth_of(one.mask, stakes))
        for _, _, one in rough[:_WEIGHED]
    ]
    return sorted(fine, key=lambda one: -one.worth)


def _diverse(singles: Sequence[Find]) -> list[Find]:
    """The best that differ: in what they look at, and in the cases that they hold for."""
    kept: list[Find] = []
    looked: set[str] = set()
    for find in singles:
        looks = subjects(find.rule.conditions[0])
        if not looks & looked and all(not alike(find.mask, other.mask) for other in kept):
            kept.append(find)
            looked |= looks
            if len(kept) == _LEADERS:
                break
    return kept


def alike(one: int, other: int) -> bool:
    """Whether two sets are nearly the same."""
    return (one & other).bit_count() > ALIKE * (one | other).bit_count()


def _together(leaders: Sequence[Find], stakes: Stakes, language: str) -> Iterator[Find]:
    for voters in VOTERS:
        yield from _votes(leaders, voters, stakes, language)
    for at, first in enumerate(leaders[:PAIRED]):
        for second in leaders[:at]:
            mask = first.mask & second.mask
            rule = Rule((*second.rule.conditions, *first.rule.conditions), stakes.verdict, stakes.strength)
            if mask not in (0, first.mask, second.mask) and len(write_rule(rule, language)) <= LONGEST:
                yield Find(rule, mask, worth_of(mask, stakes, PAIR_CAUTION))


def _votes(leaders: Sequence[Find], voters: int, stakes: Stakes, language: str) -> Iterator[Find]:
    """The best leaders, as many as vote, with room for all in one sentence; for each number that may be enough."""
    rule = Rule((), stakes.verdict, stakes.strength, voters)
    masks: list[int] = []
    for find in leaders:
        wider = msgspec.structs.replace(rule, conditions=(*rule.conditions, *find.rule.conditions))
        # Those still to come must find a place, too.
        if len(write_rule(wider, language)) + (voters - len(masks) - 1) * _SHORTEST <= LONGEST:
            rule = wider
            masks.append(find.mask)
            if len(masks) == voters:
                for enough, mask in enumerate(at_least(masks)[2:-1], start=2):
                    yield Find(msgspec.structs.replace(rule, enough=enough), mask, worth_of(mask, stakes))
                return


def at_least(masks: Sequence[int]) -> list[int]:
    """The cases that are in at least 0, 1, 2, … of the sets."""
    levels = [-1] + [0] * len(masks)
    for number, mask in enumerate(masks, start=1):
        for level in range(number, 0, -1):
            levels[level] |= mask & levels[level - 1]
    return levels
