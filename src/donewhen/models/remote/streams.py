"""A long answer comes in pieces: as long as they come, the server is at work, however long it takes in all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Collection
from typing import Any, Protocol, Self, TypeVar

from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.chat import ChatRequest
from donewhen.models.remote.pacing import RetryLater
from donewhen.models.remote.server_errors import UnsupportedOption

_IN_ONE_PIECE = 1000
"""Tokens that are waited for in one piece: a stream costs more, on both sides."""
_PIECES_PER_TOKEN = 4
"""A piece is a token or more; some servers send empty ones in between."""
_BUSY = ("overloaded", "rate_limit")

T_co = TypeVar("T_co", covariant=True)


class Stream(Protocol[T_co]):
    """What the clients give for an answer in pieces."""

    @property
    def response(self) -> Any: ...

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


def should_stream(request: ChatRequest, left_out: Collection[str]) -> bool:
    """Whether an answer is to come in pieces: a server at work on a long one must not be taken for one that hangs."""
    return request.max_tokens > _IN_ONE_PIECE and "stream" not in left_out


async def read_stream(
    opening: Awaitable[Stream[T_co]], request: ChatRequest, server: str, seconds: float
) -> list[T_co]:
    """All pieces of an answer. TimeoutError where none comes for so many seconds, TryAgain where the stream fails."""
    loop = asyncio.get_running_loop()
    most = _PIECES_PER_TOKEN * request.max_tokens
    found: list[T_co] = []
    async with asyncio.timeout(seconds) as idle, await opening as stream:
        if "json" in stream.response.headers.get("content-type", ""):
            # It has not heard that a stream was wanted.
            raise UnsupportedOption("stream")
        try:
            # Only gathered here: a stream that is left in the middle holds on to its connection.
            async for piece in stream:
                idle.reschedule(loop.time() + seconds)
                found.append(piece)
                if len(found) > most:
                    break
        except Exception as error:  # the clients let through whatever their transport raises
            told = one_line(redact_secrets(f"{server} broke off: {str(error) or type(error).__name__}"), 200)
            kind = f"{error} {getattr(error, 'type', '')}".casefold()
            raise RetryLater(told, slow_down=any(one in kind for one in _BUSY)) from error
    if len(found) > most:
        raise RetryLater(f"{server} does not come to an end")
    return found
