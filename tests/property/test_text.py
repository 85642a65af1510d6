"""Whatever text comes in: what is shown can drive no terminal, and nothing visible is lost."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from donewhen.foundation.plain_text import one_line, plain_text, shorten
from donewhen_kit import examples

modest = settings(max_examples=examples(150), deadline=None)

FRAGMENTS = [
    "\x1b", "\x1b[", "\x1b]", "\x1bP", "\x1bX", "\x1b^", "\x1b_", "\x1b\\", "\x07", "[", "]", "\\", ";", "0",
    "31", "m", "H", "?", "(", " ", "\n", "\r", "\r\n", "\t", "\x00", "\x08", "\x7f", "\x85", "\x90", "\x9b", "\x9c",
    "\x9d", "\u200b", "\u2028", "\u202e", "\ufeff", "\ud800", "\udfff", "a", "word", "é",
]  # fmt: skip
NASTY = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=3)), max_size=12).map("".join)
VISIBLE = st.text(alphabet=st.sampled_from("abcXYZ019 .,;:[]()<>é日👍\t"), max_size=12)
SEQUENCES = st.sampled_from(
    [
        "\x1b[0m", "\x1b[1;31m", "\x1b[2J", "\x1b[?25l", "\x1b[38;5;196m", "\x1b[K", "\x1b(B", "\x1b7", "\x1bc",
        "\x1b]0;title\x07", "\x1b]0;title\x1b\\", "\x1b]8;;http://x\x1b\\", "\x1bPq\x1b\\",
        "\x1b_x\x1b\\", "\u200b", "\u202e", "\x00", "\x07", "\x08",
    ]
)  # fmt: skip


def allowed(character: str) -> bool:
    number = ord(character)
    return character in "\t\n" or (number >= 0x20 and not 0x7F <= number < 0xA0 and not 0xD800 <= number < 0xE000)


@modest
@given(NASTY)
@example("\x1b\x1b[31m[32m")
@example("\x1b]\x1b]\x07\x07")
def test_no_control_character_but_tab_and_newline_remains(text: str) -> None:
    assert all(allowed(character) for character in plain_text(text))
    plain_text(text).encode()


@modest
@given(NASTY)
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert plain_text(plain_text(text)) == plain_text(text)


@modest
@given(NASTY)
def test_nothing_is_added_and_the_order_stays(text: str) -> None:
    rest = iter(text.replace("\r\n", "\n").replace("\r", "\n"))
    assert all(character in rest for character in plain_text(text))


@modest
@given(st.lists(st.one_of(VISIBLE, SEQUENCES), max_size=10))
def test_exactly_the_sequences_between_visible_text_disappear(pieces: list[str]) -> None:
    visible = [piece for piece in pieces if not any(mark in piece for mark in "\x1b\x07\x08\u200b\u202e\x00")]
    assert plain_text("".join(pieces)) == "".join(visible)


@modest
@given(st.lists(NASTY.map(lambda text: text.replace("\n", " ").replace("\r", " ")), max_size=5))
def test_every_line_stays_a_line_of_its_own(lines: list[str]) -> None:
    assert plain_text("\n".join(lines)).split("\n") == [plain_text(line) for line in lines or [""]]


@modest
@given(NASTY, st.integers(1, 80))
def test_one_line_is_one_short_line(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert line.splitlines() in ([], [line])
    assert line == " ".join(line.split())
    assert one_line(line, limit) == line


@modest
@given(st.text(max_size=40), st.integers(1, 50))
def test_a_shortened_text_is_within_its_limit_and_says_when_something_is_missing(text: str, limit: int) -> None:
    short = shorten(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        assert short.endswith("…")
        assert text.startswith(short[:-1])
        assert text[len(short) - 1 : limit - 1].strip() == ""
