"""Parses untrusted JSON strictly."""

from __future__ import annotations

from typing import Any

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.json_parsing import parse_json

DEEPEST = 64


class UntrustedJsonError(ValueError):
    """The bytes are not a single JSON object that all parsers read in the same way."""


def read_object(raw: bytes) -> dict[str, Any]:
    """Parse the JSON object in ``raw``. Nothing may precede it, not even a byte order mark; one line end may follow.

    Raise UntrustedJsonError for what parsers disagree on: duplicate keys, NaN, infinite numbers, lone surrogates.
    """
    text = raw.removesuffix(b"\n")
    if not (text.startswith(b"{") and text.endswith(b"}")):
        raise UntrustedJsonError("it is not a single JSON object")
    try:
        data = parse_json(text.decode("utf-8"))
    except RecursionError:
        raise UntrustedJsonError(f"it is nested deeper than {DEEPEST} levels") from None
    except ValueError as error:
        raise UntrustedJsonError(f"it is not valid JSON: {error}") from None
    if _depth(data) > DEEPEST:
        raise UntrustedJsonError(f"it is nested deeper than {DEEPEST} levels")
    try:
        canonical_json(data)
    except ValueError as error:
        raise UntrustedJsonError(f"it has a value that is not valid in JSON: {error}") from None
    return data  # type: ignore[no-any-return]


def _depth(value: object) -> int:
    """The nesting depth; computed level by level, because recursion could exhaust the stack."""
    level, depth = [value], 0
    while level:
        below: list[object] = []
        for item in level:
            if isinstance(item, dict):
                below += item.values()
            elif isinstance(item, list):
                below += item
        depth += any(isinstance(item, dict | list) for item in level)
        if depth > DEEPEST:
            break
        level = below
    return depth
