"""The protocol of a completion check: its context, its result and the checker."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Protocol, runtime_checkable

from donewhen.protocols.reasons import ReasonCode

if TYPE_CHECKING:
    from donewhen.filesystem import Filesystem
    from donewhen.protocols.adapter import ProviderAdapter
    from donewhen.runtime import Session

StopReason = Literal["end_turn", "structured_output", "max_turns", "error"]
"""Why an agent is stopping, as reported by the adapters of this package."""


@dataclass(frozen=True)
class TaskCompletionResult:
    """The immutable result of a check: whether the work is complete, and what is missing if not.

    ``code`` is set by the checkers of this package (:class:`~donewhen.protocols.ReasonCode`); a checker
    of your own may leave it out. Use ``result.complete``: a result has no truth value, because
    ``if checker.check(context):`` and ``first or second`` would each let unfinished work slip through.
    """

    complete: bool
    feedback: str | None = None
    code: ReasonCode | None = None

    def __post_init__(self) -> None:
        # "complete" decides whether an agent may stop: 1, "no" and an uncalled method must not count as true.
        if not isinstance(self.complete, bool):
            raise TypeError(f"complete must be True or False, not {type(self.complete).__name__}")
        if not (self.feedback is None or isinstance(self.feedback, str)):
            raise TypeError(f"feedback must be a str or None, not {type(self.feedback).__name__}")
        if not (self.code is None or isinstance(self.code, ReasonCode)):
            raise TypeError(f"code must be a ReasonCode or None, not {self.code!r}")

    def __bool__(self) -> NoReturn:
        raise TypeError("a TaskCompletionResult has no truth value: use result.complete")

    @classmethod
    def ok(cls, feedback: str | None = None) -> TaskCompletionResult:
        """The tasks are complete."""
        return cls(complete=True, feedback=feedback)

    @classmethod
    def incomplete(cls, feedback: str, *, code: ReasonCode | None = None) -> TaskCompletionResult:
        """The tasks are not complete; ``feedback`` tells the agent what is missing."""
        return cls(complete=False, feedback=feedback, code=code)


@dataclass(slots=True)
class TaskCompletionContext:
    """The input of a checker.

    ``tentative_output`` is the output being produced: the structured payload, or the agent's last message.
    """

    session: Session
    tentative_output: Any = None
    filesystem: Filesystem | None = None
    adapter: ProviderAdapter | None = None
    stop_reason: str | None = None
    session_id: str = ""
    """The agent runtime's own id of the session, if it is known."""


@runtime_checkable
class TaskCompletionChecker(Protocol):
    """Anything with a ``check`` method; no inheritance needed."""

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        """Return whether the tasks are complete, with feedback for the agent."""
        ...
