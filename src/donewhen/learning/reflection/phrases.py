"""Find a phrase of a language in a text, however it is written."""

from __future__ import annotations

import re

from donewhen.judging.language import Language
from donewhen.learning.reflection.word_borders import CJK, plain_fold, spaced_words, split_camel_case, squeezed

QUOTED = re.compile(r"“[^”]*”|\"[^\"]*\"|「[^」]*」|『[^』]*』|‘[^’]*’|《[^》]*》")
CLAUSE_END = ",;:.!?，；：。！？、→\n"
_GAP = "…"
_GAP_WORDS = 3


def contains(text: str, phrase: str, language: Language) -> bool:
    """Whether a text contains a phrase, ignoring width, case, character variants and punctuation.

    "…" in a phrase stands for up to three words.
    """
    folded_phrase = fold_text(phrase, language)
    folded_text = fold_text(text, language)
    if CJK.search(folded_phrase):
        return squeezed(folded_phrase) in squeezed(folded_text)
    parts = [spaced_words(part) for part in folded_phrase.replace("...", _GAP).split(_GAP)]
    spaced = f" {spaced_words(folded_text)} "
    if len(parts) > 1:
        gap = rf" (?:[^ ]+ ){{0,{_GAP_WORDS}}}"
        return re.search(f" {gap.join(map(re.escape, parts))} ", spaced) is not None
    [words] = parts
    # Names are also written as one word: needReview, needreview.
    joined = f" {words.replace(' ', '')} "
    if f" {words} " in spaced or joined in spaced:
        return True
    return f" {words} " in f" {spaced_words(fold_text(split_camel_case(text), language))} "


def fold_text(text: str, language: Language) -> str:
    """The text without differences of width, case and character variants."""
    variants = language.wording.variants
    return plain_fold(text).translate({ord(variant): canonical for variant, canonical in variants.items()})


def word_pattern(word: str) -> str:
    """A pattern for a folded word; a Latin word must not be part of a longer one."""
    if not (word[0].isascii() and word[0].isalpha()):
        return re.escape(word)
    return rf"(?<![a-z0-9]){re.escape(word).replace(chr(92) + ' ', '[^a-z0-9]+')}(?![a-z0-9])"
