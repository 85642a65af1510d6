"""JSON from strangers is read strictly, or not at all."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.untrusted_json import DEEPEST, UntrustedJsonError, read_object
from sentences import assert_sentences


def test_one_object_is_read_with_at_most_one_line_end_behind_it() -> None:
    assert read_object(b'{"a": [1, 2.5, null, "\xc3\xa9"]}') == {"a": [1, 2.5, None, "é"]}
    assert read_object(b'{"a":1}\n') == {"a": 1}


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b'"a"',
        b' {"a":1}',
        b'{"a":1} ',
        b'{"a":1}\n\n',
        b'\xef\xbb\xbf{"a":1}',
        b'{"a":1}{"b":2}',
        b'{"a":1',
        b'{"a":1,}',
        b'{"a":1,"a":1}',
        b'{"x":{"a":1,"\\u0061":2}}',
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":1e999}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        b'{"a":"\xed\xa0\x80"}',
        b'{"a":' + b"9" * 5000 + b"}",
    ],
)
def test_what_readers_differ_in_is_refused(raw: bytes) -> None:
    with pytest.raises(UntrustedJsonError) as caught:
        read_object(raw)
    assert_sentences(caught.value)


@pytest.mark.parametrize("levels", [DEEPEST, 500, 100_000])
def test_deep_nesting_is_refused(levels: int) -> None:
    with pytest.raises(UntrustedJsonError) as caught:
        read_object(b'{"a":' + b"[" * levels + b"]" * levels + b"}")
    assert_sentences(caught.value)


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
