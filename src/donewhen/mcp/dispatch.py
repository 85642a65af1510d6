"""From a call as it came to an answer that can go out: arguments checked, errors as sentences, text made harmless."""

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
from donewhen.mcp.answers import CompletionAnswer, ToolAnswer
from donewhen.mcp.call_context import CallContext
from donewhen.mcp.tools import McpTool

_LONGEST = 4000
_PROMISE = re.compile(r"<(/?promise)>", re.IGNORECASE)


class ToolOutcome(NamedTuple):
    """What goes out: a short text, and the same as data unless it is an error."""

    text: str
    data: dict[str, Any] | None

    @property
    def failed(self) -> bool:
        return self.data is None


def dispatch_call(tool: McpTool[Any], arguments: Mapping[str, Any], call: CallContext) -> ToolOutcome:
    """Call a tool; whatever happens inside ends as an outcome."""
    try:
        asked = msgspec.convert(dict(arguments), tool.takes)
    except msgspec.ValidationError as error:
        return _refused(tool, error)
    try:
        answer = tool.do(call, asked)
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
    return _told(answer)


def error_outcome(code: str, message: str, where: str | None, next_step: str | None) -> ToolOutcome:
    """An error as a client sees it."""
    place = f"{where}: " if where else ""
    advice = f"\nnext: {next_step}" if next_step else ""
    return ToolOutcome(make_harmless(f"[{code}] {place}{message}{advice}"), None)


def make_harmless(text: str, minted: Iterable[str] = ()) -> str:
    """Text without terminal codes, and with nothing in it that could be taken for a promise that was not given."""
    if text in minted:
        return text
    return shorten(_PROMISE.sub(r"‹\1›", plain_text(text)), _LONGEST)


def schema_of(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """The JSON Schema of a type, with the object itself at the root as clients want it."""
    _, components = msgspec.json.schema_components((shape,), ref_template="#/$defs/{name}")
    root: dict[str, Any] = components.pop(shape.__name__)
    for component in (root, *components.values()):
        # The names of our types say nothing to a client.
        component.pop("title", None)
    return root | ({"$defs": components} if components else {})


def clean_answer(answer: ToolAnswer) -> dict[str, Any]:
    """An answer as data in which every text is harmless."""
    minted = (answer.promise,) if isinstance(answer, CompletionAnswer) and answer.promise is not None else ()
    data: dict[str, Any] = _clean(msgspec.to_builtins(answer), minted)
    return data


def _told(answer: ToolAnswer) -> ToolOutcome:
    data = clean_answer(answer)
    # The short text is made from what is harmless already.
    return ToolOutcome(msgspec.convert(data, type(answer)).short(), data)


def _clean(value: Any, minted: tuple[str, ...]) -> Any:
    match value:
        case str():
            return make_harmless(value, minted)
        case float() if not math.isfinite(value):
            # JSON has no word for it.
            return None
        case dict():
            return {make_harmless(name): _clean(one, minted) for name, one in value.items()}
        case list():
            return [_clean(one, minted) for one in value]
    return value


def _refused(tool: McpTool[Any], error: msgspec.ValidationError) -> ToolOutcome:
    known = ", ".join(field.name for field in msgspec.structs.fields(tool.takes))
    message = f"{tool.name} can't be called like this: {error}."
    return error_outcome("usage", message, None, f"It takes: {known}." if known else "It takes no arguments.")
