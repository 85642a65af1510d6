"""Writes and parses rules as sentences for people and the judge, in English and in Chinese.

Each form of condition has one template per language. The template writes the sentence and, as a pattern, parses it, so
that parsing is the inverse of writing. Sentences of any other form are prose and ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from donewhen.foundation.binary import Binary
from donewhen.models.contrast.features import Where
from donewhen.models.contrast.grammars import GRAMMARS, Form, Grammar, grammar_of
from donewhen.models.contrast.rules import (
    MOST_POINTS,
    ChecklistCondition,
    Condition,
    DefaultRule,
    LengthCondition,
    MeasureCondition,
    NumberCondition,
    PhraseCondition,
    Rule,
    SectionCondition,
)
from donewhen.models.contrast.words import normalise_label

Key = TypeVar("Key", bound=str)

LONGEST = 160
"""Maximum number of characters of a rule."""

_OPENING, _CLOSING = '"“「『', '"”」』'
_QUOTED = f"[{_OPENING}][^{_OPENING}{_CLOSING}]+[{_CLOSING}]"
_AMOUNT = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_QUOTED_TEXT = re.compile(_QUOTED)
_POINTS = re.compile(r"[+−-]\d+")
_SENTENCE_END = re.compile(r"(?<=[.。])\s+|(?<=。)")


def write_rule(rule: Rule | DefaultRule, language: str) -> str:
    """Return a rule as a sentence."""
    grammar = grammar_of(language)
    verdict = grammar.verdicts[rule.verdict]
    if isinstance(rule, DefaultRule):
        return grammar.default.format(verdict=verdict, strength=_points(rule, grammar))
    template = grammar.counted if rule.enough else grammar.rule
    return template.format(
        conditions=write_conditions(rule, language),
        enough=rule.enough,
        verdict=verdict,
        strength=_points(rule, grammar) or grammar.strengths[rule.strength],
    )


def _points(rule: Rule | DefaultRule, grammar: Grammar) -> str:
    sign = "+" if rule.verdict == "pass" else "-"
    return grammar.points.format(points=f"{sign}{rule.points}") if rule.points else ""


def write_conditions(rule: Rule, language: str) -> str:
    """Return the conditions part of a rule's sentence."""
    grammar = grammar_of(language)
    forms, between = (grammar.items, grammar.next) if rule.enough else (grammar.forms, grammar.also)
    written = []
    for condition in rule.conditions:
        form, slots = _form_of(condition, grammar, grammar.short_places if rule.enough else grammar.places)
        written.append(forms[form].format(**slots))
    return between.join(written)


def read_rule(text: str) -> Rule | DefaultRule | None:
    """Parse a sentence in any supported language; None for prose."""
    for reader in _READERS:
        rule = reader.read(text)
        if rule is not None:
            return rule
    return None


def fails_only(sentence: str) -> bool:
    """Whether a sentence that no rule can be parsed from can only lead to *fail*; False if that is not clear."""
    text = " ".join(sentence.split())
    for pattern, _ in _FAIL_WORDINGS:
        text, found = pattern.subn("FAILS", text)
        if found:
            return not any(other.search(text) for _, other in _FAIL_WORDINGS)
    return False


def sentences_of(text: str) -> list[str]:
    """Split a text into sentences. Full stops in quotation marks don't count."""
    hidden = _QUOTED_TEXT.sub(lambda found: re.sub(r"[.。\s]", "x", found[0]), text)
    cuts = [found.end() for found in _SENTENCE_END.finditer(hidden)]
    starts = [0, *cuts]
    return [part for start, end in zip(starts, [*cuts, len(text)], strict=True) if (part := text[start:end].strip())]


def _form_of(condition: Condition, grammar: Grammar, places: dict[Where, str]) -> tuple[Form, dict[str, str]]:
    match condition:
        case PhraseCondition(phrases, where, at_least, amount, per_hundred):
            slots = {"phrases": _quote_all(phrases, grammar), "where": places[where], "amount": _digits(amount)}
            if per_hundred:
                return "dense" if at_least else "sparse", slots
            if amount == 1:
                return "occurs" if at_least else "never", slots
            return "often" if at_least else "seldom", slots
        case NumberCondition(label, statistic, at_least, threshold):
            slots = {"statistic": grammar.statistics[statistic], "label": _quote_all((label,), grammar)}
            return "at_least" if at_least else "below", slots | {"amount": _digits(threshold)}
        case SectionCondition(name, present):
            return "present" if present else "missing", {"label": _quote_all((name,), grammar)}
        case ChecklistCondition(checked):
            return "checked" if checked else "unchecked", {}
        case LengthCondition(unit, at_least, amount):
            return "long" if at_least else "short", {"amount": _digits(amount), "unit": grammar.units[unit]}
        case MeasureCondition(measure, at_least, amount):
            return "more" if at_least else "less", {"amount": _digits(amount), "measure": grammar.measures[measure]}


def _quote_all(phrases: Iterable[str], grammar: Grammar) -> str:
    opening, closing = grammar.quotes
    return grammar.either.join(f"{opening}{phrase}{closing}" for phrase in phrases)


def _digits(number: float) -> str:
    return str(int(number)) if number == int(number) else repr(float(number))


class _Reader:
    """Parser for one language, with its templates as patterns."""

    def __init__(self, grammar: Grammar) -> None:
        self._grammar = grammar
        slots = {
            "phrases": f"{_QUOTED}(?:{grammar.either}{_QUOTED})*",
            "label": _QUOTED,
            "amount": _AMOUNT,
            "where": "|".join((*grammar.places.values(), *grammar.short_places.values())),
            "statistic": "|".join(grammar.statistics.values()),
            "unit": "|".join(grammar.units.values()),
            "measure": "|".join(grammar.measures.values()),
        }
        whole = {
            "conditions": ".+",
            "enough": r"[1-9]\d*",
            "verdict": "|".join(grammar.verdicts.values()),
            "strength": "|".join((*map(re.escape, grammar.strengths.values()), _points_pattern(grammar))),
        }
        self._forms = [(form, _compile(template, slots)) for form, template in grammar.forms.items()]
        self._items = [(form, _compile(template, slots)) for form, template in grammar.items.items()]
        self._counted = _compile(grammar.counted, whole)
        self._rule = _compile(grammar.rule, whole)
        self._default = _compile(grammar.default, whole)
        clause, verdict = "|".join(grammar.default_clauses), f"(?P<verdict>{whole['verdict']})"
        self._other_defaults = [
            re.compile(pattern.replace("{clause}", clause).replace("{verdict}", verdict), re.IGNORECASE)
            for pattern in grammar.other_defaults
        ]
        self._lenient = [(re.compile(pattern, re.IGNORECASE), put) for pattern, put in grammar.lenient]

    def read(self, text: str) -> Rule | DefaultRule | None:
        text = " ".join(text.split())
        for pattern in self._other_defaults:
            if found := pattern.fullmatch(text):
                return DefaultRule(self._verdict(found["verdict"]))
        for pattern, put in self._lenient:
            text = pattern.sub(put, text)
        if found := self._default.fullmatch(text):
            verdict, points = self._verdict(found["verdict"]), _signed_points(found["strength"])
            if points is not None:
                return DefaultRule(verdict, abs(points)) if _agrees(points, verdict) else None
            return None if found["strength"] else DefaultRule(verdict)
        if found := self._counted.fullmatch(text):
            between, forms, enough = self._grammar.next, self._items, int(found["enough"])
        elif found := self._rule.fullmatch(text):
            between, forms, enough = self._grammar.also, self._forms, 0
        else:
            return None
        conditions = []
        for clause in _clauses(found["conditions"], between):
            condition = self._condition(clause, forms)
            if condition is None:
                return None
            conditions.append(condition)
        if enough > len(conditions):
            return None
        verdict, points = self._verdict(found["verdict"]), _signed_points(found["strength"])
        if points is not None:
            # Points that contradict the verdict make no rule: neither can be trusted.
            return Rule(tuple(conditions), verdict, "plain", enough, abs(points)) if _agrees(points, verdict) else None
        return Rule(tuple(conditions), verdict, _key_of(found["strength"], self._grammar.strengths), enough)

    def _condition(self, clause: str, forms: list[tuple[Form, re.Pattern[str]]]) -> Condition | None:
        for form, pattern in forms:
            if found := pattern.fullmatch(clause):
                return self._build(form, found.groupdict())
        return None

    def _build(self, form: Form, slots: dict[str, str]) -> Condition | None:
        amount = float(slots.get("amount", 1))
        quoted = tuple(
            normalise_label(quote[1:-1]) for quote in _QUOTED_TEXT.findall(slots.get("phrases", slots.get("label", "")))
        )
        if "" in quoted:
            return None
        positive = form in ("occurs", "often", "dense", "at_least", "present", "checked", "long", "more")
        match form:
            case "occurs" | "never" | "often" | "seldom" | "dense" | "sparse":
                places = (self._grammar.places, self._grammar.short_places)
                where = next(
                    _key_of(slots["where"], place) for place in places if slots["where"].lower() in place.values()
                )
                return PhraseCondition(quoted, where, positive, amount, form in ("dense", "sparse"))
            case "below" | "at_least":
                return NumberCondition(
                    quoted[0], _key_of(slots["statistic"], self._grammar.statistics), positive, amount
                )
            case "missing" | "present":
                return SectionCondition(quoted[0], positive)
            case "unchecked" | "checked":
                return ChecklistCondition(positive)
            case "long" | "short":
                return LengthCondition(_key_of(slots["unit"], self._grammar.units), positive, amount)
            case "more" | "less":
                return MeasureCondition(_key_of(slots["measure"], self._grammar.measures), positive, amount)

    def _verdict(self, word: str) -> Binary:
        return _key_of(word, self._grammar.verdicts)


def _points_pattern(grammar: Grammar) -> str:
    return re.escape(grammar.points).replace(re.escape("{points}"), r"[+−-][1-9]\d*")


def _signed_points(text: str) -> int | None:
    """The points in a text, negative for fail; None if it has none."""
    found = _POINTS.search(text)
    return int(found[0].replace("−", "-")) if found else None


def _agrees(points: int, verdict: Binary) -> bool:
    return (points > 0) is (verdict == "pass") and abs(points) <= MOST_POINTS


def _key_of(word: str, words: dict[Key, str]) -> Key:
    return next(key for key, value in words.items() if value.lower() == word.lower())


def _clauses(text: str, between: str) -> list[str]:
    """Split a list into its parts. Separators in quotation marks don't count."""
    hidden = _QUOTED_TEXT.sub(lambda found: "x" * len(found[0]), text)
    clauses, start = [], 0
    for found in re.finditer(re.escape(between), hidden, re.IGNORECASE):
        clauses.append(text[start : found.start()])
        start = found.end()
    return [*clauses, text[start:]]


def _compile(template: str, slots: dict[str, str]) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template)
    texts, names = parts[::2], parts[1::2]
    pattern = re.escape(texts[0])
    for name, text in zip(names, texts[1:], strict=True):
        pattern += f"(?P<{name}>{slots[name]}){re.escape(text)}"
    return re.compile(pattern, re.IGNORECASE)


_READERS = [_Reader(grammar) for grammar in GRAMMARS.values()]
_FAIL_WORDINGS = [
    (re.compile(grammar.fail_wording, re.IGNORECASE), re.compile(grammar.open_wording)) for grammar in GRAMMARS.values()
]
