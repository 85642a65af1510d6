"""Canonical JSON and hashes: equal values always have the same bytes and hash."""

from __future__ import annotations

import hashlib
import json


def canonical_json(value: object) -> bytes:
    """``value`` as JSON with sorted keys and no white space; NaN and infinity are refused."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def digest(data: bytes) -> str:
    """The hash of bytes: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_of(value: object) -> str:
    """The hash of a value's canonical JSON."""
    return digest(canonical_json(value))
