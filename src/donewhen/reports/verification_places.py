"""Where a reason stands, in the way in which programs that show files want it: a path in the repository, and a line."""

from __future__ import annotations

import re
from typing import NamedTuple

from donewhen.jobs.verifying import CaseReason, Verification

_PLACE = re.compile(r"(?P<path>.+?)(?::(?P<line>[1-9][0-9]{0,8}))?", re.DOTALL)


class FileLocation(NamedTuple):
    """A file of the repository; the line is 1 where none is known."""

    path: str
    line: int


def location_of_reason(found: Verification, reason: CaseReason) -> FileLocation | None:
    """None where a reason is about no file in the repository."""
    parts = _PLACE.fullmatch(reason.where)
    if parts is None or parts["path"].startswith("/") or ".." in parts["path"].split("/") or " " in parts["path"][:1]:
        return None
    # A name need not be text; what can't be written is shown as such.
    path = f"{found.inside}{parts['path']}".encode("utf-8", "replace").decode()
    return FileLocation(path, int(parts["line"] or 1))
