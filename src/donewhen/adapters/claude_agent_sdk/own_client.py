"""Hooks for programs that run the Claude Agent SDK's client themselves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from donewhen.adapters.claude_agent_sdk.enforcement import (
    Event,
    client_env,
    hook_timeout,
    is_of_subagent,
    never_raising,
)
from donewhen.adapters.claude_agent_sdk.run import import_sdk
from donewhen.adapters.claude_agent_sdk.spec_payloads import NOTHING, Answer
from donewhen.adapters.claude_code import hook_payloads
from donewhen.adapters.claude_code.hook_payloads import STRUCTURED_OUTPUT
from donewhen.completion import GuardPolicy, GuardState, StopGuard, TaskCompletionContext
from donewhen.filesystem import HostFilesystem
from donewhen.runtime import Limits, Session

if TYPE_CHECKING:
    from donewhen.completion import Checkable, StopDecision
    from donewhen.filesystem import Filesystem
    from donewhen.protocols import CompletionReport, StopReason
    from donewhen.runtime import Budget, BudgetTracker, Deadline


class ClientHooks(dict[str, list[Any]]):
    """Hooks by event, for the field ``hooks`` of ClaudeAgentOptions. Made by :func:`hooks_for`.

    ``report`` is the last decision that let the agent go; None before it, and after a refusal. The client calls no
    hook at some ends of a run: ask :meth:`conclude` for the verdict when it has ended.
    """

    def __init__(
        self, guard: StopGuard, session: Session, filesystem: Filesystem, matcher: type[Any], policy: GuardPolicy
    ) -> None:
        stop = never_raising(self._on_stop, hook_payloads.refuse_stop)
        before = never_raising(self._before_output, hook_payloads.refuse_output)
        timeout = hook_timeout(policy)
        super().__init__(
            Stop=[matcher(hooks=[stop], timeout=timeout)],
            PreToolUse=[matcher(matcher=STRUCTURED_OUTPUT, hooks=[before], timeout=timeout)],
        )
        self.report: CompletionReport | None = None
        self.session = session
        self.env = client_env(policy)
        """Variables for the field ``env``: with them only the guard's caps apply, and not the client's own."""
        self._guard = guard
        self._filesystem = filesystem
        self._last_output: object = None

    async def conclude(self) -> CompletionReport:
        """Check the work once more, when the client's run has ended, and return the verdict about this moment."""
        self.report = await self._guard.aconclude(self._context(self._last_output, "end_turn"))
        return self.report

    async def _on_stop(self, event: Event) -> Answer:
        # The client asks again when the task in the background wakes the agent up.
        if hook_payloads.is_busy(event):
            return NOTHING
        if not event.get("stop_hook_active"):
            # The first stop since the person's last message: earlier refusals don't count.
            self._guard.state = GuardState(self._guard.state.attempts)
        decision = await self._decided(event.get("last_assistant_message"), "end_turn")
        return NOTHING if decision.allow else hook_payloads.refuse_stop(decision.feedback)

    async def _before_output(self, event: Event) -> Answer:
        if is_of_subagent(event):
            return NOTHING
        decision = await self._decided(event.get("tool_input"), "structured_output")
        return NOTHING if decision.allow else hook_payloads.refuse_output(decision.feedback)

    async def _decided(self, output: object, reason: StopReason) -> StopDecision:
        self._last_output = output
        decision = await self._guard.adecide(self._context(output, reason))
        self.report = decision.report if decision.allow else None
        if decision.report.status == "capped":
            # The next message of the person starts a new count.
            self._guard.state = GuardState(self._guard.state.attempts)
        return decision

    def _context(self, output: object, reason: StopReason) -> TaskCompletionContext:
        return TaskCompletionContext(self.session, output, self._filesystem, None, reason)


def hooks_for(
    checker: Checkable,
    *,
    session: Session | None = None,
    filesystem: Filesystem | None = None,
    policy: GuardPolicy | None = None,
    deadline: Deadline | None = None,
    budget: Budget | BudgetTracker | None = None,
) -> ClientHooks:
    """Return hooks that hold the agent of your own ClaudeSDKClient or ``query`` until ``checker`` passes.

    ``checker`` sees the files of ``filesystem`` (default: the current folder) and ``session``, in which every check is
    recorded. A structured output is denied until the check passes. Sub-agents are not held. One set of hooks is for
    one client. Needs ``donewhen[claude]``.
    """
    policy = policy or GuardPolicy()
    guard = StopGuard(checker, Limits.of(deadline, budget), policy)
    folder = filesystem or HostFilesystem(Path.cwd())
    return ClientHooks(guard, session or Session(), folder, import_sdk().HookMatcher, policy)
