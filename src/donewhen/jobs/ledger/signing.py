"""Ed25519 keys under a passphrase, for people who agree where there is no terminal of theirs."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.errors import DonewhenError, ExitCode, MissingExtraError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

_PREFIX = "ed25519:"
_PUBLIC = "Print it with: donewhen key show FILE"
_LARGEST_PEM = 1 << 16


class SigningError(DonewhenError):
    """A key can't be read or used."""

    code = "key"
    exit_code = ExitCode.USAGE


def new_key(path: Path, passphrase: str) -> str:
    """Make a key, keep it under a passphrase in a file of its own, and return its public half."""
    from donewhen.foundation.files import write_atomically

    if not passphrase:
        raise SigningError("A key needs a passphrase: without one, whoever can read the file can agree.")
    if path.exists() or path.is_symlink():
        raise SigningError("There is a file already, and keys are never overwritten.", where=str(path))
    serialization, ed25519 = _library()
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
    return _public(key)


def open_key(path: Path, passphrase: str) -> tuple[str, Callable[[bytes], str]]:
    """The public half of a key, and what signs with it."""
    key = _loaded(path, passphrase)
    return _public(key), lambda subject: base64.b64encode(key.sign(subject)).decode()


def verify_signature(public: str, signature: str, subject: bytes) -> bool:
    """Whether a signature fits; a key or a signature that can't be read fits nothing."""
    _, ed25519 = _library()
    from cryptography.exceptions import InvalidSignature

    try:
        raw = base64.b64decode(public.removeprefix(_PREFIX), validate=True)
        ed25519.Ed25519PublicKey.from_public_bytes(raw).verify(base64.b64decode(signature, validate=True), subject)
    except (InvalidSignature, binascii.Error, ValueError):
        return False
    return public.startswith(_PREFIX)


def key_id(public: str) -> str:
    """The name by which in-toto and securesystemslib know a key: a hash of its kind, its scheme and its public half."""
    form = {"keytype": "ed25519", "scheme": "ed25519", "keyval": {"public": _raw(public).hex()}}
    return hashlib.sha256(canonical_json(form)).hexdigest()


def public_pem(public: str) -> str:
    """The public half as other programs read it."""
    serialization, ed25519 = _library()
    key = ed25519.Ed25519PublicKey.from_public_bytes(_raw(public))
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    pem: bytes = key.public_bytes(serialization.Encoding.PEM, form)
    return pem.decode()


def public_key(given: str) -> str:
    """A public half in our form, from that form or from a PEM file."""
    if given.startswith(_PREFIX):
        _raw(given)
        return given
    serialization, ed25519 = _library()
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        with Path(given).open("rb") as file:
            key = serialization.load_pem_public_key(file.read(_LARGEST_PEM))
    except OSError as error:
        raise SigningError(f"The key can't be read: {error.strerror}.", where=given, next_step=_PUBLIC) from error
    except (ValueError, UnsupportedAlgorithm) as error:
        raise SigningError("The file is not the public half of a key.", where=given, next_step=_PUBLIC) from error
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise SigningError("The key is not an ed25519 key.", where=given, next_step=_PUBLIC)
    return f"{_PREFIX}{base64.b64encode(key.public_bytes_raw()).decode()}"


def _raw(public: str) -> bytes:
    """The 32 bytes of a public half; what could be written otherwise is refused."""
    text = public.removeprefix(_PREFIX)
    try:
        raw = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != 32 or f"{_PREFIX}{base64.b64encode(raw).decode()}" != public:
        raise SigningError(f"{public[:80]!r} is not the public half of an ed25519 key.", next_step=_PUBLIC)
    return raw


def _loaded(path: Path, passphrase: str) -> Ed25519PrivateKey:
    serialization, ed25519 = _library()
    try:
        key = serialization.load_pem_private_key(path.read_bytes(), passphrase.encode())
    except OSError as error:
        raise SigningError(f"The key can't be read: {error.strerror}.", where=str(path)) from error
    except (ValueError, TypeError) as error:
        raise SigningError("The passphrase is wrong, or the file is no key.", where=str(path)) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise SigningError(
            "The key is not an ed25519 key.", where=str(path), next_step="Make one: donewhen key new FILE"
        )
    return key  # type: ignore[no-any-return]


def _public(key: Ed25519PrivateKey) -> str:
    serialization, _ = _library()
    raw = key.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
    return f"{_PREFIX}{base64.b64encode(raw).decode()}"


def _library() -> tuple[Any, Any]:
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtraError("Signing", "sign") from None
    return serialization, ed25519
