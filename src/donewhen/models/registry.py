"""Which model? One string chooses."""

from __future__ import annotations

from donewhen.foundation.errors import ConfigError
from donewhen.models.roles import Model

KNOWN = ("contrast",)


def open_model(choice: str) -> Model:
    """The model that a string names."""
    if choice == "contrast":
        from donewhen.models.contrast import Contrast

        return Contrast()
    raise ConfigError(f"There is no model {choice!r}.", next_step=f"There is: {', '.join(KNOWN)}.")
