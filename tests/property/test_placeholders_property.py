"""Placeholders: no decoration lets filler in, and no placeholder word keeps a sentence out."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from donewhen.jobs.plan.criteria import Check, Criterion
from donewhen.jobs.plan.placeholders import describes_verification, is_placeholder, is_unedited, is_weak, written_lines

FILLER = [
    "ok",
    "tbd",
    "todo",
    "to be filled",
    "done",
    "n/a",
    "later",
    "criterion",
    "待定",
    "已完成",
    "미정",
    "готово",
    "à définir",
]
DECORATION = st.text(st.sampled_from(" .,;!?-_*~`'\"()/\\|+#=…。、👍✅🎉™\u2800\u200b\ufe0f\u00ad"), max_size=6)
CASE = st.sampled_from([str.lower, str.upper, str.title, str])
CONTENT = ["parser", "rejects", "empty", "lines", "exports", "columns", "counts", "users", "browser", "cached"]
SENTENCES = st.lists(st.sampled_from(CONTENT), min_size=4, max_size=8, unique=True)


@given(st.lists(st.tuples(st.sampled_from(FILLER), DECORATION, CASE), min_size=1, max_size=4), DECORATION)
def test_decorating_filler_never_lets_it_in(parts: list[tuple[str, str, object]], before: str) -> None:
    text = before + "".join(f"{case(word)} {marks} " for word, marks, case in parts)  # type: ignore[operator]
    assert is_weak(text)
    assert is_placeholder(text)
    assert not describes_verification(text)


@given(SENTENCES, st.sampled_from(FILLER), st.integers(0, 8), DECORATION)
def test_a_placeholder_word_never_keeps_a_sentence_out(
    words: list[str], filler: str, position: int, marks: str
) -> None:
    position = min(position, len(words))
    text = " ".join([*words[:position], filler + marks.replace("`", ""), *words[position:]])
    assert not is_weak(text)
    assert not is_placeholder(text)


@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    # What is unedited is a placeholder, and a placeholder is weak.
    assert not is_unedited(text) or is_placeholder(text)
    assert not is_placeholder(text) or is_weak(text)
    assert len(written_lines(text)) <= len(text.splitlines())


@given(st.text(max_size=60))
def test_a_check_of_its_own_never_makes_a_criterion_weaker(text: str) -> None:
    with_check = Criterion("AC-1", text, Check("run", "true", argv=("true",)), 1)
    assert not with_check.placeholder or Criterion("AC-1", text, None, 1).placeholder
