"""Tell a passage in the condition of a rule from one in its conclusion."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from donewhen.judging.language import Language, Wording
from donewhen.learning.reflection.phrases import CLAUSE_END, fold_text, word_pattern
from donewhen.learning.reflection.verdict_words import verdicts_in

MARK = "markedword"
"""Stands in a text for the passage that is asked about."""
ARROW = "arrowword"
"""Stands in a text for an arrow."""
CLAUSES = re.compile(rf"[{re.sub('[:：→]', '', CLAUSE_END)}]")


def is_condition(marked: str, screens: Sequence[Language], *, before_conclusions: bool = False) -> bool:
    """Whether the marked passage of a folded text is in a condition for a verdict that the rule says in its own words.

    A condition ends before a word such as "then"; with ``before_conclusions``, before every word that introduces a
    verdict. A verdict after "otherwise" or after another condition is not the one of this condition.
    """
    clauses = CLAUSES.split(marked)
    index = next(index for index, clause in enumerate(clauses) if MARK in clause)
    before, _, after = clauses[index].partition(MARK)
    words = _Words(screens, before_conclusions)
    start = words.condition_start(before, after)
    if start is None:
        return False
    same_clause = before[:start], re.split(words.otherwise, after)[0]
    if any(_has_verdict(part, screens) for part in same_clause):
        return True
    for clause in clauses[index + 1 :]:
        if re.match(rf"\s*(?:{words.otherwise}|{words.condition})", clause):
            return False
        if _has_verdict(clause, screens):
            return True
    return index > 0 and _has_verdict(clauses[index - 1], screens)


class _Words:
    """Patterns for the words of several languages that begin and end conditions."""

    def __init__(self, screens: Sequence[Language], before_conclusions: bool) -> None:
        def ends(wording: Wording) -> Iterable[str]:
            then = (*wording.then, *wording.conclusion) if before_conclusions else wording.then or wording.conclusion
            return (*wording.otherwise, *then, ARROW)

        self.otherwise = _any_word(screens, lambda wording: wording.otherwise)
        self.condition = _any_word(screens, lambda wording: wording.condition)
        self._end = _any_word(screens, ends)
        last = _any_word(screens, lambda wording: wording.condition_end)
        conclusion = _any_word(screens, lambda wording: (*wording.then, *wording.conclusion, ARROW))
        self._last = rf"(?:{last})\s*(?:$|{conclusion})"

    def condition_start(self, before: str, after: str) -> int | None:
        """Where the condition begins in the clause before a passage; None if the passage is in none."""
        for match in re.finditer(self.condition, before):
            if not re.search(self._end, before[match.end() :]):
                return match.start()
        return 0 if re.search(self._last, after) and not re.search(self._end, before) else None


def _any_word(screens: Sequence[Language], words: Callable[[Wording], Iterable[str]]) -> str:
    """A pattern for any of the words; it matches nothing if there are none."""
    patterns = [word_pattern(fold_text(word, screen)) for screen in screens for word in words(screen.wording)]
    return "|".join(patterns) or r"(?!)"


def _has_verdict(text: str, screens: Sequence[Language]) -> bool:
    return any(verdicts_in(text, screen) for screen in screens)
