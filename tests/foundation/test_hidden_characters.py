"""Characters that can't be seen are found, and those that a script or an emoji needs are not."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.foundation.hidden_characters import HiddenCharacter, find_hidden_character


@pytest.mark.parametrize(
    "text",
    [
        "Der Preis in € ist größer als 3.",
        "价格大于 3 元（含税）。",
        "全角　スペースとカナ",
        "한국어 기준이 충족된다",
        "नमस्ते क्ष्‍य and क्‌ष",
        "می‌خواهم",
        "שלום עולם",
        "👍 👨‍👩‍👧 ❤️ 1️⃣ 🏳️‍🌈 👩🏽‍💻",
        "prix : 3 €",
        "葛󠄀 is a variant",
        "a\tb\nc",
        "",
    ],
)
def test_what_people_write_has_no_hidden_character(text: str) -> None:
    assert find_hidden_character(text) is None


@pytest.mark.parametrize(
    ("text", "at", "name"),
    [
        ("a\u200bb", 1, "U+200B ZERO WIDTH SPACE"),
        ("\u202eevil", 0, "U+202E RIGHT-TO-LEFT OVERRIDE"),
        ("a\u2066b", 1, "U+2066 LEFT-TO-RIGHT ISOLATE"),
        ("a\u200db", 1, "U+200D ZERO WIDTH JOINER"),
        ("a\u200cb", 1, "U+200C ZERO WIDTH NON-JOINER"),
        ("a\ufe0fb", 1, "U+FE0F VARIATION SELECTOR-16"),
        ("a\u2800b", 1, "U+2800 BRAILLE PATTERN BLANK"),
        ("a\u3164b", 1, "U+3164 HANGUL FILLER"),
        ("soft\u00adhyphen", 4, "U+00AD SOFT HYPHEN"),
        ("a\x1b[31mb", 1, "U+001B Cc"),
        ("a\x00b", 1, "U+0000 Cc"),
        ("a\u2028b", 1, "U+2028 LINE SEPARATOR"),
        ("a\ue000b", 1, "U+E000 Co"),
        ("a\U000e0041b", 1, "U+E0041 TAG LATIN CAPITAL LETTER A"),
        ("\ufeffa", 0, "U+FEFF ZERO WIDTH NO-BREAK SPACE"),
    ],
)
def test_a_hidden_character_is_found_and_named(text: str, at: int, name: str) -> None:
    assert find_hidden_character(text) == HiddenCharacter(at, name)


def test_every_format_and_control_character_between_letters_is_hidden() -> None:
    found = [
        character
        for character in map(chr, range(sys.maxunicode + 1))
        if unicodedata.category(character) in ("Cf", "Cc") and find_hidden_character(f"a{character}b") is None
    ]
    assert found == ["\t", "\n"]


@given(
    st.text(st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters="\u2800\u3164\u115f\u1160\uffa0"))
)
def test_letters_numbers_and_signs_are_not_hidden(text: str) -> None:
    assert find_hidden_character(text) is None
