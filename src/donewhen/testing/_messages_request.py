"""What the scripted Messages API was asked, and whose question it was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from donewhen.testing._loopback import RecordedRequest

CallKind = Literal["main", "subagent", "auxiliary", "other"]
"""Whose call it is: the conversation's own; a sub-agent's; the client's own small business, such as a title, a
summary or a hook that asks a model; or no model call at all."""


@dataclass(frozen=True)
class ToolOutcome:
    """What the client reports about a tool that the model has called."""

    name: str
    text: str
    is_error: bool


@dataclass(frozen=True)
class MessagesRequest(RecordedRequest):
    """One request, and what is new in the conversation that it carries."""

    @property
    def kind(self) -> CallKind:
        """Whose call it is, by the marks that Claude Code 2.0.72, 2.1.42 and 2.1.325 leave.

        The old ones tell only a general-purpose sub-agent from the main conversation.
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
        return tuple(one["name"] for one in self.body.get("tools") or ())

    @property
    def last_user_texts(self) -> tuple[str, ...]:
        """What the user's side has said since the model spoke last; tool results are not among it."""
        return tuple(text for content in self._new_contents() for text in _texts(content))

    @property
    def tool_results(self) -> tuple[ToolOutcome, ...]:
        """The tool results that the client has added since the model spoke last."""
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
        spoken = [index for index, one in enumerate(messages) if one["role"] == "assistant"]
        return [
            message["content"] for message in messages[spoken[-1] + 1 if spoken else 0 :] if message["role"] == "user"
        ]


def _blocks(content: object) -> list[Mapping[str, Any]]:
    return content if isinstance(content, list) else []


def _texts(content: object) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [block["text"] for block in _blocks(content) if block["type"] == "text"]
