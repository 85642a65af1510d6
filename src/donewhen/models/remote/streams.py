"""Long answers are streamed: the timeout applies between two chunks, not to the whole answer."""

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
"""Answers up to this many tokens are not streamed, because streams cost more on both sides."""
_PIECES_PER_TOKEN = 4
"""Limit on chunks: a chunk is a token or more, but some servers send empty ones."""
_BUSY = ("overloaded", "rate_limit")

T_co = TypeVar("T_co", covariant=True)


class Stream(Protocol[T_co]):
    """A streamed response of the SDKs."""

    @property
    def response(self) -> Any: ...

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *_: object) -> None: ...


def should_stream(request: ChatRequest, unsupported: Collection[str]) -> bool:
    """Whether to stream: a server that works on a long answer must not look like one that hangs."""
    return request.max_tokens > _IN_ONE_PIECE and "stream" not in unsupported


async def read_stream(
    opening: Awaitable[Stream[T_co]], request: ChatRequest, server: str, seconds: float
) -> list[T_co]:
    """Return all chunks. Raise TimeoutError after ``seconds`` without a chunk, RetryLater if the stream fails."""
    loop = asyncio.get_running_loop()
    most = _PIECES_PER_TOKEN * request.max_tokens
    chunks: list[T_co] = []
    async with asyncio.timeout(seconds) as idle, await opening as stream:
        if "json" in stream.response.headers.get("content-type", ""):
            # The server ignored the stream option.
            raise UnsupportedOption("stream")
        try:
            # Read everything before parsing: an abandoned stream keeps its connection open.
            async for chunk in stream:
                idle.reschedule(loop.time() + seconds)
                chunks.append(chunk)
                if len(chunks) > most:
                    break
        except Exception as error:  # the SDKs pass on whatever their transport raises
            reason = one_line(
                redact_secrets(f"the stream of {server} failed: {str(error) or type(error).__name__}"), 200
            )
            kind = f"{error} {getattr(error, 'type', '')}".casefold()
            raise RetryLater(reason, slow_down=any(word in kind for word in _BUSY)) from error
    if len(chunks) > most:
        raise RetryLater(f"{server} sent too many chunks")
    return chunks
