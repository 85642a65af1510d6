"""Establish who approves: a person who types a word at a terminal, a key, or CI.

Whoever can't prove to be one of them counts as an agent, whose approval is recorded and has no effect.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.errors import UsageError
from donewhen.jobs.ledger.approval import (
    Approval,
    approval_in_person,
    detected_agent,
    is_at_terminal,
    is_ci,
    unproved_actor,
)
from donewhen.jobs.ledger.entries import Actor

_WORDS = (
    "amber", "anchor", "apple", "arrow", "birch", "bread", "brick", "cedar", "chalk", "cloud", "coral", "crane",
    "ember", "fable", "ferry", "field", "flint", "grape", "grove", "harbor", "hazel", "honey", "ivory", "juniper",
    "kettle", "lantern", "lemon", "linen", "maple", "meadow", "mint", "nickel", "olive", "otter", "paper", "pebble",
    "pepper", "pine", "plum", "quartz", "raven", "river", "saddle", "sage", "shell", "silver", "slate", "spruce",
    "stone", "sugar", "tiger", "timber", "tulip", "velvet", "violet", "walnut", "willow", "winter",
)  # fmt: skip


def _ignore(_: str) -> None:
    """Report nothing."""


def why_no_person(nobody: str = "nobody is at a terminal") -> str | None:
    """Why it can't be shown that a person is present; None if a person is at a terminal and no agent runs this.

    ``nobody`` is the reason if there is no terminal.
    """
    sign = detected_agent()
    if sign is not None:
        return f"{sign} shows that an agent is running"
    return None if is_at_terminal() else nobody


def approve_in_person(ask: Callable[[str], str], on_agent: Callable[[str], None]) -> Approval | None:
    """The approval of the person at the terminal; None if they declined.

    ``ask`` shows a random word and returns what was typed: a program that types ahead can't know the word. If it can't
    be shown that a person is present, nothing is asked: ``on_agent`` gets the reason, and the approval is an agent's.
    """
    reason = why_no_person()
    if reason is not None:
        on_agent(reason)
        return Approval(unproved_actor())
    word = f"{secrets.choice(_WORDS)}-{secrets.choice(_WORDS)}"
    return approval_in_person() if ask(word).strip() == word else None


def approve_as_ci() -> Approval:
    """The approval of a CI run; raise UsageError outside of CI, and inside an agent."""
    if not is_ci() or detected_agent() is not None:
        raise UsageError("--ci works only in CI without an agent, which was not detected here.")
    return Approval(Actor(os.environ.get("GITHUB_ACTOR") or "ci", "ci"))


def approve_with_key(
    path: Path,
    passphrase: str | Callable[[], str],
    *,
    variable: str | None = None,
    on_agent: Callable[[str], None] = _ignore,
) -> Approval:
    """The approval of whoever has this key and its passphrase.

    A key that an agent's process can use without a person proves none: without a passphrase, in an SSH agent, or with
    its passphrase in the ``variable`` of a process that an agent has started. In CI, it is CI's approval; elsewhere
    ``on_agent`` gets the reason, and the approval is an agent's.
    """
    key = _signing_key(path, passphrase if callable(passphrase) else lambda: passphrase)
    agent = detected_agent()
    unproved = key.unproved
    if unproved is None and key.asked and variable is not None and agent is not None:
        unproved = f"the passphrase of the key is in {variable}, where an agent can read it ({agent})"
    if unproved is None:
        return Approval(Actor(key.name, "key"), key.public, key.sign)
    if is_ci() and agent is None:
        return Approval(Actor(key.name, "ci"), key.public, key.sign, unproved)
    on_agent(unproved)
    return Approval(unproved_actor(), why=unproved)


@dataclass(frozen=True)
class _SigningKey:
    """A key of either kind. ``asked``: its passphrase was needed."""

    name: str
    public: str
    sign: Callable[[bytes], str]
    unproved: str | None
    asked: bool


def _signing_key(path: Path, passphrase: Callable[[], str]) -> _SigningKey:
    from donewhen.jobs.ledger.signing import has_passphrase, open_key
    from donewhen.jobs.ledger.ssh_signing import is_ssh_key_file, open_ssh_key

    if is_ssh_key_file(path):
        asked: list[str] = []

        def ask() -> str:
            asked.append(passphrase())
            return asked[0]

        key = open_ssh_key(path, ask)
        return _SigningKey(key.public.name, key.public.text, key.sign, key.unproved, bool(asked) and not key.touched)
    protected = has_passphrase(path)
    public, sign = open_key(path, passphrase() if protected else None)
    unproved = (
        None if protected else "the key has no passphrase, so every process that can read its file can sign with it"
    )
    return _SigningKey(public.partition(":")[2][:12], public, sign, unproved, protected)
