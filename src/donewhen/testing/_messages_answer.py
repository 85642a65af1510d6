"""Responses of Anthropic's Messages API: whole, streamed, or an error."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from donewhen.runtime import TokenUsage
from donewhen.testing._loopback import pieces_of

_ERRORS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def message(
    number: int, model: str, content: Sequence[Mapping[str, Any]], stop_reason: str, usage: TokenUsage
) -> dict[str, Any]:
    """Return a whole response; ``number`` makes its id unique."""
    return {
        "id": f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": {
            # The API counts cached input separately; in TokenUsage it is part of the input.
            "input_tokens": usage.input_tokens - usage.cached_tokens,
            "cache_read_input_tokens": usage.cached_tokens,
            "cache_creation_input_tokens": 0,
            "output_tokens": usage.output_tokens,
        },
    }


def events(answer: Mapping[str, Any], pieces: int = 1) -> Iterator[dict[str, Any]]:
    """Yield a message as stream events: start, then each block (start, deltas, stop), then the end."""
    usage = answer["usage"]
    opened = {**answer, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 0}}
    yield {"type": "message_start", "message": opened}
    for index, block in enumerate(answer["content"]):
        if block["type"] == "text":
            empty = {**block, "text": ""}
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces_of(block["text"], pieces)]
        else:
            empty = {**block, "input": {}}
            deltas = [
                {"type": "input_json_delta", "partial_json": piece}
                for piece in pieces_of(json.dumps(block["input"]), pieces)
            ]
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    ending = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": ending, "usage": {"output_tokens": usage["output_tokens"]}}
    yield {"type": "message_stop"}


def error(status: int, text: str) -> dict[str, Any]:
    """Return the body of an error response."""
    kind = _ERRORS.get(status, "api_error" if status >= 500 else "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": text or kind}}
