"""Candidate conditions that may separate pass from fail, each with the cases for which it holds.

A set of cases is an integer with one bit per case, which makes comparisons fast. Terms count only if several clusters
use them: the vocabulary of one task does not carry over to the next.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.features import Features, Where
from donewhen.models.contrast.measures import COMMON_WORDS
from donewhen.models.contrast.rules import (
    ChecklistCondition,
    Condition,
    LengthCondition,
    MeasureCondition,
    NumberCondition,
    PhraseCondition,
    SectionCondition,
    Statistic,
    Unit,
    length_of,
    statistic_of,
)
from donewhen.models.contrast.words import join_words

_PLACES: tuple[Where, ...] = ("text", "end")

_LONGEST_PHRASE = 3
_LEAST_SHARE = 0.04
_LEAST_CLUSTERS = 5
_MOST_TERMS = 200
"""Maximum number of phrases of each part: those that separate the labels best."""
_IDENTIFIER_DIGITS = 4
_IDENTIFIERS = 0.9
_STATISTICS: tuple[Statistic, ...] = ("first", "last", "recent", "highest", "lowest", "mean", "trend", "count")
_UNITS: tuple[Unit, ...] = ("words", "lines", "sections")
_MEANINGFUL = re.compile(r"[^\W\d_]{4}|^(?:no|not)$|[\u3040-\u30ff\u3400-\u9fff]")


class StudiedCase(NamedTuple):
    """A case with its features, label and cluster."""

    features: Features
    label: Binary
    cluster: str


class Candidate(NamedTuple):
    """A condition and the cases for which it holds."""

    condition: Condition
    mask: int


class CaseSets(NamedTuple):
    """Sets of cases by label and cluster."""

    everyone: int
    failing: int
    passing: int
    clusters: tuple[int, ...]

    @property
    def size(self) -> int:
        return self.everyone.bit_count()


def case_sets(cases: Sequence[StudiedCase]) -> CaseSets:
    """Return the sets of cases by label and cluster."""
    failing = _mask(case.label == "fail" for case in cases)
    everyone = (1 << len(cases)) - 1
    by_cluster: dict[str, int] = {}
    for index, case in enumerate(cases):
        by_cluster[case.cluster] = by_cluster.get(case.cluster, 0) | 1 << index
    return CaseSets(everyone, failing, everyone & ~failing, tuple(by_cluster.values()))


def clusters_in(mask: int, field: CaseSets) -> int:
    """Return how many clusters have a case in the set."""
    return sum(1 for cluster in field.clusters if mask & cluster)


def contrast_score(mask: int, field: CaseSets) -> float:
    """Return how much more often failing cases are in a set than passing ones, in standard errors (signed)."""
    fails, passes = max(1, field.failing.bit_count()), max(1, field.passing.bit_count())
    failed, passed = (mask & field.failing).bit_count(), (mask & field.passing).bit_count()
    share = (failed + passed) / (fails + passes)
    spread = share * (1 - share) * (1 / fails + 1 / passes)
    return (failed / fails - passed / passes) / math.sqrt(spread) if spread > 0 else 0.0


def candidates_of(cases: Sequence[StudiedCase], field: CaseSets, forbidden: Callable[[str], bool]) -> list[Candidate]:
    """Return all candidate conditions, at most one per set of cases."""
    by_mask: dict[int, Candidate] = {}
    for candidate in _all_conditions(cases, field, forbidden):
        if 0 < candidate.mask < field.everyone:
            by_mask.setdefault(candidate.mask, candidate)
    return list(by_mask.values())


def _all_conditions(
    cases: Sequence[StudiedCase], field: CaseSets, forbidden: Callable[[str], bool]
) -> Iterator[Candidate]:
    # Numbers come first: of several conditions with the same cases the first is kept.
    yield from _numbers(cases, forbidden)
    yield from _measures(cases)
    yield from _lengths(cases)
    yield from _sections(cases, field, forbidden)
    yield from _boxes(cases)
    for where in _PLACES:
        for phrase, mask in _terms(cases, field, where, forbidden):
            yield Candidate(PhraseCondition((phrase,), where), mask)
            yield Candidate(PhraseCondition((phrase,), where, at_least=False), field.everyone & ~mask)


def _mask(flags: Iterable[bool]) -> int:
    return int("".join("1" if flag else "0" for flag in flags)[::-1] or "0", 2)


def _steps(values: Sequence[float]) -> list[float]:
    """Return rounded thresholds between values: every value if there are few, else eighths of the cases."""
    distinct = sorted(set(values))
    if len(distinct) <= 12 and all(value == int(value) for value in distinct):
        return distinct[1:]
    ranked = sorted(values)
    return sorted({_round(ranked[len(ranked) * eighth // 8]) for eighth in range(1, 8)})


def _round(value: float) -> float:
    if value == 0:
        return 0.0
    return float(f"{value:.2g}")


def _thresholds(
    values: Sequence[float | None], steps: Iterable[float], make: Callable[[bool, float], Condition]
) -> Iterator[Candidate]:
    known = _mask(value is not None for value in values)
    for step in steps:
        above = _mask(value is not None and value >= step for value in values)
        yield Candidate(make(True, step), above)
        yield Candidate(make(False, step), known & ~above)


def _lengths(cases: Sequence[StudiedCase]) -> Iterator[Candidate]:
    for unit in _UNITS:
        values = [float(length_of(case.features, unit)) for case in cases]
        yield from _thresholds(values, _steps(values), partial(LengthCondition, unit))


def _numbers(cases: Sequence[StudiedCase], forbidden: Callable[[str], bool]) -> Iterator[Candidate]:
    spread: Counter[str] = Counter()
    for case in cases:
        spread.update(label for label in case.features.numbers)
    for label, count in sorted(spread.items()):
        if count < max(_LEAST_CLUSTERS, len(cases) / 4) or forbidden(label):
            continue
        if _identifies([value for case in cases for value in case.features.numbers.get(label, ())]):
            continue
        for statistic in _STATISTICS:
            values = [
                statistic_of(found, statistic) if (found := case.features.numbers.get(label)) else None
                for case in cases
            ]
            steps = _steps([value for value in values if value is not None])
            yield from _thresholds(values, steps, partial(NumberCondition, label, statistic))


def _identifies(values: Sequence[float]) -> bool:
    """Whether numbers are identifiers, such as the last digits of a card: whole, long, and all of the same length."""
    lengths = Counter(len(str(int(value))) for value in values if value == int(value) and value > 0)
    length, count = lengths.most_common(1)[0] if lengths else (0, 0)
    return length >= _IDENTIFIER_DIGITS and count >= _IDENTIFIERS * len(values) and len(set(values)) > 2


def _measures(cases: Sequence[StudiedCase]) -> Iterator[Candidate]:
    for measure in sorted({measure for case in cases for measure in case.features.measures}):
        values = [case.features.measures.get(measure) for case in cases]
        steps = _steps([value for value in values if value is not None])
        yield from _thresholds(values, steps, partial(MeasureCondition, measure))


def _sections(cases: Sequence[StudiedCase], field: CaseSets, forbidden: Callable[[str], bool]) -> Iterator[Candidate]:
    for name in sorted({name for case in cases for name in case.features.sections}):
        mask = _mask(name in case.features.sections for case in cases)
        if _is_common(mask, field) and not forbidden(name):
            yield Candidate(SectionCondition(name, present=True), mask)
            yield Candidate(SectionCondition(name, present=False), field.everyone & ~mask)


def _boxes(cases: Sequence[StudiedCase]) -> Iterator[Candidate]:
    for checked in (False, True):
        condition = ChecklistCondition(checked)
        yield Candidate(condition, _mask(condition.holds(case.features) for case in cases))


def _is_common(mask: int, field: CaseSets) -> bool:
    """Whether enough cases of enough clusters are in the set, and enough are not."""
    least = max(_LEAST_CLUSTERS, _LEAST_SHARE * field.size)
    return least <= mask.bit_count() <= field.size - least and clusters_in(mask, field) >= _LEAST_CLUSTERS


def _terms(
    cases: Sequence[StudiedCase], field: CaseSets, where: Where, forbidden: Callable[[str], bool]
) -> list[tuple[str, int]]:
    """Return phrases with the cases that contain them, best separation first."""
    masks: dict[tuple[str, ...], int] = {}
    for index, case in enumerate(cases):
        bit = 1 << index
        for gram in _grams(case.features.passages(where)):
            masks[gram] = masks.get(gram, 0) | bit
    spread = max(_LEAST_CLUSTERS, _LEAST_SHARE * field.size)
    rated = []
    for gram, mask in masks.items():
        if mask.bit_count() >= spread and _is_meaningful(gram):
            phrase = join_words(gram)
            if clusters_in(mask, field) >= _LEAST_CLUSTERS and not forbidden(phrase):
                rated.append((-abs(contrast_score(mask, field)), len(gram), phrase, mask))
    rated.sort()
    kept: dict[int, tuple[str, int]] = {}
    for _, _, phrase, mask in rated[:_MOST_TERMS]:
        kept.setdefault(mask, (phrase, mask))
    # A judge also finds a phrase across the end of a line, where none is learned.
    return [(phrase, _mask(case.features.count(phrase, where) > 0 for case in cases)) for phrase, _ in kept.values()]


def _grams(passages: Iterable[list[str]]) -> set[tuple[str, ...]]:
    grams: set[tuple[str, ...]] = set()
    for words in passages:
        for size in range(1, _LONGEST_PHRASE + 1):
            grams.update(zip(*(words[start:] for start in range(size)), strict=False))
    return grams


def _is_meaningful(gram: tuple[str, ...]) -> bool:
    """Whether a gram has a meaningful word and no digits (mostly identifiers); single characters don't count."""
    if len(gram) == 1 and len(gram[0]) == 1:
        return False
    return any(_MEANINGFUL.search(word) and word not in COMMON_WORDS for word in gram) and not any(
        any(c.isdigit() for c in word) for word in gram
    )
