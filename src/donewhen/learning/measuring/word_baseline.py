"""What is reached without a judge? By the commoner label, and by word counts: a judge must beat both to be worth it."""

from __future__ import annotations

import random
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp, log, sqrt
from typing import NamedTuple

from donewhen.models.roles import Binary

Predict = Callable[[str], Binary]
Learn = Callable[[Iterable[tuple[str, Binary]]], Predict]

# Words of two letters and more; scripts that are written without spaces come in runs.
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
    """A vector by the places where it is not zero."""

    places: array[int]
    values: array[float]


def majority_baseline(train: Iterable[tuple[str, Binary]]) -> Predict:
    """Always the commoner label; *fail* where neither is."""
    counts = Counter(label for _, label in train)
    common: Binary = "pass" if counts["pass"] > counts["fail"] else "fail"
    return lambda text: common


def word_count_baseline(train: Iterable[tuple[str, Binary]]) -> Predict:
    """Learn from (text, label) which words and pairs of words go with which label: TF-IDF and logistic regression.

    Both labels weigh the same, however rare one is. Of very many tickets, evenly spaced ones are learned from.
    """
    known = list(train)
    known = known[:: -(-len(known) // MOST_TICKETS) or 1]
    labels = [label for _, label in known]
    if len(set(labels)) < 2:
        return majority_baseline(known)
    # Every text is read twice, because the terms of all of them at once would fill the memory.
    features = count_features([text for text, _ in known])
    vectors = [feature_vector(text, features) for text, _ in known]
    weights = fit_weights(vectors, labels, len(features))

    def predict(text: str) -> Binary:
        return "pass" if _score(feature_vector(text, features), weights) > 0 else "fail"

    return predict


def out_of_fold_predictions(tickets: Sequence[tuple[str, Binary, str]], learn: Learn, folds: int = 5) -> list[Binary]:
    """A prediction for each (text, label, cluster), learned from other clusters only: for where nothing is held out."""
    sizes = Counter(cluster for _, _, cluster in tickets)
    filled = [0] * folds
    fold_of: dict[str, int] = {}
    for cluster in sorted(sizes, key=lambda siz: (-sizes[siz], siz)):
        fold_of[cluster] = filled.index(min(filled))
        filled[fold_of[cluster]] += sizes[cluster]
    learned = [
        learn((text, label) for text, label, other in tickets if fold_of[other] != fold) for fold in range(folds)
    ]
    return [learned[fold_of[cluster]](text) for text, _, cluster in tickets]


def terms(text: str) -> Iterator[str]:
    """Words and pairs of neighbouring words. Where words are not set apart, two characters are taken for a word."""
    words: list[str] = []
    for found in _WORD.findall(text.lower()):
        if len(found) > 2 and _RUN.match(found):
            words += (found[at : at + 2] for at in range(len(found) - 1))
        else:
            words.append(found)
    yield from words
    for one, two in pairwise(words):
        yield f"{one} {two}"


class Feature(NamedTuple):
    """Where a term stands in a vector, and how much it counts there."""

    place: int
    rarity: float


def count_features(texts: Sequence[str]) -> dict[str, Feature]:
    """The terms that are counted, each with its inverse document frequency."""
    tickets: Counter[str] = Counter()
    for text in texts:
        tickets.update(set(terms(text)))
    often = [term for term, count in tickets.items() if count >= FEWEST_TICKETS]
    # By name among equals, so that the order of the tickets chooses nothing.
    often.sort(key=lambda term: (-tickets[term], term))
    return {
        term: Feature(place, log((1 + len(texts)) / (1 + tickets[term])) + 1)
        for place, term in enumerate(often[:MOST_FEATURES], 1)
    }


def feature_vector(text: str, features: Mapping[str, Feature]) -> Sparse:
    """Of length 1, after a first place that is always 1: there the weight is what speaks for *pass* without a word."""
    counts = Counter(term for term in terms(text) if term in features)
    there = [(features[term].place, (1 + log(count)) * features[term].rarity) for term, count in counts.items()]
    length = sqrt(sum(value * value for _, value in there)) or 1.0
    places, values = array("l", [0]), array("d", [1.0])
    for place, value in there:
        places.append(place)
        values.append(value / length)
    return Sparse(places, values)


def _score(vector: Sparse, weights: array[float]) -> float:
    return sum(weights[place] * value for place, value in zip(vector.places, vector.values, strict=True))


def fit_weights(vectors: list[Sparse], labels: list[Binary], features: int) -> array[float]:
    """Logistic regression with an L2 penalty, by coordinate ascent in the dual: ticket after ticket, each to its best.

    The weights are always the sum of the tickets, each by its pull: ``limit * sigmoid(-side * score)`` at the optimum.
    """
    counts = Counter(labels)
    limits = [STRENGTH * len(labels) / (2 * counts[label]) for label in labels]
    sides = [1.0 if label == "pass" else -1.0 for label in labels]
    lengths = [sum(value * value for value in vector.values) for vector in vectors]
    pulls = [0.0] * len(vectors)
    weights = array("d", bytes(8 * (features + 1)))
    # In the order of a file, tickets of one kind follow one another, and it takes ten times as long.
    order = list(range(len(vectors)))
    shuffle = random.Random(0).shuffle
    for _ in range(_PASSES):
        moved = 0.0
        shuffle(order)
        for at in order:
            vector = vectors[at]
            before = pulls[at]
            pulls[at] = _best_pull(sides[at] * _score(vector, weights), before, limits[at], lengths[at])
            step = sides[at] * (pulls[at] - before)
            moved = max(moved, abs(step) / limits[at])
            for place, value in zip(vector.places, vector.values, strict=True):
                weights[place] += step * value
        if moved < _STILL:
            break
    return weights


def _best_pull(score: float, before: float, limit: float, length: float) -> float:
    """Where a ticket's pull and the score that follows from it agree: found by halving, for there is one such place."""
    low, high = 0.0, limit
    for _ in range(30):
        pull = (low + high) / 2
        if pull * (1 + exp(min(700.0, score + length * (pull - before)))) < limit:
            low = pull
        else:
            high = pull
    return (low + high) / 2
