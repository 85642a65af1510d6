"""Whether an output says anything: what it has is data for programs, or more than the words of a placeholder."""

from __future__ import annotations

import codecs
from pathlib import Path

from donewhen.jobs.plan.folded_words import fold, split_words
from donewhen.jobs.plan.placeholders import written_lines
from donewhen.jobs.plan.short_data import is_data, is_records

_MAX_PLACEHOLDER_BYTES = 1000
_MAX_REPEATED_BYTES = 1 << 16


def is_data_file(path: Path) -> bool:
    """Whether a file has data that a program reads. Bytes that are no text are for programs, too, unless all that they
    say are zeros, or the words of a placeholder."""
    text = _text(path)
    words = text.replace("\0", "").replace("\ufffd", "")
    if words == text:
        return is_data(text)
    if not text.replace("\0", "").strip():
        return False
    return bool(written_lines(words)) or not any(len(word) > 2 for word in split_words(fold(words)))


def is_placeholder_file(path: Path) -> bool:
    """Whether a file contains only placeholder text. A line that is repeated says no more than once; files with many
    different lines are assumed to have content."""
    if path.stat().st_size > _MAX_REPEATED_BYTES:
        return False
    text = _text(path)
    if len(text) > _MAX_PLACEHOLDER_BYTES:
        text = "\n".join(dict.fromkeys(text.splitlines()))
    return len(text.encode()) <= _MAX_PLACEHOLDER_BYTES and not written_lines(text) and not is_records(text)


def _text(path: Path) -> str:
    raw = path.read_bytes()
    encoding = "utf-16" if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8"
    return raw.decode(encoding, errors="replace")
