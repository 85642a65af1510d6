"""The version in the ``schema`` of what donewhen stores, such as ``donewhen/evidence/v1``."""

from __future__ import annotations

import re

_SCHEMA = re.compile(r"([a-z/-]+)/v([1-9][0-9]{0,8})")


class NewerVersionError(ValueError):
    """Something was written by a newer version of donewhen, in a format that this version does not know."""


def refuse_newer(schema: object, known: str) -> None:
    """Raise NewerVersionError if ``schema`` is a later version of the schema ``known``."""
    found, own = _SCHEMA.fullmatch(schema) if isinstance(schema, str) else None, _SCHEMA.fullmatch(known)
    if found and own and found[1] == own[1] and int(found[2]) > int(own[2]):
        raise NewerVersionError(f"{schema}, this version reads up to v{own[2]}")
