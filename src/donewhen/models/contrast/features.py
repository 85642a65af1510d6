"""Features of a ticket's text for rules: phrases, labelled numbers, measures, sections, checkboxes, lengths.

Features are computed on first use and cached, because learning reads the same ticket many times.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from donewhen.models.contrast.measures import EDGE, Measure, measure_ticket
from donewhen.models.contrast.numbers import labelled_numbers
from donewhen.models.contrast.parts import HEADING, TicketParts, heading_name, parts_of
from donewhen.models.contrast.words import needle, normalise_label, split_words

Where = Literal["text", "start", "end"]
"""The part of a text that a condition applies to."""

_PASSAGE_END = re.compile(r"\n+|(?<=[.!?;])\s+|[。！？；]")
_BOX = re.compile(r"^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\[([ xX])\]", re.MULTILINE)


class Features:
    """The features of a ticket's text."""

    def __init__(self, evidence: Mapping[str, str]) -> None:
        text = "\n\n".join(evidence.values())
        self._text = text if text.isascii() else unicodedata.normalize("NFKC", text)
        self._evidence = evidence
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

    def passages(self, where: Where) -> list[list[str]]:
        """Return the words of a part, sentence by sentence: phrases end where sentences, lines and sections end."""
        if where == "text":
            return self._passages
        passages = self._passages if where == "start" else self._passages[::-1]
        chosen, left = [], EDGE
        for words in passages:
            if left <= 0:
                break
            chosen.append(words[:left] if where == "start" else words[-left:])
            left -= len(words)
        return chosen

    @cached_property
    def _passages(self) -> list[list[str]]:
        return [words for passage in _PASSAGE_END.split(self._text) if (words := split_words(passage))]

    @cached_property
    def lines(self) -> int:
        """Lines that are not blank."""
        return sum(1 for line in self._text.splitlines() if line.strip())

    @cached_property
    def numbers(self) -> Mapping[str, tuple[float, ...]]:
        """The numbers of each label, in the order of the text."""
        return labelled_numbers(self._text)

    @cached_property
    def parts(self) -> TicketParts:
        """The task, the answer, the diff and the blocks of the text."""
        return parts_of(self._evidence, self._text)

    @cached_property
    def measures(self) -> Mapping[Measure, float]:
        """The measures that the text has."""
        return measure_ticket(self.parts, self.words)

    @cached_property
    def sections(self) -> frozenset[str]:
        """The names of headings, and of the texts if there are several."""
        headings = map(heading_name, HEADING.finditer(self._text))
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
