"""Read messages from a client so that every call can be answered, whatever is in it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
_DEEPEST = 100
"""Levels of a message. Arguments have a few; far more would exhaust the stack of what reads them."""
_TOO_DEEP = "The message is nested too deeply."

_SURROGATE = re.compile("[\ud800-\udfff]")
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]|[^\s{}\[\]",:]+', re.DOTALL)


@dataclass(frozen=True)
class Received:
    """One line or body: the messages for the server, and the replies to what it can't be given."""

    messages: tuple[dict[str, Any], ...] = ()
    replies: tuple[dict[str, Any], ...] = ()


def receive(text: str) -> Received:
    """Return the message in ``text``.

    A text in a message that no encoding can hold (half of a surrogate pair, as a client makes it that cuts an emoji in
    two) is repaired. What is no message gets an error as its reply, with its id if it has one.
    """
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return Received()
    try:
        data = json.loads(text)
    except RecursionError:
        return Received(replies=(error_reply(_id_of(text), PARSE_ERROR, _TOO_DEEP),))
    except ValueError as error:
        return Received(replies=(error_reply(_id_of(text), PARSE_ERROR, f"The message is not JSON: {error}."),))
    if isinstance(data, list):
        why = "Batches are not supported: send each message by itself."
        calls = [item.get("id") for item in data if isinstance(item, dict) and "method" in item and "id" in item]
        return Received(replies=tuple(error_reply(number, INVALID_REQUEST, why) for number in calls or [None]))
    if not isinstance(data, dict):
        return Received(replies=(error_reply(None, INVALID_REQUEST, "A message is a JSON object."),))
    number = data.get("id")
    if _is_deeper_than(data, _DEEPEST):
        return Received(replies=(error_reply(number, PARSE_ERROR, _TOO_DEEP),))
    if "id" in data and "method" in data and (isinstance(number, bool) or not isinstance(number, str | int)):
        # The library would take it for a notification, and never answer.
        return Received(replies=(error_reply(number, INVALID_REQUEST, "The id of a call is a string or an integer."),))
    if isinstance(number, str) and _SURROGATE.search(number):
        # A repaired id would answer another call.
        return Received(replies=(error_reply(number, INVALID_REQUEST, "The id is not valid Unicode."),))
    return Received((_repaired(data),))


def invalid_reply(message: dict[str, Any], why: str) -> dict[str, Any] | None:
    """Return the reply to a message that is no request; None if it expects no reply."""
    if "method" in message and "id" not in message:
        return None
    if "method" not in message and ("result" in message or "error" in message):
        return None
    return error_reply(message.get("id"), INVALID_REQUEST, why)


def error_reply(number: object, code: int, message: str) -> dict[str, Any]:
    """Return an error as a reply to the call with this id; null if the id is unknown or is none."""
    known = number if isinstance(number, str | int | float) and not isinstance(number, bool) else None
    if isinstance(known, float) and not math.isfinite(known):
        # JSON has no infinity or NaN, and a reply with one can't be read.
        known = None
    return {"jsonrpc": "2.0", "id": known, "error": {"code": code, "message": message}}


def _is_deeper_than(value: object, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        level = [
            inner
            for item in level
            if isinstance(item, dict | list)
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
        if not level:
            return False
    return any(isinstance(item, dict | list) for item in level)


def _repaired(value: Any) -> Any:
    match value:
        case str():
            return _SURROGATE.sub("\ufffd", value)
        case dict():
            return {_repaired(name): _repaired(item) for name, item in value.items()}
        case list():
            return [_repaired(item) for item in value]
    return value


def _id_of(text: str) -> object:
    """Return the id of a message that can't be read, for example because it is nested too deeply."""
    depth, previous = 0, ""
    for piece in _pieces(text):
        if depth == 1 and previous == '"id"':
            try:
                return json.loads(piece)
            except ValueError:
                return None
        depth += (piece in "{[") - (piece in "}]")
        previous = piece
    return None


def _pieces(text: str) -> Iterator[str]:
    return (match[0] for match in _PIECE.finditer(text))
