"""The location of a reason for tools that show files: a path in the repository and a line."""

from __future__ import annotations

import re
from typing import NamedTuple

from donewhen.jobs.verifying import CaseReason, Verification

_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<line>[1-9][0-9]{0,8}))?", re.DOTALL)


class FileLocation(NamedTuple):
    """A file of the repository; the line is 1 if unknown."""

    path: str
    line: int


def location_of_reason(verification: Verification, reason: CaseReason) -> FileLocation | None:
    """Return the location of a reason; None if it is about no file in the repository."""
    parts = _PLACE.fullmatch(reason.where)
    if parts is None or parts["path"].startswith("/") or ".." in parts["path"].split("/") or " " in parts["path"][:1]:
        return None
    # A file name need not be valid text; what can't be encoded is replaced.
    path = f"{verification.inside}{parts['path']}".encode("utf-8", "replace").decode()
    return FileLocation(path, int(parts["line"] or 1))
