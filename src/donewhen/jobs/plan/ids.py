"""Names: ``WI-20260214-001-kebab-title``."""

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
    """The id that a folder's name begins with."""
    found = _ID.match(folder)
    return found.group() if found and folder[found.end() : found.end() + 1] in ("", "-") else None


def next_id(prefix: Prefix, today: datetime, taken: Iterable[str]) -> str:
    """The next free id of a day: the highest number and one."""
    start = f"{prefix}-{today:%Y%m%d}-"
    ids = (found for one in taken if (found := id_in(one)) is not None)
    numbers = [int(one.removeprefix(start)) for one in ids if one.startswith(start)]
    return f"{start}{max(numbers, default=0) + 1:03d}"


def slug(title: str) -> str:
    """A title as a part of a folder's name."""
    ascii_text = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_text.lower()).strip("-")
    return words[:_LONGEST_SLUG].rstrip("-") or "untitled"
