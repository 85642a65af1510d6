"""Typed data for models: JSON Schemas for requests, and strict decoding of answers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Generic, TypeVar

from donewhen.prompt.errors import PromptError

T = TypeVar("T")


def json_schema(kind: object) -> dict[str, Any]:
    """Return the JSON Schema of any type that msgspec supports, such as a dataclass, without ``$ref`` at the top."""
    import msgspec

    try:
        schema = msgspec.json.schema(kind)
    except TypeError as error:
        raise PromptError(f"{kind!r} can't be described as JSON: {error}") from error
    definitions = schema.get("$defs", {})
    reference = schema.pop("$ref", None)
    if isinstance(reference, str):
        name = reference.rsplit("/", 1)[-1]
        schema = {**definitions[name], **schema}
        others = {other: definition for other, definition in definitions.items() if other != name}
        # A type that refers to itself still needs its definition.
        schema["$defs"] = definitions if f'"{reference}"' in json.dumps([schema | {"$defs": None}, others]) else others
        if not schema["$defs"]:
            del schema["$defs"]
    if is_dataclass(kind):
        schema.setdefault("additionalProperties", False)
    return schema


def decode(value: object, kind: type[T]) -> T:
    """Convert ``value`` (JSON-like data) to ``kind``; raise :class:`ValueError` that names the wrong field."""
    import msgspec

    try:
        decoded = msgspec.convert(value, kind, strict=True)
    except Exception as error:
        raise ValueError(str(error) or type(error).__name__) from error
    if is_dataclass(kind) and isinstance(value, Mapping):
        unknown = sorted(map(str, value.keys() - {field.name for field in fields(kind)}))
        if unknown:
            raise ValueError(f"unknown field(s): {', '.join(unknown)}")
    return decoded


def as_json(value: object) -> str:
    """Return ``value`` as readable JSON; objects without a JSON form are replaced by their ``repr``."""
    import msgspec

    data = msgspec.to_builtins(value, enc_hook=repr, str_keys=True)
    return json.dumps(data, ensure_ascii=False, indent=2, sort_keys=True)


@dataclass(frozen=True)
class OutputSpec(Generic[T]):
    """The type that the model's final output must have."""

    kind: type[T]

    @property
    def schema(self) -> dict[str, Any]:
        return json_schema(self.kind)

    def decode(self, payload: object) -> T:
        """Convert the payload to the output type; raise :class:`ValueError` if it is invalid."""
        return decode(payload, self.kind)
