"""Signs and verifies with ssh-keygen, and says whether an SSH key needs a person.

A key that every process of the user can use proves no person: one in an SSH agent, or one in a file without a
passphrase. A security key proves a touch.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.files import read_limited
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.size_limits import KEY
from donewhen.jobs.ledger.signing import SigningError
from donewhen.jobs.ledger.ssh_keys import NAMESPACE, PublicSshKey, is_signature_by, private_ssh_key, public_ssh_key

# Not from PATH: whoever sets it could put a program there that finds every signature valid.
PROGRAM_FOLDERS = ("/usr/bin", "/bin", "/usr/local/bin", "/opt/homebrew/bin", "/run/current-system/sw/bin")
_TIMEOUT = 60.0
_AGENT_TIMEOUT = 10.0
_TOUCH_TIMEOUT = 180.0
_NEEDED = ("HOME", "USER", "LOGNAME", "LANG", "TERM", "SSH_SK_PROVIDER")
_ANSWER = "DONEWHEN_SSH_ANSWER"


@dataclass(frozen=True)
class SshKey:
    """An SSH key that can sign. ``unproved`` says why its signature proves no person; None if it does."""

    public: PublicSshKey
    sign: Callable[[bytes], str]
    unproved: str | None

    @property
    def touched(self) -> bool:
        """Whether each signature needs a touch."""
        return self.public.on_hardware


def is_ssh_key_file(path: Path) -> bool:
    """Whether a file is a private SSH key in OpenSSH's format, or a public one, whose private key an agent has."""
    try:
        content = read_limited(path, KEY)
    except OSError:
        return False
    return content.startswith(b"-----BEGIN OPENSSH PRIVATE KEY-----") or _public_in(content) is not None


def open_ssh_key(path: Path, passphrase: Callable[[], str], environ: Mapping[str, str] = CALLER_VARIABLES) -> SshKey:
    """Return the key of a file. ``passphrase`` is asked for if the key has one; raise SigningError if it is wrong."""
    try:
        content = read_limited(path, KEY)
    except OSError as error:
        raise SigningError(f"The key can't be read: {error.strerror}.", where=str(path)) from error
    in_agent = _public_in(content)
    if in_agent is not None:
        agent = environ.get("SSH_AUTH_SOCK")
        if agent is None:
            raise SigningError(
                "This is a public key, and there is no SSH agent that has the private one.",
                where=str(path),
                next_step="Give the private key's file instead.",
            )
        why = None if in_agent.on_hardware else _in_agent(in_agent)
        return SshKey(in_agent, lambda subject: _sign(path, subject, {"SSH_AUTH_SOCK": agent}, in_agent), why)
    private = private_ssh_key(content)
    if private is None:
        raise SigningError(
            "The file is not a private key in OpenSSH's format.", where=str(path), next_step=f"ssh-keygen -p -f {path}"
        )
    public = private.public._replace(comment=_comment(path))
    answer = passphrase() if private.has_passphrase else None
    if answer is not None:
        _refuse_wrong_passphrase(path, answer)
    return SshKey(
        public,
        lambda subject: _sign(path, subject, {}, public, answer),
        None if public.on_hardware else _why_unproved(public, has_passphrase=private.has_passphrase, environ=environ),
    )


def _why_unproved(public: PublicSshKey, *, has_passphrase: bool, environ: Mapping[str, str]) -> str | None:
    if not has_passphrase:
        return "the key has no passphrase, so every process that can read its file can sign with it"
    return _in_agent(public) if public.text in {key.text for key in keys_in_agent(environ)} else None


def _in_agent(public: PublicSshKey) -> str:
    return (
        f"the key {public.name} is in an SSH agent, where every process of this user can sign with it "
        "(remove it: ssh-add -d)"
    )


def keys_in_agent(environ: Mapping[str, str] = CALLER_VARIABLES) -> tuple[PublicSshKey, ...]:
    """Return the keys that the SSH agent of the caller has; none if there is no agent or no ssh-add."""
    agent, program = environ.get("SSH_AUTH_SOCK"), _program("ssh-add")
    if agent is None or program is None:
        return ()
    try:
        listed = subprocess.run(
            [program, "-L"], env=_environment({"SSH_AUTH_SOCK": agent}), capture_output=True, timeout=_AGENT_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = listed.stdout.decode("utf-8", "replace").splitlines()
    return tuple(key for line in lines if (key := public_ssh_key(line)) is not None)


@lru_cache(maxsize=4096)
def verify_ssh_signature(public: str, signature: str, subject: bytes) -> bool:
    """Whether a signature is valid. Raise SigningError if this machine has no ssh-keygen to find out."""
    key = public_ssh_key(public)
    if key is None or not is_signature_by(signature, key):
        return False
    with tempfile.TemporaryDirectory(prefix="donewhen-ssh-") as folder:
        signers, file = Path(folder, "signers"), Path(folder, "signature")
        signers.write_text(f'{NAMESPACE} namespaces="{NAMESPACE}" {key.text}\n', encoding="ascii")
        file.write_text(f"{signature.strip()}\n", encoding="utf-8")
        arguments = ["-Y", "verify", "-q", "-f", str(signers), "-I", NAMESPACE, "-n", NAMESPACE, "-s", str(file)]
        return _keygen(arguments, subject, {}, _TIMEOUT).returncode == 0


def _sign(
    path: Path, subject: bytes, more: Mapping[str, str], public: PublicSshKey, passphrase: str | None = None
) -> str:
    limit = _TOUCH_TIMEOUT if public.on_hardware else _TIMEOUT
    done = _asked(["-Y", "sign", "-n", NAMESPACE, "-f", str(path)], subject, more, limit, passphrase)
    signature = done.stdout.decode("utf-8", "replace")
    if done.returncode or not is_signature_by(signature, public):
        reason = one_line(done.stderr.decode("utf-8", "replace"), 200) or f"exit status {done.returncode}"
        if not done.returncode:
            reason = "the security key was not touched" if public.on_hardware else "another key has signed"
        raise SigningError(f"ssh-keygen did not sign: {reason}.", where=str(path))
    return signature


def _refuse_wrong_passphrase(path: Path, passphrase: str) -> None:
    if _asked(["-y", "-f", str(path)], b"", {}, _TIMEOUT, passphrase).returncode:
        raise SigningError("Wrong passphrase, or the file is not a private key.", where=str(path))


def _asked(
    arguments: Sequence[str], content: bytes, more: Mapping[str, str], limit: float, passphrase: str | None
) -> subprocess.CompletedProcess[bytes]:
    """Run ssh-keygen, which gets the passphrase from a program that it starts: it has no option for it that is safe."""
    if passphrase is None:
        # Never from a program of the caller: that could answer in a person's place.
        return _keygen(arguments, content, {**more, "SSH_ASKPASS_REQUIRE": "never"}, limit)
    with tempfile.TemporaryDirectory(prefix="donewhen-ssh-") as folder:
        program = Path(folder, "answer")
        program.write_text(f'#!/bin/sh\nprintf "%s\\n" "${_ANSWER}"\n', encoding="ascii")
        program.chmod(0o700)
        asking = {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force", "DISPLAY": "-", _ANSWER: passphrase}
        return _keygen(arguments, content, {**more, **asking}, limit)


def _keygen(
    arguments: Sequence[str], content: bytes, more: Mapping[str, str], limit: float
) -> subprocess.CompletedProcess[bytes]:
    program = _program("ssh-keygen")
    if program is None:
        raise SigningError(
            "SSH signatures need ssh-keygen, which is not installed.",
            next_step="Install OpenSSH (Debian: openssh-client), and run this again.",
        )
    try:
        return subprocess.run(
            [program, *arguments], input=content, env=_environment(more), capture_output=True, timeout=limit
        )
    except subprocess.TimeoutExpired as error:
        raise SigningError(f"ssh-keygen did not answer within {limit:g} seconds.") from error
    except OSError as error:
        raise SigningError(f"ssh-keygen can't be run: {error.strerror}.", where=program) from error


def _program(name: str) -> str | None:
    paths = (Path(folder, name) for folder in PROGRAM_FOLDERS)
    return next((str(path) for path in paths if path.is_file() and os.access(path, os.X_OK)), None)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    kept = {name: CALLER_VARIABLES[name] for name in _NEEDED if name in CALLER_VARIABLES}
    return {"PATH": os.pathsep.join(PROGRAM_FOLDERS), **kept, **more}


def _public_in(content: bytes) -> PublicSshKey | None:
    return public_ssh_key(content.decode("utf-8", "replace").partition("\n")[0])


def _comment(path: Path) -> str:
    """The comment in the public key's file next to a private one; a private key's own comment may be encrypted."""
    try:
        public = _public_in(read_limited(path.with_name(f"{path.name}.pub"), KEY))
    except OSError:
        return ""
    return "" if public is None else public.comment
