"""JSON from strangers: one object, read strictly, or a sentence about what is wrong with it."""

from __future__ import annotations

import json
from typing import Any

from donewhen.foundation.canonical import canonical_json, refuse_duplicate_keys

DEEPEST = 64


class UntrustedJsonError(ValueError):
    """The bytes are not one JSON object that everybody reads in the same way."""


def read_object(raw: bytes) -> dict[str, Any]:
    """The object in ``raw``. At most one line end stands behind it, and nothing before it, no byte order mark either.

    Refused is what readers differ in: names that occur twice, NaN and numbers beyond all bounds, halves of characters.
    """
    text = raw.removesuffix(b"\n")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        raise UntrustedJsonError("it is not one JSON object and nothing else")
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=refuse_duplicate_keys, parse_constant=_refused)
    except RecursionError:
        raise UntrustedJsonError(f"it is nested deeper than {DEEPEST} levels") from None
    except ValueError as error:
        raise UntrustedJsonError(f"it is not JSON as it should be: {error}") from None
    if _depth(found) > DEEPEST:
        raise UntrustedJsonError(f"it is nested deeper than {DEEPEST} levels")
    try:
        canonical_json(found)
    except ValueError as error:
        raise UntrustedJsonError(f"it has a value that no JSON can have: {error}") from None
    return found  # type: ignore[no-any-return]


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is not a number")


def _depth(value: object) -> int:
    """How deep it is nested; level by level, because the stack has an end."""
    level, depth = [value], 0
    while level:
        below: list[object] = []
        for one in level:
            if isinstance(one, dict):
                below += one.values()
            elif isinstance(one, list):
                below += one
        depth += any(isinstance(one, dict | list) for one in level)
        if depth > DEEPEST:
            break
        level = below
    return depth
