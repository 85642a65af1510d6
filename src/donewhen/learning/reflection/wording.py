"""Check the wording of a rule: one of two verdicts, no single tickets, no text copied from a ticket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import plain_text
from donewhen.judging.language import Language, find_language, shipped_languages
from donewhen.learning.reflection.brands import brand_condition
from donewhen.learning.reflection.copied_text import copied_chain
from donewhen.learning.reflection.phrases import CLAUSE_END, QUOTED, contains, fold_text, word_pattern
from donewhen.learning.reflection.rejections import ItemReason
from donewhen.learning.reflection.third_state import third_state
from donewhen.learning.reflection.ticket_ids import sample_id, ticket_number
from donewhen.learning.reflection.verdict_words import verdict_patterns, verdicts_in
from donewhen.learning.reflection.word_borders import CJK, spaced_words

Polarity = Literal["pass", "fail", "both", "none"]

_NUMBER_PUNCTUATION = re.compile(r"(?<=\d)[.,:/-](?=\d)|(?<!\w)-(?=\d)|(?<![=-])[<>≤≥](?=\W*\d)|!(?==)|≠")
_POINTS = re.compile(r"[(（](?:points: )?([+−-])\d+分?[)）]")
"""The points of a rule, as the default model writes them."""
_VERDICT = "verdictword"


class WordingObjection(NamedTuple):
    """Why a text is rejected."""

    reason: ItemReason
    detail: str


def wording_objection(
    text: str, language: Language, max_length: int, groups: Iterable[str], texts: Sequence[str]
) -> WordingObjection | None:
    """The first objection to a rule's text, if any. ``groups`` and ``texts`` belong to the cases in the request."""
    if not text.strip():
        return WordingObjection("empty_text", "")
    objection = _general_objection(text, language, max_length)
    if objection is not None:
        return objection
    wording = language.wording
    for phrase in wording.ambiguous_negation:
        if contains(text, phrase, language):
            return WordingObjection("ambiguous_negation", phrase)
    for phrase in wording.negation:
        if contains(_conclusion_with_placeholder(text, language), phrase.format(_VERDICT), language):
            return WordingObjection("ambiguous_negation", phrase.format("…"))
    verdict = polarity(text, language)
    if verdict in ("none", "both"):
        return WordingObjection("no_verdict" if verdict == "none" else "both_verdicts", text)
    points = _POINTS.search(text)
    if points is not None and (points[1] == "+") is not (verdict == "pass"):
        return WordingObjection("points_mismatch", points[0])
    return _copy_objection(text, language, groups, texts)


def remark_objection(
    text: str, language: Language, max_length: int, groups: Iterable[str], texts: Sequence[str]
) -> WordingObjection | None:
    """The first objection to what a hypothesis says beside its rule: its falsifier or its dimension.

    A falsifier speaks of the other verdict, and a dimension of none, so neither needs one of its own.
    """
    return _general_objection(text, language, max_length) or _copy_objection(text, language, groups, texts)


def _general_objection(text: str, language: Language, max_length: int) -> WordingObjection | None:
    if plain_text(text) != text:
        # Invisible characters would hide words from these checks and from readers.
        return WordingObjection("malformed_item", "invisible characters")
    if len(text) > max_length:
        return WordingObjection("too_long", f"{len(text)} characters, {max_length} allowed")
    screens = tuple(_screens(language))
    hedge = third_state(text, screens)
    if hedge is not None:
        return WordingObjection("third_state", hedge)
    brands = (brand_condition(text, screen) for screen in screens)
    brand = next((condition for condition in brands if condition is not None), None)
    return WordingObjection("brand", brand) if brand is not None else None


def _copy_objection(
    text: str, language: Language, groups: Iterable[str], texts: Sequence[str]
) -> WordingObjection | None:
    ticket = sample_id(text, groups, (*language.plain, language.answer.pass_, language.answer.fail))
    if ticket is None:
        numbers = (ticket_number(text, screen) for screen in _screens(language))
        ticket = next((number for number in numbers if number is not None), None)
    if ticket is not None:
        return WordingObjection("sample_id", ticket)
    copied = copied_chain(text, texts)
    return WordingObjection("copied_chain", copied) if copied is not None else None


def _screens(language: Language) -> Iterator[Language]:
    """The language of a mission, then those shipped: a Chinese rule may say "need-review", too."""
    yield language
    yield from (shipped for shipped in map(find_language, shipped_languages()) if shipped.wording != language.wording)


def polarity(text: str, language: Language) -> Polarity:
    """The verdict of a rule. Quoted text is ignored: it is what the rule looks for."""
    verdicts = verdicts_in(_conclusion(text, language), language)
    return "both" if len(verdicts) > 1 else next(iter(verdicts), "none")


def _conclusion(text: str, language: Language) -> str:
    """The part of a rule that says its verdict: from the word that introduces it, without conditions.

    "Tests that pass" and "if it passed the audit" are conditions, unless the rule says a verdict nowhere else.
    """
    unquoted = QUOTED.sub(" ", fold_text(text, language))
    for compound in sorted(language.wording.no_verdict, key=len, reverse=True):
        unquoted = re.sub(word_pattern(fold_text(compound, language)), " ", unquoted)
    introduced = unquoted[_conclusion_start(unquoted, language) :]
    readings = (_without_conditions(introduced, language), introduced, _without_conditions(unquoted, language))
    return next((reading for reading in readings if verdicts_in(reading, language)), unquoted)


def _without_conditions(text: str, language: Language) -> str:
    """The text without its conditional clauses; "otherwise" begins another conclusion."""
    wording = language.wording
    for ending in wording.condition_end:
        clause = rf"[^{CLAUSE_END}]*{re.escape(fold_text(ending, language))}(?=[{CLAUSE_END}])"
        text = re.sub(clause, " ", text)
    if not wording.condition:
        return text
    starts = "|".join(word_pattern(fold_text(word, language)) for word in wording.condition)
    ends = [f"[{CLAUSE_END}]", *(word_pattern(fold_text(word, language)) for word in wording.otherwise)]
    return re.sub(rf"(?:{starts})(?:(?!{'|'.join(ends)}).)*", " ", text, flags=re.DOTALL)


def _conclusion_with_placeholder(text: str, language: Language) -> str:
    """The conclusion of a rule, with both verdict words replaced by a placeholder."""
    conclusion = _conclusion(text, language)
    for pattern, _ in verdict_patterns(language):
        conclusion = re.sub(pattern, f" {_VERDICT} ", conclusion)
    return conclusion


def _conclusion_start(text: str, language: Language) -> int:
    """The start of the conclusion: the first word that introduces one. "Tests that pass" before it is a condition."""
    patterns = (word_pattern(fold_text(word, language)) for word in language.wording.conclusion)
    matches = (re.search(pattern, text) for pattern in patterns)
    return min((match.start() for match in matches if match is not None), default=0)


def is_brand(dimension: str, language: Language) -> bool:
    """Whether a dimension contains a word for a brand."""
    return any(contains(dimension, word, screen) for screen in _screens(language) for word in screen.wording.brand)


def normalise_rule(text: str, language: Language) -> str:
    """A normal form for comparing rules. Punctuation is dropped, except in numbers, where it carries meaning."""
    folded = fold_text(text, language).replace("−", "-")
    kept = {match.start() for match in _NUMBER_PUNCTUATION.finditer(folded)}
    return "".join(char for index, char in enumerate(folded) if char.isalnum() or index in kept)


def content_words(text: str, language: Language) -> tuple[str, ...]:
    """The words of a rule that carry its meaning, in their order: all but the language's fillers."""
    folded = fold_text(text, language)
    fillers = sorted((fold_text(word, language) for word in language.wording.filler), key=len, reverse=True)
    for word in (filler for filler in fillers if CJK.search(filler)):
        folded = folded.replace(word, " ")
    chinese = (char if not CJK.match(char) else f" {char} " for char in spaced_words(folded))
    return tuple(word for word in "".join(chinese).split() if word not in fillers)


def fixed_parts(text: str) -> tuple[str, ...]:
    """The numbers and quoted words of a rule; rules that differ in these are different rules."""
    numbers = re.findall(r"(?:(?:[<>≤≥]=?|!=|≠)\s*)?-?\d+(?:[.,]\d+)*", QUOTED.sub(" ", text))
    return (*QUOTED.findall(text), *("".join(number.split()) for number in numbers))
