"""Find the words for the two verdicts in a text."""

from __future__ import annotations

import re

from donewhen.foundation.binary import Binary
from donewhen.judging.language import Language
from donewhen.learning.reflection.phrases import fold_text
from donewhen.learning.reflection.word_borders import CJK


def verdicts_in(text: str, language: Language) -> set[Binary]:
    """The verdicts whose words a folded text contains."""
    verdicts: set[Binary] = set()
    rest = text
    for pattern, verdict in verdict_patterns(language):
        rest, count = re.subn(pattern, " ", rest)
        if count:
            verdicts.add(verdict)
    return verdicts


def verdict_patterns(language: Language) -> list[tuple[str, Binary]]:
    """Patterns for the verdict words, longest first: "不通过" contains "通过" and must be removed before it."""
    words = language.answer
    known: dict[str, Binary] = {language.plain[0]: "pass", language.plain[1]: "fail"}
    known |= {words.pass_: "pass", words.fail: "fail"}
    patterns: list[tuple[str, Binary]] = []
    for word, verdict in sorted(known.items(), key=lambda item: -len(item[0])):
        folded = fold_text(word, language)
        # Latin and Chinese words stand side by side without a space, so only letters of the same kind continue a word.
        latin = folded.isascii()
        bounded = rf"(?<![a-z0-9_]){re.escape(folded)}(?:es|ed|s)?(?![a-z0-9_])"
        unspaced = re.escape(folded) if CJK.search(folded) else rf"(?<!\w){re.escape(folded)}(?:es|ed|s)?(?!\w)"
        pattern = bounded if latin else unspaced
        patterns.append((pattern, verdict))
    return patterns
