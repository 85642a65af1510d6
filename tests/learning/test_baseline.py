"""What a judge must beat: the commoner label, and word counts."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Iterable
from math import exp, log
from typing import Any

import pytest

from donewhen.learning.measuring import word_baseline
from donewhen.learning.measuring.word_baseline import (
    Feature,
    Predict,
    Sparse,
    count_features,
    feature_vector,
    fit_weights,
    majority_baseline,
    out_of_fold_predictions,
    terms,
    word_count_baseline,
)
from donewhen.models.roles import Binary

Labelled = list[tuple[str, Any]]
FILLER = ["the", "agent", "looked", "at", "order", "and", "wrote", "to", "customer", "about", "what", "day"]


def tickets(count: int, seed: int, passing: str = "refunded", failing: str = "ignored") -> Labelled:
    """Texts of many common words, in which one word tells."""
    rng = random.Random(seed)
    found: Labelled = []
    for at in range(count):
        label = "pass" if at % 3 == 0 else "fail"
        words = rng.choices(FILLER, k=12)
        words[rng.randrange(12)] = passing if label == "pass" else failing
        found.append((" ".join(words), label))
    return found


def right(predict: Predict, found: Labelled) -> float:
    return sum(predict(text) == label for text, label in found) / len(found)


# The commoner label


@pytest.mark.parametrize(
    ("labels", "expected"),
    [(["pass", "pass", "fail"], "pass"), (["fail", "fail", "pass"], "fail"), (["pass", "fail"], "fail"), ([], "fail")],
)
def test_majority_is_the_commoner_label_and_fail_where_there_is_none(labels: list[Binary], expected: str) -> None:
    predict = majority_baseline(("text", label) for label in labels)
    assert {predict("anything"), predict("")} == {expected}


# Terms


def test_terms_are_words_of_two_letters_and_more_and_pairs_of_neighbours() -> None:
    assert list(terms("The Agent's a 404-error\nok_x")) == [
        "the",
        "agent",
        "404",
        "error",
        "ok_x",
        "the agent",
        "agent 404",
        "404 error",
        "error ok_x",
    ]


def test_where_words_are_not_set_apart_two_characters_are_a_word() -> None:
    assert list(terms("图片清晰，合格")) == ["图片", "片清", "清晰", "合格", "图片 片清", "片清 清晰", "清晰 合格"]
    assert list(terms("不 ok 图片ab")) == ["不", "ok", "图片", "ab", "不 ok", "ok 图片", "图片 ab"]
    assert list(terms("カメラ")) == ["カメ", "メラ", "カメ メラ"]
    assert list(terms("")) == []


def test_a_term_counts_more_the_fewer_tickets_have_it() -> None:
    features = count_features(["bb bb aa", "aa bb", "aa cc cc", "dd"])
    assert [(term, feature.place) for term, feature in features.items()] == [("aa", 1), ("bb", 2)]
    assert features["aa"].rarity == pytest.approx(log(5 / 4) + 1)
    assert features["bb"].rarity == pytest.approx(log(5 / 3) + 1)


def test_a_text_is_a_vector_of_length_one_beside_a_first_place_that_is_always_one() -> None:
    features = {"aa": Feature(2, 3.0), "bb": Feature(5, 4.0)}
    found = feature_vector("aa cc bb", features)
    assert list(found.places) == [0, 2, 5]
    assert list(found.values) == pytest.approx([1, 0.6, 0.8])
    # Said ten times, a word counts 1 + log 10 times as much.
    often = feature_vector("bb " + "aa " * 10, features)
    assert list(often.places) == [0, 5, 2]
    assert often.values[2] / often.values[1] == pytest.approx(3 * (1 + log(10)) / 4)
    for text in ("", "none of them"):
        assert (list(feature_vector(text, features).places), list(feature_vector(text, features).values)) == ([0], [1])


# Word counts


def test_one_word_among_many_is_found_and_holds_for_other_tickets() -> None:
    predict = word_count_baseline(tickets(150, 1))
    assert right(predict, tickets(60, 2)) >= 0.95


def test_noise_teaches_nothing() -> None:
    rng = random.Random(7)
    shuffled = [(text, rng.choice(["pass", "fail"])) for text, _ in tickets(120, 1, "x1", "x1")]
    others: Labelled = [(text, rng.choice(["pass", "fail"])) for text, _ in tickets(200, 3, "x1", "x1")]
    assert 0.35 < right(word_count_baseline(shuffled), others) < 0.65


def test_the_order_of_two_words_tells() -> None:
    rng = random.Random(4)

    def made(count: int) -> Labelled:
        found: Labelled = []
        for at in range(count):
            words = rng.choices(FILLER, k=12)
            said = "not good" if at % 2 else "good not"
            found.append((" ".join([*words[:6], said, *words[6:]]), "fail" if at % 2 else "pass"))
        return found

    assert right(word_count_baseline(made(120)), made(60)) > 0.9


def test_a_language_without_spaces_is_learned_too() -> None:
    rng = random.Random(9)

    def made(count: int) -> Labelled:
        found: Labelled = []
        for at in range(count):
            common = "".join(rng.choices("图片中的设备安装位置正确且标签清楚可见现场照片", k=20))
            label = "pass" if at % 2 else "fail"
            found.append((common[:9] + ("螺丝齐全" if label == "pass" else "螺丝缺失") + common[9:], label))
        return found

    assert right(word_count_baseline(made(80)), made(40)) > 0.95


def test_a_rare_label_weighs_as_much_as_a_common_one() -> None:
    """Of the tickets that say refunded, 20 pass and 57 fail; but of the passes all say so, and of the fails few."""
    found: Labelled = [("it was refunded", "pass")] * 20 + [("it was refunded", "fail")] * 57
    found += [("it was ignored", "fail")] * 323
    predict = word_count_baseline(found)
    assert (predict("it was refunded"), predict("it was ignored")) == ("pass", "fail")


def test_a_word_that_is_said_again_and_again_does_not_drown_the_others() -> None:
    found: Labelled = [(word, "pass") for word in ("paid", "sent", "seen", "kept")] * 3 + [("lost", "fail")] * 12
    predict = word_count_baseline(found)
    assert predict("paid, sent, seen, kept; lost") == "pass"
    assert predict("paid, sent, seen, kept; lost, lost, lost, lost, lost, lost") == "pass"
    assert predict("paid; lost, lost, lost, lost, lost, lost") == "fail"


def test_the_same_tickets_give_the_same_predictions() -> None:
    found, others = tickets(60, 1), tickets(200, 2, "maybe", "perhaps")
    first, two = word_count_baseline(found), word_count_baseline(iter(found))
    assert [first(text) for text, _ in others] == [two(text) for text, _ in others]


@pytest.mark.parametrize("label", ["pass", "fail"])
def test_with_one_label_there_is_nothing_to_learn(label: Any) -> None:
    assert word_count_baseline([("some words", label), ("other words", label)])("nothing of it") == label


def test_without_tickets_everything_fails() -> None:
    assert word_count_baseline([])("some words") == "fail"


def test_texts_without_a_word_are_not_in_the_way() -> None:
    found = [*tickets(150, 1), ("", "pass"), ("!?", "fail")]
    predict = word_count_baseline(found)
    assert right(predict, tickets(60, 2)) >= 0.95
    assert predict("") in ("pass", "fail")


def test_words_of_a_single_ticket_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Labelled = [("same words only1", "pass"), ("same words only2", "fail"), ("same words only3", "fail")]
    assert len({word_count_baseline(found)(text) for text, _ in found}) == 1
    monkeypatch.setattr(word_baseline, "FEWEST_TICKETS", 1)
    assert right(word_count_baseline(found), found) == 1


def test_only_the_commonest_terms_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    found: Labelled = [
        ("common alpha", "pass"),
        ("common alpha", "pass"),
        ("common beta", "fail"),
        ("common beta", "fail"),
    ]
    assert right(word_count_baseline(found), found) == 1
    monkeypatch.setattr(word_baseline, "MOST_FEATURES", 1)
    assert len({word_count_baseline(found)(text) for text, _ in found}) == 1


@pytest.mark.parametrize(
    ("most", "learned"), [(10, "abcdefghij"), (9, "acegi"), (5, "acegi"), (4, "adgj"), (1, "a"), (100, "abcdefghij")]
)
def test_of_too_many_tickets_evenly_spaced_ones_are_learned_from(
    monkeypatch: pytest.MonkeyPatch, most: int, learned: str
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(word_baseline, "MOST_TICKETS", most)
    monkeypatch.setattr(word_baseline, "terms", lambda text: seen.append(text) or iter([text]))
    word_count_baseline([(letter, "pass" if at % 4 else "fail") for at, letter in enumerate("abcdefghij")])
    # Each is read twice; with a single one there is a single label, and nothing to read.
    assert "".join(seen) == (learned * 2 if most > 1 else "")


def test_the_weights_are_where_no_step_makes_them_better() -> None:
    """The slope of what logistic regression with an L2 penalty makes least is nothing there."""
    rng = random.Random(3)
    features, labels = 30, [rng.choice(["pass", "fail", "fail"]) for _ in range(80)]
    vectors = [
        Sparse(array("l", [0, *places]), array("d", [1.0, *(rng.random() for _ in places)]))
        for places in (sorted(rng.sample(range(1, features + 1), 6)) for _ in labels)
    ]
    weights = fit_weights(vectors, labels, features)  # type: ignore[arg-type]
    counts = Counter(labels)
    slope = list(weights)
    for vector, label in zip(vectors, labels, strict=True):
        side = 1 if label == "pass" else -1
        score = sum(weights[place] * value for place, value in zip(vector.places, vector.values, strict=True))
        pull = word_baseline.STRENGTH * len(labels) / (2 * counts[label]) / (1 + exp(side * score))
        for place, value in zip(vector.places, vector.values, strict=True):
            slope[place] -= side * pull * value
    assert len(weights) == features + 1
    assert max(map(abs, weights)) > 0.5
    # Where it began, the steepest was above 10.
    assert max(map(abs, slope)) < 0.1


def test_a_ticket_as_far_as_numbers_go_from_the_others_ends_the_search() -> None:
    vectors = [Sparse(array("l", [0, 1]), array("d", [1.0, value])) for value in (1e3, -1e3, 1e3)]
    weights = fit_weights(vectors, ["pass", "fail", "pass"], 1)
    assert weights[1] > 0


# Where nothing is held out


def test_no_ticket_is_predicted_from_its_own_cluster() -> None:
    found: list[tuple[str, Binary, str]] = [(f"t{at}", "pass" if at % 2 else "fail", f"c{at // 3}") for at in range(40)]
    cluster_of = {text: cluster for text, _, cluster in found}
    predicted: list[str] = []
    sizes: list[int] = []

    def learn(train: Iterable[tuple[str, Binary]]) -> Predict:
        known = {text for text, _ in train}
        sizes.append(40 - len(known))

        def predict(text: str) -> Binary:
            assert cluster_of[text] not in {cluster_of[item] for item in known}
            assert len(known) >= 27
            predicted.append(text)
            return "pass"

        return predict

    assert out_of_fold_predictions(found, learn) == ["pass"] * 40
    assert predicted == [text for text, _, _ in found]
    assert sorted(sizes) == [6, 7, 9, 9, 9]


def test_predictions_stand_in_the_order_of_the_tickets() -> None:
    words: list[Binary] = ["pass", "fail", "fail"]
    found: list[tuple[str, Binary, str]] = [(f"it is {words[at % 3]}", words[at % 3], f"c{at % 7}") for at in range(60)]
    assert out_of_fold_predictions(found, word_count_baseline) == [label for _, label, _ in found]
    assert out_of_fold_predictions(found, majority_baseline) == ["fail"] * 60


def test_a_single_cluster_leaves_nothing_to_learn_from() -> None:
    assert out_of_fold_predictions([("a", "pass", "one"), ("b", "pass", "one")], majority_baseline) == ["fail", "fail"]
    assert out_of_fold_predictions([], majority_baseline) == []
