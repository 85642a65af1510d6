"""Test kit: scripted agents, recorded models, servers on loopback, and contract tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.adapters.scripted import (
        ByPrompt,
        Message,
        ModelError,
        ModelRequest,
        Script,
        ScriptedAdapter,
        ScriptedModel,
        ScriptExhaustedError,
        ToolCall,
        ToolSpec,
        Turn,
        call,
        finish,
        say,
    )
    from donewhen.testing.cassette import Cassette, CassetteError
    from donewhen.testing.chat_api import ChatServer
    from donewhen.testing.clock import ManualClock
    from donewhen.testing.context import make_context
    from donewhen.testing.contract import AdapterContract, BackgroundCall, Played, Scene, SubagentCall
    from donewhen.testing.gemini_api import GeminiServer
    from donewhen.testing.messages_api import MessagesServer
    from donewhen.testing.model_contract import ModelContract
    from donewhen.testing.models import ScriptedJudge
    from donewhen.testing.responses_api import ResponsesServer

_FILE_OF = {
    "AdapterContract": "contract",
    "BackgroundCall": "contract",
    "Cassette": "cassette",
    "CassetteError": "cassette",
    "ChatServer": "chat_api",
    "GeminiServer": "gemini_api",
    "ManualClock": "clock",
    "MessagesServer": "messages_api",
    "ModelContract": "model_contract",
    "Played": "contract",
    "ResponsesServer": "responses_api",
    "Scene": "contract",
    "ScriptedJudge": "models",
    "SubagentCall": "contract",
    "make_context": "context",
}
_SCRIPTED = (
    "ByPrompt",
    "Message",
    "ModelError",
    "ModelRequest",
    "Script",
    "ScriptExhaustedError",
    "ScriptedAdapter",
    "ScriptedModel",
    "ToolCall",
    "ToolSpec",
    "Turn",
    "call",
    "finish",
    "say",
)

__getattr__ = lazy_attributes(__name__, _FILE_OF, dict.fromkeys(_SCRIPTED, "donewhen.adapters.scripted"))

__all__ = [
    "AdapterContract",
    "BackgroundCall",
    "ByPrompt",
    "Cassette",
    "CassetteError",
    "ChatServer",
    "GeminiServer",
    "ManualClock",
    "Message",
    "MessagesServer",
    "ModelContract",
    "ModelError",
    "ModelRequest",
    "Played",
    "ResponsesServer",
    "Scene",
    "Script",
    "ScriptExhaustedError",
    "ScriptedAdapter",
    "ScriptedJudge",
    "ScriptedModel",
    "SubagentCall",
    "ToolCall",
    "ToolSpec",
    "Turn",
    "call",
    "finish",
    "make_context",
    "say",
]
