"""The envelope around a statement with its signatures (DSSE, the Dead Simple Signing Envelope)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from donewhen.foundation.canonical import canonical_json
from donewhen.jobs.ledger.signing import key_id, verify_signature

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_FIELDS = {"payload", "payloadType", "signatures"}
_MAX_SIGNATURES = 64


class EnvelopeError(ValueError):
    """The data is not a valid envelope."""


class Signature(NamedTuple):
    """A signature; its ``keyid`` is an unverified hint."""

    keyid: str
    sig: str


class Envelope(NamedTuple):
    """The signed bytes and the signatures."""

    payload: bytes
    signatures: tuple[Signature, ...]


class Signers(NamedTuple):
    """The result of checking signatures against trusted keys."""

    good: tuple[str, ...]
    """Trusted keys with a valid signature."""
    wrong: tuple[str, ...]
    """Trusted keys that are named by an invalid signature."""
    others: tuple[str, ...]
    """The key ids of the other signatures."""


def pre_authentication_encoding(payload: bytes) -> bytes:
    """The bytes to sign: payload and type, each with its length, so that they can't be confused."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign_envelope(payload: bytes, public: str, sign: Callable[[bytes], str]) -> bytes:
    """Return the file content of an envelope with one signature."""
    signature = {"keyid": key_id(public), "sig": sign(pre_authentication_encoding(payload))}
    envelope = {"payload": _to_base64(payload), "payloadType": PAYLOAD_TYPE, "signatures": [signature]}
    return canonical_json(envelope) + b"\n"


def is_envelope(data: Mapping[str, Any]) -> bool:
    """Whether the data has any field of an envelope."""
    return not _FIELDS.isdisjoint(data)


def read_envelope(data: Mapping[str, Any]) -> Envelope:
    """Parse an envelope; the signatures are not checked."""
    if set(data) != _FIELDS:
        raise EnvelopeError(f"an envelope must have exactly {', '.join(sorted(_FIELDS))}")
    if data["payloadType"] != PAYLOAD_TYPE:
        raise EnvelopeError(f"its payloadType is not {PAYLOAD_TYPE}")
    signatures = data["signatures"]
    if not isinstance(signatures, list) or not 0 < len(signatures) <= _MAX_SIGNATURES:
        raise EnvelopeError(f"an envelope must have 1 to {_MAX_SIGNATURES} signatures")
    return Envelope(_from_base64(data["payload"], "payload"), tuple(_signature(signature) for signature in signatures))


def check_signers(envelope: Envelope, trusted: Iterable[str]) -> Signers:
    """Check the signatures against trusted keys. A signature that names another key is not tried with them."""
    keys = {key_id(key): key for key in trusted}
    signed_bytes = pre_authentication_encoding(envelope.payload)
    good: set[str] = set()
    invalid: set[str] = set()
    others: list[str] = []
    for signature in envelope.signatures:
        candidates = [key for name, key in keys.items() if signature.keyid in ("", name)]
        valid = {key for key in candidates if verify_signature(key, signature.sig, signed_bytes)}
        good |= valid
        if not valid and signature.keyid in keys:
            invalid.add(keys[signature.keyid])
        elif not valid:
            others.append(signature.keyid)
    return Signers(tuple(sorted(good)), tuple(sorted(invalid - good)), tuple(others))


def _signature(data: object) -> Signature:
    if not isinstance(data, Mapping) or not {"sig"} <= set(data) <= {"keyid", "sig"}:
        raise EnvelopeError("a signature must have sig, and may have keyid")
    keyid = data.get("keyid", "")
    if not isinstance(keyid, str):
        raise EnvelopeError("a keyid is not a string")
    _from_base64(data["sig"], "sig")
    return Signature(keyid, data["sig"])


def _from_base64(value: object, name: str) -> bytes:
    """Decode base64; an encoding that is not canonical is refused."""
    try:
        content = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        content = b""
    if not content or _to_base64(content) != value:
        raise EnvelopeError(f"its {name} is not canonical base64")
    return content


def _to_base64(content: bytes) -> str:
    return base64.b64encode(content).decode()
