"""How a guarded run ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from donewhen.protocols.reasons import ReasonCode
    from donewhen.runtime import Bypass

CompletionStatus = Literal["verified", "incomplete", "bypassed", "capped", "errored"]
"""How a guarded run ended.

* ``verified``: the last check found the work complete.
* ``incomplete``: the run ended (turns, an error) although the last check found the work incomplete.
* ``bypassed``: deadline or budget was spent, so the check was skipped; ``bypass`` says which.
* ``capped``: the agent was held back as often as allowed without progress, and was released unverified.
* ``errored``: the run ended and the last check itself was broken.
"""


@dataclass(frozen=True)
class CompletionReport:
    """Whether the work was verified, and after how many checks."""

    status: CompletionStatus
    attempts: int
    """How often the check ran: at each attempt to stop, and once more if the run ended without one."""
    feedback: str | None = None
    """The feedback of the last check."""
    code: ReasonCode | None = None
    bypass: Bypass | None = None

    @property
    def verified(self) -> bool:
        return self.status == "verified"
