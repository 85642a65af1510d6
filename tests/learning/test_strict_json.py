"""One JSON object, as it stands, or none."""

from __future__ import annotations

import pytest

from donewhen.learning.reflection.strict_json import UnusableAnswer, read_json_object
from sentences import assert_sentences


@pytest.mark.parametrize(
    "text",
    [
        '{"a": [1, {"b": null}]}',
        ' \n\t{"a": [1, {"b": null}]}\r\n ',
        '```json\n{"a": [1, {"b": null}]}\n```',
        '```\n{"a": [1, {"b": null}]}```',
        '\n```JSON  \n{"a": [1, {"b": null}]}\n```\n',
    ],
)
def test_white_space_and_one_fence_are_taken_off(text: str) -> None:
    assert read_json_object(text) == {"a": [1, {"b": None}]}


def test_a_fence_inside_of_a_text_is_text() -> None:
    assert read_json_object('{"a": "```json\\n{}\\n```"}') == {"a": "```json\n{}\n```"}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "not_json"),
        ("no", "not_json"),
        ("{} {}", "not_json"),
        ('{"a": 1}\n{"a": 1}', "not_json"),
        ("Here you are: {}", "not_json"),
        ("{} That is all.", "not_json"),
        ("```json\n{}\n```\n```json\n{}\n```", "not_json"),
        ("````\n{}\n````", "not_json"),
        ("```json\n```json\n{}\n```\n```", "not_json"),
        ('{"a": 1', "not_json"),
        ('{"a": 1,}', "not_json"),
        ("{'a': 1}", "not_json"),
        ('{"a": NaN}', "not_json"),
        ('{"a": Infinity}', "not_json"),
        ('{"a": -Infinity}', "not_json"),
        ('{"a": 1e999}', "not_json"),
        ('{"a": [{"b": -1e999}]}', "not_json"),
        ('{"a": "\\ud800"}', "not_json"),
        ('{"\\udfff": 1}', "not_json"),
        ('{"a": "\n"}', "not_json"),
        ("// so\n{}", "not_json"),
        ("[" * 100_000, "not_json"),
        ('{"a":' * 900 + "1" + "}" * 900, "not_json"),
        ('{"a": ' + "9" * 5000 + "}", "not_json"),
        ("[]", "not_an_object"),
        ("null", "not_an_object"),
        ('"{}"', "not_an_object"),
        ("3", "not_an_object"),
        ('{"a": 1, "a": 1}', "duplicate_key"),
        ('{"x": {"a": 1, "b": 2, "a": 3}}', "duplicate_key"),
        ('{"x": [{"a": 1, "\\u0061": 3}]}', "duplicate_key"),
    ],
)
def test_whatever_else_it_is_is_refused_and_never_repaired(text: str, reason: str) -> None:
    found = read_json_object(text)
    if reason == "not_json" and isinstance(found, dict):
        # How deep is too deep is Python's business; what is read must be fit for the record.
        assert text.startswith('{"a":' * 900)
        return
    assert isinstance(found, UnusableAnswer)
    assert found.reason == reason
    assert len(found.detail) <= 300


def test_a_doubled_key_is_named() -> None:
    found = read_json_object('{"coverage": 1, "coverage": 2}')
    assert isinstance(found, UnusableAnswer)
    assert_sentences(found.detail)


def test_what_is_no_json_is_named() -> None:
    found = read_json_object('{"a": NaN}')
    assert isinstance(found, UnusableAnswer)
    assert_sentences(found.detail)
