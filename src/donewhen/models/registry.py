"""Which model? One string chooses."""

from __future__ import annotations

from donewhen.foundation.errors import ConfigError
from donewhen.models.chat import ChatModel
from donewhen.models.roles import Model

KNOWN = ("contrast", "openai:MODEL[@URL]", "anthropic:MODEL[@URL]")


def open_model(choice: str) -> Model:
    """The model that a string names: ``contrast``, or ``KIND:MODEL`` with the address of its server behind an ``@``."""
    if choice == "contrast":
        from donewhen.models.contrast import Contrast

        return Contrast()
    kind, _, rest = choice.partition(":")
    name, url = _parts(rest)
    if kind == "openai" and name:
        from donewhen.models.openai_chat import OpenAIChat

        return ChatModel(OpenAIChat(name, url))
    if kind == "anthropic" and name:
        from donewhen.models.anthropic_chat import AnthropicChat

        return ChatModel(AnthropicChat(name, url))
    raise ConfigError(f"There is no model {choice!r}.", next_step=f"There is: {', '.join(KNOWN)}.")


def _parts(text: str) -> tuple[str, str | None]:
    """A name and an address. Names may hold an ``@`` themselves, so that the address tells."""
    name, mark, url = text.rpartition("@")
    if mark and url.startswith(("http://", "https://")):
        return name, url
    return text, None
