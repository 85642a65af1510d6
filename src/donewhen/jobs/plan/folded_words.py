"""Text as a list of words, in one spelling: without accents, look-alike letters, invisible characters, emoji and
punctuation."""

from __future__ import annotations

import unicodedata
from functools import cache

from donewhen.foundation.plain_text import plain_text

_BLANKS = "\u115f\u1160\u2800\u3164\uffa0"
_ASCII_SEPARATORS = str.maketrans({code: " " for code in range(128) if not chr(code).isalnum()})
# Letters of other alphabets that look like Latin ones, after case folding.
_LOOK_ALIKES = dict(
    zip(
        "авеікмнорстухьѕјԁһԛԝԍαβγδεζηικμνορτυχωօոսհցյꓔꓐꓓꓳꓗꓮꓰᎢᏴᎠ",
        "abeikmhopctyxbsjdhqwgabydeznikuvoptuxwonuhgjtbdokaetbd",
        strict=True,
    )
)
_DROPPED_MARKS = (("\u0300", "\u036f"), ("\u1ab0", "\u1aff"), ("\u1dc0", "\u1dff"), ("\u20d0", "\u20ff"),
                  ("\u180b", "\u180f"), ("\ufe00", "\ufe0f"), ("\ufe20", "\ufe2f"))  # fmt: skip


def fold(text: str) -> str:
    """Return the text in lower case and in one spelling; punctuation is kept."""
    text = plain_text(text)
    if text.isascii():
        return text.lower()
    # Before normalising: a trade mark sign would become the letters `tm`.
    text = "".join(" " if letter in _BLANKS or unicodedata.category(letter) in _SYMBOLS else letter for letter in text)
    text = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    text = "".join(letter for letter in text if not _is_dropped_mark(letter))
    return "".join(_plain_letter(letter) for letter in unicodedata.normalize("NFC", text))


def split_words(folded: str) -> list[str]:
    """Return the words of a folded text. Runs of a script without spaces are joined."""
    if folded.isascii():
        return folded.translate(_ASCII_SEPARATORS).split()
    spaced: list[str] = []
    before = ""
    for letter in folded:
        if not _is_word_letter(letter):
            spaced.append(" ")
        else:
            unspaced = is_unspaced(letter)
            if before and unspaced != is_unspaced(before):
                spaced.append(" ")
            spaced.append(letter)
        before = letter if _is_word_letter(letter) else ""
    return _join_runs("".join(spaced).split())


def is_unspaced(letter: str) -> bool:
    """Whether a letter belongs to a script in which words are not counted by spaces (Han, Kana, Hangul, Thai, …)."""
    return (
        "\u0e00" <= letter < "\u10a0" or "\u1100" <= letter < "\u1200" or "\u1780" <= letter < "\u1800"
        or "\u2e80" <= letter < "\ua000" or "\uac00" <= letter < "\ud7b0" or "\uf900" <= letter < "\ufb00"
        or letter >= "\U00020000"
    )  # fmt: skip


def is_hangul(letter: str) -> bool:
    return "\uac00" <= letter < "\ud7b0" or "\u1100" <= letter < "\u1200"


def is_han(letter: str) -> bool:
    return "\u3400" <= letter < "\ua000" or "\uf900" <= letter < "\ufb00" or letter >= "\U00020000"


_SYMBOLS = frozenset({"So", "Sk", "Sm", "Sc"})


def _join_runs(words: list[str]) -> list[str]:
    joined: list[str] = []
    open_run = ""
    for word in words:
        kind = _joins(word)
        if kind and kind == open_run:
            joined[-1] += word
        else:
            joined.append(word)
        open_run = kind
    return joined


def _joins(word: str) -> str:
    """The kind of word that is joined with its neighbours of the same kind; empty for others."""
    if is_hangul(word[0]):
        return "hangul" if len(word) == 1 else ""
    return "unspaced" if is_unspaced(word[0]) else ""


def _is_word_letter(letter: str) -> bool:
    return letter.isalnum() or unicodedata.category(letter)[0] == "M"


def _is_dropped_mark(letter: str) -> bool:
    return any(first <= letter <= last for first, last in _DROPPED_MARKS) or "\U000e0100" <= letter <= "\U000e01ef"


@cache
def _plain_letter(letter: str) -> str:
    if letter < "\x80":
        return letter
    if "\u02b0" <= letter <= "\u02ff":
        return " "
    if letter in _LOOK_ALIKES:
        return _LOOK_ALIKES[letter]
    name = unicodedata.name(letter, "")
    last = name.partition(" WITH ")[0].rpartition(" ")[2]
    return last.lower() if name.startswith("LATIN ") and len(last) == 1 else letter
