"""One JSON object, as it stands. Around it, white space and one code fence; nothing is ever repaired."""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from donewhen.foundation.canonical import DuplicateKeyError, canonical_json, refuse_duplicate_keys
from donewhen.foundation.plain_text import one_line
from donewhen.learning.reflection.rejections import AnswerReason

_FENCE = re.compile(r"```[A-Za-z]*[ \t]*\n(.*?)\n?```", re.DOTALL)
_SHOWN = 300


class UnusableAnswer(NamedTuple):
    """Why an answer as a whole can't be used."""

    reason: AnswerReason
    detail: str


def read_json_object(text: str) -> dict[str, Any] | UnusableAnswer:
    """The object, or why there is none."""
    stripped = text.strip()
    fenced = _FENCE.fullmatch(stripped)
    try:
        data = json.loads(
            fenced[1] if fenced else stripped, object_pairs_hook=refuse_duplicate_keys, parse_constant=_refused_constant
        )
    except DuplicateKeyError as error:
        return UnusableAnswer("duplicate_key", str(error))
    except (ValueError, RecursionError) as error:
        return UnusableAnswer("not_json", one_line(f"{error}: {text}", _SHOWN))
    if not isinstance(data, dict):
        return UnusableAnswer("not_an_object", one_line(text, _SHOWN))
    try:
        # 1e999, half of a surrogate pair, a thousand brackets: Python reads them, and no record could hold them.
        canonical_json(data)
    except (ValueError, RecursionError) as error:
        return UnusableAnswer("not_json", one_line(f"{error}: {text}", _SHOWN))
    return data


def _refused_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
