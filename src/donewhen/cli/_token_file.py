"""Access tokens of servers, in files that only their owner can read."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from donewhen.foundation.errors import UsageError
from donewhen.foundation.files import read_given
from donewhen.foundation.size_limits import KEY

_SHORTEST_TOKEN = 16


def new_token() -> str:
    """Return a new random token."""
    return secrets.token_urlsafe(32)


def read_token(path: Path) -> str:
    """Return the token in a file that other users can't read."""
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise UsageError("Other users can read the token file.", where=str(path), next_step=f"chmod 600 {path}")
    return checked_token(read_given(path, KEY).decode("utf-8", "replace").strip(), str(path))


def write_token(path: Path, token: str) -> None:
    """Write a token into a new file that only this user can read."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except OSError as error:
        raise UsageError(
            f"The token file can't be written: {error.strerror}.",
            where=str(path),
            next_step="Give the path of a new file in an existing folder.",
        ) from None
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{token}\n")


def checked_token(token: str, where: str) -> str:
    """Return the token if it is long enough and can be sent in a header and in a link."""
    if len(token) < _SHORTEST_TOKEN or not token.isascii() or not token.replace("-", "").replace("_", "").isalnum():
        message = f"A token has at least {_SHORTEST_TOKEN} characters: letters, digits, dashes and underscores only."
        raise UsageError(message, where=where)
    return token
