"""Check the wording of a rule: one of two verdicts, no single tickets, no text copied from a ticket."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.plain_text import plain_text
from donewhen.judging.language import Language
from donewhen.learning.reflection.rejections import ItemReason

Polarity = Literal["pass", "fail", "both", "none"]

_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|‘[^’]*’|《[^》]*》")
_SAMPLE_ID = re.compile(r"::\s*(?:pass|fail)\b|\b(?!(?:UTF|SHA|ISO|RFC|HTTP|TLS|MD|CVE|IP|USB|GPT)-)[A-Z]{2,8}-\d+\b")
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_NUMBER_PUNCTUATION = re.compile(r"(?<=\d)[.,:/-](?=\d)|(?<!\w)-(?=\d)|(?<![=-])[<>≤≥](?=\W*\d)")
_VERDICT = "verdictword"
_COPIED_WORDS = 8
_COPIED_CJK = 14


class WordingObjection(NamedTuple):
    """Why a rule's text is rejected."""

    reason: ItemReason
    detail: str


def wording_objection(
    text: str, language: Language, max_length: int, groups: Iterable[str], texts: Sequence[str]
) -> WordingObjection | None:
    """The first objection to a rule's text, if any. ``groups`` and ``texts`` belong to the cases in the request."""
    if not text.strip():
        return WordingObjection("empty_text", "")
    if plain_text(text) != text:
        # Invisible characters would hide words from these checks and from readers.
        return WordingObjection("malformed_item", "invisible characters")
    if len(text) > max_length:
        return WordingObjection("too_long", f"{len(text)} characters, {max_length} allowed")
    wording = language.wording
    for phrase in wording.third_state:
        if contains(text, phrase, language):
            return WordingObjection("third_state", phrase)
    for phrase in wording.ambiguous_negation:
        if contains(text, phrase, language):
            return WordingObjection("ambiguous_negation", phrase)
    for phrase in wording.negation:
        if contains(_conclusion_with_placeholder(text, language), phrase.format(_VERDICT), language):
            return WordingObjection("ambiguous_negation", phrase.format("…"))
    verdict = polarity(text, language)
    if verdict in ("none", "both"):
        return WordingObjection("no_verdict" if verdict == "none" else "both_verdicts", text)
    ticket = sample_id(text, groups)
    if ticket is not None:
        return WordingObjection("sample_id", ticket)
    copied = copied_chain(text, texts)
    return WordingObjection("copied_chain", copied) if copied is not None else None


def polarity(text: str, language: Language) -> Polarity:
    """The verdict of a rule. Quoted text is ignored: it is what the rule looks for."""
    unquoted = _QUOTED.sub(" ", _folded(text, language))
    verdicts = _verdicts(unquoted[_conclusion_start(unquoted, language) :], language) or _verdicts(unquoted, language)
    return "both" if len(verdicts) > 1 else next(iter(verdicts), "none")


def _conclusion_with_placeholder(text: str, language: Language) -> str:
    """The conclusion of a rule, with both verdict words replaced by a placeholder."""
    unquoted = _QUOTED.sub(" ", _folded(text, language))
    conclusion = unquoted[_conclusion_start(unquoted, language) :]
    for pattern, _ in _verdict_patterns(language):
        conclusion = re.sub(pattern, f" {_VERDICT} ", conclusion)
    return conclusion


def _conclusion_start(text: str, language: Language) -> int:
    """The start of the conclusion: the first word that introduces one. "Tests that pass" before it is a condition."""
    patterns = (re.escape(_folded(word, language)) for word in language.wording.conclusion)
    matches = (
        re.search(rf"\b{pattern}\b" if pattern[0].isascii() and pattern[0].isalpha() else pattern, text)
        for pattern in patterns
    )
    return min((match.start() for match in matches if match is not None), default=0)


def _verdicts(text: str, language: Language) -> set[Binary]:
    verdicts: set[Binary] = set()
    rest = text
    for pattern, verdict in _verdict_patterns(language):
        rest, count = re.subn(pattern, " ", rest)
        if count:
            verdicts.add(verdict)
    return verdicts


def _verdict_patterns(language: Language) -> list[tuple[str, Binary]]:
    """Patterns for the verdict words, longest first: "不通过" contains "通过" and must be removed before it."""
    words = language.answer
    known: dict[str, Binary] = {language.plain[0]: "pass", language.plain[1]: "fail"}
    known |= {words.pass_: "pass", words.fail: "fail"}
    patterns: list[tuple[str, Binary]] = []
    for word, verdict in sorted(known.items(), key=lambda item: -len(item[0])):
        folded = _folded(word, language)
        pattern = re.escape(folded) if _CJK.search(folded) else rf"(?<!\w){re.escape(folded)}(?:es|ed|s)?(?!\w)"
        patterns.append((pattern, verdict))
    return patterns


def contains(text: str, phrase: str, language: Language) -> bool:
    """Whether a text contains a phrase, ignoring width, case, character variants and punctuation."""
    folded_phrase = _folded(phrase, language)
    folded_text = _folded(text, language)
    if _CJK.search(folded_phrase):
        return _squeezed(folded_phrase) in _squeezed(folded_text)
    return f" {_spaced(folded_phrase)} " in f" {_spaced(folded_text)} "


def is_brand(dimension: str, language: Language) -> bool:
    """Whether a dimension contains a word for a brand."""
    return any(contains(dimension, word, language) for word in language.wording.brand)


def sample_id(text: str, groups: Iterable[str]) -> str | None:
    """The ticket ID in a text, if there is one."""
    match = _SAMPLE_ID.search(text)
    if match is not None:
        return match.group()
    folded = text.casefold()
    for group in groups:
        # IDs of one or two characters are skipped, because they occur as ordinary words.
        known = group.casefold()
        if len(group) > 2 and known in folded and re.search(rf"(?<![^\W_]){re.escape(known)}(?![^\W_])", folded):
            return group
    return None


def copied_chain(text: str, texts: Sequence[str]) -> str | None:
    """A sequence of words that the text copies from a case, if there is one."""
    cjk = "".join(_CJK.findall(text))
    chunks = [cjk[start : start + _COPIED_CJK] for start in range(len(cjk) - _COPIED_CJK + 1)]
    words = _spaced(_plain_fold(text)).split()
    runs = [" ".join(words[start : start + _COPIED_WORDS]) for start in range(len(words) - _COPIED_WORDS + 1)]
    if not chunks and not runs:
        return None
    for source in texts:
        if chunks:
            squeezed = "".join(_CJK.findall(source))
            found = next((chunk for chunk in chunks if chunk in squeezed), None)
            if found is not None:
                return found
        if runs:
            spaced = f" {_spaced(_plain_fold(source))} "
            found = next((run for run in runs if f" {run} " in spaced), None)
            if found is not None:
                return found
    return None


def normalise_rule(text: str, language: Language) -> str:
    """A normal form for comparing rules. Punctuation is dropped, except in numbers, where it carries meaning."""
    folded = _folded(text, language).replace("−", "-")
    kept = {match.start() for match in _NUMBER_PUNCTUATION.finditer(folded)}
    return "".join(char for index, char in enumerate(folded) if char.isalnum() or index in kept)


def fixed_parts(text: str) -> tuple[str, ...]:
    """The numbers and quoted words of a rule; rules that differ in these are different rules."""
    numbers = re.findall(r"(?:[<>≤≥]=?\s*)?-?\d+(?:[.,]\d+)*", _QUOTED.sub(" ", text))
    return (*_QUOTED.findall(text), *("".join(number.split()) for number in numbers))


def _plain_fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _folded(text: str, language: Language) -> str:
    variants = language.wording.variants
    return _plain_fold(text).translate({ord(variant): canonical for variant, canonical in variants.items()})


def _spaced(text: str) -> str:
    return " ".join("".join(char if char.isalnum() else " " for char in text).split())


def _squeezed(text: str) -> str:
    return "".join(char for char in text if char.isalnum())
