"""Makes untrusted text (from agents, commands and files) safe to display."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Compiled and cached by re at first use, so that a hook that prints nothing doesn't pay for them.
_ESCAPE_SEQUENCE = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor movement
    r"|\x1b[\]PX^_][^\n]*?(?:\x07|\x1b\\|(?=\n)|\Z)"  # OSC, DCS and the like, up to their terminator or the line's end
    r"|\x1b[ -/]*[0-~]?"  # two-character escapes, and a lone ESC
)
# C0 and C1 controls except tab and newline; bidirectional overrides and zero-width characters, which can
# make a line read differently from what it says; lone surrogates, which no terminal can encode.
_HIDDEN = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e0fff]"
)
_LINE_END = "\r\n|[\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"


def plain_text(text: str) -> str:
    """Remove escape sequences and invisible characters from ``text``; line breaks are kept."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return re.sub(_HIDDEN, "", re.sub(_ESCAPE_SEQUENCE, "", text))


def escape_html(text: str) -> str:
    """Escape ``text`` for an element or an attribute of a page. The ``html`` module does the same, but it loads the
    names of all entities first, and every gate would pay for them."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#x27;")


def visible_text(text: str) -> str:
    """Remove invisible characters from ``text``, but keep what they would hide on a terminal; for judges."""
    return re.sub(_HIDDEN, "", re.sub(_LINE_END, "\n", text))


def one_line(text: str, limit: int = 200) -> str:
    """``text`` as one plain line of at most ``limit`` characters."""
    return shorten(" ".join(plain_text(text).split()), limit)


def join_limited(names: Sequence[str], limit: int) -> str:
    """The names as a list of at most ``limit``, with the number of those left out: ``a, b and 3 more``."""
    left_out = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {left_out} more" if left_out > 0 else "")


def shorten(text: str, limit: int) -> str:
    """``text``, cut to ``limit`` characters with an ellipsis where something was left out. Between two words, unless
    that would leave out more than half of what fits."""
    if len(text) <= limit:
        return text
    end = max(0, limit - 1)
    between = text.rfind(" ", end // 2, end + 1)
    return text[: end if between < 1 else between].rstrip() + "…"


def shorten_middle(text: str, limit: int) -> str:
    """``text``, cut in the middle to about ``limit`` characters; it says how many were left out."""
    if len(text) <= limit:
        return text
    end = limit // 4
    left_out = len(text) - limit
    return f"{text[: limit - end]}\n… {left_out} characters left out …\n{text[-end:]}"
