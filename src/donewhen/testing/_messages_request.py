"""Requests to the scripted Messages API, classified by origin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from donewhen.testing._loopback import RecordedRequest

CallKind = Literal["main", "subagent", "auxiliary", "other"]
"""Origin of a call: the main conversation; a sub-agent; an auxiliary call of the client, such as a title, a summary
or a hook that uses a model; or no model call."""


@dataclass(frozen=True)
class ToolOutcome:
    """The result of a tool call, as reported by the client."""

    name: str
    text: str
    is_error: bool


@dataclass(frozen=True)
class MessagesRequest(RecordedRequest):
    """One request, with access to what is new in its conversation."""

    @property
    def kind(self) -> CallKind:
        """The origin of the call, detected as for Claude Code 2.0.72, 2.1.42 and 2.1.325.

        In old versions only a general-purpose sub-agent can be distinguished from the main conversation.
        """
        if (self.method, self.path) != ("POST", "/v1/messages"):
            return "other"
        if self._is_auxiliary():
            return "auxiliary"
        is_marked = "x-claude-code-agent-id" in self.headers or "You are an agent for Claude Code" in self.system
        return "subagent" if is_marked else "main"

    @property
    def model(self) -> str:
        return str(self.body.get("model", ""))

    @property
    def system(self) -> str:
        """The system prompt."""
        return "\n".join(_texts(self.body.get("system")))

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The tools that the model is offered."""
        return tuple(tool["name"] for tool in self.body.get("tools") or ())

    @property
    def last_user_texts(self) -> tuple[str, ...]:
        """The user texts since the model's last message, without tool results."""
        return tuple(text for content in self._new_contents() for text in _texts(content))

    @property
    def tool_results(self) -> tuple[ToolOutcome, ...]:
        """The tool results since the model's last message."""
        names = {
            block["id"]: block["name"]
            for message in self._messages()
            for block in _blocks(message["content"])
            if block["type"] == "tool_use"
        }
        return tuple(
            ToolOutcome(
                names.get(block["tool_use_id"], ""),
                "\n".join(_texts(block.get("content"))),
                bool(block.get("is_error")),
            )
            for content in self._new_contents()
            for block in _blocks(content)
            if block["type"] == "tool_result"
        )

    def _is_auxiliary(self) -> bool:
        texts = self.last_user_texts
        if texts and "create a detailed summary of the conversation" in texts[-1]:
            return True
        if self.tool_names:
            return False
        asks_for_json = "format" in (self.body.get("output_config") or {})
        is_warm_up = texts == ("Warmup",)
        beta = self.headers.get("anthropic-beta", "")
        is_small = self.headers.get("x-app") == "cli" and "claude-code-" not in beta
        return asks_for_json or is_warm_up or is_small

    def _messages(self) -> list[Mapping[str, Any]]:
        return self.body.get("messages") or []

    def _new_contents(self) -> list[object]:
        messages = self._messages()
        spoken = [index for index, message in enumerate(messages) if message["role"] == "assistant"]
        return [
            message["content"] for message in messages[spoken[-1] + 1 if spoken else 0 :] if message["role"] == "user"
        ]


def _blocks(content: object) -> list[Mapping[str, Any]]:
    return content if isinstance(content, list) else []


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in _blocks(content) if block["type"] == "text"]
