"""Establish who approves: a person who types a word at a terminal, a key, or CI.

Whoever can't prove to be one of them counts as an agent, whose approval is recorded and has no effect.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from pathlib import Path

from donewhen.foundation.errors import UsageError
from donewhen.jobs.ledger.approval import (
    Approval,
    detected_agent,
    is_at_terminal,
    is_ci,
    person_at_terminal,
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
    return Approval(person_at_terminal()) if ask(word).strip() == word else None


def approve_as_ci() -> Approval:
    """The approval of a CI run; raise UsageError outside of CI, and inside an agent."""
    if not is_ci() or detected_agent() is not None:
        raise UsageError("--ci works only in CI without an agent, which was not detected here.")
    return Approval(Actor(os.environ.get("GITHUB_ACTOR") or "ci", "ci"))


def approve_with_key(path: Path, passphrase: str) -> Approval:
    """The approval of whoever has this key and its passphrase."""
    from donewhen.jobs.ledger.signing import open_key

    public, sign = open_key(path, passphrase)
    return Approval(Actor(public.partition(":")[2][:12], "key"), public, sign)
