"""Rules and conditions as data, independent of the language they are written in."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.features import Features, Where
from donewhen.models.contrast.measures import Measure
from donewhen.models.contrast.words import split_words

Statistic = Literal["first", "last", "recent", "highest", "lowest", "mean", "trend", "count"]
Unit = Literal["words", "lines", "sections"]
Strength = Literal["weak", "plain", "strong"]

WEIGHTS: dict[Strength, int] = {"weak": 1, "plain": 2, "strong": 4}
"""A strong rule outweighs a plain and a weak one together."""
MOST_POINTS = 20
RECENT = 3
"""Number of values at the end of a series that *recent* is the mean of."""


class PhraseCondition(msgspec.Struct, frozen=True):
    """Phrases occur at least, or less than, a number of times in total."""

    phrases: tuple[str, ...]
    where: Where = "text"
    at_least: bool = True
    amount: float = 1
    per_hundred: bool = False

    def holds(self, features: Features) -> bool:
        found: float = sum(features.count(phrase, self.where) for phrase in self.phrases)
        if self.per_hundred:
            found = 100 * found / max(1, len(features.part(self.where)))
        return (found >= self.amount) is self.at_least


class NumberCondition(msgspec.Struct, frozen=True):
    """A labelled number is compared with a threshold; never holds if the label has no number."""

    label: str
    statistic: Statistic
    at_least: bool
    threshold: float

    def holds(self, features: Features) -> bool:
        values = features.numbers.get(self.label)
        return values is not None and (statistic_of(values, self.statistic) >= self.threshold) is self.at_least


class SectionCondition(msgspec.Struct, frozen=True):
    """A section is present, or missing."""

    name: str
    present: bool

    def holds(self, features: Features) -> bool:
        return (self.name in features.sections) is self.present


class ChecklistCondition(msgspec.Struct, frozen=True):
    """A checklist has an unchecked item, or all items are checked."""

    checked: bool

    def holds(self, features: Features) -> bool:
        checked, unchecked = features.boxes
        return checked > 0 == unchecked if self.checked else unchecked > 0


class LengthCondition(msgspec.Struct, frozen=True):
    """The text has at least, or less than, a certain length."""

    unit: Unit
    at_least: bool
    amount: float

    def holds(self, features: Features) -> bool:
        return (length_of(features, self.unit) >= self.amount) is self.at_least


class MeasureCondition(msgspec.Struct, frozen=True):
    """A measure of the ticket is compared with a threshold; never holds if the ticket doesn't have it."""

    measure: Measure
    at_least: bool
    amount: float

    def holds(self, features: Features) -> bool:
        value = features.measures.get(self.measure)
        return value is not None and (value >= self.amount) is self.at_least


Condition: TypeAlias = (
    PhraseCondition | NumberCondition | SectionCondition | ChecklistCondition | LengthCondition | MeasureCondition
)


class Rule(msgspec.Struct, frozen=True):
    """If the conditions hold, the rule counts for its verdict."""

    conditions: tuple[Condition, ...]
    verdict: Binary
    strength: Strength = "plain"
    enough: int = 0
    """How many conditions must hold; 0 for all."""
    points: int = 0
    """What the rule adds for its verdict, in place of its strength; 0 for none."""


class DefaultRule(msgspec.Struct, frozen=True):
    """The verdict if no rule decides, and with points the base that the points of the rules are added to."""

    verdict: Binary
    points: int = 0


def applies(rule: Rule, features: Features) -> bool:
    """Whether enough conditions of a rule hold."""
    spare = len(rule.conditions) - (rule.enough or len(rule.conditions))
    for condition in rule.conditions:
        held = features.held.get(condition)
        if held is None:
            held = features.held[condition] = condition.holds(features)
        if not held:
            spare -= 1
            if spare < 0:
                return False
    return True


def signed_weight(rule: Rule) -> int:
    """Return the weight of a rule: positive for pass, negative for fail."""
    weight = rule.points or WEIGHTS[rule.strength]
    return weight if rule.verdict == "pass" else -weight


def base_points(rule: DefaultRule) -> int:
    """Return what the sum of points starts from."""
    return rule.points if rule.verdict == "pass" else -rule.points


def statistic_of(values: tuple[float, ...], statistic: Statistic) -> float:
    """Return a statistic of the values."""
    if statistic == "first":
        return values[0]
    if statistic == "last":
        return values[-1]
    if statistic == "highest":
        return max(values)
    if statistic == "lowest":
        return min(values)
    if statistic == "trend":
        return values[-1] - values[0]
    if statistic == "count":
        return len(values)
    some = values[-RECENT:] if statistic == "recent" else values
    return sum(some) / len(some)


def length_of(features: Features, unit: Unit) -> int:
    """Return the length of a text in a unit."""
    if unit == "words":
        return len(features.words)
    return features.lines if unit == "lines" else len(features.sections)


def condition_subjects(condition: Condition) -> frozenset[str]:
    """Return the words or labels of a condition: conditions that share one are not independent."""
    match condition:
        case PhraseCondition(phrases):
            return frozenset(word for phrase in phrases for word in split_words(phrase))
        case NumberCondition(label):
            return frozenset({f"number {label}"})
        case SectionCondition(name):
            return frozenset({f"section {name}"})
        case ChecklistCondition():
            return frozenset({"boxes"})
        case LengthCondition():
            return frozenset({"length"})
        case MeasureCondition(measure):
            return frozenset({f"measure {measure}"})
