"""An agent runtime without a model: a script provides the model's answers."""

from donewhen.adapters.scripted.adapter import ScriptedAdapter
from donewhen.adapters.scripted.model import (
    ByPrompt,
    Message,
    ModelError,
    ModelRequest,
    Script,
    ScriptedModel,
    ScriptExhaustedError,
    ToolCall,
    ToolSpec,
    Turn,
    call,
    finish,
    say,
)

__all__ = [
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
]
