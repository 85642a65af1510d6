"""Parse JSON text without silent losses: an object with a duplicate key is an error, not its last value."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any


class DuplicateKeyError(ValueError):
    """A JSON object has a duplicate key."""


def parse_json(text: str | bytes, *, allow_nan: bool = False) -> Any:
    """Parse ``text``; raise ValueError (or RecursionError) if it is not JSON or an object has a duplicate key.

    NaN, Infinity and numbers that overflow to infinity are refused, because they can't be written back as JSON.
    ``allow_nan`` accepts them, for files that people make with other tools.
    """
    if allow_nan:
        return json.loads(text, object_pairs_hook=_refuse_duplicate_keys)
    return json.loads(
        text, object_pairs_hook=_refuse_duplicate_keys, parse_constant=_refuse_constant, parse_float=_finite
    )


def _refuse_duplicate_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise DuplicateKeyError(f"duplicate key {name[:60]!r}")
        data[name] = value
    return data


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a number in JSON")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"the number {text[:60]} is too large")
    return value
