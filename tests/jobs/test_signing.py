"""Keys under a passphrase: how they are made and opened, and what their signatures are good for."""

from __future__ import annotations

import base64
import dataclasses
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa

from donewhen.foundation.errors import ExitCode, MissingExtraError
from donewhen.foundation.install_line import install_line
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import current_seal
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval, Policy, is_approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.signing import SigningError, create_key_file, open_key, verify_signature
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

WORDS = "correct horse battery"
ADA = Approval(Actor("ada", "person"))


@pytest.fixture
def key(tmp_path: Path) -> Approval:
    """Somebody who signs with a key of their own."""
    path = tmp_path / "key"
    public = create_key_file(path, WORDS)
    found, sign = open_key(path, WORDS)
    assert found == public
    return Approval(Actor("k", "key"), public, sign)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    made = create_project(folder, "Demo")
    for title in ("Parser", "Printer"):
        add_job(made, title, criteria=["It works as described."])
    return made


def jobs(workspace: Workspace) -> list[Job]:
    return [workspace.job_at(place.path) for place in workspace.places()]


def states(workspace: Workspace) -> list[str]:
    return [proposal.agreement.state for proposal in agreement_proposals(workspace, jobs(workspace))]


def trust(workspace: Workspace, *keys: str | None) -> None:
    """A person agrees that these keys count."""
    (workspace.root / "donewhen.toml").write_text(f"[approval]\nkeys = {json.dumps(keys)}\n")
    agree(workspace, agreement_proposals(workspace, [])[0], ADA)


def protected(key: Any, passphrase: bytes | None = None) -> bytes:
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    found: bytes = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
    return found


def test_a_new_key_is_kept_under_its_passphrase_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "key"
    public = create_key_file(path, WORDS)
    assert public.startswith("ed25519:")
    assert len(base64.b64decode(public.removeprefix("ed25519:"), validate=True)) == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.read_bytes().startswith(b"-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert create_key_file(tmp_path / "other", WORDS) != public


def test_a_key_without_a_passphrase_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(SigningError) as caught:
        create_key_file(tmp_path / "key", "")
    assert_sentences(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["file", "empty file", "folder", "link", "dead link"])
def test_what_is_there_is_never_overwritten(tmp_path: Path, kind: str) -> None:
    path, target = tmp_path / "key", tmp_path / "target"
    if kind == "folder":
        path.mkdir()
    elif "link" in kind:
        path.symlink_to(target)
        if kind == "link":
            target.write_text("mine")
    else:
        path.write_text("" if kind == "empty file" else "mine")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(SigningError) as caught:
        create_key_file(path, WORDS)
    assert_sentences(caught.value)
    assert caught.value.where == str(path)
    assert sorted(tmp_path.iterdir()) == before
    if kind in ("file", "link"):
        assert path.read_text() == "mine"


def test_a_key_in_a_folder_that_is_not_there_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(SigningError) as caught:
        create_key_file(tmp_path / "nowhere" / "key", WORDS)
    assert caught.value.where == str(tmp_path / "nowhere" / "key")


@pytest.mark.parametrize("passphrase", ["", "wrong", WORDS.upper(), f"{WORDS} "])
def test_a_wrong_passphrase_opens_nothing(tmp_path: Path, passphrase: str) -> None:
    create_key_file(tmp_path / "key", WORDS)
    with pytest.raises(SigningError) as caught:
        open_key(tmp_path / "key", passphrase)
    assert_sentences(caught.value)
    assert caught.value.where == str(tmp_path / "key")
    assert caught.value.exit_code == ExitCode.USAGE


@pytest.mark.parametrize(
    "content", [b"", b"no key\n", b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"]
)
def test_a_file_that_is_no_key_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(SigningError) as caught:
        open_key(tmp_path / "key", WORDS)
    assert_sentences(caught.value)


def test_a_key_that_can_not_be_read_is_told_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SigningError) as caught:
        open_key(tmp_path / "key", WORDS)
    assert_sentences(caught.value)
    with pytest.raises(SigningError) as caught:
        open_key(tmp_path, WORDS)
    assert_sentences(caught.value)


def test_a_key_of_another_kind_is_refused(tmp_path: Path) -> None:
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    (tmp_path / "key").write_bytes(protected(other, WORDS.encode()))
    with pytest.raises(SigningError) as caught:
        open_key(tmp_path / "key", WORDS)
    assert "ed25519" in str(caught.value)
    assert_sentences(caught.value)
    assert "donewhen key new" in str(caught.value.next_step)


@pytest.mark.parametrize("passphrase", ["", WORDS], ids=["none given", "one given"])
def test_a_key_that_lies_there_without_a_passphrase_is_refused(tmp_path: Path, passphrase: str) -> None:
    (tmp_path / "key").write_bytes(protected(ed25519.Ed25519PrivateKey.generate()))
    with pytest.raises(SigningError):
        open_key(tmp_path / "key", passphrase)


def test_a_signature_fits_its_key_and_its_subject_and_nothing_else(tmp_path: Path, key: Approval) -> None:
    assert key.key is not None
    assert key.sign is not None
    signed = key.sign(b"subject")
    other = create_key_file(tmp_path / "other", WORDS)
    assert verify_signature(key.key, signed, b"subject")
    assert not verify_signature(key.key, signed, b"subject ")
    assert not verify_signature(other, signed, b"subject")
    assert not verify_signature(key.key, base64.b64encode(bytes(64)).decode(), b"subject")


KEY, SIGNED = "ed25519:{bare}", "{signed}"


@pytest.mark.parametrize(
    ("public", "value"),
    [
        ("{bare}", SIGNED), ("rsa:{bare}", SIGNED), ("ed25519:", SIGNED), ("ed25519:AAAA", SIGNED),
        (f"{KEY}!", SIGNED), (f"ed25519:{KEY}", SIGNED), (KEY, ""), (KEY, f"{SIGNED}!"), (KEY, "é"), (KEY, "AAAA"),
    ],
    ids=[
        "no kind", "other kind", "no key", "short key", "odd key", "kind twice", "nothing", "odd", "not ascii", "short",
    ],
)  # fmt: skip
def test_what_can_not_be_read_fits_nothing(key: Approval, public: str, value: str) -> None:
    assert key.sign is not None
    values = {"bare": str(key.key).removeprefix("ed25519:"), "signed": key.sign(b"subject")}
    assert verify_signature(KEY.format(**values), SIGNED.format(**values), b"subject")
    assert not verify_signature(public.format(**values), value.format(**values), b"subject")


def test_a_key_that_nobody_trusts_is_recorded_and_does_not_count(workspace: Workspace, key: Approval) -> None:
    for proposal in agreement_proposals(workspace, jobs(workspace)):
        entry = agree(workspace, proposal, key)
        assert entry.by.kind == "key"
        assert entry.data["signature"]["key"] == key.key
        assert workspace.ledger.head(proposal.chain) == entry.hash
    assert states(workspace) == ["proposed"] * 3
    assert all("agreed_by" not in job.document.fields for job in jobs(workspace))


def test_a_key_that_only_stands_in_the_settings_does_not_count(workspace: Workspace, key: Approval) -> None:
    (workspace.root / "donewhen.toml").write_text(f'[approval]\nkeys = ["{key.key}"]\n')
    for proposal in agreement_proposals(workspace, jobs(workspace)):
        agree(workspace, proposal, key)
    assert states(workspace) == ["proposed"] * 3


def test_a_key_counts_after_a_person_agreed_to_it(workspace: Workspace, key: Approval) -> None:
    trust(workspace, key.key)
    for proposal in agreement_proposals(workspace, jobs(workspace))[1:]:
        agree(workspace, proposal, key)
    assert states(workspace) == ["agreed"] * 3
    assert [job.document.fields["agreed_by"] for job in jobs(workspace)] == ["k (key)"] * 2
    decided = decide(workspace, jobs(workspace)[0], Decision("raise_budget", "more", 9), key)
    assert decided.counts
    assert jobs(workspace)[0].max_iterations == 9
    assert states(workspace) == ["agreed"] * 3


def test_a_key_that_is_trusted_no_longer_takes_its_word_with_it(workspace: Workspace, key: Approval) -> None:
    trust(workspace, key.key)
    agree(workspace, agreement_proposals(workspace, jobs(workspace))[1], key)
    assert states(workspace)[1] == "agreed"
    trust(workspace)
    assert states(workspace)[1] != "agreed"


def test_an_entry_that_says_key_without_a_signature_does_not_count(workspace: Workspace, key: Approval) -> None:
    trust(workspace, key.key)
    agree(workspace, agreement_proposals(workspace, jobs(workspace))[1], key._replace(sign=None))
    assert states(workspace)[1] != "agreed"


def test_a_signature_is_bound_to_chain_place_kind_and_content(workspace: Workspace, key: Approval) -> None:
    trust(workspace, key.key)
    first, second = jobs(workspace)
    entry = agree(workspace, agreement_proposals(workspace, [first])[1], key)
    policy = Policy(keys=frozenset({str(key.key)}))
    assert is_approval(entry, first.id, policy)
    assert not is_approval(entry, second.id, policy)
    assert not is_approval(dataclasses.replace(entry, prev=entry.hash), first.id, policy)
    assert not is_approval(dataclasses.replace(entry, type="decided"), first.id, policy)
    assert not is_approval(dataclasses.replace(entry, data={**entry.data, "notes": "more"}), first.id, policy)
    assert not is_approval(entry, first.id, Policy(ci=True))


def _copied(workspace: Workspace, chain: str, data: Mapping[str, Any]) -> Entry:
    return workspace.ledger.append(chain, "agreed", data, Actor("k", "key"))


def test_a_signed_entry_copied_into_another_chain_does_not_count(workspace: Workspace, key: Approval) -> None:
    trust(workspace, key.key)
    first, second = jobs(workspace)
    entry = agree(workspace, agreement_proposals(workspace, [first])[1], key)
    _copied(workspace, second.id, entry.data)
    assert states(workspace)[2] != "agreed"


def test_a_signed_entry_copied_later_into_its_own_chain_does_not_count(workspace: Workspace, key: Approval) -> None:
    trust(workspace, key.key)
    job = jobs(workspace)[0]
    old = agree(workspace, agreement_proposals(workspace, [job])[1], key)
    text = job.path.read_text().replace("It works as described.", "It works as described.\n- It is fast.")
    job.path.write_text(text)
    agree(workspace, agreement_proposals(workspace, [jobs(workspace)[0]])[1], key)
    _copied(workspace, job.id, old.data)
    policy = Policy(keys=frozenset({str(key.key)}))
    seal = current_seal(job.id, workspace.ledger.read(job.id).entries, policy)
    assert seal is not None
    assert seal.terms.criteria == ("It is fast.", "It works as described.")


def test_a_key_is_made_and_used_at_the_command_line(
    workspace: Workspace, donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    file = workspace.root / "key.pem"
    assert donewhen(["key", "new", str(file)], workspace.root).returncode == 2
    assert not file.exists()
    environment = {**os.environ, "DONEWHEN_PASSPHRASE": WORDS}
    made = json.loads(donewhen(["key", "new", str(file), "--json"], workspace.root, environment).stdout)
    shown = json.loads(donewhen(["key", "show", str(file), "--json"], workspace.root, environment).stdout)
    assert made["data"]["key"] == shown["data"]["key"]
    assert donewhen(["key", "new", str(file)], workspace.root, environment).returncode == 2
    trust(workspace, made["data"]["key"])
    agreed = donewhen(["agree", "--key", str(file), "--json"], workspace.root, environment)
    assert agreed.returncode == 0
    assert json.loads(agreed.stdout)["data"]["by"]["kind"] == "key"
    assert states(workspace) == ["agreed"] * 3


WITHOUT_THE_LIBRARY = """
import sys
for name in ("cryptography", "cryptography.hazmat", "cryptography.hazmat.primitives"):
    sys.modules[name] = None
from pathlib import Path
from donewhen.foundation.errors import MissingExtraError
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.signing import create_key_file, open_key, verify_signature
data = {"signature": {"key": "ed25519:k", "value": "x"}}
entry = Entry(1, None, "agreed", "", Actor("k", "key"), data, "h")
asked = (
    lambda: create_key_file(Path(sys.argv[1]), "words"),
    lambda: open_key(Path(__file__), "words"),
    lambda: verify_signature("ed25519:k", "x", b""),
    lambda: is_approval(entry, "X", Policy(keys=frozenset({"ed25519:k"}))),
)
for one in asked:
    try:
        one()
    except MissingExtraError as error:
        print(error.code, error.extra, error.next_step)
print(is_approval(entry, "X", Policy()), Path(sys.argv[1]).exists())
"""


def test_without_the_extra_signing_says_what_to_install_and_the_rest_works(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WITHOUT_THE_LIBRARY)
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path / "key")], capture_output=True, text=True, check=True
    )
    lines = done.stdout.replace(install_line("sign"), "INSTALL").splitlines()
    assert_sentences(lines[:4])
    assert lines[4:] == ["False False"]


def test_a_missing_library_is_told_in_this_process_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives", None)
    with pytest.raises(MissingExtraError, match=r"donewhen\[sign\]"):
        create_key_file(tmp_path / "key", WORDS)
    assert list(tmp_path.iterdir()) == []
