"""How distributions and packages are named, and where they come from."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_SEPARATORS = re.compile(r"[-_.]+")
_REQUIREMENT = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(.*)", re.DOTALL)
_PINNED = re.compile(r"\(?\s*===?\s*([^\s,;*()]+)\s*\)?\s*(?:;.*)?", re.DOTALL)


def normalized(name: str) -> str:
    """The name of a Python distribution as indexes compare it."""
    return _SEPARATORS.sub("-", name).strip("-").casefold()


def requirement_of(text: str) -> tuple[str, str | None] | None:
    """The name in a Python requirement, and the version if it is pinned; None if it is none, or names an address."""
    found = _REQUIREMENT.match(text)
    if found is None or found[2].lstrip().startswith("@"):
        return None
    pinned = _PINNED.fullmatch(found[2].strip())
    return normalized(found[1]), pinned[1] if pinned is not None else None


def required_name(text: str) -> str:
    """The name in a Python requirement, whatever follows; empty if there is none."""
    found = _REQUIREMENT.match(text)
    return normalized(found[1]) if found is not None else ""


def host_of(address: str) -> str:
    """The host of an address of the web; empty for anything else."""
    try:
        parts = urlsplit(address)
        return (parts.hostname or "").casefold() if parts.scheme in ("http", "https") else ""
    except ValueError:
        return ""
