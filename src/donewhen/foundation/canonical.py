"""Canonical JSON and hashes: equal values always have the same bytes and hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import Any


def canonical_json(value: object) -> bytes:
    """``value`` as JSON with sorted keys and no white space; NaN and infinity are refused."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


class DuplicateKeyError(ValueError):
    """A JSON object has a duplicate key."""


def refuse_duplicate_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An ``object_pairs_hook`` that raises DuplicateKeyError; json would silently keep only the last value."""
    data: dict[str, Any] = {}
    for name, value in pairs:
        if name in data:
            raise DuplicateKeyError(f"duplicate key {name[:60]!r}")
        data[name] = value
    return data


def digest(data: bytes) -> str:
    """The hash of bytes: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_of(value: object) -> str:
    """The hash of a value's canonical JSON."""
    return digest(canonical_json(value))
