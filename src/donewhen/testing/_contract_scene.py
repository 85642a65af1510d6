"""The scenes of the contract for adapters: what the model does, and what comes out."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from donewhen.adapters.guard_choice import guard_for
from donewhen.adapters.scripted import ModelError, ToolCall, Turn, call
from donewhen.completion import (
    Checkable,
    FileExistsChecker,
    GuardPolicy,
    StopGuard,
    TaskCompletionContext,
    TaskCompletionResult,
)
from donewhen.filesystem import Filesystem
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate, ToolContext, ToolResult, call_tool, tool
from donewhen.protocols import CompletionReport, PromptResponse, StopReason
from donewhen.runtime import Budget, Deadline, Limits, Session, TokenUsage

Feature = Literal["adapter", "output", "parallel calls", "background work", "sub-agents", "streaming"]
"""What a runtime has. ``adapter``: a ProviderAdapter with templates, budgets and events in the session, and not only
middleware in an agent of one's own."""

Turns = Sequence[Turn | ModelError] | Callable[[int], Turn]
"""The model's turns in order, or a function of the turn number (from 0) for a model that never stops by itself."""


@dataclass(frozen=True)
class BackgroundCall(ToolCall):
    """A call that the runtime carries out in the background: it returns at once, and acts ``seconds`` later.

    When it has acted, it writes the file ``background.done``.
    """

    seconds: float = 1.0

    def command(self) -> str:
        """Return the call as a shell command, for a runtime with a shell; it runs in the workspace."""
        path = shlex.quote(str(self.arguments["path"]))
        text = self.arguments.get("text")
        act = f"rm -f {path}" if text is None else f"printf %s {shlex.quote(str(text))} > {path}"
        return f"sleep {self.seconds:g}; {act}; touch {BACKGROUND_DONE}"

    def calls(self) -> tuple[ToolCall, ...]:
        """Return what is to be called after ``seconds``, for a runtime that calls tools itself."""
        return ToolCall(self.name, self.arguments), *call("contract_write", path=BACKGROUND_DONE, text="done").calls


@dataclass(frozen=True)
class SubagentCall(ToolCall):
    """A call that starts a sub-agent, whose model follows ``turns``. The parent waits for it."""

    turns: tuple[Turn, ...] = ()


@dataclass(frozen=True)
class Scene:
    """The input of a scenario for the harness."""

    turns: Turns
    prompt: Prompt[Any]
    session: Session
    checker: Checkable | None = None
    policy: GuardPolicy = field(default_factory=GuardPolicy)
    deadline: Deadline | None = None
    budget: Budget | None = None
    max_turns: int | None = None
    streamed: bool = False
    """Whether the run is to be consumed as a stream."""

    def guard(self) -> StopGuard | None:
        """Return the guard of the scene, for middleware in an agent of one's own."""
        self.prompt.install(self.session)
        return guard_for(self.checker, self.prompt, Limits.of(self.deadline, self.budget), self.policy)

    def context(self, output: object, reason: StopReason, filesystem: Filesystem) -> TaskCompletionContext:
        """Return the context of a check, for middleware in an agent of one's own."""
        return TaskCompletionContext(self.session, output, filesystem, None, reason)

    def call(self, made: ToolCall, filesystem: Filesystem) -> ToolResult[Any]:
        """Call one of the scene's tools, for an agent that calls tools itself."""
        tools = {known.name: known for known in self.prompt.render().tools}
        return call_tool(tools[made.name], made.arguments, ToolContext(self.session, filesystem, None))

    def decoded(self, arguments: Mapping[str, Any]) -> Any:
        """Return the structured output in these arguments; raise ValueError if they don't fit."""
        spec = self.prompt.render().output
        if spec is None:
            raise ValueError("this scene has no structured output")
        return spec.decode(dict(arguments))


@dataclass(frozen=True)
class Played:
    """The result: the response, and for each turn of the model the text it received just before."""

    response: PromptResponse[Any]
    told: tuple[str, ...]
    subagents: tuple[str, ...] = ()
    """The same for the models of sub-agents."""

    @classmethod
    def of(
        cls,
        told: Sequence[str],
        report: CompletionReport | None,
        *,
        text: str | None = None,
        output: object = None,
        stop_reason: StopReason = "end_turn",
        subagents: Sequence[str] = (),
    ) -> Played:
        """Return the result of a run that has no PromptResponse, because the guard is middleware."""
        response = PromptResponse("scene", text, output, stop_reason, TokenUsage(), report)
        return cls(response, tuple(told), tuple(subagents))

    @property
    def report(self) -> CompletionReport:
        """How the guarded run ended."""
        assert self.response.completion is not None, "the run was not guarded"  # noqa: S101 - a test kit
        return self.response.completion


@dataclass(frozen=True)
class Verdict:
    """The structured output of the scenarios that ask for one."""

    summary: str
    score: int


@dataclass(frozen=True)
class Note:
    """What the scenarios' tool writes and keeps in the session."""

    path: str
    text: str


@tool
def contract_write(params: Note, context: ToolContext) -> ToolResult[Note]:
    """Write a file of the workspace."""
    if context.filesystem is None:
        return ToolResult.error("No workspace.")
    context.filesystem.write_text(params.path, params.text)
    return ToolResult(f"Wrote {params.path}.", params)


@dataclass(frozen=True)
class Removed:
    """What the scenarios' other tool removes."""

    path: str


@tool
def contract_remove(params: Removed, context: ToolContext) -> ToolResult[Removed]:
    """Remove a file of the workspace."""
    if context.filesystem is None:
        return ToolResult.error("No workspace.")
    context.filesystem.delete(params.path)
    return ToolResult(f"Removed {params.path}.", params)


BACKGROUND_DONE = "background.done"
WRITE = call("contract_write", path="out.txt", text="the work")
REMOVE = call("contract_remove", path="out.txt")
FILES = FileExistsChecker(("out.txt",), strict=True)
MISSING = "Missing required files: out.txt"


def contract_prompt(output: type[Any] | None = None, checker: Checkable | None = None) -> Prompt[Any]:
    """The prompt of the scenarios."""
    section = MarkdownSection(
        title="Task", key="task", template="Write out.txt.", tools=[contract_write, contract_remove]
    )
    template = PromptTemplate[output](  # type: ignore[valid-type]
        ns="contract",
        key="scene",
        sections=[section],
        task_completion_checker=checker,  # type: ignore[arg-type]
    )
    return Prompt(template)


class Watching:
    """A checker that records its contexts."""

    def __init__(self, inner: FileExistsChecker) -> None:
        self._inner = inner
        self.contexts: list[TaskCompletionContext] = []

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        self.contexts.append(context)
        return self._inner.check(context)


class Raising:
    """A checker that raises."""

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        raise RuntimeError("the checker is broken")
