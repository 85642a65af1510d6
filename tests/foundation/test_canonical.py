"""The same value has the same bytes, whoever wrote it down."""

from __future__ import annotations

import hashlib
import json

import pytest

from donewhen.foundation.canonical import canonical_json, digest, digest_of


def test_keys_are_sorted_and_there_is_no_white_space() -> None:
    assert canonical_json({"b": [1, 2], "a": {"d": None, "c": True}}) == b'{"a":{"c":true,"d":null},"b":[1,2]}'


def test_the_order_in_which_keys_were_written_does_not_count() -> None:
    assert canonical_json({"a": 1, "b": {"x": 1, "y": 2}}) == canonical_json({"b": {"y": 2, "x": 1}, "a": 1})


def test_the_order_of_a_list_counts() -> None:
    assert canonical_json([1, 2]) != canonical_json([2, 1])


def test_text_beyond_ascii_is_utf8_and_not_escaped() -> None:
    assert canonical_json("é\u2028\U0001f600") == '"é\u2028\U0001f600"'.encode()


def test_control_characters_and_quotes_are_escaped_so_that_a_value_is_one_line() -> None:
    data = canonical_json({"a\nb": '\r\n\x00"\\'})
    assert b"\n" not in data
    assert b"\r" not in data
    assert json.loads(data) == {"a\nb": '\r\n\x00"\\'}


def test_a_tuple_and_a_list_have_the_same_form() -> None:
    assert canonical_json((1, "a")) == canonical_json([1, "a"]) == b'[1,"a"]'


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")], ids=["nan", "inf", "-inf"])
def test_numbers_that_json_does_not_have_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="Out of range"):
        canonical_json({"a": [value]})


def test_half_a_character_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogates"):
        canonical_json("\ud800")


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, object], ids=["bytes", "set", "class"])
def test_what_json_does_not_have_is_refused(value: object) -> None:
    with pytest.raises(TypeError):
        canonical_json(value)


def test_a_whole_number_and_a_fraction_are_two_values() -> None:
    assert digest_of(1) != digest_of(1.0) != digest_of(True)


def test_a_digest_names_its_algorithm_and_has_64_hexadecimal_digits() -> None:
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert digest(b"") == f"sha256:{empty}"
    assert digest(b"x") == "sha256:" + hashlib.sha256(b"x").hexdigest()


def test_the_digest_of_a_value_is_that_of_its_canonical_form() -> None:
    assert digest_of({"b": 1, "a": 2}) == digest(b'{"a":2,"b":1}') == digest_of({"a": 2, "b": 1})
