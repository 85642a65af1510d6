"""The configuration of the client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from donewhen.completion import GuardPolicy, as_checker

if TYPE_CHECKING:
    from donewhen.completion.composite import Checkable


@dataclass(frozen=True)
class ClaudeAgentSDKClientConfig:
    """Settings of the client. Task completion checking is off unless a checker is given."""

    task_completion_checker: Checkable | None = None
    guard_policy: GuardPolicy = field(default_factory=GuardPolicy)
    dialect: Literal["client", "spec"] = "client"
    """``client``: the answers that released clients honour. ``spec``: the payloads printed in the specification,
    which no released client honours; the run is then only checked at its end."""
    cwd: str | Path | None = None
    """The folder in which the agent works. Default: the root of the adapter's HostFilesystem if it has one, else the
    current folder."""
    model: str | None = None
    max_turns: int | None = None
    permission_mode: str | None = None
    tools: tuple[str, ...] | None = None
    """The client's own tools that the agent may use; None for the client's default set, () for none."""
    allowed_tools: tuple[str, ...] = ()
    disallowed_tools: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables for the client, in addition to those that it inherits."""
    background_wait: float = 600.0
    """Seconds to wait for background tasks that are still running after the agent has ended its turn."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of the SDK's ClaudeAgentOptions, passed on unchanged."""

    def __post_init__(self) -> None:
        if self.task_completion_checker is not None:
            as_checker(self.task_completion_checker)
        if self.dialect not in ("client", "spec"):
            raise ValueError(f"dialect must be 'client' or 'spec', not {self.dialect!r}")
        if not self.background_wait > 0:
            raise ValueError(f"background_wait must be positive, not {self.background_wait!r}")
