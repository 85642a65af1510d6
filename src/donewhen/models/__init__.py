"""The models that judge and reflect: each behind the same two roles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from donewhen.foundation.lazy import lazily

if TYPE_CHECKING:
    from donewhen.models.asking import Asking, BudgetError, Limits, Meter
    from donewhen.models.registry import open_model
    from donewhen.models.roles import (
        Case,
        Completion,
        Decode,
        Model,
        ModelError,
        Prompt,
        ReflectionRequest,
        Reflector,
        Roller,
        RolloutRequest,
        Studious,
        Usage,
    )

_FILE_OF = {
    "Asking": "asking",
    "BudgetError": "asking",
    "Case": "roles",
    "Completion": "roles",
    "Decode": "roles",
    "Limits": "asking",
    "Meter": "asking",
    "Model": "roles",
    "ModelError": "roles",
    "Prompt": "roles",
    "ReflectionRequest": "roles",
    "Reflector": "roles",
    "Roller": "roles",
    "RolloutRequest": "roles",
    "Studious": "roles",
    "Usage": "roles",
    "open_model": "registry",
}

__getattr__ = lazily(__name__, _FILE_OF)

__all__ = [
    "Asking",
    "BudgetError",
    "Case",
    "Completion",
    "Decode",
    "Limits",
    "Meter",
    "Model",
    "ModelError",
    "Prompt",
    "ReflectionRequest",
    "Reflector",
    "Roller",
    "RolloutRequest",
    "Studious",
    "Usage",
    "open_model",
]
