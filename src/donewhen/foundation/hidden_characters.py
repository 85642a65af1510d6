"""Characters that a reader can't see, or that change how the text around them reads.

People agree to a text that they see, so it may not have others. Those that a script or an emoji needs are allowed where
it needs them: joiners between Arabic or Indic letters, and inside an emoji.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
_WHITE_SPACE = frozenset("\t\n")
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
_NON_JOINER, _JOINER = "\u200c", "\u200d"
_TEXT_STYLE, _EMOJI_STYLE = "\ufe0e", "\ufe0f"
_KEYCAPS = frozenset("#*0123456789")
_SKIN_TONES = frozenset("\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff")
# The scripts whose letters join: from Arabic to Tibetan, Khmer and Mongolian.
_JOINING_SCRIPTS = ((0x0600, 0x0FFF), (0x1780, 0x18AF), (0xA840, 0xABFF))
_SELECTORS = ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))


@dataclass(frozen=True)
class HiddenCharacter:
    """A character that can't be seen."""

    at: int
    name: str
    """Its number and name, such as ``U+202E RIGHT-TO-LEFT OVERRIDE``."""


def find_hidden_character(text: str) -> HiddenCharacter | None:
    """Return the first hidden character of a text, or None."""
    if text.isascii() and text.isprintable():
        return None
    for index, character in enumerate(text):
        if _is_hidden(text, index, character):
            name = unicodedata.name(character, "") or unicodedata.category(character)
            return HiddenCharacter(index, f"U+{ord(character):04X} {name}")
    return None


def _is_hidden(text: str, index: int, character: str) -> bool:
    if character in (_JOINER, _NON_JOINER):
        return not _joins(text, index, character)
    if _is_in(character, _SELECTORS):
        return not _selects(text[index - 1] if index else "", character)
    if character in _BLANK_LETTERS:
        return True
    return unicodedata.category(character) in _INVISIBLE and character not in _WHITE_SPACE


def _joins(text: str, index: int, joiner: str) -> bool:
    """Whether a joiner is between two letters that join, or between two parts of an emoji."""
    before = text[:index].rstrip(f"{_EMOJI_STYLE}{''.join(_SKIN_TONES)}")[-1:]
    after = text[index + 1 : index + 2]
    if before and after and _is_in(before, _JOINING_SCRIPTS) and _is_in(after, _JOINING_SCRIPTS):
        return True
    return joiner == _JOINER and _is_symbol(before) and _is_symbol(after)


def _selects(before: str, selector: str) -> bool:
    """Whether a variation selector chooses the look of the character before it."""
    if selector in (_TEXT_STYLE, _EMOJI_STYLE):
        return _is_symbol(before) or before in _KEYCAPS
    # Variants of Han characters, of mathematical signs and of Mongolian letters.
    return bool(before) and (unicodedata.category(before) in ("Lo", "Sm"))


def _is_symbol(character: str) -> bool:
    return bool(character) and unicodedata.category(character) in ("So", "Sm", "Po", "Sk")


def _is_in(character: str, ranges: tuple[tuple[int, int], ...]) -> bool:
    return any(first <= ord(character) <= last for first, last in ranges)
