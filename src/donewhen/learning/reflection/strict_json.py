"""Parse one JSON object strictly. White space and one code fence around it are allowed; nothing is repaired."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.json_parsing import DuplicateKeyError, parse_json
from donewhen.foundation.plain_text import one_line
from donewhen.learning.reflection.rejections import AnswerReason

_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)\n?```", re.DOTALL)
_MAX_DETAIL_CHARS = 300


@dataclass(frozen=True)
class UnusableAnswer:
    """Why an answer as a whole can't be used."""

    reason: AnswerReason
    detail: str


def read_json_object(text: str) -> dict[str, Any] | UnusableAnswer:
    """Parse the object, or return why it is unusable."""
    stripped = text.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        data = parse_json(fenced[1] if fenced else stripped)
    except DuplicateKeyError as error:
        return UnusableAnswer("duplicate_key", str(error))
    except (ValueError, RecursionError) as error:
        return UnusableAnswer("not_json", one_line(f"{error}: {text}", _MAX_DETAIL_CHARS))
    if not isinstance(data, dict):
        return UnusableAnswer("not_an_object", one_line(text, _MAX_DETAIL_CHARS))
    try:
        # 1e999, unpaired surrogates, a thousand brackets: Python parses them, but they can't be written to the log.
        canonical_json(data)
    except (ValueError, RecursionError) as error:
        return UnusableAnswer("not_json", one_line(f"{error}: {text}", _MAX_DETAIL_CHARS))
    return data
