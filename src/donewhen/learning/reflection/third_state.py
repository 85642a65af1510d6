"""Find a third verdict in a rule, and tell it from words that the rule only looks for.

A quoted word is material: *When "pending" occurs, the verdict is fail* has two verdicts. A quoted word that is given as
the verdict is a third one: *the verdict is "pending"*.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from donewhen.judging.language import Language
from donewhen.learning.reflection.conditions import ARROW, CLAUSES, MARK, is_condition
from donewhen.learning.reflection.phrases import QUOTED, contains, fold_text, word_pattern
from donewhen.learning.reflection.verdict_words import verdict_patterns
from donewhen.learning.reflection.word_borders import CJK

_HIDDEN = " x "
_START = "^"
_CLAUSE = "clauseword"
_ARROWS = re.compile(r"→|⇒|=>|->")


def third_state(text: str, screens: Sequence[Language]) -> str | None:
    """The first phrase by which a text makes a third verdict of two, if there is one."""
    folded = text
    for screen in screens:
        folded = fold_text(folded, screen)
    for screen in screens:
        for phrase in screen.wording.third_state:
            if contains(text, phrase, screen) and _is_meant(folded, phrase, screen, screens):
                return phrase
    return None


def _is_meant(text: str, phrase: str, screen: Language, screens: Sequence[Language]) -> bool:
    """Whether a phrase that a text contains is still there without material, longer words and conditions."""
    rest = text
    if any(char.isalnum() for char in QUOTED.sub("", text)):
        rest = _hide(rest, _material(rest, phrase, screen, screens))
    for word in screen.wording.no_third_state:
        rest = rest.replace(fold_text(word, screen), _HIDDEN)
    rest = _hide(rest, _conditional(rest, phrase, screen, screens))
    return rest == text or contains(rest, phrase, screen)


def _hide(text: str, matches: Iterable[re.Match[str]]) -> str:
    for match in reversed(tuple(matches)):
        text = text[: match.start()] + _HIDDEN + text[match.end() :]
    return text


def _material(text: str, phrase: str, screen: Language, screens: Sequence[Language]) -> Iterator[re.Match[str]]:
    """The quoted passages that contain the whole phrase and are not given as the verdict."""
    for match in QUOTED.finditer(text):
        if contains(match.group(), phrase, screen) and not _is_given(_marked(text, match), screens):
            yield match


def _is_given(marked: str, screens: Sequence[Language]) -> bool:
    """Whether the marked passage is given as a verdict, and not in a condition for one."""
    return any(_has_template(marked, screen) for screen in screens) and not is_condition(marked, screens)


def _has_template(marked: str, screen: Language) -> bool:
    wording = screen.wording
    openers = [word for word in (*wording.otherwise, *wording.then, ARROW) if word[0].isalnum()]
    conclusions = (word for word in wording.conclusion if word[0].isalnum())
    templates = [f"{word} {{}}" for word in (*conclusions, *openers)]
    for template in wording.quoted_verdict:
        if template.startswith(_START):
            templates += [f"{opener} {template[1:]}" for opener in (*openers, _CLAUSE)]
        else:
            templates.append(template)
    split = CLAUSES.sub(f" {_CLAUSE} ", f",{marked}")
    return any(
        contains(reading, template.replace("{}", MARK), screen) for template in templates for reading in (marked, split)
    )


def _conditional(text: str, phrase: str, screen: Language, screens: Sequence[Language]) -> Iterator[re.Match[str]]:
    """The matches of a phrase such as "passes but" in a condition that goes on: *if it passes but is slow, …*."""
    folded = fold_text(phrase, screen)
    if not any(re.match(pattern, folded) for pattern, _ in verdict_patterns(screen)):
        return
    pattern = r"\W*".join(map(re.escape, folded)) if CJK.search(folded) else word_pattern(folded)
    for match in re.finditer(pattern, text):
        goes_on = any(char.isalnum() for char in CLAUSES.split(text[match.end() :])[0])
        if goes_on and is_condition(_marked(text, match), screens, before_conclusions=True):
            yield match


def _marked(text: str, match: re.Match[str]) -> str:
    """The text with a mark in place of a match, without other quotes."""
    before, after = (QUOTED.sub(_HIDDEN, part) for part in (text[: match.start()], text[match.end() :]))
    return _ARROWS.sub(f" {ARROW} ", f"{before} {MARK} {after}")
