"""One run of the client, from its start to the last check."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from donewhen.adapters.claude_agent_sdk import usage
from donewhen.adapters.claude_agent_sdk.enforcement import Enforcement, client_env, hook_timeout
from donewhen.adapters.claude_code.hook_payloads import STRUCTURED_OUTPUT
from donewhen.adapters.guard_choice import AdapterError
from donewhen.completion import StopGuard, TaskCompletionContext
from donewhen.filesystem import HostFilesystem
from donewhen.foundation.errors import MissingExtraError
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.prompt import RenderedPrompt, Tool, ToolContext, call_tool
from donewhen.protocols import CompletionReport, PromptResponse, StopReason
from donewhen.runtime import Limits, Session, TokenUsage, ToolInvoked

if TYPE_CHECKING:
    from donewhen.adapters.claude_agent_sdk.adapter import ClaudeAgentSDKAdapter

OutputT = TypeVar("OutputT")

_SERVER = "donewhen"
_INTERRUPT_GRACE = 5.0


def import_sdk() -> Any:
    """Import the SDK; raise :class:`MissingExtraError` if it is not installed."""
    try:
        import claude_agent_sdk
    except ModuleNotFoundError as error:
        if error.name != "claude_agent_sdk":
            raise
        raise MissingExtraError("Running on the Claude Agent SDK", "claude") from error
    return claude_agent_sdk


class Run(Generic[OutputT]):
    """Starts the client, processes its messages, and returns the response."""

    def __init__(
        self,
        adapter: ClaudeAgentSDKAdapter,
        prompt: RenderedPrompt[OutputT],
        session: Session,
        limits: Limits,
        guard: StopGuard | None,
    ) -> None:
        self._sdk = import_sdk()
        self._adapter = adapter
        self._config = adapter.client_config
        self._prompt = prompt
        self._session = session
        self._limits = limits
        self._enforcement = Enforcement(guard, prompt.output, self._context, self._config.dialect)
        self._calls: dict[str, tuple[str, dict[str, Any]]] = {}
        self._counted = TokenUsage()
        self._complaints: list[str] = []
        self._cut_short = False
        self._unstopped: list[str] = []

    async def play(self) -> PromptResponse[OutputT]:
        """Run the prompt until the run ends."""
        client = self._sdk.ClaudeSDKClient(self._options())
        try:
            await client.connect()
            await client.query(self._prompt.text)
            result = await self._until_deadline(client)
            await self._stop_background(client)
        except self._sdk.ClaudeSDKError as error:
            details = " ".join([str(error), *self._complaints[-3:]])
            raise AdapterError(f"The Claude Agent SDK failed: {one_line(details, 600)}") from error
        finally:
            await client.disconnect()
        self._settle(result)
        return await self._response(result)

    async def _stop_background(self, client: Any) -> None:
        """Stop the tasks that are still running: the run ends now, and a client with such tasks takes long to exit."""
        for task in self._enforcement.background:
            try:
                async with asyncio.timeout(_INTERRUPT_GRACE):
                    await client.stop_task(task["task_id"])
            except Exception:  # noqa: BLE001 - what can't be stopped is reported
                self._unstopped.append(one_line(str(task.get("description") or task.get("task_id")), 80))

    async def _until_deadline(self, client: Any) -> Any:
        try:
            async with asyncio.timeout(self._limits.remaining_seconds()):
                return await self._follow(client)
        except TimeoutError:
            return await self._interrupted(client)

    async def _follow(self, client: Any) -> Any:
        """Process messages until the run ends; a background task may start another turn."""
        result = None
        loop = asyncio.get_running_loop()
        waiting_since = 0.0
        messages = aiter(client.receive_messages())
        while True:
            waited = loop.time() - waiting_since
            message = await self._next(
                messages, None if result is None else max(0.0, self._config.background_wait - waited)
            )
            if message is None:
                return result
            self._take(message)
            if isinstance(message, self._sdk.ResultMessage):
                result = message
                waiting_since = loop.time()
                if not self._enforcement.background:
                    return result
            elif self._limits.bypass() is not None:
                return await self._interrupted(client)
            elif isinstance(message, self._sdk.AssistantMessage | self._sdk.UserMessage):
                # The agent works again. Reports of a task's progress don't extend the wait.
                waiting_since = loop.time()

    async def _next(self, messages: AsyncIterator[Any], patience: float | None) -> Any:
        """Return the next message; None if there are no more, or none arrives within ``patience`` seconds."""
        try:
            return await asyncio.wait_for(anext(messages), patience)
        except StopAsyncIteration:
            return None
        except TimeoutError:
            if patience is None:
                raise
            return None

    async def _interrupted(self, client: Any) -> Any:
        """Interrupt the agent, and process the remaining messages."""
        self._cut_short = True
        with suppress(Exception):
            async with asyncio.timeout(_INTERRUPT_GRACE):
                await client.interrupt()
                async for message in client.receive_messages():
                    self._take(message)
                    if isinstance(message, self._sdk.ResultMessage):
                        return message
        return None

    def _take(self, message: Any) -> None:
        sdk = self._sdk
        if isinstance(message, sdk.AssistantMessage):
            for block in message.content:
                if isinstance(block, sdk.ToolUseBlock):
                    self._calls[block.id] = (block.name, block.input)
                elif isinstance(block, sdk.TextBlock) and message.parent_tool_use_id is None:
                    self._enforcement.last_words = block.text
        elif isinstance(message, sdk.UserMessage) and isinstance(message.content, list):
            for block in message.content:
                if isinstance(block, sdk.ToolResultBlock) and block.tool_use_id in self._calls:
                    self._tool_answered(block)
        elif isinstance(message, sdk.SystemMessage):
            if message.subtype == "background_tasks_changed":
                self._enforcement.run_in_background(message.data.get("tasks", []))
            elif message.subtype.startswith("task_"):
                # Older clients report tasks only in this way.
                self._enforcement.outdated = True
        elif isinstance(message, sdk.types.StreamEvent):
            self._count(message.event)

    def _tool_answered(self, block: Any) -> None:
        name, arguments = self._calls.pop(block.tool_use_id)
        # Other tool calls of the same turn are still executed after the output was accepted.
        self._enforcement.outdated = self._enforcement.outdated or name != STRUCTURED_OUTPUT
        parts = block.content if isinstance(block.content, list) else []
        text = block.content if isinstance(block.content, str) else "\n".join(part.get("text", "") for part in parts)
        event = ToolInvoked(name.removeprefix(f"mcp__{_SERVER}__"), arguments, not block.is_error, text)
        self._session.dispatch(event)

    def _count(self, event: dict[str, Any]) -> None:
        """Count tokens while they are used, so that a budget can end a run early."""
        if event.get("type") == "message_start":
            used = usage.usage_of_call(event["message"].get("usage") or {})
        elif event.get("type") == "message_delta":
            used = usage.usage_of_call(event.get("usage") or {})
        else:
            return
        self._counted += used
        self._limits.record(used)

    def _settle(self, result: Any) -> None:
        """Add what was not in the stream: the usage of sub-agents, and the cost."""
        if result is None:
            return
        rest = usage.uncounted_usage(usage.usage_of_run(result), self._counted)
        self._counted += rest
        self._limits.record(rest, cost_usd=result.total_cost_usd or 0.0)

    async def _response(self, result: Any) -> PromptResponse[OutputT]:
        enforcement = self._enforcement
        failed = result is None or bool(result.is_error)
        reason: StopReason = "end_turn"
        if enforcement.output is not None:
            reason = "structured_output"
        elif result is not None and result.subtype == "error_max_turns":
            reason = "max_turns"
        elif failed and not self._cut_short:
            reason = "error"
        text = enforcement.last_words
        if failed and result is not None and not self._cut_short:
            text = result.result or "; ".join(getattr(result, "errors", None) or ()) or text
        report = None if enforcement.guard is None else await self._report(enforcement.guard, reason, failed)
        return PromptResponse(self._prompt.name, text, enforcement.output, reason, self._counted, report)

    async def _report(self, guard: StopGuard, reason: StopReason, failed: bool) -> CompletionReport:
        """Return the verdict on the work as it is now, after the client has ended."""
        enforcement = self._enforcement
        report = enforcement.report
        # Check once more if the run ended without a Stop hook, or if the work may have changed since the last check: a
        # call whose result never came may have acted all the same.
        unanswered = any(name != STRUCTURED_OUTPUT for name, _ in self._calls.values())
        if report is None or failed or self._cut_short or (report.verified and (enforcement.outdated or unanswered)):
            report = await guard.aconclude(self._context(enforcement.output or enforcement.last_words, reason))
        if report.verified and self._unstopped:
            feedback = (
                f"The work is not verified: background tasks could not be stopped and may still change it "
                f"({join_limited(self._unstopped, 3)})."
            )
            report = replace(report, status="incomplete", feedback=feedback)
        return report

    def _context(self, output: object, reason: StopReason) -> TaskCompletionContext:
        return TaskCompletionContext(
            session=self._session,
            tentative_output=output,
            filesystem=self._adapter.filesystem,
            adapter=self._adapter,
            stop_reason=reason,
        )

    def _options(self) -> Any:
        config, sdk = self._config, self._sdk
        policy = config.guard_policy
        wanted: dict[str, Any] = {
            "model": config.model,
            "max_turns": config.max_turns,
            "permission_mode": config.permission_mode,
            "cwd": config.cwd or _root_of(self._adapter.filesystem),
            "tools": None if config.tools is None else list(config.tools),
            "disallowed_tools": list(config.disallowed_tools),
            "allowed_tools": [*config.allowed_tools, *(f"mcp__{_SERVER}__{tool.name}" for tool in self._prompt.tools)],
            "env": {
                # Offer our tools from the start, and let only our own cap apply.
                "ENABLE_TOOL_SEARCH": "0",
                **client_env(policy),
                **config.env,
            },
            # Ignore the user's own settings, and send the prompt as plain text: @file in it is not expanded.
            "setting_sources": [],
            "strict_mcp_config": True,
            "verbatim_prompts": True,
            "include_partial_messages": self._limits.counts,
            "max_budget_usd": self._limits.remaining_usd(),
            "stderr": self._complaints.append,
            "hooks": self._enforcement.hooks(sdk.HookMatcher, hook_timeout(policy)),
        }
        if self._prompt.tools:
            server = sdk.create_sdk_mcp_server(_SERVER, tools=[self._bridged(tool) for tool in self._prompt.tools])
            wanted["mcp_servers"] = {_SERVER: server}
        if self._prompt.output is not None:
            wanted["output_format"] = {"type": "json_schema", "schema": self._prompt.output.schema}
        known = {field.name for field in dataclasses.fields(sdk.ClaudeAgentOptions)}
        given = {name: value for name, value in wanted.items() if value is not None and name in known}
        return sdk.ClaudeAgentOptions(**_merged(given, config.options))

    def _bridged(self, tool: Tool[Any, Any]) -> Any:
        """Return a tool of the prompt as an in-process tool of the SDK."""

        async def handle(arguments: dict[str, Any]) -> dict[str, Any]:
            context = ToolContext(self._session, self._adapter.filesystem, self._adapter)
            result = await asyncio.to_thread(call_tool, tool, arguments, context)
            return {"content": [{"type": "text", "text": result.message}], "is_error": not result.success}

        return self._sdk.SdkMcpTool(tool.name, tool.description, tool.input_schema, handle)


def _merged(ours: dict[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Merge the user's options into ours. Their hooks, servers and variables are added and never replace ours."""
    merged = ours | dict(theirs)
    for name in ("env", "mcp_servers"):
        if name in ours and name in theirs:
            merged[name] = {**theirs[name], **ours[name]}
    if theirs.get("hooks"):
        events = {*ours["hooks"], *theirs["hooks"]}
        merged["hooks"] = {event: [*ours["hooks"].get(event, []), *theirs["hooks"].get(event, [])] for event in events}
    return merged


def _root_of(filesystem: object) -> str | None:
    return str(filesystem.root) if isinstance(filesystem, HostFilesystem) else None
