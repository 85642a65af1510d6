"""Fits a scorecard to the studied cases, one change at a time: which rule, with how many points, would help most.

Two points double the odds, so that a sum of points is a probability and a change is measured by how much more probable
the labels become. A gain counts only after three deductions: a share for large points, the standard error over
clusters (tickets of a cluster are alike), and for conditions that were picked out of thousands, such as phrases, the
requirement that they also help in each of several halves of the clusters.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.candidates import Candidate, CaseSets, StudiedCase
from donewhen.models.contrast.judge import read_rules
from donewhen.models.contrast.rules import Condition, PhraseCondition, Rule, applies, base_points

UNIT = math.log(2) / 2
"""What a point adds to the logarithm of the odds."""
POINTS = (1, 2, 3, 4, 5, 6)
MOST_BASE = 12
RIDGE = (1.0, 6.0)
"""The least and the most that the square of a rule's weight costs, in units of the gain: more with more cases."""
_RIDGE_CASES = 70
"""The number of cases for which it costs one unit."""
CAUTION = 0.5
"""Standard errors subtracted from the gain of a condition."""
PHRASE_CAUTION = (1.5, 2.5)
"""The same for a phrase with few and with many cases: it is one of thousands, and more cases have more phrases."""
_FEW, _MANY = 200, 400
LEAST_GAIN = 1.0
"""Minimum gain of a rule after all deductions: what one more rule for people to read has to be worth."""
TURNED = 0.2
"""What a verdict that becomes right adds to the gain: rules are to change verdicts, and not only to confirm them."""
HALVES = 8
_EXAMINED = 80
_SAME = 0.9
_DEEPEST = 60


class ScoreState(NamedTuple):
    """The studied cases under a set of rules."""

    scores: tuple[int, ...]
    """The sum of each case."""
    levels: Mapping[int, int]
    """Sets of cases by their sum, without those that the scaffold decides."""
    default: Binary
    base: int
    masks: Mapping[str, int]
    """The cases to which each rule of the guidance applies, without those that the scaffold decides."""

    def passed(self) -> int:
        """Return the cases that are judged pass, without those that the scaffold decides."""
        return sum(members for level, members in self.levels.items() if _passes(level, self.default))


@dataclass(frozen=True)
class Addition:
    """A rule that would help, with the cases that it applies to and its worth."""

    rule: Rule
    mask: int
    worth: float


def state_of(rules: Mapping[str, str], cases: Sequence[StudiedCase]) -> ScoreState:
    """Return the state of the studied cases under the rules."""
    read = read_rules(tuple(rules.items()))
    base = base_points(read.default)
    levels: dict[int, int] = {}
    masks: dict[str, int] = dict.fromkeys((key for key, _, _ in read.guidance), 0)
    scores = []
    for index, case in enumerate(cases):
        bit = 1 << index
        total = base
        decided = sum(weight for _, rule, weight in read.scaffold if applies(rule, case.features)) != 0
        for key, rule, weight in read.guidance:
            if not decided and applies(rule, case.features):
                masks[key] |= bit
                total += weight
        scores.append(total)
        if not decided:
            levels[total] = levels.get(total, 0) | bit
    return ScoreState(tuple(scores), levels, read.default.verdict, base, masks)


def shifted(state: ScoreState, mask: int, shift: int) -> ScoreState:
    """Return the state with ``shift`` more points for some cases."""
    levels: dict[int, int] = {}
    for level, members in state.levels.items():
        for moved, part in ((level + shift, members & mask), (level, members & ~mask)):
            if part:
                levels[moved] = levels.get(moved, 0) | part
    scores = tuple(score + shift * (mask >> index & 1) for index, score in enumerate(state.scores))
    return state._replace(scores=scores, levels=levels)


class Scorer:
    """Measures changes of the score against the labels of the studied cases."""

    def __init__(self, cases: Sequence[StudiedCase], field: CaseSets) -> None:
        self._field = field
        low, high = PHRASE_CAUTION
        self._phrase_caution = low + (high - low) * min(1.0, max(0.0, (len(cases) - _FEW) / (_MANY - _FEW)))
        self._ridge = UNIT * UNIT * min(RIDGE[1], max(RIDGE[0], len(cases) / _RIDGE_CASES))
        names = {name: number for number, name in enumerate(dict.fromkeys(case.cluster for case in cases))}
        self._cluster = [names[case.cluster] for case in cases]
        self._halves = _halves(len(names), self._cluster)

    def gain(self, state: ScoreState, mask: int, shift: int) -> float:
        """Return how much more probable the labels become with ``shift`` more points for some cases."""
        return sum(
            (members & mask & self._field.passing).bit_count() * _delta(level, shift, passing=True)
            + (members & mask & self._field.failing).bit_count() * _delta(level, shift, passing=False)
            for level, members in state.levels.items()
            if members & mask
        )

    def cost(self, points: int) -> float:
        """Return what a rule with these points costs; large points are seldom borne out on other cases."""
        return self._ridge * points * points

    def best_base(self, state: ScoreState) -> tuple[int, float]:
        """Return the base that would fit best, and its gain over the current one."""
        everyone = self._field.everyone
        gains = [
            (self.gain(state, everyone, base - state.base), -abs(base - state.base), base)
            for base in range(-MOST_BASE, MOST_BASE + 1)
        ]
        gain, _, base = max(gains)
        return base, gain

    def additions(self, state: ScoreState, candidates: Sequence[Candidate]) -> list[Addition]:
        """Return the rules that would help, best first: at most one per series or measure of the ticket."""
        if not self._field.failing or not self._field.passing:
            return []
        slopes = [
            (members & self._field.passing, members & self._field.failing, _probability(level))
            for level, members in state.levels.items()
        ]
        everyone = self._slope(slopes, self._field.everyone)
        rough: list[tuple[float, int]] = []
        for number, candidate in enumerate(candidates):
            pull, push = self._slope(slopes, candidate.mask)
            # As if the base were fitted, too: otherwise a poor base favours whatever applies to most cases.
            pull -= push * everyone[0] / everyone[1] if everyone[1] else 0.0
            rough.append((-pull * pull / (push + 8.0), number))
        rough.sort()
        best: dict[object, Addition] = {}
        for _, number in rough[:_EXAMINED]:
            candidate = candidates[number]
            addition = self._addition(state, candidate)
            if addition is None:
                continue
            topic = topic_of(candidate.condition), addition.rule.verdict
            if topic not in best or best[topic].worth < addition.worth:
                best[topic] = addition
        return sorted(best.values(), key=lambda addition: -addition.worth)

    @staticmethod
    def _slope(slopes: Sequence[tuple[int, int, float]], mask: int) -> tuple[float, float]:
        pull = push = 0.0
        for passing, failing, share in slopes:
            passed, failed = (mask & passing).bit_count(), (mask & failing).bit_count()
            pull += passed * (1 - share) - failed * share
            push += (passed + failed) * share * (1 - share)
        return pull, push

    def worth(self, state: ScoreState, mask: int, shift: int, caution: float = CAUTION) -> float:
        """Return the gain after a deduction for chance, estimated by cluster."""
        by_cluster = self._gains_by_cluster(state, mask, shift)
        return sum(by_cluster) - caution * math.sqrt(sum(gain * gain for gain in by_cluster))

    def _addition(self, state: ScoreState, candidate: Candidate) -> Addition | None:
        best, shift = max(
            (self.gain(state, candidate.mask, sign * points) - self.cost(points), sign * points)
            for points in POINTS
            for sign in (1, -1)
        )
        if best <= LEAST_GAIN:
            return None
        caution = self._phrase_caution if isinstance(candidate.condition, PhraseCondition) else CAUTION
        worth = self.worth(state, candidate.mask, shift, caution) - self.cost(shift)
        if worth <= LEAST_GAIN or not self._is_stable(state, candidate, shift):
            return None
        right, wrong = turned_cases(state, shifted(state, candidate.mask, shift), self._field)
        worth += TURNED * (right.bit_count() - wrong.bit_count())
        verdict: Binary = "pass" if shift > 0 else "fail"
        return Addition(Rule((candidate.condition,), verdict, points=abs(shift)), candidate.mask, worth)

    def _is_stable(self, state: ScoreState, candidate: Candidate, shift: int) -> bool:
        """Whether a phrase also helps in each half of the clusters: chance phrases help in most, but seldom in all."""
        if not isinstance(candidate.condition, PhraseCondition):
            return True
        by_cluster = self._gains_by_cluster(state, candidate.mask, shift)
        return all(
            sum(gain for gain, inside in zip(by_cluster, half, strict=True) if inside) > 0 for half in self._halves
        )

    def _gains_by_cluster(self, state: ScoreState, mask: int, shift: int) -> list[float]:
        gains = [0.0] * (max(self._cluster, default=-1) + 1)
        for level, members in state.levels.items():
            for part, passing in (
                (members & mask & self._field.passing, True),
                (members & mask & self._field.failing, False),
            ):
                delta = _delta(level, shift, passing=passing) if part else 0.0
                while part:
                    low = part & -part
                    gains[self._cluster[low.bit_length() - 1]] += delta
                    part ^= low
        return gains


def turned_cases(before: ScoreState, after: ScoreState, field: CaseSets) -> tuple[int, int]:
    """Return the cases that a change turns to the right and to the wrong verdict."""
    old, new = before.passed(), after.passed()
    moved = old ^ new
    right = (new & field.passing) | (~new & field.failing)
    return moved & right, moved & ~right


def nearly_equal(first: int, second: int) -> bool:
    """Whether two sets of cases are the same but for a few."""
    return (first & second).bit_count() > _SAME * (first | second).bit_count()


def _halves(clusters: int, cluster: Sequence[int]) -> list[list[bool]]:
    halves = []
    for number in range(HALVES):
        chance = random.Random(number)
        chosen = set(chance.sample(range(clusters), -(-clusters // 2)))
        halves.append([name in chosen for name in range(clusters)])
    return halves


def topic_of(condition: Condition) -> object:
    """What a condition is about, without its threshold: several thresholds of one series are tried, one is added."""
    match condition:
        case PhraseCondition(phrases):
            return phrases
        case _:
            return tuple(getattr(condition, name, None) for name in ("label", "statistic", "measure", "unit", "name"))


def _passes(score: int, default: Binary) -> bool:
    return score > 0 or (score == 0 and default == "pass")


def _delta(level: int, shift: int, *, passing: bool) -> float:
    """The gain of one case: the change of the logarithm of its label's probability."""
    sign = 1 if passing else -1
    return _LOSSES[sign * level] - _LOSSES[sign * (level + shift)]


def _probability(score: int) -> float:
    return 1 / (1 + math.exp(-UNIT * score))


class _Losses(dict[int, float]):
    def __missing__(self, score: int) -> float:
        capped = max(-_DEEPEST, min(_DEEPEST, score))
        self[score] = value = math.log1p(math.exp(-UNIT * capped))
        return value


_LOSSES = _Losses()
