"""JSON from strangers is read strictly, or not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.untrusted_json import DEEPEST, UntrustedJsonError, read_object


def test_one_object_is_read_with_at_most_one_line_end_behind_it() -> None:
    assert read_object(b'{"a": [1, 2.5, null, "\xc3\xa9"]}') == {"a": [1, 2.5, None, "é"]}
    assert read_object(b'{"a":1}\n') == {"a": 1}


@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"", "one JSON object"),
        (b"[]", "one JSON object"),
        (b'"a"', "one JSON object"),
        (b' {"a":1}', "one JSON object"),
        (b'{"a":1} ', "one JSON object"),
        (b'{"a":1}\n\n', "one JSON object"),
        (b'\xef\xbb\xbf{"a":1}', "one JSON object"),
        (b'{"a":1}{"b":2}', "not JSON"),
        (b'{"a":1', "one JSON object"),
        (b'{"a":1,}', "not JSON"),
        (b'{"a":1,"a":1}', "occurs twice"),
        (b'{"x":{"a":1,"\\u0061":2}}', "occurs twice"),
        (b'{"a":NaN}', "NaN is not a number"),
        (b'{"a":-Infinity}', "-Infinity is not a number"),
        (b'{"a":1e999}', "no JSON can have"),
        (b'{"a":"\\ud800"}', "no JSON can have"),
        (b'{"a":"\xff"}', "not JSON"),
        (b'{"a":"\xed\xa0\x80"}', "not JSON"),
        (b'{"a":' + b"9" * 5000 + b"}", "not JSON"),
    ],
)
def test_what_readers_differ_in_is_refused(raw: bytes, told: str) -> None:
    with pytest.raises(UntrustedJsonError, match=told):
        read_object(raw)


@pytest.mark.parametrize("levels", [DEEPEST, 500, 100_000])
def test_deep_nesting_is_refused(levels: int) -> None:
    with pytest.raises(UntrustedJsonError, match="nested deeper"):
        read_object(b'{"a":' + b"[" * levels + b"]" * levels + b"}")


def test_nesting_up_to_the_limit_is_read() -> None:
    levels = DEEPEST - 1
    assert read_object(b'{"a":' + b"[" * levels + b"]" * levels + b"}")


@given(st.dictionaries(st.text(), st.recursive(st.none() | st.booleans() | st.integers() | st.text(), st.lists)))
def test_whatever_is_written_is_read_back_or_refused(value: dict[str, object]) -> None:
    raw = json.dumps(value).encode()
    try:
        assert read_object(raw) == value
    except UntrustedJsonError:
        assert "\\ud" in raw.decode()


@given(st.binary(max_size=200))
def test_noise_is_refused_with_a_sentence_and_never_breaks_anything(raw: bytes) -> None:
    try:
        read_object(b"{" + raw + b"}")
    except UntrustedJsonError as error:
        assert str(error)
