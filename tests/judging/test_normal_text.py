"""A text as a person reads it: what imitates other text is made plain, and honest text stays as it is."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from donewhen.judging.normal_text import normal_text, normal_texts, read_alike


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("tеsts were nоt run", "tests were not run"),
        ("ѕсоре", "scope"),
        ("ｓｋｉｐ 𝐬𝐤𝐢𝐩 ⓢⓚⓘⓟ ᴛᴏᴅᴏ", "skip skip skip todo"),
        ("not\u200b te\u00adsted", "not tested"),
        ("n\u0336o\u0336t\u0336", "not"),
        ("s\ufe0fk\u200dip", "skip"),
        ("ski\U000e0041pped", "skipped"),
        ("not\x1b[31m tested", "not tested"),
        ("\u202edetset ton\u202c at all", "not tested at all"),
        ("n&#111;t t&#x65;sted &#169; &#9999999;", "not tested &#169; &#9999999;"),
        ("раsѕ the ѕсоре ѕсоре", "pass the scope scope"),
        ("a тест is out of ѕсоре here", "a тест is out of scope here"),
        ("were not test-\ned at all", "were not tested at all"),
        ("were not test\u00ad\ned", "were not tested"),
        ("+ were not test-\n+ed at all", "+ were not tested at all"),
        ("the checks were not\nrun here", "the checks were not run here"),
        ("# the checks were not\n# run here", "# the checks were not run here"),
        ("a\r\nB\u2028C", "a\nB\nC"),
    ],
)
def test_what_imitates_other_text_is_read_as_that_text(text: str, plain: str) -> None:
    assert normal_text(text).rstrip("\n") == plain


HONEST = {
    "Russian": "Мы используем Docker и он не падает.\nНет, все тесты прошли.",
    "Russian with few words in common": "Все хором поют, а ухо слышит сор в API.",
    "Russian and code": "Все\n\nfoo(bar)  # Все тесты, а хор\nOne line. Größe. Все тесты прошли.",
    "Greek": "Καλημέρα και όλα τα τεστ πέρασαν.",
    "German": "Größere Prüfungen, naïve Façade und ein Çay.",
    "Vietnamese": "Tất cả các bài kiểm tra đều đạt.",
    "Turkish": "Yalnızca çalışan sınamalar.",
    "Chinese": "所有测试都通过了，包括：解析器。\n没有例外。",
    "Japanese": "すべてのテストが通りました。\nカタカナも。",
    "Persian": "این می\u200cشود",
    "Hindi": "क्\u200dष और क्\u200cष",
    "emoji": "👨\u200d👩\u200d👧 ok ❤\ufe0f 1\ufe0f\u20e3 ✔\ufe0f",
    "mathematics": "Δx ≤ 5 m², α ≈ β ± ½ …",
    "signs": "Donewhen™ costs 5 €, № 3, 20 ℃",
    "Markdown": "# Title\n\n- first item\n- second item\n\n| a | b |\n| - | - |\n",
    "code": "def f(x):\n    return x\n\n\nclass A:\n    pass\n",
}


@pytest.mark.parametrize("text", HONEST.values(), ids=HONEST)
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert normal_text(text, join_lines=False) == text
    assert normal_text(text) == text or "return" in text or "def" in text


def test_composed_and_split_accents_and_line_ends_are_one_text() -> None:
    composed = {"output résumé.md": "größer\nund besser"}
    split = {unicodedata.normalize("NFD", name): unicodedata.normalize("NFD", text) for name, text in composed.items()}
    assert split != composed
    assert read_alike(split, normal_texts(split, join_lines=False))
    assert read_alike({"a": "One.\r\nTwo."}, normal_texts({"a": "One.\r\nTwo."}))
    assert not read_alike({"a": "nоt"}, normal_texts({"a": "nоt"}))


def test_what_a_command_printed_is_not_joined() -> None:
    texts = {"output a.md": "one\ntwo", "evidence AC-1 1": "one\ntwo"}
    assert normal_texts(texts) == {"output a.md": "one two", "evidence AC-1 1": "one\ntwo"}


def test_no_text_is_lost_if_two_names_look_the_same() -> None:
    texts = {"output а.md": "1", "output а\u200b.md": "2", "output a.md": "3"}
    found = normal_texts(
        {name.replace("а.md", "nоt.md").replace("а\u200b", "not"): text for name, text in texts.items()}
    )
    assert sorted(found.values()) == ["1", "2", "3"]


@given(st.text())
def test_any_text_has_a_plain_form_with_no_more_lines(text: str) -> None:
    assert normal_text(text, join_lines=False).count("\n") <= len(text.splitlines())
    assert normal_text(text).count("\n") <= normal_text(text, join_lines=False).count("\n")


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126)))
def test_one_line_of_ascii_never_changes(text: str) -> None:
    assert normal_text(text) == text
