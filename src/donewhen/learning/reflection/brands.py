"""Find a rule that depends on which brand something is."""

from __future__ import annotations

import re
from functools import lru_cache

from donewhen.judging.language import Language
from donewhen.learning.reflection.phrases import fold_text, word_pattern
from donewhen.learning.reflection.word_borders import CJK, spaced_words, squeezed

_NOTHING = "(?!)"


def brand_condition(text: str, language: Language) -> str | None:
    """The words by which a text depends on which brand something is, if it does."""
    folded = fold_text(text, language)
    wording = language.wording
    brands = tuple(fold_text(brand, language) for brand in wording.brand)
    templates = tuple(fold_text(template, language) for template in wording.brand_value)
    unspaced, spaced, symbols = _patterns(brands, templates, wording.brand_state)
    readings = (unspaced, squeezed(folded)), (spaced, f" {spaced_words(folded)} "), (symbols, folded)
    matches = (pattern.search(reading) for pattern, reading in readings)
    return next((match.group().strip() for match in matches if match is not None), None)


@lru_cache(maxsize=16)
def _patterns(
    brands: tuple[str, ...], templates: tuple[str, ...], states: tuple[str, ...]
) -> tuple[re.Pattern[str], ...]:
    """Patterns for a text without spaces, for its words, and for signs such as "="."""
    phrases = [template.format(brand) for template in templates for brand in brands]
    unspaced = "|".join(re.escape(squeezed(phrase)) for phrase in phrases if CJK.search(phrase)) or _NOTHING
    spaced = "|".join(re.escape(spaced_words(phrase)) for phrase in phrases if not CJK.search(phrase)) or _NOTHING
    words = "|".join(map(word_pattern, brands)) or _NOTHING
    any_state = "|".join(map(re.escape, states)) or _NOTHING
    word_states = "|".join(f"{re.escape(spaced_words(state))} " for state in states) or _NOTHING
    return (
        re.compile(rf"(?:{unspaced})(?!{any_state})\w"),
        re.compile(rf" (?:{spaced}) (?!{word_states})[^ ]"),
        re.compile(rf"(?:{words})\s*(?:[=≠]|!=|<>)=?\s*(?!{any_state})\w"),
    )
