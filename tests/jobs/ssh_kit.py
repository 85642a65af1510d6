"""Real SSH keys and a real SSH agent; and a security key made of software."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519

KEYGEN = shutil.which("ssh-keygen")
WORDS = "correct horse battery"
APPLICATION = "ssh:"
_SK = "sk-ssh-ed25519@openssh.com"

needs_openssh = pytest.mark.skipif(
    KEYGEN is None or shutil.which("ssh-agent") is None, reason="LOUD: OpenSSH is not installed (openssh-client)"
)


def make_key(path: Path, passphrase: str = "", kind: str = "ed25519", comment: str = "ada@laptop") -> str:
    """Make a key, and return the line of its public one."""
    arguments = ["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", comment, "-f", str(path)]
    subprocess.run(arguments, check=True, stdin=subprocess.DEVNULL)
    return path.with_name(f"{path.name}.pub").read_text().strip()


class Agent:
    """A running ssh-agent."""

    def __init__(self, folder: Path) -> None:
        self.socket = folder / "agent"
        self._process = subprocess.Popen(
            ["ssh-agent", "-D", "-a", str(self.socket)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SSH_AUTH_SOCK": str(self.socket)}

    def add(self, path: Path, passphrase: str = "") -> None:
        program = path.with_name("answer")
        program.write_text(f"#!/bin/sh\necho '{passphrase}'\n")
        program.chmod(0o700)
        asking = {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": "-"}
        subprocess.run(["ssh-add", "-q", str(path)], check=True, env={**self.environment, **asking})

    def remove(self, path: Path) -> None:
        subprocess.run(["ssh-add", "-q", "-d", str(path)], check=True, env=self.environment)

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=60)
        assert self._process.stdout is not None
        self._process.stdout.close()


class SoftSecurityKey:
    """What a FIDO key would sign, with or without a touch."""

    def __init__(self) -> None:
        self._key = ed25519.Ed25519PrivateKey.generate()
        self._blob = _text(_SK) + _bytes(self._key.public_key().public_bytes_raw()) + _text(APPLICATION)
        self.public = f"{_SK} {base64.b64encode(self._blob).decode()}"

    def sign(self, subject: bytes, *, touched: bool = True, namespace: str = "donewhen") -> str:
        signed = b"SSHSIG" + _text(namespace) + _text("") + _text("sha512") + _bytes(hashlib.sha512(subject).digest())
        flags = struct.pack(">BI", 1 if touched else 0, 7)
        message = hashlib.sha256(APPLICATION.encode()).digest() + flags + hashlib.sha256(signed).digest()
        signature = _text(_SK) + _bytes(self._key.sign(message)) + flags
        blob = b"SSHSIG" + struct.pack(">I", 1) + _bytes(self._blob) + _text(namespace) + _text("") + _text("sha512")
        text = base64.encodebytes(blob + _bytes(signature)).decode()
        return f"-----BEGIN SSH SIGNATURE-----\n{text}-----END SSH SIGNATURE-----\n"


def _bytes(content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + content


def _text(content: str) -> bytes:
    return _bytes(content.encode())
