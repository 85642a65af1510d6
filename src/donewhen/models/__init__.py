"""Models that judge tickets and reflect on verdicts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazy_attributes

if TYPE_CHECKING:
    from donewhen.models.chat import Chat, ChatAnswer, ChatMessage, ChatModel, ChatRequest
    from donewhen.models.metered import BudgetError, Meter, MeteredModel, SpendingLimits
    from donewhen.models.registry import open_model
    from donewhen.models.remote.pacing import Pace, Patience, RetryLater
    from donewhen.models.remote.prices import Price, price_of
    from donewhen.models.roles import (
        AnswerForm,
        Case,
        Closable,
        Completion,
        Decode,
        Model,
        ModelError,
        Priced,
        Prompt,
        ReflectionRequest,
        Reflector,
        Roller,
        RolloutRequest,
        Studious,
        Usage,
    )

_FILE_OF = {
    "AnswerForm": "roles",
    "MeteredModel": "metered",
    "BudgetError": "metered",
    "Case": "roles",
    "Chat": "chat",
    "ChatAnswer": "chat",
    "ChatModel": "chat",
    "ChatRequest": "chat",
    "Closable": "roles",
    "Completion": "roles",
    "Decode": "roles",
    "SpendingLimits": "metered",
    "ChatMessage": "chat",
    "Meter": "metered",
    "Model": "roles",
    "ModelError": "roles",
    "Pace": "remote.pacing",
    "Patience": "remote.pacing",
    "Price": "remote.prices",
    "Priced": "roles",
    "Prompt": "roles",
    "ReflectionRequest": "roles",
    "Reflector": "roles",
    "Roller": "roles",
    "RolloutRequest": "roles",
    "Studious": "roles",
    "RetryLater": "remote.pacing",
    "Usage": "roles",
    "open_model": "registry",
    "price_of": "remote.prices",
}

_RENAMED = {
    "Asking": "MeteredModel",
    "Limits": "SpendingLimits",
    "Message": "ChatMessage",
    "TryAgain": "RetryLater",
}

__getattr__ = lazy_attributes(__name__, _FILE_OF, renamed=_RENAMED)

__all__ = [
    "AnswerForm",
    "BudgetError",
    "Case",
    "Chat",
    "ChatAnswer",
    "ChatMessage",
    "ChatModel",
    "ChatRequest",
    "Closable",
    "Completion",
    "Decode",
    "Meter",
    "MeteredModel",
    "Model",
    "ModelError",
    "Pace",
    "Patience",
    "Price",
    "Priced",
    "Prompt",
    "ReflectionRequest",
    "Reflector",
    "RetryLater",
    "Roller",
    "RolloutRequest",
    "SpendingLimits",
    "Studious",
    "Usage",
    "open_model",
    "price_of",
]
