"""For your own tests: an agent without a model, a context in one line, a clock that you turn."""

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
from donewhen.testing.clock import ManualClock
from donewhen.testing.context import make_context

__all__ = [
    "ByPrompt",
    "ManualClock",
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
    "make_context",
    "say",
]
