"""Answers that were read before, by their ETags: what has not changed is not sent again, and is not counted."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.canonical import digest
from donewhen.foundation.files import write_atomically


class CachedResponse(NamedTuple):
    """An answer that was kept."""

    etag: str
    link: str
    body: str


class ResponseCache:
    """Answers in a folder, one file an address. A file that can't be used is as good as none."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, url: str) -> CachedResponse | None:
        try:
            found = json.loads(self._path(url).read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(found, dict) or found.get("url") != url:
            return None
        values = [one for name in CachedResponse._fields if isinstance(one := found.get(name), str)]
        if len(values) != len(CachedResponse._fields) or not values[0].isprintable():
            return None
        return CachedResponse(*values)

    def put(self, url: str, kept: CachedResponse) -> None:
        # Without it, the next look merely costs more.
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(url), json.dumps({"url": url, **kept._asdict()}).encode(), mode=0o600)

    def _path(self, url: str) -> Path:
        return self._folder / f"{digest(url.encode()).partition(':')[2]}.json"
