"""Parse a model's answer: a verdict line and a reason line. Anything else is malformed, and is counted."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.plain_text import one_line
from donewhen.judging.language import AnswerWords, fold_word

Malformation = Literal[
    "empty", "cut_off", "no_verdict_line", "unknown_verdict", "no_reason_line", "no_reason", "extra_lines", "no_answer"
]

_MAX_REASON_CHARS = 600


class JudgeAnswer(NamedTuple):
    """A vote and its reason."""

    verdict: Binary
    reason: str
    margin: float | None = None


class MalformedAnswer(NamedTuple):
    """An answer that is not a vote."""

    why: Malformation
    text: str = ""


def read_answer(text: str, words: AnswerWords, *, complete: bool = True) -> JudgeAnswer | MalformedAnswer:
    """Parse an answer strictly. ``complete`` is False if the model's output was truncated."""
    # A truncated answer is malformed even if it has a verdict: the missing part may have reconsidered it.
    excerpt = one_line(text, _MAX_REASON_CHARS)
    if not complete:
        return MalformedAnswer("cut_off", excerpt)
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return MalformedAnswer("empty")
    verdict = _text_after_label(lines[0], words.verdict)
    if verdict is None:
        return MalformedAnswer("no_verdict_line", excerpt)
    parsed = {fold_word(words.pass_): "pass", fold_word(words.fail): "fail"}.get(fold_word(verdict))
    if parsed is None:
        return MalformedAnswer("unknown_verdict", excerpt)
    if len(lines) < 2 or (reason_text := _text_after_label(lines[1], words.reason)) is None:
        return MalformedAnswer("no_reason_line", excerpt)
    reason = one_line(reason_text, _MAX_REASON_CHARS)
    if not reason:
        return MalformedAnswer("no_reason", excerpt)
    if len(lines) > 2:
        return MalformedAnswer("extra_lines", excerpt)
    return JudgeAnswer("pass" if parsed == "pass" else "fail", reason)


def _text_after_label(line: str, label: str) -> str | None:
    match = re.match(rf"{re.escape(label)}\s*[:：]\s*(.*)", line, re.IGNORECASE)
    return match[1].strip() if match else None
