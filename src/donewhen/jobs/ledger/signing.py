"""Ed25519 keys protected by a passphrase, for approving without a terminal."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.errors import DonewhenError, ExitCode, MissingExtraError
from donewhen.foundation.files import read_given, read_limited, read_stream
from donewhen.foundation.size_limits import KEY

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PREFIX = "ed25519:"
_HOW_TO_SHOW_KEY = "Print it with: donewhen key show FILE"


class SigningError(DonewhenError):
    """A key can't be read or used."""

    code = "key"
    exit_code = ExitCode.USAGE


def create_key_file(path: Path, passphrase: str) -> str:
    """Generate a key, write it encrypted to a new file, and return its public key."""
    from donewhen.foundation.files import write_atomically

    if not passphrase:
        raise SigningError("A key needs a passphrase. Without one, everyone who can read the file could approve.")
    if path.exists() or path.is_symlink():
        raise SigningError("The file already exists, and keys are never overwritten.", where=str(path))
    serialization, ed25519 = _import_cryptography()
    key = ed25519.Ed25519PrivateKey.generate()
    pem = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(passphrase.encode()),
    )
    try:
        write_atomically(path, pem, mode=0o600)
    except OSError as error:
        raise SigningError(f"The key can't be written: {error.strerror}.", where=str(path)) from error
    return _public_key_of(key)


def has_passphrase(path: Path) -> bool:
    """Whether a key file is encrypted. What is no regular file counts as encrypted: a pipe can be read only once."""
    try:
        return b"-----BEGIN PRIVATE KEY-----" not in read_limited(path, KEY)
    except OSError:
        return True


def open_key(path: Path, passphrase: str | None) -> tuple[str, Callable[[bytes], str]]:
    """Return the public key of a key file, and a function that signs with it. None is for a key without passphrase."""
    key = _load_private_key(path, passphrase)
    return _public_key_of(key), lambda subject: base64.b64encode(key.sign(subject)).decode()


def verify_signature(public: str, signature: str, subject: bytes) -> bool:
    """Whether a signature is valid; an unreadable key or signature is not."""
    _, ed25519 = _import_cryptography()
    from cryptography.exceptions import InvalidSignature

    try:
        raw = base64.b64decode(public.removeprefix(_PREFIX), validate=True)
        ed25519.Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature, validate=True), subject)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return public.startswith(_PREFIX)


def key_id(public: str) -> str:
    """The key id that in-toto and securesystemslib use: a hash of key type, scheme and public key."""
    form = {"keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": _public_bytes(public).hex()}}
    return hashlib.sha256(canonical_json(form)).hexdigest()


def public_pem(public: str) -> str:
    """The public key in PEM form."""
    serialization, ed25519 = _import_cryptography()
    key = ed25519.Ed25519PublicKey.from_public_bytes(_public_bytes(public))
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem: bytes = key.public_bytes(serialization.Encoding.PEM, form)
    return pem.decode()


def public_key(key_or_path: str) -> str:
    """A public key as ``ed25519:…``, from that form or from a PEM file."""
    if key_or_path.startswith(_PREFIX):
        _public_bytes(key_or_path)
        return key_or_path
    serialization, ed25519 = _import_cryptography()
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with Path(key_or_path).open("rb") as file:
            key = serialization.load_pem_public_key(read_stream(file, KEY, key_or_path))
    except OSError as error:
        raise SigningError(
            f"The key can't be read: {error.strerror}.", where=key_or_path, next_step=_HOW_TO_SHOW_KEY
        ) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError("The file is not a public key.", where=key_or_path, next_step=_HOW_TO_SHOW_KEY) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise SigningError("The key is not an ed25519 key.", where=key_or_path, next_step=_HOW_TO_SHOW_KEY)
    return f"{_PREFIX}{base64.b64encode(key.public_bytes_raw()).decode()}"


def _public_bytes(public: str) -> bytes:
    """The 32 bytes of a public key. Raise SigningError unless it is in its canonical base64 form."""
    text = public.removeprefix(_PREFIX)
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32 or f"{_PREFIX}{base64.b64encode(raw).decode()}" != public:
        raise SigningError(f"{public[:80]!r} is not an ed25519 public key.", next_step=_HOW_TO_SHOW_KEY)
    return raw


def _load_private_key(path: Path, passphrase: str | None) -> Ed25519PrivateKey:
    serialization, ed25519 = _import_cryptography()
    try:
        content = read_given(path, KEY)
    except OSError as error:
        raise SigningError(f"The key can't be read: {error.strerror}.", where=str(path)) from error
    if content.startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----"):
        raise SigningError(
            "An SSH key can approve, but it can't sign this.",
            where=str(path),
            next_step="Make one of donewhen's own: donewhen key new FILE",
        )
    try:
        key = serialization.load_pem_private_key(content, None if passphrase is None else passphrase.encode())
    except (ValueError, TypeError) as error:
        raise SigningError("Wrong passphrase, or the file is not a private key.", where=str(path)) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise SigningError(
            "The key is not an ed25519 key.", where=str(path), next_step="Make one: donewhen key new FILE"
        )
    return key  # type: ignore[no-any-return]


def _public_key_of(key: Ed25519PrivateKey) -> str:
    serialization, _ = _import_cryptography()
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return f"{_PREFIX}{base64.b64encode(raw).decode()}"


def _import_cryptography() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtraError("Signing", "sign") from None
    return serialization, ed25519
