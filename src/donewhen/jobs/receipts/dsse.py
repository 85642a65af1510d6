"""The envelope around a statement: its bytes, and who has signed them (DSSE, the Dead Simple Signing Envelope)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from donewhen.foundation.canonical import canonical_json
from donewhen.jobs.ledger.signing import key_id, verify_signature

PAYLOAD_TYPE = "application/vnd.in-toto+json"
_FIELDS = {"payload", "payloadType", "signatures"}
_MOST_SIGNATURES = 64


class EnvelopeError(ValueError):
    """It is not an envelope as donewhen reads one."""


class Signature(NamedTuple):
    """One signature; its ``keyid`` is a hint that anybody can write."""

    keyid: str
    sig: str


class Envelope(NamedTuple):
    """What was signed, and the signatures."""

    payload: bytes
    signatures: tuple[Signature, ...]


class Signers(NamedTuple):
    """What the signatures come to for somebody who trusts some keys."""

    good: tuple[str, ...]
    """The trusted keys whose signatures fit."""
    wrong: tuple[str, ...]
    """The trusted keys that are named by a signature that does not fit."""
    others: tuple[str, ...]
    """What the other signatures say about whose they are."""


def pre_authentication_encoding(payload: bytes) -> bytes:
    """The bytes that are signed: payload and its type, each with its length, so that neither can stand for another."""
    kind = PAYLOAD_TYPE.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def sign_envelope(payload: bytes, public: str, sign: Callable[[bytes], str]) -> bytes:
    """An envelope with one signature, as it stands in a file."""
    signature = {"keyid": key_id(public), "sig": sign(pre_authentication_encoding(payload))}
    envelope = {"payload": _encoded(payload), "payloadType": PAYLOAD_TYPE, "signatures": [signature]}
    return canonical_json(envelope) + b"\n"


def is_envelope(data: Mapping[str, Any]) -> bool:
    """Whether it means to be an envelope."""
    return not _FIELDS.isdisjoint(data)


def read_envelope(data: Mapping[str, Any]) -> Envelope:
    """The envelope, whoever has signed it."""
    if set(data) != _FIELDS:
        raise EnvelopeError(f"an envelope has {', '.join(sorted(_FIELDS))}, and nothing else")
    if data["payloadType"] != PAYLOAD_TYPE:
        raise EnvelopeError(f"its payloadType is not {PAYLOAD_TYPE}")
    signatures = data["signatures"]
    if not isinstance(signatures, list) or not 0 < len(signatures) <= _MOST_SIGNATURES:
        raise EnvelopeError(f"an envelope has one to {_MOST_SIGNATURES} signatures")
    return Envelope(_decoded(data["payload"], "payload"), tuple(_signature(signature) for signature in signatures))


def check_signers(envelope: Envelope, trusted: Iterable[str]) -> Signers:
    """Look for signatures of the keys that somebody trusts. One that names another key is not tried with them."""
    keys = {key_id(one): one for one in trusted}
    subject = pre_authentication_encoding(envelope.payload)
    good: set[str] = set()
    wrong: set[str] = set()
    others: list[str] = []
    for signature in envelope.signatures:
        candidates = [key for name, key in keys.items() if signature.keyid in ("", name)]
        fitting = {key for key in candidates if verify_signature(key, signature.sig, subject)}
        good |= fitting
        if not fitting and signature.keyid in keys:
            wrong.add(keys[signature.keyid])
        elif not fitting:
            others.append(signature.keyid)
    return Signers(tuple(sorted(good)), tuple(sorted(wrong - good)), tuple(others))


def _signature(data: object) -> Signature:
    if not isinstance(data, Mapping) or not {"sig"} <= set(data) <= {"keyid", "sig"}:
        raise EnvelopeError("a signature has keyid and sig, and nothing else")
    keyid = data.get("keyid", "")
    if not isinstance(keyid, str):
        raise EnvelopeError("a keyid is a text")
    _decoded(data["sig"], "sig")
    return Signature(keyid, data["sig"])


def _decoded(value: object, name: str) -> bytes:
    """The bytes of a text in base64; one that could be written otherwise is refused."""
    try:
        content = base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except (binascii.Error, ValueError):
        content = b""
    if not content or _encoded(content) != value:
        raise EnvelopeError(f"its {name} is not base64 in its one proper form")
    return content


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
