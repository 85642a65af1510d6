"""A prompt: a template together with the values for its placeholders."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from donewhen.prompt.structured import OutputSpec
    from donewhen.prompt.template import PromptTemplate
    from donewhen.prompt.tool import Tool
    from donewhen.runtime import Session

OutputT = TypeVar("OutputT")


@dataclass(frozen=True)
class RenderedPrompt(Generic[OutputT]):
    """A prompt as an adapter sends it."""

    name: str
    text: str
    tools: tuple[Tool[Any, Any], ...]
    output: OutputSpec[OutputT] | None


class Prompt(Generic[OutputT]):
    """``Prompt(template).bind(Params(...))``; without placeholders ``Prompt(template)`` is enough."""

    def __init__(self, template: PromptTemplate[OutputT], *params: object) -> None:
        self.template = template
        self.params = params

    @property
    def name(self) -> str:
        return self.template.name

    def bind(self, *params: object) -> Prompt[OutputT]:
        """Return this prompt with more values; a later field replaces an earlier one of the same name."""
        return Prompt(self.template, *self.params, *params)

    def render(self) -> RenderedPrompt[OutputT]:
        """Return the text with a numbered heading for each section, the tools and the output type."""
        numbers: list[int] = []
        parts: list[str] = []
        for section, depth in self.template.walk():
            numbers[depth:] = [(numbers[depth] if len(numbers) > depth else 0) + 1]
            number = ".".join(map(str, numbers))
            parts.append(f"{'#' * min(6, depth + 2)} {number}. {section.title}\n\n{section.body(self.params)}")
        return RenderedPrompt(self.name, "\n\n".join(parts), self.template.tools, self.template.output)

    def install(self, session: Session) -> None:
        """Let every section prepare the session."""
        for section, _ in self.template.walk():
            section.install(session)

    def __repr__(self) -> str:
        return f"<Prompt {self.name}>"
