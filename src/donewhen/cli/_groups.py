"""Verbs by what people do with them: which stand on the first screen of the help, and which in a group.

``donewhen prove verify`` is ``donewhen verify``. The short form stays: hooks, scripts and workflows call it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

FIRST = {
    "Every day": ("init", "add", "agree", "start", "complete", "status", "why", "review"),
    "See": ("last", "serve", "demo", "doctor", "explain"),
}
"""The verbs on the first screen."""


@dataclass(frozen=True)
class VerbGroup:
    """A group: its line in the help, and its commands with the verb that each one is."""

    summary: str
    verbs: dict[str, str]


def _same(*names: str) -> dict[str, str]:
    return {name: name for name in names}


GROUPS = {
    "job": VerbGroup(
        "Work on jobs and look at them.",
        _same("next", "ready", "block", "ask", "dispute", "loop")
        | _same("run", "contract", "decide", "sign-off", "log", "lessons", "reward", "import", "github"),
    ),
    "prove": VerbGroup(
        "Prove to others that work is done: CI, audit, receipts.",
        _same("verify", "audit", "attest", "promise", "anchor", "key"),
    ),
    "mission": VerbGroup(
        "Teach a judge: tickets, learning, guidance.",
        _same("judge", "learn", "guidance", "models", "replay") | {"audit": "audit-mission"},
    ),
    "guard": VerbGroup(
        "Hold agents: checks, hooks, tools, settings.",
        _same("check", "baseline", "hooks", "hook", "mcp", "config") | {"remove": "uninit"},
    ),
}


def verb_in_group(words: Sequence[str]) -> tuple[str, list[str]] | None:
    """The verb that the words of a group mean, with its arguments; None if they don't name one of a group's verbs."""
    group = GROUPS.get(words[0]) if len(words) > 1 else None
    verb = group.verbs.get(words[1]) if group is not None else None
    return None if verb is None else (verb, list(words[2:]))
