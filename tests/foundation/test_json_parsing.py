"""JSON is parsed without silent losses."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.json_parsing import DuplicateKeyError, parse_json

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":1}', '{"a":1,"b":2,"a":3}', '[{"x":{"a":1,"\\u0061":2}}]', b'{"a":1,"a":2}']
)
@pytest.mark.parametrize("allow_nan", [False, True])
def test_a_duplicate_key_is_an_error_at_any_depth(text: str | bytes, allow_nan: bool) -> None:
    with pytest.raises(DuplicateKeyError):
        parse_json(text, allow_nan=allow_nan)


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", '{"a":-Infinity}', "1e999", "[-1e400]"])
def test_numbers_that_json_can_not_hold_are_refused_unless_they_are_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not a number in JSON|is too large"):
        parse_json(text)
    parse_json(text, allow_nan=True)


@pytest.mark.parametrize("text", ["", "{", "[1,]", "{'a':1}", "1 2"])
def test_what_is_not_json_keeps_the_position_of_the_error(text: str) -> None:
    with pytest.raises(json.JSONDecodeError):
        parse_json(text)


@given(VALUES)
def test_everything_else_is_what_the_standard_parser_returns(value: object) -> None:
    assert parse_json(json.dumps(value)) == value
    assert parse_json(json.dumps(value).encode(), allow_nan=True) == value
