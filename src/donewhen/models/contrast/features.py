"""What a rule can ask of a ticket's text: phrases, labelled numbers, sections, boxes, lengths.

Words are what is written together, in any script; in Chinese and Japanese each character is one. Everything is
measured when it is first asked for and kept, because learning asks the same ticket again and again.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import Literal

Where = Literal["text", "start", "end"]
"""The part of a text that a condition looks at."""

EDGE = 200
"""How many words are the start of a text, and how many its end."""

_IDEOGRAPHS = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_IDEOGRAPHS}]|[^\W{_IDEOGRAPHS}]+(?:['’\-][^\W{_IDEOGRAPHS}]+)*")
_IDEOGRAPH = re.compile(rf"[{_IDEOGRAPHS}]")
# A label is up to three words before a colon or an equals sign; a date, a version or an identifier is no number.
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
    """The words of a text, in lower case and normal width."""
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return _WORD.findall(text.lower())


def join_words(words: list[str] | tuple[str, ...]) -> str:
    """Words as one writes them: Chinese characters stand together, others apart."""
    out = ""
    for word in words:
        apart = out and not (_IDEOGRAPH.match(word) and _IDEOGRAPH.match(out[-1]))
        out += f" {word}" if apart else word
    return out


@lru_cache(maxsize=1 << 16)
def needle(phrase: str) -> str:
    """A phrase as it stands in the line of words that is searched: each word between two spaces of its own."""
    return "".join(f" {word} " for word in split_words(phrase))


@lru_cache(maxsize=4096)
def normalise_label(label: str) -> str:
    """A label or a heading in the form in which they are compared."""
    return join_words(split_words(label))


class Features:
    """A ticket's text, ready to be asked."""

    def __init__(self, evidence: Mapping[str, str]) -> None:
        text = "\n\n".join(evidence.values())
        self._text = text if text.isascii() else unicodedata.normalize("NFKC", text)
        self._names = tuple(evidence) if len(evidence) > 1 else ()
        self._lines: dict[Where, str] = {}
        self.held: dict[object, bool] = {}
        """Answers to conditions that were asked before."""

    def count(self, phrase: str, where: Where = "text") -> int:
        """How often a phrase occurs."""
        wanted = needle(phrase)
        return self._line(where).count(wanted) if wanted else 0

    def part(self, where: Where) -> list[str]:
        """The words of a part."""
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
        found: dict[str, list[float]] = {}
        # From the number back to its label: looking for labels first would look at every word.
        for number in _NUMBER.finditer(self._text):
            label = _LABEL.search(self._text[max(0, number.start() - _LONGEST_LABEL) : number.start()])
            if label is not None:
                found.setdefault(normalise_label(label[0]), []).append(float(number[1]))
        return {label: tuple(values) for label, values in found.items()}

    @cached_property
    def sections(self) -> frozenset[str]:
        """The names of headings, and of the texts where there are several."""
        headings = (next(filter(None, found.groups())) for found in _HEADING.finditer(self._text))
        return frozenset(map(normalise_label, (*self._names, *headings)))

    @cached_property
    def boxes(self) -> tuple[int, int]:
        """Checklist items: how many are checked, and how many are not."""
        marks = _BOX.findall(self._text)
        unchecked = marks.count(" ")
        return len(marks) - unchecked, unchecked

    def _line(self, where: Where) -> str:
        line = self._lines.get(where)
        if line is None:
            line = self._lines[where] = f" {'  '.join(self.part(where))} "
        return line
