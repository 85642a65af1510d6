"""Who says so: a person at a terminal, a key, a CI run that was allowed to; everything else is an agent.

This keeps agents from approving their own work by accident or by habit. It can't stop one that has all the rights of
the person and pretends to be one; see the threat model.
"""

from __future__ import annotations

import os
import pwd
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.config.agent_runtimes import AGENT_PROGRAMS, AGENT_VARIABLES
from donewhen.foundation.canonical import digest_of
from donewhen.jobs.ledger.ledger import Actor, Entry

_CI_VARIABLES = ("GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "CIRCLECI", "JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION")
_FARTHEST_ANCESTOR = 64


class Policy(NamedTuple):
    """Who besides a person may approve, as a person has agreed to it."""

    ci: bool = False
    keys: frozenset[str] = frozenset()

    @classmethod
    def of(cls, project_terms: Mapping[str, Any] | None) -> Policy:
        """The policy in the sealed terms of a project; without any, only a person will do."""
        settings = (project_terms or {}).get("settings", {})
        return cls(settings.get("approval.ci") is True, frozenset(settings.get("approval.keys", ())))


class Approval(NamedTuple):
    """Who approves; ``sign`` makes the signature where a key does."""

    by: Actor
    key: str | None = None
    sign: Callable[[bytes], str] | None = None

    def counts(self, policy: Policy) -> bool:
        """Whether what they say will be more than a record."""
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
    """Whether an entry of this chain is by somebody whose word counts."""
    match entry.by.kind:
        case "person":
            return True
        case "ci":
            return policy.ci
        case "key":
            return _signed(entry, chain, policy)
        case "agent":
            return False


def signature(
    approval: Approval, chain: str, previous: str | None, kind: str, data: Mapping[str, Any]
) -> dict[str, Any]:
    """The part of an entry that proves who approves it."""
    if approval.sign is None:
        return {}
    subject = approval_subject(chain, previous, kind, data)
    return {"signature": {"key": approval.key, "value": approval.sign(subject)}}


def approval_subject(chain: str, previous: str | None, kind: str, data: Mapping[str, Any]) -> bytes:
    """What a key signs: the content of an entry at its place in a chain, so that the signature fits nothing else."""
    content = {name: value for name, value in data.items() if name != "signature"}
    return f"donewhen/approval/v1\n{chain}\n{previous}\n{kind}\n{digest_of(content)}\n".encode()


def detected_agent(environ: Mapping[str, str] = os.environ) -> str | None:
    """The sign by which an agent is recognised: a variable of its runtime, or a program above this one."""
    for name in AGENT_VARIABLES:
        if environ.get(name):
            return name
    return next((name for name in _ancestors() if name in AGENT_PROGRAMS), None)


def is_ci(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether this runs in a CI system."""
    return any(environ.get(name) for name in _CI_VARIABLES) or environ.get("CI", "").lower() in ("1", "true")


def is_at_terminal() -> bool:
    """Whether somebody sits there: both what is read and what is shown is a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def person_at_terminal() -> Actor:
    """The person, by the name of their account."""
    return Actor(_account(), "person")


def unproved_actor() -> Actor:
    """Whoever runs this command without having proved more."""
    return Actor(_account(), "agent")


def _account() -> str:
    # Not from the environment, which anybody can set.
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user {os.getuid()}"


def _signed(entry: Entry, chain: str, policy: Policy) -> bool:
    signature = entry.data.get("signature")
    if not isinstance(signature, Mapping):
        return False
    key = signature.get("key")
    if not isinstance(key, str) or key not in policy.keys:
        return False
    from donewhen.jobs.ledger.signing import verify_signature

    subject = approval_subject(chain, entry.prev, entry.type, entry.data)
    return verify_signature(key, str(signature.get("value", "")), subject)


def _ancestors() -> list[str]:
    """The names of the programs that led to this one, on systems that tell."""
    names: list[str] = []
    process = os.getppid()
    while process > 1 and len(names) < _FARTHEST_ANCESTOR:
        try:
            text = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            break
        # `pid (name) state parent …`; the name may hold brackets and spaces itself.
        name, _, rest = text.partition("(")[2].rpartition(")")
        names.append(name)
        process = int(rest.split()[1])
    return names
