"""The protocol on standard input and output: one line, one message, and a reply to every call."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, BinaryIO

from donewhen.mcp.wire import INVALID_REQUEST, Received, error_reply, invalid_reply, receive

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage


@asynccontextmanager
async def stdio_streams() -> AsyncIterator[
    tuple[MemoryObjectReceiveStream[SessionMessage | Exception], MemoryObjectSendStream[SessionMessage]]
]:
    """Context manager: the streams between the client and the server.

    Meanwhile standard input is empty and standard output goes to standard error for everything else in this process,
    so that nothing disturbs the protocol.
    """
    import anyio
    from mcp.shared.message import SessionMessage

    to_server, from_client = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    to_client, from_server = anyio.create_memory_object_stream[SessionMessage](0)
    reading, writing = _private_streams()
    lock = anyio.Lock()

    async def write(message: dict[str, Any]) -> None:
        # ASCII: no text in an answer can then be impossible to encode.
        line = (json.dumps(message, default=str) + "\n").encode("ascii")

        def write_line() -> None:
            writing.write(line)
            writing.flush()

        async with lock:
            await anyio.to_thread.run_sync(write_line)

    async def read() -> None:
        async with to_server:
            while line := await anyio.to_thread.run_sync(reading.readline, abandon_on_cancel=True):
                received = receive(line.decode("utf-8", "replace"))
                await _pass_on(received, to_server, write)

    async def send() -> None:
        async with from_server:
            async for message in from_server:
                await write(message.message.model_dump(by_alias=True, exclude_unset=True))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        group.start_soon(send)
        yield from_client, to_client


async def _pass_on(
    received: Received, to_server: MemoryObjectSendStream[SessionMessage | Exception], write: Any
) -> None:
    from mcp import types
    from mcp.shared.message import SessionMessage
    from pydantic import ValidationError

    replies: list[dict[str, Any] | None] = list(received.replies)
    for data in received.messages:
        try:
            message = types.jsonrpc_message_adapter.validate_python(data, by_name=False)
        except ValidationError:
            replies.append(invalid_reply(data, "The message is not a request, notification or response."))
        except RecursionError:
            replies.append(error_reply(data.get("id"), INVALID_REQUEST, "The message is nested too deeply."))
        else:
            await to_server.send(SessionMessage(message))
    for reply in replies:
        if reply is not None:
            await write(reply)


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return the client's streams under new descriptors, and lead the standard ones elsewhere."""
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    # Not closed: a thread may still wait for a line when the server ends.
    return os.fdopen(reading, "rb", closefd=False), os.fdopen(writing, "wb", closefd=False)
