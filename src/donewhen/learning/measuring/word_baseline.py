"""Baselines that a judge must beat: the more common label, and word counts (TF-IDF and logistic regression)."""

from __future__ import annotations

import random
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp, log, sqrt
from typing import NamedTuple

from donewhen.foundation.binary import Binary

Predict = Callable[[str], Binary]
Learn = Callable[[Iterable[tuple[str, Binary]]], Predict]

# Words of two or more letters; scripts without spaces are matched as runs.
_UNSPACED = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W{_UNSPACED}]{{2,}}")
_RUN = re.compile(rf"[{_UNSPACED}]")

FEWEST_TICKETS = 2
MOST_FEATURES = 20_000
MOST_TICKETS = 4000
STRENGTH = 3.0
_PASSES = 40
_STILL = 0.001


class Sparse(NamedTuple):
    """A sparse vector: the indices and values of its non-zero entries."""

    places: array[int]
    values: array[float]


def majority_baseline(train: Iterable[tuple[str, Binary]]) -> Predict:
    """Always predict the more common label; *fail* in a tie."""
    counts = Counter(label for _, label in train)
    common: Binary = "pass" if counts["pass"] > counts["fail"] else "fail"
    return lambda text: common


def word_count_baseline(train: Iterable[tuple[str, Binary]]) -> Predict:
    """Learn from (text, label) with TF-IDF over words and word pairs and logistic regression.

    Both labels have the same total weight. Above ``MOST_TICKETS``, an evenly spaced sample is used.
    """
    known = list(train)
    known = known[:: -(-len(known) // MOST_TICKETS) or 1]
    labels = [label for _, label in known]
    if len(set(labels)) < 2:
        return majority_baseline(known)
    # Every text is tokenised twice, because keeping the terms of all texts would need too much memory.
    features = count_features([text for text, _ in known])
    vectors = [feature_vector(text, features) for text, _ in known]
    weights = fit_weights(vectors, labels, len(features))

    def predict(text: str) -> Binary:
        return "pass" if _score(feature_vector(text, features), weights) > 0 else "fail"

    return predict


def out_of_fold_predictions(tickets: Sequence[tuple[str, Binary, str]], learn: Learn, folds: int = 5) -> list[Binary]:
    """Cross-validated predictions for each (text, label, cluster), each learned from other clusters only."""
    sizes = Counter(cluster for _, _, cluster in tickets)
    filled = [0] * folds
    fold_of: dict[str, int] = {}
    for cluster in sorted(sizes, key=lambda name: (-sizes[name], name)):
        fold_of[cluster] = filled.index(min(filled))
        filled[fold_of[cluster]] += sizes[cluster]
    learned = [
        learn((text, label) for text, label, other in tickets if fold_of[other] != fold) for fold in range(folds)
    ]
    return [learned[fold_of[cluster]](text) for text, _, cluster in tickets]


def terms(text: str) -> Iterator[str]:
    """Yield words and pairs of adjacent words. In scripts without spaces, two characters count as a word."""
    words: list[str] = []
    for word in _WORD.findall(text.lower()):
        if len(word) > 2 and _RUN.match(word):
            words += (word[start : start + 2] for start in range(len(word) - 1))
        else:
            words.append(word)
    yield from words
    for first, second in pairwise(words):
        yield f"{first} {second}"


class Feature(NamedTuple):
    """The index of a term in a vector, and its inverse document frequency."""

    place: int
    rarity: float


def count_features(texts: Sequence[str]) -> dict[str, Feature]:
    """The most frequent terms, each with its inverse document frequency."""
    tickets: Counter[str] = Counter()
    for text in texts:
        tickets.update(set(terms(text)))
    frequent = [term for term, count in tickets.items() if count >= FEWEST_TICKETS]
    # Ties are sorted by name, so that the result does not depend on the order of the tickets.
    frequent.sort(key=lambda term: (-tickets[term], term))
    return {
        term: Feature(place, log((1 + len(texts)) / (1 + tickets[term])) + 1)
        for place, term in enumerate(frequent[:MOST_FEATURES], 1)
    }


def feature_vector(text: str, features: Mapping[str, Feature]) -> Sparse:
    """The TF-IDF vector of a text, normalised to length 1, after a constant 1 at index 0 for the bias."""
    counts = Counter(term for term in terms(text) if term in features)
    entries = [(features[term].place, (1 + log(count)) * features[term].rarity) for term, count in counts.items()]
    length = sqrt(sum(value * value for _, value in entries)) or 1.0
    places, values = array("l", [0]), array("d", [1.0])
    for place, value in entries:
        places.append(place)
        values.append(value / length)
    return Sparse(places, values)


def _score(vector: Sparse, weights: array[float]) -> float:
    return sum(weights[place] * value for place, value in zip(vector.places, vector.values, strict=True))


def fit_weights(vectors: list[Sparse], labels: list[Binary], features: int) -> array[float]:
    """Fit logistic regression with an L2 penalty by dual coordinate ascent, one ticket at a time.

    The weights are the sum of the ticket vectors times their dual variables (``pulls``), which are
    ``limit * sigmoid(-side * score)`` at the optimum.
    """
    counts = Counter(labels)
    limits = [STRENGTH * len(labels) / (2 * counts[label]) for label in labels]
    sides = [1.0 if label == "pass" else -1.0 for label in labels]
    lengths = [sum(value * value for value in vector.values) for vector in vectors]
    pulls = [0.0] * len(vectors)
    weights = array("d", bytes(8 * (features + 1)))
    # Shuffled: in file order tickets with the same label are adjacent, and convergence takes ten times as long.
    order = list(range(len(vectors)))
    shuffle = random.Random(0).shuffle
    for _ in range(_PASSES):
        moved = 0.0
        shuffle(order)
        for index in order:
            vector = vectors[index]
            before = pulls[index]
            pulls[index] = _best_pull(sides[index] * _score(vector, weights), before, limits[index], lengths[index])
            step = sides[index] * (pulls[index] - before)
            moved = max(moved, abs(step) / limits[index])
            for place, value in zip(vector.places, vector.values, strict=True):
                weights[place] += step * value
        if moved < _STILL:
            break
    return weights


def _best_pull(score: float, before: float, limit: float, length: float) -> float:
    """The dual variable of a ticket at which it agrees with the resulting score, found by bisection."""
    low, high = 0.0, limit
    for _ in range(30):
        pull = (low + high) / 2
        if pull * (1 + exp(min(700.0, score + length * (pull - before)))) < limit:
            low = pull
        else:
            high = pull
    return (low + high) / 2
