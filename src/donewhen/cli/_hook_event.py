"""Read the event of a hook: until it is complete, and not until the runtime closes the stream."""

from __future__ import annotations

import io
import json
import os
import select
from contextlib import suppress
from typing import IO

from donewhen.foundation import size_limits

_PIECE = 1 << 16


def read_event(stream: IO[bytes]) -> bytes:
    """Return the event. A larger one than allowed is cut, so that it is not JSON, and refused if there are checks."""
    limit = size_limits.HOOK_EVENT.bytes
    try:
        # Without the buffer, whose lock a thread that waits forever would keep at the end of the process.
        content = _until_complete(stream.fileno(), limit)
    except (OSError, io.UnsupportedOperation):
        # No pipe or file of the system: there is nothing to wait for.
        content = stream.read()
    if len(content) > limit:
        return content[:limit] + f" [cut: more than {size_limits.size_text(limit)}]".encode()
    return content


def _until_complete(descriptor: int, limit: int) -> bytes:
    content = bytearray()
    while piece := os.read(descriptor, _PIECE):
        # All of it is read, because the runtime waits until all of it is taken; not more is kept than is needed.
        if len(content) <= limit:
            content += piece
        if piece.rstrip()[-1:] in (b"}", b"") and not _more_is_there(descriptor) and _is_complete(content):
            break
    return bytes(content)


def _more_is_there(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _is_complete(content: bytes | bytearray) -> bool:
    with suppress(ValueError, RecursionError):
        return isinstance(json.loads(content), dict)
    return False
