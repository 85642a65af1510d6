"""Opens the model that a string names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from donewhen.foundation.errors import ConfigError
from donewhen.models.chat import ChatModel
from donewhen.models.roles import Model

if TYPE_CHECKING:
    from donewhen.models.plugins import ModelPlugin

_BUILT_IN = frozenset({"contrast", "local", "openai", "anthropic"})
KNOWN = ("contrast", "local[:PATH]", "openai:MODEL[@URL]", "anthropic:MODEL[@URL]")


def open_model(choice: str) -> Model:
    """Open the model that a string names.

    ``contrast``; ``local``, or ``local:PATH`` for other weights; ``KIND:MODEL`` on a server, with an optional
    ``@URL``.
    """
    if choice == "contrast":
        from donewhen.models.contrast import Contrast

        return Contrast()
    kind, _, rest = choice.partition(":")
    if kind == "local":
        from donewhen.models.local.local_chat import LocalChat
        from donewhen.models.local.local_model import LocalModel

        return LocalModel(LocalChat(_weights_file(rest)))
    name, url = split_url(rest)
    if kind == "openai" and name:
        from donewhen.models.remote.openai_chat import OpenAIChat

        return ChatModel(OpenAIChat(name, url))
    if kind == "anthropic" and name:
        from donewhen.models.remote.anthropic_chat import AnthropicChat

        return ChatModel(AnthropicChat(name, url))
    plugin = plugin_of(choice)
    if plugin is not None:
        return plugin.open(rest)
    known = ", ".join(KNOWN)
    raise ConfigError(f"Unknown model {choice!r}. Known models: {known}.", next_step="donewhen models list")


def plugin_of(choice: str) -> ModelPlugin | None:
    """The installed distribution that offers the model which a string names; None for a built-in or an unknown one."""
    kind = choice.partition(":")[0]
    if kind in _BUILT_IN or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", kind):
        return None
    from donewhen.models.plugins import find_plugin

    return find_plugin(kind)


def _weights_file(path: str) -> Path:
    """Return the path of the given weights, or of the fetched default."""
    if path:
        return Path(path).expanduser()
    from donewhen.models.local.weights import are_weights_present, default_weights, weights_path

    chosen = default_weights()
    if not are_weights_present(chosen):
        raise ConfigError(
            "The weights of the local model are not downloaded.",
            where=str(weights_path(chosen)),
            next_step="donewhen models fetch, or use your own file: --model local:/path/to/model.gguf",
        )
    return weights_path(chosen)


def split_url(text: str) -> tuple[str, str | None]:
    """Split into name and URL. Names may contain ``@``, so only ``@http(s)://`` separates."""
    match = re.fullmatch(r"(.*)@(https?://\S+)", text)
    if match is None:
        return text, None
    return match[1], match[2]
