"""The tokens of a turn, if the agent's runtime reports them in what it puts out. For display: an agent can write it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

# Codex without --json ends with this.
_CODEX = re.compile(r"^tokens used:?\s*([\d,.]+)\s*$", re.MULTILINE | re.IGNORECASE)
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


class TurnUsage(NamedTuple):
    """The tokens of a turn. ``total`` is there if the runtime doesn't tell input from output."""

    input: int = 0
    output: int = 0
    total: int = 0

    @property
    def text(self) -> str:
        return f"{self.total} tokens" if self.total else f"{self.input} tokens in, {self.output} out"


def usage_in(output: str) -> TurnUsage | None:
    """The tokens that an agent's output reports; None if it reports none.

    Understood are the results of ``claude -p --output-format json`` or ``stream-json``, the events of
    ``codex exec --json`` and its last line, and ``gemini --output-format json``.
    """
    found = [usage for data in _objects(output) if (usage := _usage(data)) is not None]
    if found:
        # A result sums up what came before; events of turns are added.
        return found[-1]
    counts = _CODEX.findall(output)
    total = re.sub(r"\D", "", counts[-1]) if counts else ""
    return TurnUsage(total=int(total[:12])) if total else None


def _usage(data: dict[str, Any]) -> TurnUsage | None:
    usage = data.get("usage")
    if data.get("type") in ("result", "turn.completed") and isinstance(usage, dict):
        # Codex counts cached tokens among the others.
        names = _INPUT if data["type"] == "result" else _INPUT[:1]
        return TurnUsage(sum(_count(usage, name) for name in names), _count(usage, "output_tokens"))
    stats = data.get("stats")
    models = stats.get("models") if isinstance(stats, dict) else None
    if isinstance(models, dict):
        tokens = [model.get("tokens") for model in models.values() if isinstance(model, dict)]
        known = [each for each in tokens if isinstance(each, dict)]
        return TurnUsage(
            sum(_count(each, "prompt") for each in known), sum(_count(each, "candidates") for each in known)
        )
    return None


def _count(data: dict[str, Any], name: str) -> int:
    value = data.get(name)
    return value if type(value) is int and 0 <= value < 10**12 else 0


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in an output: all of it, or a line each."""
    for text in (output.strip(), *(line.strip() for line in output.splitlines())):
        if text.startswith("{") and text.endswith("}"):
            try:
                data = json.loads(text)
            except (ValueError, RecursionError):
                continue
            if isinstance(data, dict):
                yield data
