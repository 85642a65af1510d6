"""The envelope: one form, and signatures that count only for keys that somebody trusts."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from donewhen.jobs.ledger.signing import SigningError, create_key_file, key_id, open_key, public_key, public_pem
from donewhen.jobs.receipts.dsse import (
    PAYLOAD_TYPE,
    EnvelopeError,
    check_signers,
    is_envelope,
    pre_authentication_encoding,
    read_envelope,
    sign_envelope,
)
from sentences import assert_sentences

PAYLOAD = b'{"hello":"world"}'
Signer = tuple[str, Callable[[bytes], str]]


def signer(path: Path) -> Signer:
    create_key_file(path, "words")
    return open_key(path, "words")


@pytest.fixture
def ada(tmp_path: Path) -> Signer:
    return signer(tmp_path / "ada")


@pytest.fixture
def eve(tmp_path: Path) -> Signer:
    return signer(tmp_path / "eve")


def envelope(*by: Signer, payload: bytes = PAYLOAD) -> dict[str, Any]:
    made = [json.loads(sign_envelope(payload, *key)) for key in by]
    return {**made[0], "signatures": [envelope["signatures"][0] for envelope in made]}


def test_what_is_signed_has_the_lengths_of_type_and_payload() -> None:
    assert pre_authentication_encoding(b"hi\n") == b"DSSEv1 28 application/vnd.in-toto+json 3 hi\n"


def test_a_signed_payload_is_read_back_and_fits_its_key(ada: Signer, eve: Signer) -> None:
    raw = sign_envelope(PAYLOAD, *ada)
    assert raw.endswith(b"}\n")
    data = json.loads(raw)
    assert is_envelope(data)
    assert list(data) == ["payload", "payloadType", "signatures"]
    found = read_envelope(data)
    assert found.payload == PAYLOAD
    assert check_signers(found, [ada[0]]) == ((ada[0],), (), ())
    assert check_signers(found, [eve[0]]) == ((), (), (key_id(ada[0]),))
    assert check_signers(found, [eve[0], ada[0]]).good == (ada[0],)
    assert check_signers(found, []) == ((), (), (key_id(ada[0]),))


def test_another_payload_does_not_fit(ada: Signer) -> None:
    data = envelope(ada) | {"payload": base64.b64encode(b'{"hello":"World"}').decode()}
    assert check_signers(read_envelope(data), [ada[0]]) == ((), (ada[0],), ())


def test_of_two_signatures_one_that_fits_is_enough(ada: Signer, eve: Signer) -> None:
    data = envelope(ada, eve)
    data["signatures"][1]["sig"] = data["signatures"][0]["sig"]
    found = read_envelope(data)
    assert check_signers(found, [ada[0]]) == ((ada[0],), (), (key_id(eve[0]),))
    assert check_signers(found, [eve[0]]) == ((), (eve[0],), (key_id(ada[0]),))
    assert check_signers(found, [ada[0], eve[0]]) == ((ada[0],), (eve[0],), ())


def test_a_signature_that_names_another_key_is_not_tried(ada: Signer, eve: Signer) -> None:
    data = envelope(ada)
    data["signatures"][0]["keyid"] = key_id(eve[0])
    assert check_signers(read_envelope(data), [ada[0]]).good == ()


@pytest.mark.parametrize("how", ["empty", "absent"])
def test_a_signature_without_a_name_is_tried_with_every_key(ada: Signer, eve: Signer, how: str) -> None:
    data = envelope(ada)
    data["signatures"][0]["keyid"] = ""
    if how == "absent":
        del data["signatures"][0]["keyid"]
    assert check_signers(read_envelope(data), [eve[0], ada[0]]).good == (ada[0],)
    assert check_signers(read_envelope(data), [eve[0]]) == ((), (), ("",))


@pytest.mark.parametrize(
    "change",
    [
        {"payloadType": "application/json"},
        {"payloadType": None},
        {"payload": None},
        {"payload": ""},
        {"payload": "aGk"},
        {"payload": "aGl="},
        {"payload": "aGk=\n"},
        {"payload": "a-_="},
        {"payload": "é"},
        {"signatures": []},
        {"signatures": {}},
        {"signatures": [{"sig": "aGk="}] * 65},
        {"signatures": ["aGk="]},
        {"signatures": [{}]},
        {"signatures": [{"keyid": 1, "sig": "aGk="}]},
        {"signatures": [{"keyid": "", "sig": "aGl="}]},
        {"signatures": [{"keyid": "", "sig": "aGk=", "cert": ""}]},
        {"more": 1},
    ],
)
def test_another_form_is_refused(change: dict[str, Any]) -> None:
    good = {"payload": "aGk=", "payloadType": PAYLOAD_TYPE, "signatures": [{"keyid": "", "sig": "aGk="}]}
    assert read_envelope(good).payload == b"hi"
    with pytest.raises(EnvelopeError) as caught:
        read_envelope(good | change)
    assert_sentences(caught.value)


def test_a_public_key_is_known_by_its_text_and_by_its_pem_file(tmp_path: Path, ada: Signer) -> None:
    file = tmp_path / "ada.pub"
    file.write_text(public_pem(ada[0]))
    assert file.read_text().startswith("-----BEGIN PUBLIC KEY-----\n")
    assert public_key(ada[0]) == public_key(str(file)) == ada[0]


def test_what_is_no_public_key_is_refused_with_a_sentence(tmp_path: Path, ada: Signer) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048).public_key()
    form = (serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    (tmp_path / "rsa").write_bytes(other.public_bytes(*form))
    (tmp_path / "noise").write_text("hello")
    for given in (
        "ed25519:",
        "ed25519:AAAA",
        "ed25519:é",
        f"{ada[0]}\n",
        f"{ada[0][:-2]}F=",
        str(tmp_path / "rsa"),
        str(tmp_path / "noise"),
        str(tmp_path / "ada"),
        str(tmp_path / "nowhere"),
        str(tmp_path),
    ):
        with pytest.raises(SigningError) as caught:
            public_key(given)
        assert_sentences(caught.value)
        assert "donewhen key show" in str(caught.value.next_step)
