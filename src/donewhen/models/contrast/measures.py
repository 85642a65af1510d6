"""Measures of a whole ticket: its tone, relations between its parts, and what its diff changes.

Each measure is a number with a name of its own, so that a rule can compare it with a threshold. The lists of words are
part of the definition of a measure; none of them decides anything alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from donewhen.models.contrast.parts import TicketParts
from donewhen.models.contrast.words import is_ideograph, split_words

Measure = Literal[
    "negations",
    "negations_end",
    "contrasts_end",
    "task_terms",
    "covered",
    "covered_end",
    "numbers_missing",
    "repeated",
    "failed_runs",
    "claims_despite_failure",
    "changed_files",
    "changed_tests",
    "added_lines",
    "removed_lines",
    "suppressions",
    "named_files",
    "shared_identifiers",
]

EDGE = 200
"""Number of words in the start and in the end of a text."""

_NEGATIONS = frozenset(
    [
        "not",
        "no",
        "never",
        "cannot",
        "can't",
        "doesn't",
        "don't",
        "didn't",
        "isn't",
        "aren't",
        "wasn't",
        "won't",
        "without",
        "unable",
        "lack",
        "lacks",
        "missing",
        "nor",
        "neither",
        "none",
        "不",
        "没",
        "无",
        "未",
    ]
)
_CONTRASTS = frozenset(["however", "but", "although", "though", "only", "instead", "except", "但", "却", "仅", "只"])
COMMON_WORDS = frozenset(
    [
        "this",
        "that",
        "with",
        "from",
        "have",
        "will",
        "your",
        "which",
        "their",
        "there",
        "these",
        "those",
        "then",
        "than",
        "they",
        "them",
        "were",
        "what",
        "when",
        "where",
        "while",
        "about",
        "into",
        "only",
        "over",
        "also",
        "each",
        "such",
        "does",
        "must",
        "should",
        "could",
        "would",
        "been",
        "being",
        "more",
        "most",
        "other",
        "some",
        "very",
        "just",
        "like",
        "here",
        "make",
        "using",
        "used",
        "uses",
        "need",
        "needs",
    ]
)
_ENDINGS = ("ing", "ies", "es", "ed", "s")
_SHORTEST = 4
_DIGIT = re.compile(r"\d")
_FAILED = re.compile(
    r"\b[1-9]\d* (?:failed|failures?|errors?)\b|\bexit (?:status|code):? [1-9]|^(?:FAILED|ERROR)\b", re.MULTILINE
)
_CLAIM = re.compile(
    r"\b(?:tests?|checks?|suite|build|everything) (?:now )?(?:all )?(?:pass(?:es|ed)?|succeed(?:s|ed)?|works?|green)\b"
    r"|\b(?:verified|fixed|resolved|completed?) successfully\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"\b(?:[A-Za-z]\w*_\w+|[a-z]+[A-Z]\w*|[A-Z][a-z]+[A-Z]\w*|[A-Za-z_]\w+(?=\(\)))")
_SUPPRESSION = re.compile(
    r"\bnoqa\b|type: ?ignore|pragma: no|pylint: ?disable|eslint-disable|ts-ignore|@SuppressWarnings|nolint"
    r"|\b(?:skip|skipif|skipUnless|xfail)\b|\.only\("
)
_TEST_FILE = re.compile(r"(?:^|/)(?:tests?|spec|__tests__)/|(?:^|/|_|\.)(?:test|spec)[_.]|_test\.")
_WORD = re.compile(r"\w+")


def measure_ticket(parts: TicketParts, words: Sequence[str]) -> Mapping[Measure, float]:
    """Return the measures that a ticket has. Relations need two parts, and those of a diff need a diff."""
    found: dict[Measure, float] = {
        "negations": _share(words, _NEGATIONS),
        "negations_end": _share(words[-EDGE:], _NEGATIONS),
        "contrasts_end": _share(words[-EDGE:], _CONTRASTS),
    }
    if parts.answer:
        found |= _relations(parts)
    if len(parts.blocks) > 1:
        blocks = [" ".join(split_words(block)) for block in parts.blocks]
        found["repeated"] = 100 * (1 - len(set(blocks)) / len(blocks))
    failed = float(len(_FAILED.findall(parts.text)))
    found["failed_runs"] = failed
    found["claims_despite_failure"] = float(len(_CLAIM.findall(parts.text))) if failed else 0.0
    return found | _diff_measures(parts)


def _share(words: Sequence[str], wanted: frozenset[str]) -> float:
    return 100 * sum(word in wanted for word in words) / len(words) if words else 0.0


def _relations(parts: TicketParts) -> dict[Measure, float]:
    terms = _terms(split_words(parts.task))
    if not terms:
        return {}
    answer = split_words(parts.answer)
    after, end = _stems(answer), _stems(answer[-EDGE:])
    numbers = {term for term in terms if term[0].isdigit()}
    return {
        "task_terms": float(len(terms)),
        "covered": 100 * len(terms & after) / len(terms),
        "covered_end": 100 * len(terms & end) / len(terms),
        "numbers_missing": float(len(numbers - after)),
    }


def _terms(words: Iterable[str]) -> set[str]:
    """The words of a task that its answer can be expected to name."""
    return {
        _stem(word)
        for word in words
        if (len(word) >= _SHORTEST and word not in COMMON_WORDS) or word.isdigit() or is_ideograph(word)
    }


def _stems(words: Iterable[str]) -> set[str]:
    return set(map(_stem, words))


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


def _diff_measures(parts: TicketParts) -> dict[Measure, float]:
    diff = parts.diff
    if diff is None:
        return {}
    names = set(diff.files)
    found: dict[Measure, float] = {
        "changed_files": float(len(names)),
        "changed_tests": float(_count(names, lambda name: _TEST_FILE.search(name) is not None)),
        "added_lines": float(len(diff.added)),
        "removed_lines": float(len(diff.removed)),
        "suppressions": float(_count(diff.added, lambda line: _SUPPRESSION.search(line) is not None)),
    }
    if parts.task:
        identifiers = set(_IDENTIFIER.findall(parts.task))
        found["named_files"] = float(_count(names, lambda name: name.rpartition("/")[2] in parts.task))
        found["shared_identifiers"] = float(len(identifiers & set(_WORD.findall(diff.text))))
    return found


def _count(items: Iterable[str], holds: Callable[[str], bool]) -> int:
    return sum(map(holds, items))
