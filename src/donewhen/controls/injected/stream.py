"""The end of the stream to the gate that lies in the checked process: what it says can't be taken back.

The gate sends a key when it starts the check. The first test runner takes it; each line is sealed with it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from hashlib import blake2b
    from typing import Any
else:
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

KEY_SIZE = 32
_SOCKET = 0o140000


class Stream:
    """Sends lines to the gate."""

    def __init__(self, descriptor: int, inode: int, numbered: bool = False) -> None:
        self._descriptor = descriptor
        self._inode = inode
        self._key = b""
        self._process = 0
        self._numbered = numbered
        self._number = ""
        self._sent = 0

    def claim(self) -> bool:
        """Take the key, if nobody has; return whether this process may speak now."""
        if self._key or not self._is_open():
            return False
        try:
            os.set_inheritable(self._descriptor, False)
            os.set_blocking(self._descriptor, False)
            try:
                key = os.read(self._descriptor, KEY_SIZE)
            finally:
                os.set_blocking(self._descriptor, True)
        except OSError:
            return False
        if len(key) != KEY_SIZE:
            return False
        if self._numbered:
            # One of several processes, with a key of its own.
            self._number = "%d " % int.from_bytes(key[:4], "big")
        self._key, self._process = key, os.getpid()
        return True

    def seed(self) -> bytes:
        """Bytes that only this run has, for drawing."""
        return blake2b(b"seed", key=self._key, digest_size=16).digest()

    def send(self, *fields: str) -> None:
        """Send a line; a process that was forked sends nothing."""
        if not self._key or os.getpid() != self._process or not self._is_open():
            return
        text = "\0".join(fields).encode("utf-8", "backslashreplace").hex()
        line = ("%s%d %s" % (self._number, self._sent, text)).encode()
        self._sent += 1
        data = line + b" " + blake2b(line, key=self._key, digest_size=8).hexdigest().encode() + b"\n"
        try:
            while data:
                data = data[os.write(self._descriptor, data) :]
        except OSError:
            self._key = b""

    def _is_open(self) -> bool:
        # A test may have closed it, and then the number can be that of another file.
        try:
            found = os.fstat(self._descriptor)
        except OSError:
            return False
        return found.st_mode & 0o170000 == _SOCKET and found.st_ino == self._inode


class Draw:
    """Numbers and words drawn from a seed, the same for every version of Python."""

    def __init__(self, seed: bytes) -> None:
        self._seed = seed
        self._count = 0

    def below(self, limit: int) -> int:
        self._count += 1
        return int.from_bytes(blake2b(b"%d" % self._count, key=self._seed, digest_size=8).digest(), "big") % limit

    def from_(self, things: Sequence[Any]) -> Any:
        return things[self.below(len(things))]

    def name_like(self, names: Sequence[str], taken: set[str]) -> str:
        """A name in the manner of others, which is not taken."""
        words = [name.split("_")[1:] for name in names]
        words = [parts for parts in words if parts and all(part.isidentifier() for part in parts)]
        prefix = str(self.from_(names)).split("_")[0] if names else "test"
        for _ in range(20):
            parts = list(self.from_(words)) if words else ["result"]
            other = self.from_(words) if words else []
            for _ in range(1 + self.below(2)):
                place = self.below(len(parts) + 1)
                parts[place : place + self.below(2)] = [
                    self.from_(other) if other and self.below(3) else self.from_(_WORDS)
                ]
            name = "_".join([prefix] + parts)
            if name not in taken and name.isidentifier():
                return name
        return prefix + "_" + "_".join(self.from_(_WORDS) + str(self.below(10)) for _ in range(4))


_WORDS = (
    "empty", "single", "large", "unknown", "default", "repeated", "missing", "simple", "value", "values", "name",
    "order", "input", "output", "error", "first", "last", "negative", "zero", "text", "unicode", "sorted", "given",
    "returns", "keeps", "accepts", "mixed", "nested", "limit", "range", "other", "valid",
)  # fmt: skip
