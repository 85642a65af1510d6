"""Is this an answer? Two lines, a verdict and a reason; whatever else a model says is malformed, and is counted."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from donewhen.foundation.plain_text import one_line
from donewhen.judging.language import AnswerWords, folded
from donewhen.models.roles import Binary

Malformation = Literal[
    "empty", "cut_off", "no_verdict_line", "unknown_verdict", "no_reason_line", "no_reason", "extra_lines", "no_answer"
]

_REASON = 600


class Answer(NamedTuple):
    """A vote, and why."""

    verdict: Binary
    reason: str
    margin: float | None = None


class Malformed(NamedTuple):
    """No vote."""

    why: Malformation
    text: str = ""


def read_answer(text: str, words: AnswerWords, *, complete: bool = True) -> Answer | Malformed:
    """Read an answer strictly. ``complete`` is False where the model was cut off."""
    # A reason that was cut short is no reason; the verdict may have been reconsidered in what is missing.
    shown = one_line(text, _REASON)
    if not complete:
        return Malformed("cut_off", shown)
    lines = [line.strip() for line in text.strip().splitlines() if line.strip()]
    if not lines:
        return Malformed("empty")
    verdict = _after(lines[0], words.verdict)
    if verdict is None:
        return Malformed("no_verdict_line", shown)
    meant = {folded(words.pass_): "pass", folded(words.fail): "fail"}.get(folded(verdict))
    if meant is None:
        return Malformed("unknown_verdict", shown)
    if len(lines) < 2 or (given := _after(lines[1], words.reason)) is None:
        return Malformed("no_reason_line", shown)
    reason = one_line(given, _REASON)
    if not reason:
        return Malformed("no_reason", shown)
    if len(lines) > 2:
        return Malformed("extra_lines", shown)
    return Answer("pass" if meant == "pass" else "fail", reason)


def _after(line: str, label: str) -> str | None:
    found = re.match(rf"{re.escape(label)}\s*[:：]\s*(.*)", line, re.IGNORECASE)
    return found[1].strip() if found else None
