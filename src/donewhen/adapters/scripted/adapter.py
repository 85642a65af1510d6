"""The tool-calling loop around a scripted model, guarded like a real one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from donewhen.adapters.guard_choice import AdapterError, guard_for, prepare_session
from donewhen.adapters.scripted.model import (
    STRUCTURED_OUTPUT,
    Message,
    ModelError,
    ModelRequest,
    ScriptedModel,
    ToolCall,
    ToolSpec,
    Turn,
)
from donewhen.completion import GuardPolicy, StopGuard, TaskCompletionContext
from donewhen.prompt import Prompt, RenderedPrompt, ToolContext, ToolResult, call_tool
from donewhen.protocols import CompletionReport, PromptResponse, StopReason
from donewhen.runtime import Budget, BudgetTracker, Deadline, Limits, Session, TokenUsage, ToolInvoked

if TYPE_CHECKING:
    from donewhen.completion.composite import Checkable
    from donewhen.filesystem import Filesystem

OutputT = TypeVar("OutputT")

_ASK_FOR_OUTPUT = f"Please give the result by calling {STRUCTURED_OUTPUT}."
_MAX_REMINDERS = 5


class ScriptedAdapter:
    """Runs a prompt against a :class:`ScriptedModel`: tools are really called, stops are really checked.

    Use it to see offline how a checker holds an agent back. ``observer`` is called with every message that is added to
    the conversation.
    """

    def __init__(
        self,
        model: ScriptedModel,
        *,
        task_completion_checker: Checkable | None = None,
        filesystem: Filesystem | None = None,
        policy: GuardPolicy | None = None,
        max_turns: int = 100,
        observer: Callable[[Message], object] | None = None,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, not {max_turns}")
        self.model = model
        self.task_completion_checker = task_completion_checker
        self.filesystem = filesystem
        self.policy = policy or GuardPolicy()
        self.max_turns = max_turns
        self.observer = observer

    def evaluate(
        self,
        prompt: Prompt[OutputT],
        *,
        session: Session,
        deadline: Deadline | None = None,
        budget: Budget | BudgetTracker | None = None,
    ) -> PromptResponse[OutputT]:
        """Run ``prompt`` until the agent is let go. The response says whether its work was verified."""
        limits = Limits.of(deadline, budget)
        prepare_session(prompt, session)
        guard = guard_for(self.task_completion_checker, prompt, limits, self.policy)
        with limits.around():
            return _Run(self, prompt.render(), session, limits, guard).play()


@dataclass
class _Run(Generic[OutputT]):
    adapter: ScriptedAdapter
    prompt: RenderedPrompt[OutputT]
    session: Session
    limits: Limits
    guard: StopGuard | None
    messages: list[Message] = field(default_factory=list)
    usage: TokenUsage = field(default_factory=TokenUsage)
    text: str | None = None
    output: OutputT | None = None
    reminders: int = 0

    def play(self) -> PromptResponse[OutputT]:
        self._add(Message("user", self.prompt.text))
        for _ in range(self.adapter.max_turns):
            if self.limits.bypass() is not None:
                return self._cut_off("end_turn")
            try:
                turn = self.adapter.model.respond(self._request())
            except ModelError as error:
                return self._cut_off("error", error_text=str(error))
            ended = self._take(turn)
            if ended is not None:
                return ended
        return self._cut_off("max_turns")

    def _take(self, turn: Turn) -> PromptResponse[OutputT] | None:
        """Process one turn; return a response if the agent is let go."""
        self.usage += turn.usage
        self.limits.record(turn.usage, cost_usd=turn.cost_usd)
        self._add(Message("assistant", turn.text, turn.calls))
        self.text = turn.text or self.text
        if not turn.calls:
            return self._wants_to_stop(turn)
        for call in turn.calls:
            if call.name == STRUCTURED_OUTPUT and self.prompt.output is not None:
                ended = self._offers_output(call)
                if ended is not None:
                    return ended
            else:
                self._call(call)
        return None

    def _wants_to_stop(self, turn: Turn) -> PromptResponse[OutputT] | None:
        report: CompletionReport | None = None
        if self.guard is not None:
            decision = self.guard.decide(self._context(turn.text, "end_turn"))
            if not decision.allow:
                self._add(Message("user", decision.feedback))
                return None
            report = decision.report
        if self.prompt.output is None or (report is not None and report.status in ("bypassed", "capped")):
            return self._response("end_turn", report)
        self.reminders += 1
        if self.reminders > _MAX_REMINDERS:
            raise AdapterError(f"The model ended its turn {self.reminders} times without giving the output.")
        self._add(Message("user", _ASK_FOR_OUTPUT))
        return None

    def _offers_output(self, call: ToolCall) -> PromptResponse[OutputT] | None:
        spec = self.prompt.output
        if spec is None:
            return None
        try:
            output = spec.decode(dict(call.arguments))
        except ValueError as error:
            self._answer(call, ToolResult.error(f"The output is invalid: {error}"))
            return None
        report: CompletionReport | None = None
        if self.guard is not None:
            decision = self.guard.decide(self._context(dict(call.arguments), "structured_output"))
            if not decision.allow:
                # Deny the output before it is accepted, so that the model can try again.
                self._answer(call, ToolResult.error(decision.feedback))
                return None
            report = decision.report
        self._answer(call, ToolResult("Accepted."))
        self.output = output
        return self._response("structured_output", report)

    def _call(self, call: ToolCall) -> None:
        known = next((tool for tool in self.prompt.tools if tool.name == call.name), None)
        if known is None:
            names = ", ".join(tool.name for tool in self.prompt.tools) or "none"
            self._answer(call, ToolResult.error(f"There is no tool {call.name}; the tools are: {names}."))
            return
        context = ToolContext(self.session, self.adapter.filesystem, self.adapter)
        self._answer(call, call_tool(known, call.arguments, context))

    def _answer(self, call: ToolCall, result: ToolResult[Any]) -> None:
        self.session.dispatch(ToolInvoked(call.name, dict(call.arguments), result.success, result.message))
        self._add(Message("tool", result.message, name=call.name, is_error=not result.success))

    def _cut_off(self, reason: StopReason, error_text: str | None = None) -> PromptResponse[OutputT]:
        """End a run in which the agent was not let go, with a last check."""
        report = None if self.guard is None else self.guard.conclude(self._context(self.text, reason))
        # The API's error message is reported, but it is not the agent's output and is never checked as such.
        self.text = error_text or self.text
        return self._response(reason, report)

    def _context(self, output: object, reason: StopReason) -> TaskCompletionContext:
        return TaskCompletionContext(
            session=self.session,
            tentative_output=output,
            filesystem=self.adapter.filesystem,
            adapter=self.adapter,
            stop_reason=reason,
        )

    def _response(self, reason: StopReason, report: CompletionReport | None) -> PromptResponse[OutputT]:
        return PromptResponse(self.prompt.name, self.text, self.output, reason, self.usage, report)

    def _request(self) -> ModelRequest:
        tools = [ToolSpec(tool.name, tool.description, tool.input_schema) for tool in self.prompt.tools]
        if self.prompt.output is not None:
            tools.append(ToolSpec(STRUCTURED_OUTPUT, "Give the final result.", self.prompt.output.schema))
        return ModelRequest(self.prompt.name, tuple(self.messages), tuple(tools))

    def _add(self, message: Message) -> None:
        self.messages.append(message)
        if self.adapter.observer is not None:
            self.adapter.observer(message)
