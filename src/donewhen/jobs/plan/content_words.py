"""The words of a text by what they say: content, the vocabulary of templates, empty answers, numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from typing import Literal

from donewhen.jobs.plan import filler_words as filler
from donewhen.jobs.plan.folded_words import fold, is_han, is_hangul, is_unspaced, split_words

_STATES = frozenset({"todo", "wip"})
_COPULAS = frozenset({"is", "are", "was", "were", "has", "have", "must"})
_ENOUGH_WORDS = 2
# Parts of a word that a letter counts for, where words are not counted by spaces.
_WORD, _HAN, _HANGUL, _OTHER = 12, 6, 4, 3
_MAX_TO_BE_RUN = 4
_MAX_SPELLED = 12
_LONGEST_ABBREVIATION = 5

_Kind = Literal["real", "template", "objects", "answers", "numbers", "open", "function", "unspaced"]
_Filler = Literal["template", "objects", "answers", "open", "function", "numbers"]


@dataclass
class Content:
    """What the words of a text are, each once."""

    real: set[str] = field(default_factory=set)
    template: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    """Words of templates that a job may be about, such as *task*."""
    answers: set[str] = field(default_factory=set)
    numbers: set[str] = field(default_factory=set)
    """Numbers, and other short values such as `yes`."""
    open: bool = False
    """Whether it contains a word such as `TBD`."""
    states: bool = False
    copula: bool = False
    functions: int = 0

    @property
    def says(self) -> int:
        """The number of words with content. Words of templates have some in *Add a task*, without any other, and in
        *The title is required*, where they are subject and predicate."""
        template = len(self.template | self.objects)
        if self.copula and template + len(self.numbers) >= _ENOUGH_WORDS:
            return len(self.real) + template + len(self.numbers)
        if len(self.objects) >= _ENOUGH_WORDS and not (self.template or self.open):
            return len(self.real) + len(self.objects)
        return len(self.real)

    @property
    def is_filler(self) -> bool:
        """Whether nothing is left without the words of templates and of empty answers."""
        return not (self.says or self.numbers) and (
            self.open or bool(self.template or self.objects or self.answers) or self.functions < _ENOUGH_WORDS
        )

    @property
    def is_enough(self) -> bool:
        """Whether there are two words of which at least one has content."""
        says = self.says
        others = len(self.template | self.objects | self.answers | self.numbers)
        return says >= _ENOUGH_WORDS or (says == 1 and others > 0)


def content_of(folded: str) -> Content:
    """Sort the words of a folded text."""
    content = Content()
    counted = {
        "real": content.real,
        "template": content.template,
        "objects": content.objects,
        "answers": content.answers,
        "numbers": content.numbers,
    }
    words = _spelled_words(split_words(folded))
    phrases, kinds = _phrases(), _kinds()
    position = 0
    while position < len(words):
        word = words[position]
        phrase = next((phrase for phrase in phrases.get(word, ()) if _is_at(words, position, phrase)), None)
        if phrase is not None:
            if phrases[word][phrase] == "open":
                content.open = True
                content.states |= phrase == ("to", "do")
            else:
                content.answers.add(" ".join(phrase))
            position += len(phrase)
            continue
        kind = kinds.get(word) or _kind_of(word)
        position += 1
        if kind in ("template", "objects"):
            # The number of `Criterion 1` or `Step b` says nothing.
            while position < len(words) and (words[position].isdecimal() or _is_letter(words[position])):
                position += 1
        if kind == "open":
            content.open = True
            content.states |= word in _STATES
        elif kind == "unspaced":
            _add_unspaced(content, word)
        elif kind == "function":
            content.functions += 1
            content.copula |= word in _COPULAS and position > 1
        else:
            counted[kind].add(word)
    return content


def _spelled_words(words: list[str]) -> list[str]:
    """Join letters that stand alone, if they are a filler word (`t.b.d.` is `tbd`) or more than an abbreviation."""
    kinds = _kinds()
    joined: list[str] = []
    position = 0
    while position < len(words):
        size = 1
        if _is_letter(words[position]):
            run = list(takewhile(_is_letter, words[position : position + _MAX_SPELLED]))
            otherwise = len(run) if len(run) > _LONGEST_ABBREVIATION else 1
            size = next((size for size in range(len(run), 1, -1) if "".join(run[:size]) in kinds), otherwise)
        joined.append("".join(words[position : position + size]))
        position += size
    return joined


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii()


def _kind_of(word: str) -> _Kind:
    if is_unspaced(word[0]):
        return "unspaced"
    if word.isdecimal():
        return "numbers"
    if len(word) < _MAX_SPELLED and len(set(word)) == 1:
        return "open" if word.startswith("xxx") else "answers"
    return "real"


def _add_unspaced(content: Content, run: str) -> None:
    """Sort the parts of a run of letters without spaces; what is no filler counts by its length."""
    fillers, longest = _unspaced()
    if run[0] == "待" and len(run) <= _MAX_TO_BE_RUN:
        content.open = True
        return
    parts = position = 0
    while position < len(run):
        sizes = range(min(longest, len(run) - position), 0, -1)
        size = next((size for size in sizes if run[position : position + size] in fillers), 0)
        if size:
            part = run[position : position + size]
            if fillers[part] == "open":
                content.open = True
            else:
                content.answers.add(part)
        else:
            letter = run[position]
            parts += _HAN if is_han(letter) else _HANGUL if is_hangul(letter) else _OTHER
        position += size or 1
    for number in range(-(-parts // _WORD)):
        content.real.add(f"{run[:_MAX_TO_BE_RUN]}{number}")


def _is_at(words: list[str], position: int, phrase: tuple[str, ...]) -> bool:
    # Without a subject before it: *Users will be added* says something.
    if phrase[:2] == ("will", "be") and position and words[position + 3 : position + 4] not in (["later"], ["soon"]):
        return False
    return tuple(words[position : position + len(phrase)]) == phrase


@cache
def participles() -> frozenset[str]:
    """The participles of `to be filled` and its like."""
    return frozenset(filler.TO_BE.split())


@cache
def _kinds() -> dict[str, _Filler]:
    """The kind of each filler word."""
    groups: tuple[tuple[_Filler, dict[str, str]], ...] = (
        ("answers", filler.ANSWER),
        ("template", filler.TEMPLATE),
        ("objects", {"en": filler.TEMPLATE_OBJECTS}),
        ("function", filler.FUNCTION),
        ("open", filler.OPEN),
        ("numbers", {"en": filler.VALUES}),
    )
    return {word: kind for kind, languages in groups for listed in languages.values() for word in fold(listed).split()}


@cache
def _phrases() -> dict[str, dict[tuple[str, ...], str]]:
    """The kind of each filler phrase, by its first word, the longest first."""
    known: dict[tuple[str, ...], str] = {}
    for kind, languages in (("open", filler.OPEN_PHRASES), ("answers", filler.ANSWER_PHRASES)):
        for listed in languages.values():
            # Folded as one text, which takes a tenth of the time; a bar would be folded, too.
            folded = fold(listed.replace("|", "\n"))
            known |= {tuple(split_words(phrase)): kind for phrase in folded.split("\n")}
    for participle in participles():
        known |= {("to", "be", participle): "open", ("will", "be", participle): "open"}
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for phrase in sorted(known, key=len, reverse=True):
        found.setdefault(phrase[0], {})[phrase] = known[phrase]
    return found


@cache
def _unspaced() -> tuple[dict[str, str], int]:
    """The kind of each filler of a script without spaces, and the length of the longest."""
    found: dict[str, str] = {}
    for kind, languages in (("open", filler.UNSPACED_OPEN), ("answers", filler.UNSPACED_ANSWER)):
        for listed in languages.values():
            found |= dict.fromkeys(fold(listed).split(), kind)
    return found, max(map(len, found))
