"""Which command this process runs, for messages to other processes: its verb and the ids that it was given."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextvars import ContextVar

_ID = re.compile(r"(?:PJ|WS|WI)-[0-9]+(?:-[0-9]+)*")
_MAX_IDS = 3

_command: ContextVar[str | None] = ContextVar("donewhen_command", default=None)


def name_command(verb: str, arguments: Iterable[str] = ()) -> None:
    """Name the command of this context. Of its arguments only ids are kept: others may be private."""
    ids = [found.group() for argument in arguments if (found := _ID.match(argument))]
    _command.set(" ".join(["donewhen", verb, *ids[:_MAX_IDS]]))


def current_command() -> str | None:
    """The command, such as ``donewhen complete WI-20260214-001``; None outside of the command line."""
    return _command.get()
