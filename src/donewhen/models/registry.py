"""Which model? One string chooses."""

from __future__ import annotations

import re
from pathlib import Path

from donewhen.foundation.errors import ConfigError
from donewhen.models.chat import ChatModel
from donewhen.models.roles import Model

KNOWN = ("contrast", "local[:PATH]", "openai:MODEL[@URL]", "anthropic:MODEL[@URL]")


def open_model(choice: str) -> Model:
    """The model that a string names.

    ``contrast``; ``local``, or ``local:PATH`` for other weights; ``KIND:MODEL`` over the wire, with the address of its
    server behind an ``@``.
    """
    if choice == "contrast":
        from donewhen.models.contrast import Contrast

        return Contrast()
    kind, _, rest = choice.partition(":")
    if kind == "local":
        from donewhen.models.local.local_chat import LocalChat
        from donewhen.models.local.local_model import LocalModel

        return LocalModel(LocalChat(_weights(rest)))
    name, url = _parts(rest)
    if kind == "openai" and name:
        from donewhen.models.remote.openai_chat import OpenAIChat

        return ChatModel(OpenAIChat(name, url))
    if kind == "anthropic" and name:
        from donewhen.models.remote.anthropic_chat import AnthropicChat

        return ChatModel(AnthropicChat(name, url))
    raise ConfigError(f"There is no model {choice!r}.", next_step=f"There is: {', '.join(KNOWN)}.")


def _weights(path: str) -> Path:
    """The file of weights at a path, or the one that was fetched."""
    if path:
        return Path(path).expanduser()
    from donewhen.models.local.weights import are_weights_present, default_weights, weights_path

    chosen = default_weights()
    if not are_weights_present(chosen):
        raise ConfigError(
            "The weights of the local model are not here.",
            where=str(weights_path(chosen)),
            next_step="donewhen models fetch, or name a file of your own: --model local:/path/to/model.gguf",
        )
    return weights_path(chosen)


def _parts(text: str) -> tuple[str, str | None]:
    """A name and an address. Names may hold an ``@`` themselves, so that the address tells."""
    found = re.fullmatch(r"(.*)@(https?://\S+)", text)
    if found is None:
        return text, None
    return found[1], found[2]
