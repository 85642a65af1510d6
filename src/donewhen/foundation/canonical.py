"""One form for one value: what is hashed must not depend on who wrote it down."""

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
    """An object names a thing twice."""


def refuse_duplicate_keys(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An ``object_pairs_hook``: JSON that names a thing twice says two things, and one would be lost in silence."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise DuplicateKeyError(f"{name[:60]!r} occurs twice in one object")
        found[name] = value
    return found


def digest(data: bytes) -> str:
    """The name of some content: ``sha256:`` and 64 hexadecimal digits."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def digest_of(value: object) -> str:
    """The name of a value, by its canonical form."""
    return digest(canonical_json(value))
