"""The MCP server on standard input and output; tools run in worker threads."""

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
from donewhen.mcp.call_context import CallContext, ProgressReporter
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
    """Serve the project around ``folder`` on standard input and output, until the client disconnects."""
    require_package()
    import anyio

    anyio.run(_serve, folder)


def require_package() -> None:
    """Raise MissingExtraError if the mcp package is missing or too old."""
    try:
        import anyio  # noqa: F401

        # Version 1 of the mcp package does not have it.
        from mcp.server import ServerRequestContext  # noqa: F401
    except ImportError:
        raise MissingExtraError("donewhen mcp", "mcp") from None


async def _serve(folder: Path) -> None:
    import anyio

    from donewhen.mcp.stdio import stdio_streams

    server = make_server(folder)
    received: list[int] = []

    async def cancel_on_signal() -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for number in signals:
                received.append(number)
                serving.cancel()

    async with stdio_streams() as (reading, writing), anyio.create_task_group() as group:
        with anyio.CancelScope() as serving:
            group.start_soon(cancel_on_signal)
            await server.run(reading, writing, server.create_initialization_options())
        if received:
            # All calls have ended. The thread that waits for a line from the client would never end by itself.
            os._exit(128 + received[0])
        group.cancel_scope.cancel()


def make_server(folder: Path) -> Server[dict[str, Any]]:
    """Return the server of one project."""
    from anyio import CapacityLimiter
    from mcp import types
    from mcp.server import Server
    from mcp.shared.exceptions import MCPError

    # Separate limiters: a long run must not block reads, or its own cancellation.
    limiters = {effect: CapacityLimiter(count) for effect, count in _AT_ONCE.items()}
    read_limiter = limiters["looks"]

    async def list_tools(
        ctx: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[_tool_description(tool) for tool in TOOLS])

    async def call_tool(ctx: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        tool = BY_NAME.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"There is no tool {params.name!r}. There are: {', '.join(BY_NAME)}.")
        call = CallContext(folder, _progress_reporter(ctx))
        outcome = await _in_thread(lambda: dispatch_call(tool, params.arguments or {}, call), limiters[tool.effect])
        return types.CallToolResult(
            content=[types.TextContent(text=outcome.text)], structured_content=outcome.data, is_error=outcome.failed
        )

    async def list_resources(
        ctx: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        page = await _read_in_thread(
            lambda: resource_page(CallContext(folder), params.cursor if params else None), read_limiter
        )
        resources = [
            types.Resource(uri=resource.uri, name=resource.title, mime_type=resource.mime_type)
            for resource in page.resources
        ]
        return types.ListResourcesResult(resources=resources, next_cursor=page.next)

    async def list_templates(
        ctx: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(uri_template=template(kind), name=kind, description=about, mime_type=mime_type)
            for kind, (mime_type, about) in KINDS.items()
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        ctx: ServerRequestContext, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        text, mime_type = await _read_in_thread(lambda: resource_text(CallContext(folder), uri), read_limiter)
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
    """Run blocking work in a thread. When the call is cancelled, stop what it has started and wait for it."""
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


def _tool_description(tool: McpTool[Any]) -> types.Tool:
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


def _progress_reporter(ctx: ServerRequestContext) -> ProgressReporter:
    from anyio import from_thread

    def report(done: int, of: int, what: str) -> None:
        from_thread.run(ctx.session.report_progress, done, of, what)

    return report


async def _read_in_thread(work: Callable[[], T], limiter: CapacityLimiter) -> T:
    """Run a read; turn a DonewhenError into a protocol error, because a resource has no error field."""
    from mcp import types
    from mcp.shared.exceptions import MCPError

    def try_work() -> T | DonewhenError:
        try:
            return work()
        except DonewhenError as error:
            return error

    result = await _in_thread(try_work, limiter)
    if isinstance(result, DonewhenError):
        message = error_outcome(result.code, result.message, result.where, result.next_step).text
        raise MCPError(types.INVALID_PARAMS, message)
    return result
