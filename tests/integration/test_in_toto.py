"""The packages of in-toto accept what `donewhen attest` writes, verify its signature, and refuse what was changed."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from cryptography.hazmat.primitives.serialization import load_pem_public_key
from google.protobuf import json_format
from in_toto.exceptions import SignatureVerificationError
from in_toto.models.metadata import Envelope as LinkEnvelope
from in_toto.models.metadata import Metadata
from in_toto_attestation.v1 import statement_pb2
from in_toto_attestation.v1.statement import Statement
from securesystemslib.dsse import Envelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen_kit import git_command as git
from donewhen_kit import run_main as donewhen
from sentences import assert_sentences

WITH_WORDS = {**os.environ, "DONEWHEN_PASSPHRASE": "correct horse"}


class Receipt(NamedTuple):
    """A job that was done by the command line, attested and signed; and the signer's key as in-toto reads it."""

    root: Path
    job: str
    statement: str
    envelope: str
    key: SSlibKey


@pytest.fixture(scope="module")
def receipt(tmp_path_factory: pytest.TempPathFactory) -> Receipt:
    """Made once: no test here changes it."""
    repository = tmp_path_factory.mktemp("in-toto") / "repository"
    repository.mkdir()
    git(repository, "init", "-q", "-b", "main")
    shop = create_project(repository, "Shop")
    (repository / "test_notice.py").write_text("def test_notice():\n    assert open('NOTICE').read()\n")
    job = add_job(
        shop,
        "Ship a notice: “©”",
        criteria=["There is a notice.\n  check: file /NOTICE", "No test fails.\n  check: run python -m pytest -q"],
        outputs=["/NOTICE"],
    )
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, Approval(Actor("ada", "person")))
    git(repository, "add", "-A")
    assert donewhen(["start", job.id], repository).returncode == 0
    (repository / "NOTICE").write_text("All rights reserved.\n")
    completed = donewhen(["complete", job.id], repository)
    assert completed.returncode == 0, completed.stdout
    git(repository, "add", "-A")
    git(repository, "commit", "-qm", "Done")
    said = donewhen(["attest", job.id], repository)
    assert said.returncode == 0, said.stderr
    key = repository.parent / "key.pem"
    assert donewhen(["key", "new", str(key)], repository, WITH_WORDS).returncode == 0
    pem = donewhen(["key", "show", str(key), "--pem"], repository, WITH_WORDS).stdout
    out = repository.parent / "receipt.json"
    signed = donewhen(["attest", job.id, "--key", str(key), "--out", str(out)], repository, WITH_WORDS)
    assert signed.returncode == 0, signed.stderr
    public = load_pem_public_key(pem.encode())
    return Receipt(repository, job.id, said.stdout, out.read_text(), SSlibKey.from_crypto(public))


def proto(text: str) -> Any:
    return json_format.Parse(text, statement_pb2.Statement())


def link_key(key: SSlibKey) -> dict[str, Any]:
    """A key in the form that in-toto's own models take."""
    return {**key.to_dict(), "keyid": key.keyid}


def test_the_statement_is_valid_for_in_toto_attestation(receipt: Receipt) -> None:
    found = proto(receipt.statement)
    Statement.copy_from_pb(found).validate()
    assert found.predicate_type == "urn:donewhen:completion:v1"
    head = git(receipt.root, "rev-parse", "HEAD").strip()
    content = hashlib.sha256((receipt.root / "NOTICE").read_bytes()).hexdigest()
    assert [(one.name, dict(one.digest)) for one in found.subject] == [
        ("NOTICE", {"sha256": content}),
        ("git commit", {"gitCommit": head}),
    ]
    assert found.predicate["job"] == receipt.job


def test_what_is_left_out_is_missed_by_in_toto_attestation(receipt: Receipt) -> None:
    whole = json.loads(receipt.statement)
    for change in ({"_type": "x"}, {"subject": []}, {"subject": [{"name": "a"}]}, {"predicateType": ""}):
        with pytest.raises(ValueError, match=r"type|subject|digest|Predicate"):
            Statement.copy_from_pb(proto(json.dumps(whole | change))).validate()


def test_the_envelope_is_verified_by_securesystemslib(receipt: Receipt) -> None:
    envelope = Envelope.from_dict(json.loads(receipt.envelope))
    assert list(envelope.verify([receipt.key], 1)) == [receipt.key.keyid]
    assert envelope.payload_type == "application/vnd.in-toto+json"
    assert json.loads(envelope.payload) == json.loads(receipt.statement)
    Statement.copy_from_pb(proto(envelope.payload.decode())).validate()


def test_the_envelope_is_loaded_and_verified_by_in_toto(receipt: Receipt) -> None:
    loaded = Metadata.load(str(receipt.root.parent / "receipt.json"))
    assert isinstance(loaded, LinkEnvelope)
    loaded.verify_signature(link_key(receipt.key))


@pytest.mark.parametrize("what", ["payload", "signature", "type", "key"])
def test_what_was_changed_is_refused_by_them(receipt: Receipt, what: str) -> None:
    data = json.loads(receipt.envelope)
    key = receipt.key
    if what == "payload":
        other = base64.b64decode(data["payload"]).replace(b'"score":', b'"score":1')
        data["payload"] = base64.b64encode(other).decode()
    elif what == "signature":
        sig = bytearray(base64.b64decode(data["signatures"][0]["sig"]))
        sig[5] ^= 1
        data["signatures"][0]["sig"] = base64.b64encode(sig).decode()
    elif what == "type":
        data["payloadType"] = "application/json"
    else:
        key = CryptoSigner.generate_ed25519().public_key
    with pytest.raises(VerificationError):
        Envelope.from_dict(json.loads(json.dumps(data))).verify([key], 1)
    if what != "type":
        with pytest.raises(SignatureVerificationError):
            LinkEnvelope.from_dict(data).verify_signature(link_key(key))


def test_a_signature_that_in_toto_adds_is_good_for_donewhen_too(receipt: Receipt) -> None:
    second = CryptoSigner.generate_ed25519()
    envelope = Envelope.from_dict(json.loads(receipt.envelope))
    envelope.sign(second)
    file = receipt.root.parent / "two.json"
    file.write_text(json.dumps(envelope.to_dict(), indent=1))
    raw = bytes.fromhex(second.public_key.keyval["public"])
    theirs = f"ed25519:{base64.b64encode(raw).decode()}"
    found = donewhen(["attest", "verify", str(file), "--key", theirs, "--files", str(receipt.root)], file.parent)
    assert found.returncode == 0, found.stdout
    assert str(theirs) in found.stdout
    assert_sentences(found.stdout)


def test_the_name_of_a_key_is_the_one_that_in_toto_gives_it(receipt: Receipt) -> None:
    told = donewhen(["key", "show", str(receipt.root.parent / "key.pem"), "--json"], receipt.root, WITH_WORDS)
    assert json.loads(told.stdout)["data"]["keyid"] == receipt.key.keyid
    assert json.loads(receipt.envelope)["signatures"][0]["keyid"] == receipt.key.keyid
