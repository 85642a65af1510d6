"""Words and their borders in every script: Chinese writes none, and Latin words stand in it without a space."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

CJK = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_UNSPACED = frozenset(
    (
        *("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA", "HANGUL", "BOPOMOFO", "IDEOGRAPHIC", "YI"),
        *("THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "JAVANESE", "BALINESE"),
    )
)
"""Scripts without spaces between words, and Korean, whose particles follow a word without a space."""
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z][a-z])")
_DASH = re.compile(r"[\u2010-\u2015\u2212\u30fc\ufe58\ufe63\uff0d]")

_LOOKALIKES = str.maketrans(
    "АВЕЅІЈКМНОРСТУХҮԚԜӀаеѕіјорсухһԛԝӏүΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανικρυχıɑɡ",
    "ABESIJKMHOPCTYXYQWIaesijopcyxhqwlyABEZHIKMNOPTYXoavikpuxiag",
)


def plain_fold(text: str) -> str:
    """The text without differences of width and case."""
    return unicodedata.normalize("NFKC", text).casefold()


def plain_dashes(text: str) -> str:
    """The text in normal width, with a hyphen for every dash; upper and lower case are kept."""
    return _DASH.sub("-", unicodedata.normalize("NFKC", text))


def plain_digits(text: str) -> str:
    """The text with the digits 0 to 9 for those of every script."""
    return "".join(str(unicodedata.decimal(char)) if char.isdecimal() else char for char in text)


def latin_lookalikes(text: str) -> str:
    """The text with Latin letters for Cyrillic and Greek ones that look the same: a Cyrillic С becomes C."""
    return text.translate(_LOOKALIKES)


def spaced_words(text: str) -> str:
    """The words of a text with one space between them. A change of script ends a word."""
    out: list[str] = []
    before = ""
    for char in text:
        if char.isalnum() or unicodedata.category(char)[0] == "M":
            if before and char.isalnum() and not _is_same_run(before, char):
                out.append(" ")
            out.append(char)
            before = char if char.isalnum() else before
        else:
            out.append(" ")
            before = ""
    return " ".join("".join(out).split())


def split_camel_case(text: str) -> str:
    """The text with a space inside ``camelCase``, for names that are written like this."""
    return _CAMEL.sub(" ", text)


def squeezed(text: str) -> str:
    """The letters and digits of a text."""
    return "".join(char for char in text if char.isalnum())


def occurrences(pattern: str | re.Pattern[str], text: str, *, letters: str = "") -> Iterator[re.Match[str]]:
    """The matches of a pattern that are no part of a longer word. ``letters`` are those of the name that is sought."""
    own = frozenset(_script(char) for char in letters if char.isalpha())
    for match in re.finditer(pattern, text):
        start, end = match.span()
        before = text[start - 1] if start else ""
        after = text[end] if end < len(text) else ""
        if not _continues(text[start], before, own) and not _continues(text[end - 1], after, own):
            yield match


def _continues(edge: str, beside: str, own: frozenset[str]) -> bool:
    """Whether the character beside an edge belongs to the same word as the edge."""
    if not edge.isalnum() or not beside.isalnum():
        return False
    if edge.isdigit() and beside.isalpha():
        # QC-27a is another name. In QC-27号 or 티켓-88과 the name ends before the letter: it is of another script, or
        # of one that writes no space there.
        script = _script(beside)
        return script not in _UNSPACED and (not own or script in own)
    return _in_one_word(edge, beside)


def _is_same_run(first: str, second: str) -> bool:
    return _in_one_word(first, second) or _script(first) == _script(second)


def _in_one_word(first: str, second: str) -> bool:
    if first.isdigit() or second.isdigit():
        return not ({_script(first), _script(second)} & _UNSPACED)
    script = _script(first)
    return script == _script(second) and script not in _UNSPACED


@lru_cache(maxsize=4096)
def _script(char: str) -> str:
    """The script of a letter, as its name in Unicode begins; "DIGIT" for every digit."""
    if char.isdigit():
        return "DIGIT"
    words = unicodedata.name(char, "UNNAMED").split()
    return words[1] if words[0] in ("FULLWIDTH", "HALFWIDTH", "MODIFIER") and len(words) > 1 else words[0]
