"""A text as a person reads it: look-alike letters, letter variants, hidden characters and split words made plain.

A judge is shown the exact text and this form of it. Only letters that imitate Latin ones are changed: a text in another
script, with its own joiners, accents and punctuation, stays as it is.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache

# Letters that can't be distinguished from Latin ones in most fonts.
_ALIKE = dict(
    zip(
        "аеорсухіјѕԁһԛԝӏАВЕКМНОРСТУХІЈЅԌԚԜοναιυρΑΒΕΖΗΙΚΜΝΟΡΤΥΧϲјօոսհցյꓐꓑꓒꓓꓔꓖꓗꓙꓚꓜꓝꓟꓠꓡꓢꓣꓤꓥꓦꓧꓨꓩꓪꓫꓬꓮꓰꓲꓳꓴᎪᎬᎷᎻᎳᏃᎢᏴᎠᏢᏟᏚᏒᏞᏙᎫᎽ",
        "aeopcyxijsdhqwlABEKMHOPCTYXIJSGQWovaiupABEZHIKMNOPTYXcjonuhgjBPDDTGKJCZFMNLSRRVVHGTWXYAEIOUAEMHWZIBDPCSRLVJY",
        strict=True,
    )
)
# Within a word that also has Latin letters, these imitate them as well.
_ALIKE_IN_WORD = {**_ALIKE, **dict(zip("вкмнтпгεκτχηɑɡ", "bkmhtnrektxnag", strict=True))}
_WORD = re.compile(r"[^\W\d_]+")
_HIDDEN = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\ud800-\udfff"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
COMMAND_OUTPUT = "evidence "
"""How the names of texts begin that are the results of commands."""
_LINE_END = re.compile("\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
# What a terminal or a browser shows from right to left, although it is written from left to right.
_REVERSED = re.compile("\u202e([^\u202c\n]*)")
_REFERENCE = re.compile(r"&#(?:(\d{1,7})|[xX]([0-9a-fA-F]{1,6}));")
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
# What comment, quote and diff lines begin with.
_LEADER = r"[ \t]*(?:(?:[+>#]|//|--)[ \t]*)*"
_SPLIT_WORD = re.compile(rf"(?<=[^\W\d_])[-\u2010][ \t]*(\n{_LEADER})([^\W\d_]+)")
_WRAPPED_LINE = re.compile(rf"(?<=[^\W_])([,;]?)[ \t]*\n{_LEADER}([^\W\d_])")
_BARE_MARKS = re.compile("(?<=[A-Za-z])[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+")


def normal_text(text: str, *, join_lines: bool = True) -> str:
    """Return the text as a person reads it; wrapped lines are joined unless the reader counts lines."""
    text = _LINE_END.sub("\n", text).replace("\u00ad\n", "-\n")
    if "\u202e" in text:
        text = _REVERSED.sub(lambda match: match[1][::-1], text)
    if "&#" in text:
        text = _REFERENCE.sub(_referenced_letter, text)
    if "\x1b" in text:
        text = _ESCAPES.sub("", text)
    if not text.isascii() or _HIDDEN.search(text):
        text = _HIDDEN.sub(_without_hidden, text)
    if not text.isascii():
        text = _BARE_MARKS.sub("", unicodedata.normalize("NFC", text))
        text = "".join(letter if letter < "\x80" else _plain_letter(letter) for letter in text)
        text = _in_latin(text)
    text = _SPLIT_WORD.sub(_whole_word, text)
    return _WRAPPED_LINE.sub(_joined_line, text) if join_lines else text


def normal_texts(texts: Mapping[str, str], *, join_lines: bool = True) -> dict[str, str]:
    """Return texts by name as a person reads them. No text is lost if two names are then the same.

    Lines of what commands print are never joined: they are not prose that was wrapped.
    """
    normal: dict[str, str] = {}
    for name, text in texts.items():
        joined = join_lines and not name.startswith(COMMAND_OUTPUT)
        shown = normal_text(name, join_lines=False)
        normal[shown if shown not in normal else f"{shown} ({len(normal) + 1})"] = normal_text(text, join_lines=joined)
    return normal


def read_alike(exact: Mapping[str, str], normal: Mapping[str, str]) -> bool:
    """Whether both forms are one text for any reader: they differ at most in line ends and composed accents."""

    def plain(texts: Mapping[str, str]) -> list[tuple[str, str]]:
        return [
            (unicodedata.normalize("NFC", name), unicodedata.normalize("NFC", _LINE_END.sub("\n", text)))
            for name, text in texts.items()
        ]

    return exact == normal or plain(exact) == plain(normal)


def _without_hidden(match: re.Match[str]) -> str:
    """Remove a hidden character, unless a script or an emoji needs it there."""
    character = match[0]
    if character in _JOINERS or "\ufe00" <= character <= "\ufe0f":
        text, at = match.string, match.start()
        before = text[at - 1] if at else ""
        if before and (_needs_joiners(before) or "\ufe00" <= before <= "\ufe0f"):
            return character
    return ""


def _referenced_letter(match: re.Match[str]) -> str:
    """Return a letter that a page has by its number; other characters may have a reason for that."""
    number = int(match[1]) if match[1] else int(match[2], 16)
    letter = chr(number) if number <= 0x10FFFF else ""
    return letter if letter.isalpha() else match[0]


def _whole_word(match: re.Match[str]) -> str:
    """Put a word that a hyphen splits at the end of its first line, so that the number of lines stays the same."""
    return f"{match[2]}{match[1]}" if match[2][0].islower() else match[0]


def _joined_line(match: re.Match[str]) -> str:
    # A line that begins with a capital, or with a script without small letters, may be a line of its own.
    return f"{match[1]} {match[2]}" if match[2].islower() else match[0]


_JOINERS = ("\u200c", "\u200d")


@cache
def _needs_joiners(letter: str) -> bool:
    """Whether joiners and variants after this character change how it is written (Arabic, Indic scripts, emoji, …)."""
    category = unicodedata.category(letter)
    if category in ("So", "Sk", "Sm", "Po") or letter in "0123456789#*":
        return True
    name = unicodedata.name(letter, "")
    return category[0] in "LM" and not name.startswith(("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "COMBINING"))


@cache
def _plain_letter(letter: str) -> str:
    """Return a variant of a Latin letter or of a digit (wide, bold, circled, small capital) as the plain one."""
    category = unicodedata.category(letter)
    if category[0] == "L" or category in ("So", "Nd"):
        plain = unicodedata.normalize("NFKC", letter)
        if plain.isascii() and plain.isalnum() and (category != "So" or len(plain) == 1):
            return plain
    if category[0] == "L":
        name = unicodedata.name(letter, "")
        head, _, last = name.rpartition(" ")
        if head == "LATIN LETTER SMALL CAPITAL" and len(last) == 1:
            return last.lower()
    return letter


def _in_latin(text: str) -> str:
    """Write words in Latin letters that imitate them."""
    used = {_own_script(match[0]) for match in _WORD.finditer(text)}
    return "\n".join(line if line.isascii() else _line_in_latin(line, used) for line in text.split("\n"))


def _line_in_latin(line: str, used: set[str]) -> str:
    words = [match[0] for match in _WORD.finditer(line)]
    scripts = [_own_script(word) for word in words]
    at = iter(range(len(words)))

    def plain(match: re.Match[str]) -> str:
        word, number = match[0], next(at)
        if scripts[number] == _LATIN:
            return word if word.isascii() else "".join(_ALIKE_IN_WORD.get(letter, letter) for letter in word)
        if scripts[number] or len(word) == 1:
            return word
        beside = {_nearest(scripts[:number][::-1]), _nearest(scripts[number + 1 :])} - {""}
        imitates = beside == {_LATIN} if beside else not {_script(letter) for letter in word} & used
        return "".join(_ALIKE[letter] for letter in word) if imitates else word

    return _WORD.sub(plain, line)


_LATIN = "LATIN"


def _own_script(word: str) -> str:
    """The script that a word is certainly written in; empty if all of its letters look like Latin ones."""
    if _has_latin(word):
        return _LATIN
    return next((_script(letter) for letter in word if letter not in _ALIKE), "")


def _nearest(scripts: Sequence[str]) -> str:
    return next(filter(None, scripts), "")


def _has_latin(word: str) -> bool:
    return any(letter < "\x80" for letter in word)


@cache
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]
