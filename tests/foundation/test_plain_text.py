"""Untrusted text loses what could drive a terminal or hide what it says, and nothing else."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.plain_text import escape_html, join_limited, one_line, plain_text, shorten

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
ZERO_WIDTH = "\u00ad\u180e\u200b\u200c\u200d\u2060\u2061\u2062\u2063\u2064\u206a\u206f\ufeff"
TAGS = "\U000e0001\U000e0020\U000e0041\U000e007f"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[1;38;5;196mred\x1b[m", "red"),
        ("a\x1b[2J\x1b[1;1Hb", "ab"),
        ("a\x1b[?25lb\x1b[?25h", "ab"),
        ("a\x1b[1 qb", "ab"),
        ("a\x1b[>cb", "ab"),
        ("a\x1b[200~b", "ab"),
        ("\x1b]0;a title\x07text", "text"),
        ("\x1b]0;a title\x1b\\text", "text"),
        ("\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;ZXZpbA==\x07text", "text"),
        ("\x1bPq#0;2;0;0;0\x1b\\text", "text"),
        ("\x1b_application\x1b\\text", "text"),
        ("\x1b^private\x1b\\text", "text"),
        ("\x1bXstring\x1b\\text", "text"),
        ("a\x1bcb", "ab"),
        ("a\x1b(Bb", "ab"),
        ("a\x1b7b\x1b8c", "abc"),
        ("a\x1b=b\x1b>c", "abc"),
        ("end\x1b", "end"),
        ("end\x1b[", "end"),
        ("\x1b\x1b[31mx", "x"),
    ],
)
def test_an_escape_sequence_disappears_as_a_whole(text: str, expected: str) -> None:
    assert plain_text(text) == expected


def test_two_sequences_with_text_between_them_lose_only_themselves():
    assert plain_text("\x1b]0;one\x07kept\x1b]0;two\x07also") == "keptalso"


def test_a_sequence_hidden_in_another_does_not_come_to_life():
    assert "\x1b" not in plain_text("\x1b\x1b[0m[31m \x1b\x1b]0;x\x07]0;y\x07")


@pytest.mark.parametrize("number", [*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), *range(0x7F, 0xA0)])
def test_a_control_character_is_removed(number: int) -> None:
    assert plain_text(f"a{chr(number)}") == "a"


def test_an_eight_bit_control_sequence_can_not_act():
    assert not any(
        0x80 <= ord(character) < 0xA0 for character in plain_text("\x9b31mred\x9b0m \x9d0;title\x9c \x90q\x9c")
    )


@pytest.mark.parametrize("character", BIDIRECTIONAL, ids=ascii)
def test_a_bidirectional_control_is_removed(character: str) -> None:
    assert plain_text(f"ac{character}cess") == "access"


@pytest.mark.parametrize("character", ZERO_WIDTH, ids=ascii)
def test_a_zero_width_character_is_removed(character: str) -> None:
    assert plain_text(f"pa{character}ss") == "pass"


@pytest.mark.parametrize("character", TAGS, ids=ascii)
def test_an_invisible_tag_character_is_removed(character: str) -> None:
    # A person does not see them, a model reads them: the classic way to smuggle an instruction.
    assert plain_text(f"pa{character}ss") == "pass"


@pytest.mark.parametrize("surrogate", ["\ud800", "\udbff", "\udc00", "\udc80", "\udfff"], ids=ascii)
def test_a_lone_surrogate_is_removed_so_that_the_text_can_be_encoded(surrogate: str) -> None:
    assert plain_text(f"a{surrogate}b").encode() == b"ab"


def test_the_neighbours_of_the_removed_ranges_stay():
    kept = "\t\n !~\u00a0\u200a\u2010\u2027\u202f\u205f\u2070\ufefe\uff00\ue000\ud7ff"
    assert plain_text(kept) == kept


@pytest.mark.parametrize(
    "text", ["", "two\nlines\n", "a\tb", "naïve café", "日本語", "👍🏽", "العربية", "x² ≤ y", "[31m is text", "1;2m"]
)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert plain_text(text) == text


def test_lines_stay_lines_whatever_ends_them():
    assert plain_text("one\r\ntwo\rthree\nfour") == "one\ntwo\nthree\nfour"


def test_a_carriage_return_does_not_overwrite_what_was_said():
    assert plain_text("3 tests failed\rall fine") == "3 tests failed\nall fine"


@pytest.mark.parametrize("opening", ["\x1b]0;", "\x1bP", "\x1b_", "\x1b^", "\x1bX"], ids=ascii)
def test_a_sequence_that_is_never_ended_does_not_swallow_the_lines_after_it(opening: str) -> None:
    assert plain_text(f"collected\n{opening}oops\n3 tests failed\n").split("\n")[2:] == ["3 tests failed", ""]


def test_a_sequence_does_not_reach_over_lines_to_its_end():
    assert "3 tests failed" in plain_text("\x1b]0;title\n3 tests failed\n\x07done")


def test_one_line_is_one_plain_line_with_single_spaces():
    assert one_line("  a\n\n b\t\x1b[31mc\x1b[0m \u2028 d  ") == "a b c d"


def test_one_line_cuts_at_two_hundred_characters_unless_told_otherwise():
    assert one_line("x" * 200) == "x" * 200
    assert one_line("x" * 201) == "x" * 199 + "…"


def test_one_line_measures_after_cleaning():
    assert one_line("\x1b[31m" * 50 + "abc", 3) == "abc"


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("abc", 4, "abc"),
        ("", 1, ""),
        ("a", 1, "a"),
        ("ab", 1, "…"),
        ("ab cd", 4, "ab…"),
    ],
)
def test_a_text_is_cut_only_when_it_is_longer_than_its_limit(text: str, limit: int, expected: str) -> None:
    assert shorten(text, limit) == expected


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[" * 200_000,
        "\x1b[" + "0" * 500_000,
        "\x1b]" * 200_000,
        "\x1b" + " " * 500_000,
        "\x1b]x\n" * 100_000,
        "\x1b[" + "0" * 200_000 + " " * 200_000,
    ],
    ids=["openings", "parameters", "titles", "intermediates", "title lines", "both"],
)
def test_text_made_to_be_slow_is_cleaned_all_the_same(text: str) -> None:
    assert "\x1b" not in plain_text(text)


@pytest.mark.parametrize(
    ("names", "limit", "expected"),
    [
        ([], 3, ""),
        (["a"], 3, "a"),
        (["a", "b", "c"], 3, "a, b, c"),
        (("a", "b", "c", "d"), 3, "a, b, c and 1 more"),
        (["a", "b", "c", "d", "e"], 2, "a, b and 3 more"),
    ],
)
def test_a_long_list_says_how_many_were_left_out(names: list[str], limit: int, expected: str) -> None:
    assert join_limited(names, limit) == expected


@given(st.text(alphabet="&<>\"'ab;#x27 ") | st.text())
def test_text_for_a_page_is_escaped_as_the_standard_library_does(text: str) -> None:
    assert escape_html(text) == html.escape(text)
