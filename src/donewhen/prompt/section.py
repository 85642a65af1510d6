"""Sections: the parts of a prompt, each with a title, a text and its tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from string import Template
from typing import TYPE_CHECKING, Any

from donewhen.prompt.errors import PromptError

if TYPE_CHECKING:
    from donewhen.prompt.tool import Tool
    from donewhen.runtime import Session

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


def checked_key(key: str, what: str) -> str:
    if not _KEY.fullmatch(key):
        raise PromptError(f"{key!r} can't be the {what}: use lower-case letters, digits, '.', '_' or '-'.")
    return key


class Section:
    """Base class of sections; override :meth:`body`, and :meth:`install` if the section keeps state in a session."""

    def __init__(
        self,
        *,
        title: str,
        key: str,
        tools: Sequence[Tool[Any, Any]] = (),
        children: Sequence[Section] = (),
    ) -> None:
        self.title = title
        self.key = checked_key(key, "key of a section")
        self.tools = tuple(tools)
        self.children = tuple(children)

    def body(self, params: Sequence[object]) -> str:
        """Return the text below the title. ``params`` are the objects bound to the prompt."""
        raise PromptError(f"{type(self).__name__} has no text: override body().")

    def install(self, session: Session) -> None:
        """Prepare ``session`` for this section. It is called before a run; repeated calls must have no effect."""


class MarkdownSection(Section):
    """A section whose text has ``${name}`` placeholders, filled from the fields of the bound dataclasses."""

    def __init__(
        self,
        *,
        title: str,
        key: str,
        template: str,
        tools: Sequence[Tool[Any, Any]] = (),
        children: Sequence[Section] = (),
    ) -> None:
        super().__init__(title=title, key=key, tools=tools, children=children)
        self._template = Template(template)
        if not self._template.is_valid():
            raise PromptError(
                f"The text of section {self.key!r} has a '$' that is not part of a placeholder.",
                next_step="Write '$$'.",
            )

    def body(self, params: Sequence[object]) -> str:
        values = {name: value for param in params for name, value in _fields(param).items()}
        missing = [name for name in self._template.get_identifiers() if name not in values]
        if missing:
            raise PromptError(
                f"Section {self.key!r} needs {', '.join(missing)}.",
                next_step="Bind a dataclass with these fields: Prompt(template).bind(Params(...)).",
            )
        return self._template.substitute(values).strip()


def _fields(params: object) -> dict[str, Any]:
    if not is_dataclass(params) or isinstance(params, type):
        raise PromptError(f"A prompt is bound to dataclass instances, not to {params!r}.")
    return {field.name: getattr(params, field.name) for field in fields(params)}
