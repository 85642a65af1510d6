"""How a runtime's client is started for one prompt, against a model server on loopback."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from donewhen.adapters.diagnosis import Diagnosis

Api = Literal["messages", "responses", "gemini"]
"""The API with which a client calls its model."""


@dataclass(frozen=True)
class ClientRoom:
    """Where a client runs: a home folder and a project of its own, and the address of the model server."""

    home: Path
    project: Path
    server: str
    """The server's address without a path."""
    inherited: Mapping[str, str]
    """Variables of the caller that the client gets as they are, such as the PATH."""


@dataclass(frozen=True)
class ClientStart:
    """A command, and all variables of its environment."""

    arguments: tuple[str, ...]
    environment: dict[str, str]


@dataclass(frozen=True)
class TrustedHook:
    """An installed hook for a stop, and the name of the diagnosis about its trust."""

    name: str
    command_line: str
    root: Path
    is_users_own: bool


@dataclass(frozen=True)
class Outdated:
    """What an old client does with the hooks, and what to do about it."""

    message: str
    advice: str


class AgentClient(Protocol):
    """The client of one runtime: what `donewhen doctor` needs to know to try it."""

    program: str
    api: Api
    switches: tuple[str, ...]
    """Top-level keys of a settings file that decide whether hooks run at all."""
    environment_key: str | None
    """The key of a settings file with variables for hooks."""
    hook_variables: tuple[str, ...]
    """Variables of the environment that decide whether hooks run, and how."""
    events_without_matcher: frozenset[str]
    """The events at which a matcher is ignored. At all others, it limits the hook."""
    run_keys: frozenset[str]
    """Keys of an entry that change where or how its line runs, none of which install writes."""
    longest_timeout: int | None
    """A hook with a longer timeout, in the unit of the settings file, times out at once."""
    check_options: tuple[str, ...]
    """Options with which the client reports settings that it rejects, and runs no hook and no other program that they
    name. Empty if it has none."""
    project_hooks_below: bool
    """Whether a project's hooks are loaded when the client is started in a sub-folder of the project."""

    def shell(self, environ: Mapping[str, str]) -> tuple[str, ...]:
        """Return the command with which the client runs a hook's command line."""
        ...

    def too_old(self) -> Outdated | None:
        """Whether the installed client is too old for the hooks that install writes."""
        ...

    def start(self, program: str, room: ClientRoom, prompt: str) -> ClientStart:
        """Write the client's configuration into the room, and return how to start it there.

        Hooks that are already in the room's settings files stay. The client gets a dummy key and calls only the server.
        """
        ...

    def trust(self, hook: TrustedHook, environ: Mapping[str, str]) -> Diagnosis | None:
        """Whether the client trusts the hook for a stop; None if there is nothing to say."""
        ...


def base_environment(room: ClientRoom) -> dict[str, str]:
    """The variables that every client gets: no key and no address of the person's comes along."""
    return {
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "SHELL": "/bin/sh",
        **room.inherited,
        "HOME": str(room.home),
        "TERM": "dumb",
        "NO_COLOR": "1",
    }
