"""The hooks that hold an agent back while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from donewhen.adapters.claude_agent_sdk import spec_payloads
from donewhen.adapters.claude_agent_sdk.spec_payloads import Answer
from donewhen.adapters.claude_code import hook_payloads
from donewhen.adapters.claude_code.hook_payloads import STRUCTURED_OUTPUT
from donewhen.foundation.plain_text import one_line

if TYPE_CHECKING:
    from donewhen.completion import GuardPolicy, StopDecision, StopGuard, TaskCompletionContext
    from donewhen.prompt import OutputSpec
    from donewhen.protocols import CompletionReport, StopReason

OutputT = TypeVar("OutputT")
Event = Mapping[str, Any]
Hook = Callable[[Event, str | None, Any], Awaitable[Answer]]

_ASK_FOR_OUTPUT = f"Please give the result by calling {STRUCTURED_OUTPUT}."
_MAX_REMINDERS = 5
_CHECK_MARGIN = 60.0
_DAY = 86_400.0


@dataclass
class Enforcement(Generic[OutputT]):
    """Decides every attempt to stop or to give the output, and stores the result."""

    guard: StopGuard | None
    output_spec: OutputSpec[OutputT] | None
    context: Callable[[object, StopReason], TaskCompletionContext]
    dialect: Literal["client", "spec"] = "client"
    output: OutputT | None = None
    report: CompletionReport | None = None
    """The report of the last decision if it lets the agent go; a later refusal removes it."""
    background: Sequence[Mapping[str, Any]] = ()
    """The client's tasks that run in the background now."""
    outdated: bool = False
    """Whether the work may have changed since the last check began."""
    last_words: str | None = field(default=None)
    _reminders: int = 0

    def run_in_background(self, tasks: Sequence[Mapping[str, Any]]) -> None:
        """Note which tasks run in the background: as long as one does, no check is about the end of the run."""
        self.background = tasks
        self.outdated = self.outdated or bool(tasks)

    def hooks(self, matcher: Callable[..., Any], timeout: float) -> dict[str, list[Any]]:
        """Return the hooks by event; empty if there is nothing to enforce. ``matcher`` is the SDK's HookMatcher."""
        if self.guard is None and self.output_spec is None:
            return {}
        spec = self.dialect == "spec"
        refuse_stop = spec_payloads.spec_refuse_stop if spec else hook_payloads.refuse_stop
        stop = never_raising(self._on_stop, refuse_stop)
        before = never_raising(self._before_output, hook_payloads.refuse_output)
        after = never_raising(self._after_output, spec_payloads.spec_refuse_output)
        return {
            "Stop": [matcher(hooks=[stop], timeout=timeout)],
            "PreToolUse": [] if spec else [matcher(matcher=STRUCTURED_OUTPUT, hooks=[before], timeout=timeout)],
            "PostToolUse": [matcher(matcher=STRUCTURED_OUTPUT, hooks=[after], timeout=timeout)],
        }

    async def _on_stop(self, event: Event) -> Answer:
        # A client that waits for a background task asks again when the task wakes it up. A client may also ask again
        # after an accepted output; the work is checked again if it may have changed since then.
        if hook_payloads.is_busy(event) or (self.output is not None and not self.outdated):
            return spec_payloads.NOTHING
        decision = await self._decided(self.output or self._last_message(event), "end_turn")
        if decision is not None:
            if not decision.allow:
                refuse = spec_payloads.spec_refuse_stop if self.dialect == "spec" else hook_payloads.refuse_stop
                return refuse(decision.feedback)
            if decision.report.status != "verified":
                return spec_payloads.NOTHING if self.output_spec is None else spec_payloads.HALT
        if self.output_spec is None or self.output is not None:
            return spec_payloads.NOTHING
        self._reminders += 1
        return hook_payloads.refuse_stop(_ASK_FOR_OUTPUT) if self._reminders <= _MAX_REMINDERS else spec_payloads.HALT

    async def _before_output(self, event: Event) -> Answer:
        if self.output_spec is None or is_of_subagent(event):
            return spec_payloads.NOTHING
        payload = event.get("tool_input")
        try:
            self.output_spec.decode(payload)
        except ValueError as error:
            return hook_payloads.refuse_output(f"The output is invalid: {error}")
        decision = await self._decided(payload, "structured_output")
        return (
            spec_payloads.NOTHING
            if decision is None or decision.allow
            else hook_payloads.refuse_output(decision.feedback)
        )

    async def _after_output(self, event: Event) -> Answer:
        if self.output_spec is None or is_of_subagent(event):
            return spec_payloads.NOTHING
        payload = event.get("tool_input")
        if self.dialect == "spec":
            decision = await self._decided(payload, "structured_output")
            if decision is not None and not decision.allow:
                return spec_payloads.spec_refuse_output(decision.feedback)
        self.output = self.output_spec.decode(payload)
        return spec_payloads.ACCEPTED

    async def _decided(self, output: object, reason: StopReason) -> StopDecision | None:
        if self.guard is None:
            return None
        # Before the check, because what happens during the check may not be seen by it.
        self.outdated = bool(self.background)
        decision = await self.guard.adecide(self.context(output, reason))
        self.report = decision.report if decision.allow else None
        return decision

    def _last_message(self, event: Event) -> object:
        return event.get("last_assistant_message") or self.last_words


def is_of_subagent(event: Event) -> bool:
    """Whether a sub-agent causes the event: it is not held to its parent's work."""
    return "agent_id" in event


def never_raising(decide: Callable[[Event], Awaitable[Answer]], refuse: Callable[[str], Answer]) -> Hook:
    """Wrap ``decide`` so that an exception refuses: if a hook raises, the client lets the agent stop."""

    async def hook(event: Event, tool_use_id: str | None, context: Any) -> Answer:
        try:
            return await decide(event)
        except Exception as error:  # noqa: BLE001 - fail closed
            return refuse(f"gate_error: the completion check raised an error: {one_line(repr(error), 300)}")

    return hook


def hook_timeout(policy: GuardPolicy) -> float:
    """Return the client's time limit for our hooks, in seconds. It is longer than the guard's own."""
    return (policy.check_timeout or _DAY) + _CHECK_MARGIN


def client_env(policy: GuardPolicy) -> dict[str, str]:
    """Return the variables with which only the guard's caps apply, and not the client's own."""
    return {
        "MAX_STRUCTURED_OUTPUT_RETRIES": str(10 * policy.max_attempts),
        "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP": "0",
    }
