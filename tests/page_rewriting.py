"""Bring the output that a page shows up to date with what a command prints now: `make pages`.

Only shown lines that a command does not print any more are replaced, each by the printed line that is most like it.
What differs from run to run becomes ``…``. A line without a likely successor is left for an editor, and its test fails.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

REWRITING = os.environ.get("DONEWHEN_REWRITE_PAGES") == "1"
_LIKE = 0.5
_VOLATILE = (
    (r"\b(WI|PJ|WS|LL)-\d{8}-", r"\1-…-"),
    (r"sha256:[0-9a-f]{6,}", "sha256:…"),
    (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?Z?", "…"),
    (r"/tmp/\S+", "…"),
    (r"\b\d+(?:\.\d+)? ?(?:s|ms|seconds)\b", "… s"),
)


def _pattern(line: str) -> re.Pattern[str]:
    return re.compile(re.escape(line).replace("…", ".*"))


def _timeless(line: str) -> str:
    for pattern, to in _VOLATILE:
        line = re.sub(pattern, to, line)
    return line


def updated_lines(shown: Sequence[str], printed: Sequence[str]) -> list[str] | None:
    """The shown lines with stale ones replaced by printed ones, in order; None if a line has no likely successor."""
    lines: list[str] = []
    place = 0
    for number, line in enumerate(shown):
        if line.strip() == "…":
            lines.append(line)
            continue
        exact = next((at for at in range(place, len(printed)) if _pattern(line).fullmatch(printed[at])), None)
        if exact is None:
            later = [other for other in shown[number + 1 :] if other.strip() != "…"]
            stop = next(
                (
                    at
                    for at in range(place, len(printed))
                    if any(_pattern(other).fullmatch(printed[at]) for other in later)
                ),
                len(printed),
            )
            likeness = {at: SequenceMatcher(None, line, _timeless(printed[at])).ratio() for at in range(place, stop)}
            exact = max(likeness, key=lambda at: likeness[at], default=None)
            if exact is None or likeness[exact] < _LIKE:
                return None
            lines.append(_timeless(printed[exact]))
        else:
            lines.append(line)
        place = exact + 1
    return lines


def rewrite_page(page: Path, shown: Sequence[str], printed: str) -> bool:
    """Replace the shown lines in a page; False if that is a person's work."""
    wanted = [line.rstrip() for line in shown]
    new = updated_lines(wanted, [line.rstrip() for line in printed.strip("\n").split("\n")])
    text = page.read_text(encoding="utf-8")
    if new is None or "\n".join(wanted) not in text:
        return False
    page.write_text(text.replace("\n".join(wanted), "\n".join(new)), encoding="utf-8")
    return True
