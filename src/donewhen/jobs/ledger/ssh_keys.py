"""SSH keys as files, and their signatures as bytes: parsed here, so that it is known what a signature proves."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import struct
from dataclasses import dataclass
from typing import NamedTuple

from donewhen.foundation.plain_text import one_line

NAMESPACE = "donewhen"
"""What the signatures are for; a signature for git or for a file is none for donewhen."""

_HARDWARE = frozenset({"sk-ssh-ed25519@openssh.com", "sk-ecdsa-sha2-nistp256@openssh.com"})
_TYPES = _HARDWARE | {
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
}
_PRIVATE = re.compile(rb"-----BEGIN OPENSSH PRIVATE KEY-----\s(.*?)-----END OPENSSH PRIVATE KEY-----", re.DOTALL)
_SIGNATURE = re.compile(r"-----BEGIN SSH SIGNATURE-----\s(.*?)-----END SSH SIGNATURE-----\s*", re.DOTALL)
_PRIVATE_MAGIC = b"openssh-key-v1\0"
_SIGNATURE_MAGIC = b"SSHSIG"
_USER_PRESENT = 1


class PublicSshKey(NamedTuple):
    """A public key: ``text`` is its type and its base64, without the comment."""

    text: str
    comment: str = ""

    @property
    def on_hardware(self) -> bool:
        """Whether the private key is in a security key, which signs when somebody touches it."""
        return self.text.partition(" ")[0] in _HARDWARE

    @property
    def fingerprint(self) -> str:
        """The fingerprint, as ssh-keygen prints it."""
        blob = base64.b64decode(self.text.partition(" ")[2])
        return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")

    @property
    def name(self) -> str:
        """What people call it: its comment, or the beginning of its fingerprint."""
        return one_line(self.comment, 60) or self.fingerprint[:19]


@dataclass(frozen=True)
class PrivateSshKey:
    """What a private key file says without its passphrase."""

    public: PublicSshKey
    has_passphrase: bool


def public_ssh_key(text: str) -> PublicSshKey | None:
    """Read a line such as ``ssh-ed25519 AAAA… name``; None if it is no public key. Options before it are not read."""
    words = text.strip().split(None, 2)
    if len(words) < 2 or words[0] not in _TYPES:
        return None
    try:
        blob = base64.b64decode(words[1], validate=True)
        kind = _Reader(blob).text()
    except (binascii.Error, ValueError):
        return None
    if kind != words[0]:
        return None
    return PublicSshKey(f"{words[0]} {base64.b64encode(blob).decode()}", words[2] if len(words) > 2 else "")


def private_ssh_key(content: bytes) -> PrivateSshKey | None:
    """Read a private key file in OpenSSH's format; None if it is in another one."""
    found = _PRIVATE.search(content)
    if found is None:
        return None
    try:
        data = base64.b64decode(b"".join(found[1].split()), validate=True)
        if not data.startswith(_PRIVATE_MAGIC):
            return None
        reader = _Reader(data[len(_PRIVATE_MAGIC) :])
        cipher = reader.text()
        reader.blob(), reader.blob()
        reader.number()
        blob = reader.blob()
        kind = _Reader(blob).text()
    except (binascii.Error, ValueError):
        return None
    public = public_ssh_key(f"{kind} {base64.b64encode(blob).decode()}")
    return None if public is None else PrivateSshKey(public, cipher != "none")


def is_signature_by(armored: str, public: PublicSshKey) -> bool:
    """Whether a signature claims to be by this key, for donewhen, and with a touch if the key is on hardware.

    ssh-keygen verifies the cryptography; it does not require the touch.
    """
    found = _SIGNATURE.fullmatch(armored.strip() + "\n")
    if found is None:
        return False
    try:
        data = base64.b64decode("".join(found[1].split()), validate=True)
        if not data.startswith(_SIGNATURE_MAGIC):
            return False
        reader = _Reader(data[len(_SIGNATURE_MAGIC) :])
        version, blob, namespace = reader.number(), reader.blob(), reader.text()
        reader.blob(), reader.blob()
        signature = _Reader(reader.blob())
        signature.blob(), signature.blob()
        present = not public.on_hardware or bool(signature.byte() & _USER_PRESENT)
    except (binascii.Error, ValueError):
        return False
    same = base64.b64encode(blob).decode() == public.text.partition(" ")[2]
    return version == 1 and namespace == NAMESPACE and same and present


class _Reader:
    """Reads the fields of SSH's wire format; raises ValueError at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self) -> int:
        value: int = struct.unpack(">I", self._take(4))[0]
        return value

    def byte(self) -> int:
        return self._take(1)[0]

    def blob(self) -> bytes:
        return self._take(self.number())

    def text(self) -> str:
        return self.blob().decode("ascii")

    def _take(self, count: int) -> bytes:
        end = self._at + count
        if end > len(self._data):
            raise ValueError("the data ends early")
        taken, self._at = self._data[self._at : end], end
        return taken
