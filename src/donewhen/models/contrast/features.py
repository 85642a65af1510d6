"""Features of a ticket's text for rules: phrases, labelled numbers, sections, checkboxes, lengths.

Words are separated as usual in any script; in Chinese and Japanese each character is a word. Features are computed on
first use and cached, because learning reads the same ticket many times.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Literal

Where = Literal["text", "start", "end"]
"""The part of a text that a condition applies to."""

EDGE = 200
"""Number of words in the start and in the end of a text."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+(?:['’\-][^\W{_IDEOGRAPHS}]+)*")
_IDEOGRAPH = re.compile(rf"[{_IDEOGRAPHS}]")
# A label is up to three words before a colon or an equals sign; dates, versions and identifiers are not numbers.
_NUMBER = re.compile(r"[\"'*`”」]{0,4}\s?[:=]\s?[\"'*`“「]{0,4}\s?(-?\d{1,15}(?:\.\d+)?)(?![\w\-:]|\.\d|,\d)")
_LABEL = re.compile(r"[^\W\d][\w\-]*(?:[ ][^\W\d][\w\-]*){0,2}$")
_LONGEST_LABEL = 60
_HEADING = re.compile(
    r"^(?:#{1,6}[ \t]+(?P<hash>\S.*?)[ \t#]*|\*\*(?P<bold>[^*\n]{1,60})\*\*:?|(?P<caps>[A-Z][A-Z'’ /&\-]{2,59}):?|"
    r"【(?P<bracket>[^】\n]{1,30})】)[ \t]*$",
    re.MULTILINE,
)
_BOX = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[([ xX])\]", re.MULTILINE)


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case and normal width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.lower())


def join_words(words: list[str] | tuple[str, ...]) -> str:
    """Join words with spaces, except between Chinese characters."""
    out = ""
    for word in words:
        apart = out and not (_IDEOGRAPH.match(word) and _IDEOGRAPH.match(out[-1]))
        out += f" {word}" if apart else word
    return out


@lru_cache(maxsize=1 << 16)
def needle(phrase: str) -> str:
    """Return a phrase as a search string: each word between two spaces."""
    return "".join(f" {word} " for word in split_words(phrase))


@lru_cache(maxsize=4096)
def normalise_label(label: str) -> str:
    """Return a label or a heading in normalised form, for comparison."""
    return join_words(split_words(label))


class Features:
    """The features of a ticket's text."""

    def __init__(self, evidence: Mapping[str, str]) -> None:
        text = "\n\n".join(evidence.values())
        self._text = text if text.isascii() else unicodedata.normalize("NFKC", text)
        self._names = tuple(evidence) if len(evidence) > 1 else ()
        self._lines: dict[Where, str] = {}
        self.held: dict[object, bool] = {}
        """Cached results of conditions."""

    def count(self, phrase: str, where: Where = "text") -> int:
        """Return how often a phrase occurs."""
        wanted = needle(phrase)
        return self._line(where).count(wanted) if wanted else 0

    def part(self, where: Where) -> list[str]:
        """Return the words of a part."""
        if where == "text":
            return self.words
        return self.words[:EDGE] if where == "start" else self.words[-EDGE:]

    @cached_property
    def words(self) -> list[str]:
        """All words, in the order of the text."""
        return split_words(self._text)

    @cached_property
    def lines(self) -> int:
        """Lines that are not blank."""
        return sum(1 for line in self._text.splitlines() if line.strip())

    @cached_property
    def numbers(self) -> Mapping[str, tuple[float, ...]]:
        """The numbers of each label, in the order of the text."""
        values_by_label: dict[str, list[float]] = {}
        # Search backwards from each number: searching for labels first would test every word.
        for number in _NUMBER.finditer(self._text):
            label = _LABEL.search(self._text[max(0, number.start() - _LONGEST_LABEL) : number.start()])
            if label is not None:
                values_by_label.setdefault(normalise_label(label[0]), []).append(float(number[1]))
        return {label: tuple(values) for label, values in values_by_label.items()}

    @cached_property
    def sections(self) -> frozenset[str]:
        """The names of headings, and of the texts if there are several."""
        headings = (next(filter(None, match.groups())) for match in _HEADING.finditer(self._text))
        return frozenset(map(normalise_label, (*self._names, *headings)))

    @cached_property
    def boxes(self) -> tuple[int, int]:
        """The numbers of checked and unchecked checklist items."""
        marks = _BOX.findall(self._text)
        unchecked = marks.count(" ")
        return len(marks) - unchecked, unchecked

    def _line(self, where: Where) -> str:
        line = self._lines.get(where)
        if line is None:
            line = self._lines[where] = f" {'  '.join(self.part(where))} "
        return line
