"""The server: the protocol on standard input and output, and the work in threads beside it."""

from __future__ import annotations

import contextvars
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from donewhen import __version__
from donewhen.foundation.cancellation import cancellable
from donewhen.foundation.errors import DonewhenError, MissingExtraError
from donewhen.mcp.call_context import CallContext, Tell
from donewhen.mcp.dispatch import dispatch_call, error_outcome, schema_of
from donewhen.mcp.resources import KINDS, resource_page, resource_text, template
from donewhen.mcp.tools import BY_NAME, INSTRUCTIONS, TOOLS, Effect, McpTool

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from mcp import types
    from mcp.server import Server, ServerRequestContext

T = TypeVar("T")

_AT_ONCE: dict[Effect, int] = {"looks": 4, "notes": 8, "runs": 8}


def serve(folder: Path) -> None:
    """Serve the project around ``folder`` on standard input and output, until the client goes."""
    try:
        import anyio

        # Version 1 does not have it.
        from mcp.server import ServerRequestContext  # noqa: F401
    except ImportError:
        raise MissingExtraError("donewhen mcp", "mcp") from None
    anyio.run(_serve, folder)


async def _serve(folder: Path) -> None:
    import anyio
    from mcp.server.stdio import stdio_server

    server = make_server(folder)
    received: list[int] = []

    async def leave_when_asked_to() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                received.append(number)
                serving.cancel()

    async with stdio_server() as (reading, writing), anyio.create_task_group() as group:
        with anyio.CancelScope() as serving:
            group.start_soon(leave_when_asked_to)
            await server.run(reading, writing, server.create_initialization_options())
        if received:
            # What was running has ended. The thread that waits for a line of the client would never.
            os._exit(128 + received[0])
        group.cancel_scope.cancel()


def make_server(folder: Path) -> Server[dict[str, Any]]:
    """The server of one project."""
    from anyio import CapacityLimiter
    from mcp import types
    from mcp.server import Server
    from mcp.shared.exceptions import MCPError

    # None of them is the protocol's own, so what runs for long keeps nobody from looking, or from cancelling it.
    limiters = {effect: CapacityLimiter(count) for effect, count in _AT_ONCE.items()}
    lookers = limiters["looks"]

    async def list_tools(
        ctx: ServerRequestContext, asked: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_described(one) for one in TOOLS])

    async def call_tool(ctx: ServerRequestContext, asked: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(asked.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {asked.name!r}. There are: {', '.join(BY_NAME)}.")
        call = CallContext(folder, _teller(ctx))
        found = await _in_thread(lambda: dispatch_call(tool, asked.arguments or {}, call), limiters[tool.effect])
        return types.CallToolResult(
            content=[types.TextContent(text=found.text)], structured_content=found.data, is_error=found.failed
        )

    async def list_resources(
        ctx: ServerRequestContext, asked: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        page = await _looked(lambda: resource_page(CallContext(folder), asked.cursor if asked else None), lookers)
        found = [
            types.Resource(uri=resource.uri, name=resource.title, mime_type=resource.mime_type)
            for resource in page.resources
        ]
        return types.ListResourcesResult(resources=found, next_cursor=page.next)

    async def list_templates(
        ctx: ServerRequestContext, asked: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        found = [
            types.ResourceTemplate(uri_template=template(kind), name=kind, description=about, mime_type=mime_type)
            for kind, (mime_type, about) in KINDS.items()
        ]
        return types.ListResourceTemplatesResult(resource_templates=found)

    async def read_resource(
        ctx: ServerRequestContext, asked: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(asked.uri)
        text, mime_type = await _looked(lambda: resource_text(CallContext(folder), uri), lookers)
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text, mime_type=mime_type)])

    return Server(
        "donewhen",
        version=__version__,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=read_resource,
    )


async def _in_thread(work: Callable[[], T], limiter: CapacityLimiter) -> T:
    """Do blocking work in a thread. When the call is cancelled, what it has started is ended, and waited for."""
    import anyio

    context = contextvars.copy_context()
    stop = context.run(cancellable)

    async def watch() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        result: T = await anyio.to_thread.run_sync(context.run, work, limiter=limiter)
        group.cancel_scope.cancel()
    return result


def _described(tool: McpTool[Any]) -> types.Tool:
    from mcp import types

    return types.Tool(
        name=tool.name,
        description=tool.about,
        input_schema=schema_of(tool.takes),
        output_schema=schema_of(tool.gives),
        annotations=types.ToolAnnotations(
            read_only_hint=tool.effect == "looks",
            destructive_hint=tool.effect == "runs",
            open_world_hint=tool.effect == "runs",
        ),
    )


def _teller(ctx: ServerRequestContext) -> Tell:
    from anyio import from_thread

    def on_progress(done: int, of: int, what: str) -> None:
        from_thread.run(ctx.session.report_progress, done, of, what)

    return on_progress


async def _looked(work: Callable[[], T], limiter: CapacityLimiter) -> T:
    """What is read has no place for an error of ours, so it becomes one of the protocol's."""
    from mcp import types
    from mcp.shared.exceptions import MCPError

    def tried() -> T | DonewhenError:
        try:
            return work()
        except DonewhenError as error:
            return error

    found = await _in_thread(tried, limiter)
    if isinstance(found, DonewhenError):
        told = error_outcome(found.code, found.message, found.where, found.next_step).text
        raise MCPError(types.INVALID_PARAMS, told)
    return found
