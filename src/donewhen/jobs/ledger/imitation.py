"""What an agent on this machine could imitate: the ways in which its approval would look like a person's.

Nothing is tried: files, settings of the system and the SSH agent's list of keys are read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from donewhen.config.settings import ApprovalSettings
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_limited
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.foundation.size_limits import KEY
from donewhen.jobs.ledger.ssh_keys import PublicSshKey, private_ssh_key, public_ssh_key

PASSPHRASE = "DONEWHEN_PASSPHRASE"  # noqa: S105 - the name of the variable
_MAX_FILES = 400
_MAX_LISTED = 3
_PTRACE = "/proc/sys/kernel/yama/ptrace_scope"
_TYPING = "/proc/sys/dev/tty/legacy_tiocsti"


class Imitation(NamedTuple):
    """One way to imitate a person, and what to do about it."""

    name: str
    detail: str
    next: str


def imitations(
    approval: ApprovalSettings, root: Path, environ: Mapping[str, str] = CALLER_VARIABLES, system: Path = Path("/")
) -> tuple[Imitation, ...]:
    """Return what an agent that runs as this user could imitate. ``system`` is the root of the file system."""
    ssh = {key.text: key for line in approval.ssh if (key := public_ssh_key(line)) is not None}
    return (
        *_keys(approval, ssh, root, environ),
        *_agent_keys(ssh, environ),
        *_variables(approval, environ),
        *_invalid_lines(approval.ssh),
        *_terminal(system),
    )


def _keys(
    approval: ApprovalSettings, ssh: Mapping[str, PublicSshKey], root: Path, environ: Mapping[str, str]
) -> Iterator[Imitation]:
    """Keys that count, in files without a passphrase that this user can read."""
    if not approval.keys and not ssh:
        return
    home = Path(environ.get("HOME") or "/nonexistent")
    for path in _key_files((root, home, home / ".ssh", home / ".config" / "donewhen")):
        if _is_open_key(path, approval.keys, ssh):
            detail = f"{path} is a key that may approve, without a passphrase: every process of yours can sign with it"
            yield Imitation(
                "open key", detail, f"Make a new key under a passphrase (donewhen key new FILE), or: {_protect(path)}"
            )


def _protect(path: Path) -> str:
    return f"ssh-keygen -p -f {path}"


def _key_files(folders: Sequence[Path]) -> Iterator[Path]:
    for folder in dict.fromkeys(folders):
        try:
            paths = sorted(path for path in folder.iterdir() if path.is_file())
        except OSError:
            continue
        yield from (path for path in paths[:_MAX_FILES] if os.access(path, os.R_OK))


def _is_open_key(path: Path, keys: Sequence[str], ssh: Mapping[str, PublicSshKey]) -> bool:
    try:
        if path.stat().st_size > KEY.bytes:
            return False
        content = read_limited(path, KEY)
    except (OSError, DonewhenError):
        return False
    private = private_ssh_key(content)
    if private is not None:
        return private.public.text in ssh and not private.has_passphrase and not private.public.on_hardware
    if not keys or b"-----BEGIN PRIVATE KEY-----" not in content:
        return False
    from donewhen.jobs.ledger.signing import open_key

    try:
        return open_key(path, None)[0] in keys
    except DonewhenError:
        return False


def _agent_keys(ssh: Mapping[str, PublicSshKey], environ: Mapping[str, str]) -> Iterator[Imitation]:
    """Keys that count, in an SSH agent whose socket this user can use."""
    if not ssh or not environ.get("SSH_AUTH_SOCK"):
        return
    from donewhen.jobs.ledger.ssh_signing import keys_in_agent

    usable = [ssh[key.text].name for key in keys_in_agent(environ) if key.text in ssh and not key.on_hardware]
    if usable:
        detail = (
            f"the SSH agent at {environ['SSH_AUTH_SOCK']} signs with {join_limited(usable, _MAX_LISTED)} for every "
        )
        yield Imitation(
            "SSH agent",
            f"{detail}process of yours, and donewhen can't tell such a signature from a person's",
            "Remove it from the agent (ssh-add -d FILE), or use a security key (ssh-keygen -t ed25519-sk).",
        )


def _variables(approval: ApprovalSettings, environ: Mapping[str, str]) -> Iterator[Imitation]:
    if environ.get(PASSPHRASE):
        detail = f"{PASSPHRASE} is set: every process that is started from here can sign with your key"
        yield Imitation("passphrase", detail, "Type the passphrase instead, and unset the variable.")
    if approval.ci:
        detail = "approval.ci is set: whoever sets the variables of a CI system can approve as CI"
        yield Imitation("CI", detail, "Let CI sign with a key of its own, and remove approval.ci.")


def _invalid_lines(lines: Sequence[str]) -> Iterator[Imitation]:
    for line in lines:
        if public_ssh_key(line) is None:
            detail = f"approval.ssh has a line that is no public SSH key, so it trusts nobody: {one_line(line, 60)}"
            yield Imitation("SSH key", detail, "Write it as in the .pub file: type, key, name; without options.")


def _terminal(system: Path) -> Iterator[Imitation]:
    """What helps a process of the same user to pass for a person at a terminal."""
    if not (system / "proc/self/stat").exists():
        detail = "this system does not tell which programs started a process, so only variables show that an agent runs"
        yield Imitation("ancestors", detail, "Approve with a key that only you can use.")
    if sys.platform != "linux":
        return
    ways = []
    if _setting(system, _PTRACE) in ("0", None):
        ways.append("attach to your other processes and terminals (ptrace)")
    if _setting(system, _TYPING) == "1":
        ways.append("type into a terminal that it shares with you (TIOCSTI)")
    if os.geteuid() == 0:
        ways.append("do everything, because you work as root")
    detail = (
        f"a process of yours can {', '.join(ways)}" if ways else "a process of yours can open a terminal of its own"
    )
    advice = "Let agents work under another account or in a container; a security key proves a touch."
    yield Imitation("terminal", f"{detail}, and answer there like a person", advice)


def _setting(system: Path, name: str) -> str | None:
    """A setting of the kernel; None if it has none."""
    try:
        return (system / name.lstrip("/")).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return None
