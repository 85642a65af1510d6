"""Ids and folder names: ``WI-20260214-001-kebab-title``."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from typing import Literal

Prefix = Literal["PJ", "WS", "WI"]

_ID = re.compile(r"(?:PJ|WS|WI)-[0-9]{8}-[0-9]{3,}")
_LONGEST_SLUG = 60


def id_in(folder: str) -> str | None:
    """The id at the start of a folder's name, or None."""
    match = _ID.match(folder)
    return match.group() if match and folder[match.end() : match.end() + 1] in ("", "-") else None


def is_parent(chain: str, project: str) -> bool:
    """Whether a chain is that of the project with this id or of a workstream, also of one whose folder is gone."""
    return chain == project or (id_in(chain) == chain and chain.startswith(("PJ-", "WS-")))


def next_id(prefix: Prefix, today: datetime, taken: Iterable[str]) -> str:
    """The next free id of a day: the highest number plus one."""
    start = f"{prefix}-{today:%Y%m%d}-"
    ids = (identifier for name in taken if (identifier := id_in(name)) is not None)
    numbers = [int(identifier.removeprefix(start)) for identifier in ids if identifier.startswith(start)]
    return f"{start}{max(numbers, default=0) + 1:03d}"


def slug(title: str) -> str:
    """A title as part of a folder's name: lower-case ASCII words joined by dashes."""
    ascii_text = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")
    return words[:_LONGEST_SLUG].rstrip("-") or "untitled"
