"""Tools: functions that an agent can call, with typed parameters and a typed result."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin, get_type_hints

from donewhen.prompt.errors import PromptError
from donewhen.prompt.structured import decode, json_schema

if TYPE_CHECKING:
    from donewhen.filesystem import Filesystem
    from donewhen.protocols import ProviderAdapter
    from donewhen.runtime import Session

ParamsT = TypeVar("ParamsT")
ResultT = TypeVar("ResultT")

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@dataclass(frozen=True)
class ToolContext:
    """The objects that a tool can use in addition to its parameters."""

    session: Session
    filesystem: Filesystem | None = None
    adapter: ProviderAdapter | None = None


@dataclass(frozen=True)
class ToolResult(Generic[ResultT]):
    """The result of a tool: ``message`` is for the model; ``value`` is stored in the session's slice of its type."""

    message: str
    value: ResultT | None = None
    success: bool = True

    @classmethod
    def error(cls, message: str) -> ToolResult[ResultT]:
        """Return a failed result; ``message`` tells the model why."""
        return cls(message, None, success=False)


Handler = Callable[[ParamsT, ToolContext], ToolResult[ResultT]]


@dataclass(frozen=True)
class Tool(Generic[ParamsT, ResultT]):
    """One tool. ``params`` is a dataclass (or msgspec struct) whose fields are the parameters.

    Create one with the :func:`tool` decorator, or directly.
    """

    name: str
    description: str
    params: type[ParamsT]
    handler: Handler[ParamsT, ResultT]

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise PromptError(f"{self.name!r} is not a valid tool name: use 1 to 64 letters, digits, '_' or '-'.")
        if not self.description.strip():
            raise PromptError(f"The tool {self.name} needs a description: the model uses it to choose tools.")
        is_class = isinstance(self.params, type)
        if not is_class or not (is_dataclass(self.params) or hasattr(self.params, "__struct_fields__")):
            raise PromptError(f"The parameters of {self.name} must be a dataclass, not {self.params!r}.")

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters."""
        return json_schema(self.params)


def tool(handler: Handler[ParamsT, ResultT]) -> Tool[ParamsT, ResultT]:
    """Create a tool from a function, using its name, its docstring and the type of its first parameter."""
    name = handler.__name__
    description = inspect.getdoc(handler)
    if not description:
        raise PromptError(f"The tool {name} needs a docstring: it becomes the description for the model.")
    try:
        first = next(iter(inspect.signature(handler).parameters))
        # Modules often import ToolContext and ToolResult for type checkers only.
        hints = get_type_hints(handler, localns={"ToolContext": ToolContext, "ToolResult": ToolResult})
        params = hints[first]
    except (StopIteration, KeyError, NameError) as error:
        raise PromptError(
            f"The parameter type of the tool {name} is not known: {error!r}.",
            next_step="Annotate its first parameter with a dataclass that is defined at module level.",
        ) from error
    if get_origin(params) is not None:
        raise PromptError(f"The parameters of {name} must be a plain dataclass, not {params} of {get_args(params)}.")
    return Tool(name, description, params, handler)


def call_tool(called: Tool[Any, Any], arguments: Mapping[str, Any], context: ToolContext) -> ToolResult[Any]:
    """Call a tool with a model's arguments. Errors are returned to the model as failed results, never raised.

    If the value of a successful result is a dataclass or a struct, it becomes the latest value of its slice.
    """
    before = context.session.versions()
    try:
        params = decode(dict(arguments), called.params)
    except (ValueError, TypeError) as error:
        return ToolResult.error(f"Invalid arguments for {called.name}: {error}")
    try:
        result = called.handler(params, context)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a tool that breaks must not end the agent's run
        return ToolResult.error(f"{called.name} failed with {type(error).__name__}: {error}")
    if not isinstance(result, ToolResult):
        return ToolResult.error(f"{called.name} is broken: it returned {type(result).__name__}, not a ToolResult.")
    value = result.value
    if result.success and (is_dataclass(value) or hasattr(value, "__struct_fields__")):
        problems = _keep(value, context.session, before)
        if problems:
            return ToolResult.error(f"The result of {called.name} could not be kept: {problems}")
    return result


def _keep(value: Any, session: Session, before: Mapping[type, int]) -> str:
    """Make a tool's value the latest of its slice, and return the problems as text.

    A slice with reducers takes only a new value, and only if nothing else wrote to the slice during the call: what the
    tool changed by an event is there already, and a value that was read earlier must not overwrite a later change.
    """
    home = session.home(type(value))
    kept = session[home]
    if kept.latest() is value:
        return ""
    if not kept.reduced:
        kept.append(value)
        return ""
    unchanged = session.versions().get(home) == before.get(home)
    if unchanged and not any(known is value for known in kept.all()):
        return " ".join(str(failure) for failure in session.reduce(value).errors)
    return ""
