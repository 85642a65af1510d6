"""Is this an answer? Two lines, a verdict and a reason; whatever else a model says is malformed, and is counted."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.judging.language import AnswerWords, fold_word
from donewhen.models.roles import Binary

Malformation = Literal[
    "empty", "cut_off", "no_verdict_line", "unknown_verdict", "no_reason_line", "no_reason", "extra_lines", "no_answer"
]

_REASON = 600


class JudgeAnswer(NamedTuple):
    """A vote, and why."""

    verdict: Binary
    reason: str
    margin: float | None = None


class MalformedAnswer(NamedTuple):
    """No vote."""

    why: Malformation
    text: str = ""


def read_answer(text: str, words: AnswerWords, *, complete: bool = True) -> JudgeAnswer | MalformedAnswer:
    """Read an answer strictly. ``complete`` is False where the model was cut off."""
    # A reason that was cut short is no reason; the verdict may have been reconsidered in what is missing.
    shown = one_line(text, _REASON)
    if not complete:
        return MalformedAnswer("cut_off", shown)
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return MalformedAnswer("empty")
    verdict = _after(lines[0], words.verdict)
    if verdict is None:
        return MalformedAnswer("no_verdict_line", shown)
    meant = {fold_word(words.pass_): "pass", fold_word(words.fail): "fail"}.get(fold_word(verdict))
    if meant is None:
        return MalformedAnswer("unknown_verdict", shown)
    if len(lines) < 2 or (given := _after(lines[1], words.reason)) is None:
        return MalformedAnswer("no_reason_line", shown)
    reason = one_line(given, _REASON)
    if not reason:
        return MalformedAnswer("no_reason", shown)
    if len(lines) > 2:
        return MalformedAnswer("extra_lines", shown)
    return JudgeAnswer("pass" if meant == "pass" else "fail", reason)


def _after(line: str, label: str) -> str | None:
    found = re.match(rf"{re.escape(label)}\s*[:：]\s*(.*)", line, re.IGNORECASE)
    return found[1].strip() if found else None
