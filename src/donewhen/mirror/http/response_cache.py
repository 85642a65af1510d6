"""Cache of responses by ETag: unchanged resources are not transferred and don't count against the rate limit."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.canonical import digest
from donewhen.foundation.files import read_limited, write_atomically
from donewhen.foundation.size_limits import STATE


class CachedResponse(NamedTuple):
    """A cached response."""

    etag: str
    link: str
    body: str


class ResponseCache:
    """A folder with one file per URL. Unusable files are ignored."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, url: str) -> CachedResponse | None:
        try:
            data = json.loads(read_limited(self._path(url), STATE))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(data, dict) or data.get("url") != url:
            return None
        values = [value for name in CachedResponse._fields if isinstance(value := data.get(name), str)]
        if len(values) != len(CachedResponse._fields) or not values[0].isprintable():
            return None
        return CachedResponse(*values)

    def put(self, url: str, response: CachedResponse) -> None:
        # Without the file, the next read only costs more.
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(url), json.dumps({"url": url, **response._asdict()}).encode(), mode=0o600)

    def _path(self, url: str) -> Path:
        return self._folder / f"{digest(url.encode()).partition(':')[2]}.json"
