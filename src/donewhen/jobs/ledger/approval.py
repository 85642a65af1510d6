"""Who approves: a person at a terminal, a key, or an allowed CI run; everything else counts as an agent.

This keeps agents from approving their own work by accident or by habit. It can't stop an agent that has all the rights
of a person and pretends to be that person; see the threat model.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.config.agent_runtimes import AGENT_PROGRAMS, AGENT_VARIABLES
from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.canonical import digest_of
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.ledger.terms_content import ProjectTerms, Terms

_CI_VARIABLES = ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION")
_MAX_ANCESTORS = 64
_LONGEST_NAME = 60


class Policy(NamedTuple):
    """Who may approve besides a person, as agreed in the project's terms."""

    ci: bool = False
    keys: frozenset[str] = frozenset()
    """Public keys: donewhen's own (``ed25519:…``), and SSH keys as type and base64."""

    @classmethod
    def of(cls, project_terms: Terms | None) -> Policy:
        """The policy in the sealed terms of a project; without terms, only a person may approve."""
        if not isinstance(project_terms, ProjectTerms):
            return cls()
        keys = project_terms.settings.get("approval.keys")
        ssh = project_terms.settings.get("approval.ssh")
        return cls(
            project_terms.settings.get("approval.ci") is True,
            frozenset(
                (*(keys if isinstance(keys, tuple) else ()), *(_ssh_keys(ssh) if isinstance(ssh, tuple) else ()))
            ),
        )


class Approval(NamedTuple):
    """Who approves; ``sign`` makes the signature if a key approves."""

    by: Actor
    key: str | None = None
    sign: Callable[[bytes], str] | None = None
    why: str = ""
    """Why a key that was given does not prove a person; recorded with the entry."""
    named: str = ""
    """What git calls the person. It is recorded to be shown, and proves nothing: ``by`` is who they are."""

    def counts(self, policy: Policy) -> bool:
        """Whether the approval takes effect; otherwise it is only recorded."""
        match self.by.kind:
            case "person":
                return True
            case "ci":
                return policy.ci
            case "key":
                return self.key in policy.keys
            case "agent":
                return False


def is_approval(entry: Entry, chain: str, policy: Policy) -> bool:
    """Whether an entry of this chain was made by an approver that the policy accepts."""
    match entry.by.kind:
        case "person":
            return True
        case "ci":
            return policy.ci
        case "key":
            return _has_valid_signature(entry, chain, policy)
        case "agent":
            return False


def signature(
    approval: Approval, chain: str, previous: str | None, kind: str, data: Mapping[str, Any]
) -> dict[str, Any]:
    """The signature field of an entry; empty if the approval is not by a key."""
    if approval.sign is None:
        return {}
    subject = approval_subject(chain, previous, kind, data)
    return {"signature": {"key": approval.key, "value": approval.sign(subject)}}


def approval_subject(chain: str, previous: str | None, kind: str, data: Mapping[str, Any]) -> bytes:
    """The bytes that a key signs: an entry's content and its place in the chain, so that no other entry has them."""
    content = {name: value for name, value in data.items() if name != "signature"}
    return f"donewhen/approval/v1\n{chain}\n{previous}\n{kind}\n{digest_of(content)}\n".encode()


def detected_agent(environ: Mapping[str, str] = CALLER_VARIABLES) -> str | None:
    """The environment variable or parent process that shows that an agent runs this, or None."""
    for name in AGENT_VARIABLES:
        if environ.get(name):
            return name
    return next((name for name in _ancestor_programs() if name in AGENT_PROGRAMS), None)


def is_ci(environ: Mapping[str, str] = CALLER_VARIABLES) -> bool:
    """Whether this runs in a CI system."""
    return any(environ.get(name) for name in _CI_VARIABLES) or environ.get("CI", "").lower() in ("1", "true")


def is_at_terminal() -> bool:
    """Whether stdin and stderr are both terminals."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def person_at_terminal() -> Actor:
    """The current user, as a person."""
    return Actor(_account_name(), "person")


def approval_in_person(folder: Path | None = None) -> Approval:
    """The approval of the current user, with the name that git has for them in ``folder``."""
    from donewhen.foundation.git import git

    name = git(folder or Path.cwd(), "config", "user.name")
    named = "" if name is None else one_line(name.decode("utf-8", "replace"), _LONGEST_NAME)
    return Approval(person_at_terminal(), named=named)


def unproved_actor() -> Actor:
    """The current user, as an agent: nothing proves that a person runs this command."""
    return Actor(_account_name(), "agent")


def _account_name() -> str:
    # Not from the environment, which any process can set.
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def _ssh_keys(lines: tuple[str, ...]) -> list[str]:
    """The keys in lines such as ``ssh-ed25519 AAAA… name``. A line that is no public key trusts nobody."""
    from donewhen.jobs.ledger.ssh_keys import public_ssh_key

    return [key.text for line in lines if (key := public_ssh_key(line)) is not None]


def _has_valid_signature(entry: Entry, chain: str, policy: Policy) -> bool:
    signature = entry.content.signature
    if signature is None or signature.key is None or signature.key not in policy.keys:
        return False
    subject = approval_subject(chain, entry.prev, entry.type, entry.data)
    if " " in signature.key:
        from donewhen.jobs.ledger.ssh_signing import verify_ssh_signature

        return verify_ssh_signature(signature.key, signature.value, subject)
    from donewhen.jobs.ledger.signing import verify_signature

    return verify_signature(signature.key, signature.value, subject)


def _ancestor_programs() -> list[str]:
    """The names of this process's ancestors, nearest first; empty on systems without ``/proc``."""
    names: list[str] = []
    process = os.getppid()
    while process > 1 and len(names) < _MAX_ANCESTORS:
        try:
            text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        # `pid (name) state parent …`; the name may hold brackets and spaces itself.
        name, _, rest = text.partition("(")[2].rpartition(")")
        names.append(name)
        process = int(rest.split()[1])
    return names
