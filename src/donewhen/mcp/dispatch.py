"""Dispatch a tool call: validate arguments, turn errors into messages, sanitise text."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from donewhen.foundation.crash_log import write_crash_log
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import plain_text, shorten
from donewhen.jobs.board.words_for_agents import new_words, words_about_job
from donewhen.jobs.record.words_of_people import sentences
from donewhen.mcp.answers import CompletionAnswer, ToolAnswer
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.params import JobParam, OptionalJobParam, ToolParams
from donewhen.mcp.tool_steps import tool_step
from donewhen.mcp.tools import McpTool

_LONGEST = 4000
_STEPS = ("next", "next_action")
"""The fields of answers that say what to do next; elsewhere that is a command."""
_PROMISE = re.compile(r"<(/?promise)>", re.IGNORECASE)


class ToolOutcome(NamedTuple):
    """The reply to a call: a short text, and the same as data unless it is an error."""

    text: str
    data: dict[str, Any] | None

    @property
    def failed(self) -> bool:
        return self.data is None


def dispatch_call(tool: McpTool[Any], arguments: Mapping[str, Any], call: CallContext) -> ToolOutcome:
    """Call a tool; errors become an outcome."""
    try:
        params = msgspec.convert(dict(arguments), tool.takes)
    except msgspec.ValidationError as error:
        return _usage_error(tool, error)
    try:
        answer = tool.do(call, params)
    except DonewhenError as error:
        return error_outcome(error.code, error.message, error.where, error.next_step)
    except OSError as error:
        place = str(error.filename) if error.filename else None
        return error_outcome(
            "io", f"{error.strerror or error}.", place, "Check the path, the disk space and the permissions."
        )
    except Exception as error:
        if os.environ.get("DONEWHEN_DEBUG"):
            raise
        log = write_crash_log(error, ["donewhen", "mcp", tool.name])
        advice = f"Report it with the crash log: {log}" if log else "Start the server with DONEWHEN_DEBUG=1."
        message = f"Internal error in donewhen: {type(error).__name__}: {error}"
        return error_outcome("internal", message, None, advice)
    return _success_outcome(msgspec.structs.replace(answer, from_people=_words_of_people(call, params)))


def _words_of_people(call: CallContext, params: ToolParams) -> list[str]:
    """What people have said about the job of a call; without a job, what they have answered about open jobs."""
    try:
        workspace = call.workspace()
        job = params.job if isinstance(params, JobParam | OptionalJobParam) else None
        return [*(new_words(workspace) if job is None else words_about_job(workspace, workspace.job(job).id))]
    except (DonewhenError, OSError):
        # The answer of the tool says what is wrong, and counts without it.
        return []


def error_outcome(code: str, message: str, where: str | None, next_step: str | None) -> ToolOutcome:
    """Return an error in the form that the client sees."""
    place = f"{where}: " if where else ""
    advice = f"\nnext: {tool_step(next_step)}" if next_step else ""
    return ToolOutcome(make_harmless(f"[{code}] {place}{message}{advice}"), None)


def make_harmless(text: str, minted: Iterable[str] = ()) -> str:
    """Return text without terminal codes and without anything that looks like a completion promise."""
    if text in minted:
        return text
    return shorten(_PROMISE.sub(r"‹\1›", plain_text(text)), _LONGEST)


def schema_of(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a type, with the object itself at the root, as clients expect."""
    _, components = msgspec.json.schema_components((shape,), ref_template="#/$defs/{name}")
    root: dict[str, Any] = components.pop(shape.__name__)
    for component in (root, *components.values()):
        # The names of our types mean nothing to a client.
        component.pop("title", None)
    return root | ({"$defs": components} if components else {})


def clean_answer(answer: ToolAnswer) -> dict[str, Any]:
    """Return an answer as data with every text sanitised."""
    minted = (answer.promise,) if isinstance(answer, CompletionAnswer) and answer.promise is not None else ()
    data: dict[str, Any] = _clean(msgspec.to_builtins(answer), minted)
    return data


def _success_outcome(answer: ToolAnswer) -> ToolOutcome:
    data = clean_answer(answer)
    # The short text is built from the sanitised data.
    clean = msgspec.convert(data, type(answer))
    return ToolOutcome("\n".join([*sentences(clean.from_people), clean.short()]), data)


def _clean(value: Any, minted: tuple[str, ...]) -> Any:
    match value:
        case str():
            return make_harmless(value, minted)
        case float() if not math.isfinite(value):
            # JSON has no infinity or NaN.
            return None
        case dict():
            return {
                make_harmless(name): _clean(tool_step(item) if name in _STEPS and type(item) is str else item, minted)
                for name, item in value.items()
            }
        case list():
            return [_clean(item, minted) for item in value]
    return value


def _usage_error(tool: McpTool[Any], error: msgspec.ValidationError) -> ToolOutcome:
    known = ", ".join(field.name for field in msgspec.structs.fields(tool.takes))
    message = f"{tool.name} got invalid arguments: {error}."
    return error_outcome("usage", message, None, f"It takes: {known}." if known else "It takes no arguments.")
