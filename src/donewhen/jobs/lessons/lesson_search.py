"""Rank lessons by words, tags, linked jobs and how often other jobs used them. The result is deterministic and does not
depend on the time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from donewhen.jobs.lessons.lesson_file import Lesson, words_in

# The usual BM25 constants: term frequency saturation and length normalisation.
_SATURATION = 1.2
_LENGTH = 0.75
_TAG_WEIGHT = 3.0
_SELF_WEIGHT = 6.0
_UPSTREAM_WEIGHT = 4.0
_WORKSTREAM_WEIGHT = 1.0
_USE_WEIGHT = 0.5
_COMMON_FROM = 5
_COMMON_SHARE = 5
_MAX_WORDS = 6
_STOP_WORDS_TEXT = """
a about above after again against all also am an and any are as at be because been before being below between both but
by can could did do does doing done down during each else every few for from further get gets had has have having he
her here hers him his how i if in into is it its itself job jobs just let like made make makes many may me might more
most must my need needs no nor not now of off on once one only or other our out over own per same shall she should so
some such than that the their them then there these they this those through to too under until up upon us use used uses
very was we were what when where which while who whom whose why will with within without would you your
"""
_STOP_WORDS = frozenset(_STOP_WORDS_TEXT.split())


class LessonQuery(NamedTuple):
    """A search for lessons."""

    words: tuple[str, ...] = ()
    tags: frozenset[str] = frozenset()
    itself: str = ""
    """The job that the search is for."""
    upstream: frozenset[str] = frozenset()
    """Its dependencies."""
    workstream: frozenset[str] = frozenset()
    """Its workstream, and the jobs in it."""


class LessonMatch(NamedTuple):
    """A matching lesson with its score and the reasons."""

    lesson: Lesson
    score: float
    reasons: tuple[str, ...]
    relevant: bool
    """Whether it matches well enough to be suggested to a job."""


def query_words(*texts: str) -> tuple[str, ...]:
    """Return the significant words of some texts, each once."""
    return tuple(dict.fromkeys(word for text in texts for word in _significant_words(text)))


def rank_lessons(lessons: Sequence[Lesson], query: LessonQuery, used: Mapping[str, int]) -> list[LessonMatch]:
    """Return the matching lessons, best first; ties are ordered newest first."""
    texts = [_SearchText(lesson) for lesson in lessons]
    word_counts = [Counter(text.matching_words(query.words)) for text in texts]
    lessons_with_word = Counter(word for counts in word_counts for word in counts)
    lessons_with_tag = Counter(tag for lesson in lessons for tag in _tags(lesson) & query.tags)
    common = max(_COMMON_FROM, len(lessons) // _COMMON_SHARE)
    average = sum(text.length for text in texts) / len(texts) if texts else 1.0
    matches = []
    for text, counts in zip(texts, word_counts, strict=True):
        lesson = text.lesson
        words = {
            word: _weight(counts[word], lessons_with_word[word], len(texts), text.length / average) for word in counts
        }
        tags = sorted(_tags(lesson) & query.tags)
        link, linked = _link_score(lesson, query)
        if not (words or tags or link):
            continue
        uses = used.get(lesson.id, 0)
        score = sum(words.values()) + _TAG_WEIGHT * len(tags) + link + _USE_WEIGHT * math.log2(1 + uses)
        significant = sum(lessons_with_word[word] <= common for word in words) + 2 * sum(
            lessons_with_tag[tag] <= common for tag in tags
        )
        # A workstream can be large: sharing it counts only together with a shared word or tag.
        relevant = link >= _UPSTREAM_WEIGHT or significant >= (1 if link else 2)
        reasons = [
            *([f"mentions {', '.join(_top_words(words))}"] if words else []),
            *([f"tagged {', '.join(tags)}"] if tags else []),
            *([linked] if linked else []),
            *([f"used by {uses} job(s)"] if uses else []),
        ]
        matches.append(LessonMatch(lesson, round(score, 6), tuple(reasons), relevant))
    matches.sort(key=lambda match: match.lesson.age, reverse=True)
    return sorted(matches, key=lambda match: -match.score)


class _SearchText:
    """The text of a lesson, prepared for searching; it is split into words only if a match is possible."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self._text = " ".join((lesson.title, *lesson.texts)).casefold()
        self.length = max(1, self._text.count(" "))

    def matching_words(self, words: Collection[str]) -> Iterable[str]:
        # Most lessons contain none of the words, and a substring search is faster than splitting the text.
        # Non-ASCII text can be written in several forms, so it is always split.
        if self._text.isascii() and not any(word in self._text for word in words):
            return ()
        wanted = set(words)
        return (word for word in map(_stem, words_in(self._text)) if word in wanted)


def _significant_words(text: str) -> Iterable[str]:
    return (_stem(word) for word in words_in(text) if word not in _STOP_WORDS and (len(word) > 1 or not word.isascii()))


def _stem(word: str) -> str:
    """Strip a plural s."""
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def _weight(count: int, lessons_with: int, lessons: int, relative_length: float) -> float:
    rarity = math.log(1 + (lessons - lessons_with + 0.5) / (lessons_with + 0.5))
    return rarity * count * (_SATURATION + 1) / (count + _SATURATION * (1 - _LENGTH + _LENGTH * relative_length))


def _top_words(words: Mapping[str, float]) -> list[str]:
    return sorted(words, key=lambda word: (-words[word], word))[:_MAX_WORDS]


def _tags(lesson: Lesson) -> frozenset[str]:
    return frozenset(tag.casefold() for tag in lesson.tags)


def _link_score(lesson: Lesson, query: LessonQuery) -> tuple[float, str]:
    """Return the weight of the closest linked job, and the reason."""
    linked = set(lesson.linked)
    if query.itself and query.itself in linked:
        return _SELF_WEIGHT, f"linked to {query.itself} itself"
    if near := sorted(linked & query.upstream):
        return _UPSTREAM_WEIGHT, f"linked to {near[0]}, a dependency"
    if near := sorted(linked & query.workstream):
        return _WORKSTREAM_WEIGHT, f"linked to {near[0]} in the same workstream"
    return 0.0, ""
