"""Which model? One string chooses."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

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
    found = re.fullmatch(r"(.*)@(https?://\S+)", text)
    if found is None:
        return text, None
    if "@" in urlsplit(found[2]).netloc:
        # A model's name is written down with every run.
        raise ConfigError("The address of a model's server holds a name or a password.", next_step="Leave it out.")
    return found[1], found[2]
