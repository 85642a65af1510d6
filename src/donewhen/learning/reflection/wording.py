"""May a rule say this? Two verdicts and no third, kinds of evidence and no single ticket, own words and no copies."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import plain_text
from donewhen.judging.language import Language
from donewhen.learning.reflection.rejections import ItemReason
from donewhen.models.roles import Binary

Polarity = Literal["pass", "fail", "both", "none"]

_QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|‘[^’]*’|《[^》]*》")
_SAMPLE_ID = re.compile(r"::\s*(?:pass|fail)\b|\b(?!(?:UTF|SHA|ISO|RFC|HTTP|TLS|MD|CVE|IP|USB|GPT)-)[A-Z]{2,8}-\d+\b")
_CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_OF_NUMBERS = re.compile(r"(?<=\d)[.,:/-](?=\d)|(?<!\w)-(?=\d)|(?<![=-])[<>≤≥](?=\W*\d)")
_VERDICT = "verdictword"
_COPIED_WORDS = 8
_COPIED_CJK = 14


class WordingObjection(NamedTuple):
    """What is wrong with a text."""

    reason: ItemReason
    detail: str


def wording_objection(
    text: str, language: Language, max_length: int, groups: Iterable[str], texts: Sequence[str]
) -> WordingObjection | None:
    """The first thing that speaks against a rule, if any. ``groups`` and ``texts`` are those of the cases shown."""
    if not text.strip():
        return WordingObjection("empty_text", "")
    if plain_text(text) != text:
        # They would hide a word from whoever looks for it here, and from the people who read the rule.
        return WordingObjection("malformed_item", "characters that can't be seen")
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
        if contains(_marked(text, language), phrase.format(_VERDICT), language):
            return WordingObjection("ambiguous_negation", phrase.format("…"))
    said = polarity(text, language)
    if said in ("none", "both"):
        return WordingObjection("no_verdict" if said == "none" else "both_verdicts", text)
    named = sample_id(text, groups)
    if named is not None:
        return WordingObjection("sample_id", named)
    copied = copied_chain(text, texts)
    return WordingObjection("copied_chain", copied) if copied is not None else None


def polarity(text: str, language: Language) -> Polarity:
    """Which verdict a rule concludes. What stands in quotes is what it looks for, not what it says."""
    spoken = _QUOTED.sub(" ", _folded(text, language))
    found = _verdicts(spoken[_conclusion(spoken, language) :], language) or _verdicts(spoken, language)
    return "both" if len(found) > 1 else next(iter(found), "none")


def _marked(text: str, language: Language) -> str:
    """The conclusion of a rule, with one word for either verdict."""
    spoken = _QUOTED.sub(" ", _folded(text, language))
    concluded = spoken[_conclusion(spoken, language) :]
    for shape, _ in _shapes(language):
        concluded = re.sub(shape, f" {_VERDICT} ", concluded)
    return concluded


def _conclusion(text: str, language: Language) -> int:
    """Where the conclusion begins: at the first word that announces one. "Tests that pass" before it is a condition."""
    shapes = (re.escape(_folded(one, language)) for one in language.wording.conclusion)
    found = (
        re.search(rf"\b{shape}\b" if shape[0].isascii() and shape[0].isalpha() else shape, text) for shape in shapes
    )
    return min((one.start() for one in found if one is not None), default=0)


def _verdicts(text: str, language: Language) -> set[Binary]:
    found: set[Binary] = set()
    rest = text
    for shape, verdict in _shapes(language):
        rest, count = re.subn(shape, " ", rest)
        if count:
            found.add(verdict)
    return found


def _shapes(language: Language) -> list[tuple[str, Binary]]:
    """The words for the verdicts. "不通过" holds "通过", so the longer word comes first, to be taken out first."""
    words = language.answer
    known: dict[str, Binary] = {language.plain[0]: "pass", language.plain[1]: "fail"}
    known |= {words.pass_: "pass", words.fail: "fail"}
    found: list[tuple[str, Binary]] = []
    for word, verdict in sorted(known.items(), key=lambda item: -len(item[0])):
        folded = _folded(word, language)
        shape = re.escape(folded) if _CJK.search(folded) else rf"(?<!\w){re.escape(folded)}(?:es|ed|s)?(?!\w)"
        found.append((shape, verdict))
    return found


def contains(text: str, phrase: str, language: Language) -> bool:
    """Whether a text says a phrase, whatever the width, the case, the characters' form and what stands in between."""
    wanted = _folded(phrase, language)
    said = _folded(text, language)
    if _CJK.search(wanted):
        return _squeezed(wanted) in _squeezed(said)
    return f" {_spaced(wanted)} " in f" {_spaced(said)} "


def is_brand(dimension: str, language: Language) -> bool:
    """Whether a dimension is a brand by another name."""
    return any(contains(dimension, one, language) for one in language.wording.brand)


def sample_id(text: str, groups: Iterable[str]) -> str | None:
    """The ticket that a text names, if it does."""
    found = _SAMPLE_ID.search(text)
    if found is not None:
        return found.group()
    folded = text.casefold()
    for group in groups:
        # An id of one or two characters is a word like any other.
        known = group.casefold()
        if len(group) > 2 and known in folded and re.search(rf"(?<![^\W_]){re.escape(known)}(?![^\W_])", folded):
            return group
    return None


def copied_chain(text: str, texts: Sequence[str]) -> str | None:
    """A run of words that a rule has taken from a case as they stood."""
    cjk = "".join(_CJK.findall(text))
    chunks = [cjk[at : at + _COPIED_CJK] for at in range(len(cjk) - _COPIED_CJK + 1)]
    words = _spaced(_plain_fold(text)).split()
    runs = [" ".join(words[at : at + _COPIED_WORDS]) for at in range(len(words) - _COPIED_WORDS + 1)]
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
    """A text in the form in which two that say the same are the same. What belongs to a number says something."""
    folded = _folded(text, language).replace("−", "-")
    kept = {found.start() for found in _OF_NUMBERS.finditer(folded)}
    return "".join(one for at, one in enumerate(folded) if one.isalnum() or at in kept)


def fixed_parts(text: str) -> tuple[str, ...]:
    """The numbers and the quoted words of a rule: two rules that differ in these are two rules."""
    numbers = re.findall(r"(?:[<>≤≥]=?\s*)?-?\d+(?:[.,]\d+)*", _QUOTED.sub(" ", text))
    return (*_QUOTED.findall(text), *("".join(number.split()) for number in numbers))


def _plain_fold(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _folded(text: str, language: Language) -> str:
    return _plain_fold(text).translate({ord(one): other for one, other in language.wording.variants.items()})


def _spaced(text: str) -> str:
    return " ".join("".join(one if one.isalnum() else " " for one in text).split())


def _squeezed(text: str) -> str:
    return "".join(one for one in text if one.isalnum())
