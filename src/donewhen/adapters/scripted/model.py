"""Models that follow a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from donewhen.adapters.guard_choice import AdapterError
from donewhen.runtime import TokenUsage

STRUCTURED_OUTPUT = "StructuredOutput"


@dataclass(frozen=True)
class ToolCall:
    """A tool call of the model."""

    name: str
    arguments: Mapping[str, Any]

    @property
    def gives_output(self) -> bool:
        """Whether the call gives the structured output, whatever a runtime calls its tool for that."""
        return self.name == STRUCTURED_OUTPUT


@dataclass(frozen=True)
class Turn:
    """One answer of the model. Without calls it is an attempt to stop."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage = field(default_factory=TokenUsage)
    cost_usd: float = 0.0


@dataclass(frozen=True)
class Message:
    """One entry of the conversation as the model sees it. For the role ``tool``, ``name`` is the name of the tool."""

    role: Literal["user", "assistant", "tool"]
    text: str
    calls: tuple[ToolCall, ...] = ()
    name: str | None = None
    is_error: bool = False


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True)
class ModelRequest:
    """A request to a model: the conversation so far, and the tools."""

    prompt_name: str
    messages: tuple[Message, ...]
    tools: tuple[ToolSpec, ...]

    @property
    def last(self) -> Message:
        return self.messages[-1]


class ScriptedModel(Protocol):
    """Answers requests. It gets the whole conversation, so its answers can depend on it."""

    def respond(self, request: ModelRequest) -> Turn:
        """Return the model's next turn; raise :class:`ModelError` to simulate a failing API."""
        ...


class ModelError(AdapterError):
    """The model or its API failed."""


class ScriptExhaustedError(AdapterError):
    """The script has no more turns, but the agent was not let go."""


Line = Turn | Callable[[ModelRequest], Turn] | Exception


class Script:
    """A sequence of turns. A line is a turn, a function of the request, or an exception to raise."""

    def __init__(self, *lines: Line) -> None:
        self._lines = lines
        self.requests: list[ModelRequest] = []

    def respond(self, request: ModelRequest) -> Turn:
        self.requests.append(request)
        if len(self.requests) > len(self._lines):
            raise ScriptExhaustedError(
                f"The script has only {len(self._lines)} turn(s), but the model was asked for another one: "
                f"{request.last.role} said {request.last.text!r}."
            )
        line = self._lines[len(self.requests) - 1]
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, Turn) else line(request)


class ByPrompt:
    """A different model for each prompt name; ``*`` is for all others. A judge's prompt is ``donewhen:judge``."""

    def __init__(self, models: Mapping[str, ScriptedModel]) -> None:
        self._models = dict(models)

    def respond(self, request: ModelRequest) -> Turn:
        model = self._models.get(request.prompt_name) or self._models.get("*")
        if model is None:
            raise ScriptExhaustedError(f"No script is given for the prompt {request.prompt_name!r}.")
        return model.respond(request)


def say(text: str, *, usage: TokenUsage | None = None) -> Turn:
    """The model says something and wants to stop."""
    return Turn(text, usage=usage or TokenUsage())


def call(tool_name: str, /, **arguments: Any) -> Turn:
    """The model calls one tool."""
    return Turn(calls=(ToolCall(tool_name, arguments),))


def finish(**output: Any) -> Turn:
    """The model produces its structured output."""
    return Turn(calls=(ToolCall(STRUCTURED_OUTPUT, output),))
