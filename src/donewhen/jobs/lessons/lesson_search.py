"""Which lessons fit, and why: by words, tags, linked jobs and how often others used them. The same question has the
same answer; no clock has a part in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.lessons.lesson_file import Lesson, words_in

# The usual constants of BM25: how soon a repeated word counts no more, and how much a long text counts less.
_SATURATION = 1.2
_LENGTH = 0.75
_FOR_TAG = 3.0
_FOR_ITSELF = 6.0
_FOR_UPSTREAM = 4.0
_FOR_WORKSTREAM = 1.0
_FOR_USE = 0.5
_COMMON_FROM = 5
_COMMON_SHARE = 5
_SHOWN_WORDS = 6
_EVERYDAY_TEXT = """
a about above after again against all also am an and any are as at be because been before being below between both but
by can could did do does doing done down during each else every few for from further get gets had has have having he
her here hers him his how i if in into is it its itself job jobs just let like made make makes many may me might more
most must my need needs no nor not now of off on once one only or other our out over own per same shall she should so
some such than that the their them then there these they this those through to too under until up upon us use used uses
very was we were what when where which while who whom whose why will with within without would you your
"""
_EVERYDAY = frozenset(_EVERYDAY_TEXT.split())


class LessonQuery(NamedTuple):
    """What is looked for."""

    words: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    itself: str = ""
    """The job that asks."""
    upstream: frozenset[str] = frozenset()
    """The jobs that it depends on."""
    workstream: frozenset[str] = frozenset()
    """Its workstream, and the jobs in there."""


class LessonMatch(NamedTuple):
    """A lesson that fits, how well, and why in words."""

    lesson: Lesson
    score: float
    reasons: tuple[str, ...]
    relevant: bool
    """Whether it fits well enough to be given to a job that did not ask."""


def query_words(*texts: str) -> tuple[str, ...]:
    """The words of a question that can tell one text from another, each once."""
    return tuple(dict.fromkeys(one for text in texts for one in _telling(text)))


def rank_lessons(lessons: Sequence[Lesson], query: LessonQuery, used: Mapping[str, int]) -> list[LessonMatch]:
    """The lessons that fit, best first; among equals the newest."""
    texts = [_Text(one) for one in lessons]
    wanted = [Counter(one.counted(query.words)) for one in texts]
    often = Counter(word for one in wanted for word in one)
    tagged = Counter(tag for one in lessons for tag in _tags(one) & query.tags)
    common = max(_COMMON_FROM, len(lessons) // _COMMON_SHARE)
    average = sum(one.length for one in texts) / len(texts) if texts else 1.0
    found = []
    for text, counts in zip(texts, wanted, strict=True):
        lesson = text.lesson
        words = {word: _weight(counts[word], often[word], len(texts), text.length / average) for word in counts}
        tags = sorted(_tags(lesson) & query.tags)
        link, linked = _link(lesson, query)
        if not (words or tags or link):
            continue
        uses = used.get(lesson.id, 0)
        score = sum(words.values()) + _FOR_TAG * len(tags) + link + _FOR_USE * math.log2(1 + uses)
        telling = sum(often[one] <= common for one in words) + 2 * sum(tagged[one] <= common for one in tags)
        # A workstream can be large: that a lesson came from it says little, unless it also speaks of the same thing.
        relevant = link >= _FOR_UPSTREAM or telling >= (1 if link else 2)
        reasons = [
            *([f"says {', '.join(_best(words))}"] if words else []),
            *([f"tagged {', '.join(tags)}"] if tags else []),
            *([linked] if linked else []),
            *([f"used by {uses} job(s)"] if uses else []),
        ]
        found.append(LessonMatch(lesson, round(score, 6), tuple(reasons), relevant))
    found.sort(key=lambda one: one.lesson.age, reverse=True)
    return sorted(found, key=lambda one: -one.score)


class _Text:
    """What a lesson says, ready to be looked through; its words are only counted where one can be among them."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self._text = " ".join((lesson.title, *lesson.said)).casefold()
        self.length = max(1, self._text.count(" "))

    def counted(self, words: Collection[str]) -> Iterable[str]:
        # Most lessons have none of the words, and looking for a piece of text is quicker than taking all of it apart.
        # What is not ASCII can be written in several ways.
        if self._text.isascii() and not any(word in self._text for word in words):
            return ()
        wanted = set(words)
        return (one for one in map(_stem, words_in(self._text)) if one in wanted)


def _telling(text: str) -> Iterable[str]:
    return (_stem(word) for word in words_in(text) if word not in _EVERYDAY and (len(word) > 1 or not word.isascii()))


def _stem(word: str) -> str:
    """Without the s of a plural."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _weight(count: int, lessons_with: int, lessons: int, relative_length: float) -> float:
    rarity = math.log(1 + (lessons - lessons_with + 0.5) / (lessons_with + 0.5))
    return rarity * count * (_SATURATION + 1) / (count + _SATURATION * (1 - _LENGTH + _LENGTH * relative_length))


def _best(words: Mapping[str, float]) -> list[str]:
    return sorted(words, key=lambda word: (-words[word], word))[:_SHOWN_WORDS]


def _tags(lesson: Lesson) -> frozenset[str]:
    return frozenset(tag.casefold() for tag in lesson.tags)


def _link(lesson: Lesson, query: LessonQuery) -> tuple[float, str]:
    """How close the jobs that it is linked to are to the one that asks."""
    linked = set(lesson.linked)
    if query.itself and query.itself in linked:
        return _FOR_ITSELF, f"linked to {query.itself} itself"
    if near := sorted(linked & query.upstream):
        return _FOR_UPSTREAM, f"linked to {near[0]}, on which it builds"
    if near := sorted(linked & query.workstream):
        return _FOR_WORKSTREAM, f"linked to {near[0]} of the same workstream"
    return 0.0, ""
