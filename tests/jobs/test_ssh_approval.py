"""Approvals by SSH keys: which count, which prove no person, and what an agent on this machine could imitate."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

sys.path.insert(0, str(Path(__file__).parent))

from ssh_kit import WORDS, Agent, SoftSecurityKey, make_key, needs_openssh

from donewhen.config.settings import ApprovalSettings
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger import approval as approval_module
from donewhen.jobs.ledger import ssh_signing
from donewhen.jobs.ledger.approval import Approval, Policy, approval_subject, is_approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.imitation import imitations
from donewhen.jobs.ledger.person_check import approve_with_key
from donewhen.jobs.ledger.signing import SigningError, create_key_file, open_key
from donewhen.jobs.ledger.ssh_keys import is_signature_by, private_ssh_key, public_ssh_key
from donewhen.jobs.ledger.ssh_signing import keys_in_agent, open_ssh_key, verify_ssh_signature
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

pytestmark = needs_openssh
ADA = Approval(Actor("ada", "person"))
SUBJECT = b"what is signed"


@pytest.fixture(autouse=True)
def nobody_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """No agent above, no CI and no SSH agent of whoever runs the tests."""
    monkeypatch.setattr(approval_module, "_ancestor_programs", list)
    for name in ("SSH_AUTH_SOCK", "CI", "GITHUB_ACTIONS", "CLAUDECODE", "DONEWHEN_PASSPHRASE"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def protected(tmp_path: Path) -> Path:
    make_key(tmp_path / "id_protected", WORDS)
    return tmp_path / "id_protected"


@pytest.fixture
def unprotected(tmp_path: Path) -> Path:
    make_key(tmp_path / "id_open")
    return tmp_path / "id_open"


@pytest.fixture
def agent(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Agent]:
    made = Agent(tmp_path_factory.mktemp("a"))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(made.socket))
    yield made
    made.stop()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    made = create_project(folder, "Demo")
    add_job(made, "Parser", criteria=["It works as described."])
    return made


def line_of(path: Path) -> str:
    return path.with_name(f"{path.name}.pub").read_text().strip()


def trust(workspace: Workspace, *lines: str, ci: bool = False) -> None:
    """A person agrees that these keys count."""
    text = f"[approval]\nssh = {json.dumps(lines)}\n" + ("ci = true\n" if ci else "")
    (workspace.root / "donewhen.toml").write_text(text)
    agree(workspace, agreement_proposals(workspace, [])[0], ADA)


def agree_to_job(workspace: Workspace, by: Approval) -> tuple[str, Entry]:
    job = workspace.job_at(next(workspace.places()).path)
    entry = agree(workspace, agreement_proposals(workspace, [job])[-1], by)
    return agreement_proposals(workspace, [job])[-1].agreement.state, entry


# A key that needs a person


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_key_under_a_passphrase_approves_what_a_person_lets_it(
    workspace: Workspace, tmp_path: Path, kind: str
) -> None:
    line = make_key(tmp_path / "id", WORDS, kind)
    trust(workspace, line)
    by = approve_with_key(tmp_path / "id", WORDS)
    assert (by.by.kind, by.by.name, by.why) == ("key", "ada@laptop", "")
    state, entry = agree_to_job(workspace, by)
    assert state == "agreed"
    assert entry.content.signature is not None and entry.content.signature.value.startswith("-----BEGIN SSH")


def test_a_key_that_nobody_trusts_does_not_count(workspace: Workspace, protected: Path, unprotected: Path) -> None:
    trust(workspace, line_of(unprotected), "ssh-ed25519 nonsense", "no-touch-required ssh-ed25519 AAAA")
    assert agree_to_job(workspace, approve_with_key(protected, WORDS))[0] == "proposed"


def test_a_wrong_passphrase_signs_nothing(protected: Path) -> None:
    with pytest.raises(SigningError) as caught:
        approve_with_key(protected, "wrong")
    assert caught.value.message.startswith("Wrong passphrase")


def test_a_signature_is_for_one_entry_one_purpose_and_one_key(
    protected: Path, unprotected: Path, tmp_path: Path
) -> None:
    key = open_ssh_key(protected, lambda: WORDS)
    signature = key.sign(SUBJECT)
    public = key.public.text
    assert verify_ssh_signature(public, signature, SUBJECT)
    assert not verify_ssh_signature(public, signature, SUBJECT + b"!")
    assert not verify_ssh_signature(open_ssh_key(unprotected, str).public.text, signature, SUBJECT)
    assert not verify_ssh_signature(public, signature.replace("A", "B", 3), SUBJECT)
    assert not verify_ssh_signature(public, "", SUBJECT)
    assert not verify_ssh_signature("ssh-ed25519 nonsense", signature, SUBJECT)
    (tmp_path / "file").write_bytes(SUBJECT)
    program = ["ssh-keygen", "-Y", "sign", "-q", "-n", "git", "-f", str(unprotected), str(tmp_path / "file")]
    subprocess.run(program, check=True, stderr=subprocess.DEVNULL)
    other_purpose = (tmp_path / "file.sig").read_text()
    assert not verify_ssh_signature(open_ssh_key(unprotected, str).public.text, other_purpose, SUBJECT)


def entry_signed(signature: str, public: str, chain: str = "X") -> Entry:
    data: dict[str, Any] = {"how": "agreed", "signature": {"key": public, "value": signature}}
    return Entry(1, "p", "agreed", "2026-02-14T00:00:00Z", Actor("x", "key"), data, "h")


def test_a_security_key_counts_if_somebody_touched_it() -> None:
    key = SoftSecurityKey()
    subject = approval_subject("X", "p", "agreed", {"how": "agreed"})
    policy = Policy(keys=frozenset({key.public}))
    assert is_approval(entry_signed(key.sign(subject), key.public), "X", policy)
    assert not is_approval(entry_signed(key.sign(subject, touched=False), key.public), "X", policy)
    assert not is_approval(entry_signed(key.sign(subject, namespace="git"), key.public), "X", policy)
    assert not is_approval(entry_signed(key.sign(subject), key.public), "Y", policy)
    assert not is_approval(entry_signed(key.sign(subject), key.public), "X", Policy())


def test_a_program_on_the_path_does_not_verify(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, protected: Path
) -> None:
    fake = tmp_path / "bin" / "ssh-keygen"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexit 0\n")
    fake.chmod(0o755)
    signature = open_ssh_key(protected, lambda: WORDS).sign(SUBJECT)
    monkeypatch.setenv("PATH", f"{fake.parent}")
    public = open_ssh_key(protected, lambda: WORDS).public.text
    assert not verify_ssh_signature(public, signature, b"something else")


def test_without_ssh_keygen_nothing_is_guessed(monkeypatch: pytest.MonkeyPatch, protected: Path) -> None:
    key = open_ssh_key(protected, lambda: WORDS)
    signature = key.sign(b"never verified before")
    monkeypatch.setattr(ssh_signing, "PROGRAM_FOLDERS", ("/nonexistent",))
    with pytest.raises(SigningError) as caught:
        verify_ssh_signature(key.public.text, signature, b"never verified before")
    assert_sentences(caught.value)
    with pytest.raises(SigningError):
        key.sign(SUBJECT)


# A key that needs nobody


def test_a_key_without_a_passphrase_is_no_persons_word(workspace: Workspace, unprotected: Path) -> None:
    trust(workspace, line_of(unprotected))
    reasons: list[str] = []
    by = approve_with_key(unprotected, "", on_agent=reasons.append)
    assert by.by.kind == "agent"
    state, entry = agree_to_job(workspace, by)
    assert state == "proposed"
    assert entry.content.unproved == reasons[0] == by.why
    assert_sentences(by.why)


@pytest.mark.parametrize("allowed", [True, False])
def test_in_ci_it_is_cis_word_if_that_was_agreed_to(
    workspace: Workspace, unprotected: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    trust(workspace, line_of(unprotected), ci=allowed)
    monkeypatch.setenv("CI", "true")
    by = approve_with_key(unprotected, "")
    assert by.by.kind == "ci"
    assert (agree_to_job(workspace, by)[0] == "agreed") is allowed


def test_in_ci_an_agent_is_still_an_agent(unprotected: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    monkeypatch.setenv("CLAUDECODE", "1")
    assert approve_with_key(unprotected, "").by.kind == "agent"


def test_a_key_in_an_ssh_agent_is_no_persons_word_until_it_is_removed(
    workspace: Workspace, protected: Path, agent: Agent
) -> None:
    trust(workspace, line_of(protected))
    agent.add(protected, WORDS)
    public_file = protected.with_name(f"{protected.name}.pub")
    for path in (protected, public_file):
        by = approve_with_key(path, WORDS)
        assert by.by.kind == "agent"
        assert agree_to_job(workspace, by)[0] == "proposed"
    assert "ssh-add -d" in by.why
    # The agent can sign all the same, which is why the key should not be there.
    assert verify_ssh_signature(
        *(open_ssh_key(public_file, str).public.text, open_ssh_key(public_file, str).sign(SUBJECT), SUBJECT)
    )
    agent.remove(protected)
    assert agree_to_job(workspace, approve_with_key(protected, WORDS))[0] == "agreed"


def test_a_public_key_without_an_agent_can_not_sign(protected: Path) -> None:
    with pytest.raises(SigningError) as caught:
        approve_with_key(protected.with_name(f"{protected.name}.pub"), WORDS)
    assert "SSH agent" in caught.value.message


def test_own_keys_without_a_passphrase_are_no_persons_word_either(tmp_path: Path) -> None:
    path = tmp_path / "own.pem"
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(ed25519.Ed25519PrivateKey.generate().private_bytes(*form))
    assert approve_with_key(path, "").by.kind == "agent"


@pytest.mark.parametrize(("variable", "kind"), [("DONEWHEN_PASSPHRASE", "agent"), (None, "key")])
def test_a_passphrase_in_a_variable_below_an_agent_is_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str | None, kind: str
) -> None:
    create_key_file(tmp_path / "own.pem", WORDS)
    assert approve_with_key(tmp_path / "own.pem", WORDS, variable=variable).by.kind == "key"
    monkeypatch.setenv("CLAUDECODE", "1")
    assert approve_with_key(tmp_path / "own.pem", WORDS, variable=variable).by.kind == kind


# Reading files


def test_what_is_no_ssh_key_is_not_read_as_one(tmp_path: Path, protected: Path) -> None:
    assert public_ssh_key("") is None
    assert public_ssh_key("ssh-ed25519") is None
    assert public_ssh_key("ssh-ed25519 AAAA") is None
    assert public_ssh_key("ssh-dss AAAAB3NzaC1kc3MAAACBAA==") is None
    assert public_ssh_key("restrict " + line_of(protected)) is None
    assert public_ssh_key("ssh-rsa " + line_of(protected).split()[1]) is None
    assert private_ssh_key(b"") is None
    head, tail = "-----BEGIN OPENSSH PRIVATE " + "KEY-----\n", "-----END OPENSSH PRIVATE " + "KEY-----\n"
    for body in ("", "AAAA", "!!!!", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU="):
        assert private_ssh_key(f"{head}{body}\n{tail}".encode()) is None
    (tmp_path / "bad").write_text(f"{head}AAAA\n{tail}")
    with pytest.raises(SigningError):
        open_ssh_key(tmp_path / "bad", str)
    with pytest.raises(SigningError):
        open_ssh_key(tmp_path / "nothing", str)
    key = SoftSecurityKey()
    public = public_ssh_key(key.public)
    assert public is not None and public.on_hardware
    for text in ("", "x", "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----\n"):
        assert not is_signature_by(text, public)
    assert not is_signature_by(key.sign(SUBJECT)[:-60] + "-----END SSH SIGNATURE-----\n", public)


# What an agent could imitate


def names(*arguments: Any, **options: Any) -> list[str]:
    return [found.name for found in imitations(*arguments, **options)]


def test_doctor_names_keys_that_anybody_can_use(
    tmp_path: Path, protected: Path, unprotected: Path, agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    unprotected.rename(home / ".ssh" / "id_open")
    public = line_of(unprotected)
    environ = {"HOME": str(home), "SSH_AUTH_SOCK": str(agent.socket)}
    assert "open key" not in names(ApprovalSettings(), tmp_path, environ)
    assert "open key" in names(ApprovalSettings(ssh=(public,)), tmp_path, environ)
    settings = ApprovalSettings(ssh=(line_of(protected),))
    assert not {"open key", "SSH agent"} & {*names(settings, tmp_path, environ)}
    agent.add(protected, WORDS)
    assert "SSH agent" in names(settings, tmp_path, environ)
    assert "passphrase" in names(settings, tmp_path, {**environ, "DONEWHEN_PASSPHRASE": "x"})
    assert {"CI", "SSH key"} <= {*names(ApprovalSettings(ci=True, ssh=("ssh-ed25519 x",)), tmp_path, environ)}


def test_doctor_names_own_keys_without_a_passphrase(tmp_path: Path) -> None:
    key = ed25519.Ed25519PrivateKey.generate()
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "own.pem").write_bytes(key.private_bytes(*form))
    create_key_file(tmp_path / "locked.pem", WORDS)
    public, locked = open_key(tmp_path / "own.pem", None)[0], open_key(tmp_path / "locked.pem", WORDS)[0]
    environ = {"HOME": "/nonexistent"}
    assert "open key" in names(ApprovalSettings(keys=(public,)), tmp_path, environ)
    assert "open key" not in names(ApprovalSettings(keys=(locked,)), tmp_path, environ)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({"yama/ptrace_scope": "0"}, "ptrace"),
        ({"yama/ptrace_scope": "1"}, "a process of yours can"),
        ({"yama/ptrace_scope": "1", "tiocsti": "1"}, "TIOCSTI"),
        ({}, "ptrace"),
    ],
)
def test_doctor_says_what_the_system_lets_a_process_do(tmp_path: Path, files: dict[str, str], said: str) -> None:
    places = {"yama/ptrace_scope": "proc/sys/kernel/yama/ptrace_scope", "tiocsti": "proc/sys/dev/tty/legacy_tiocsti"}
    for name, value in files.items():
        path = tmp_path / places[name]
        path.parent.mkdir(parents=True)
        path.write_text(f"{value}\n")
    found = {one.name: one for one in imitations(ApprovalSettings(), tmp_path, {}, tmp_path)}
    assert said in found["terminal"].detail
    assert "ancestors" in found
    assert ("ptrace" in found["terminal"].detail) is (files.get("yama/ptrace_scope") != "1")


def test_doctor_and_agree_say_it(
    workspace: Workspace,
    unprotected: Path,
    donewhen: Callable[..., subprocess.CompletedProcess[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trust(workspace, line_of(unprotected))
    environment = {
        name: value for name, value in CALLER_VARIABLES.items() if name in ("PATH", "HOME", "XDG_STATE_HOME")
    }
    environment["HOME"] = str(unprotected.parent)
    report = json.loads(donewhen(["doctor", "--json"], workspace.root, environment).stdout)
    found = {imitation["name"]: imitation for imitation in report["data"]["imitations"]}
    assert str(unprotected) in found["open key"]["detail"]
    shown = donewhen(["doctor"], workspace.root, environment).stdout
    assert "What an agent on this machine could imitate:" in shown
    done = donewhen(["agree", "--no-baseline", "--key", str(unprotected)], workspace.root, environment)
    assert done.returncode == 1
    assert "no passphrase" in done.stderr
    shown = donewhen(["key", "show", str(unprotected), "--json"], workspace.root, environment)
    assert json.loads(shown.stdout)["data"]["key"] == line_of(unprotected)
    assert donewhen(["key", "show", str(unprotected), "--pem"], workspace.root, environment).returncode == 2


def test_a_protected_key_agrees_at_the_command_line(
    workspace: Workspace, protected: Path, donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    trust(workspace, line_of(protected))
    names = ("PATH", "HOME", "XDG_STATE_HOME")
    environment = {name: value for name, value in CALLER_VARIABLES.items() if name in names}
    environment["DONEWHEN_PASSPHRASE"] = WORDS
    arguments = ["agree", "--no-baseline", "--key", str(protected), "--json"]
    done = donewhen(arguments, workspace.root, environment)
    assert (done.returncode, json.loads(done.stdout)["data"]["by"]["kind"]) == (0, "key"), done.stderr


def test_an_ssh_agent_that_is_gone_has_no_keys(
    tmp_path: Path, protected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environ = {"SSH_AUTH_SOCK": str(tmp_path / "nothing")}
    assert keys_in_agent(environ) == () == keys_in_agent({})
    monkeypatch.setenv("SSH_AUTH_SOCK", environ["SSH_AUTH_SOCK"])
    public = open_ssh_key(protected.with_name(f"{protected.name}.pub"), str, environ)
    with pytest.raises(SigningError) as caught:
        public.sign(SUBJECT)
    assert caught.value.message.startswith("ssh-keygen did not sign")
    assert approve_with_key(protected, WORDS).by.kind == "key"


def test_a_program_that_can_not_be_run_or_hangs_is_an_error(
    tmp_path: Path, protected: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = open_ssh_key(protected, lambda: WORDS)
    for name in ("ssh-keygen", "ssh-add"):
        (tmp_path / name).write_text("no program")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(ssh_signing, "PROGRAM_FOLDERS", (str(tmp_path),))
    with pytest.raises(SigningError) as caught:
        key.sign(SUBJECT)
    assert "can't be run" in caught.value.message
    assert keys_in_agent({"SSH_AUTH_SOCK": str(tmp_path)}) == ()
    for name in ("ssh-keygen", "ssh-add"):
        (tmp_path / name).write_text(f"#!/bin/sh\nexec {shutil.which('sleep')} 600\n")
    monkeypatch.setattr(ssh_signing, "_TIMEOUT", 0.2)
    monkeypatch.setattr(ssh_signing, "_AGENT_TIMEOUT", 0.2)
    with pytest.raises(SigningError) as caught:
        key.sign(SUBJECT)
    assert "did not answer" in caught.value.message
    assert keys_in_agent({"SSH_AUTH_SOCK": str(tmp_path)}) == ()


def test_large_and_unreadable_files_are_no_keys(tmp_path: Path, unprotected: Path) -> None:
    settings = ApprovalSettings(ssh=(line_of(unprotected),), keys=("ed25519:x",))
    (tmp_path / "large").write_bytes(bytes(1 << 20))
    (tmp_path / "broken.pem").write_text("-----BEGIN PRIVATE " + "KEY-----\nx\n")
    assert names(settings, tmp_path, {"HOME": "/nonexistent"}).count("open key") == 1
