"""Prompts: typed sections, tools with typed parameters, an output type."""

from donewhen.prompt.errors import PromptError
from donewhen.prompt.prompt import Prompt, RenderedPrompt
from donewhen.prompt.section import MarkdownSection, Section
from donewhen.prompt.structured import OutputSpec
from donewhen.prompt.template import PromptTemplate
from donewhen.prompt.tool import Tool, ToolContext, ToolResult, call_tool, tool

__all__ = [
    "MarkdownSection",
    "OutputSpec",
    "Prompt",
    "PromptError",
    "PromptTemplate",
    "RenderedPrompt",
    "Section",
    "Tool",
    "ToolContext",
    "ToolResult",
    "call_tool",
    "tool",
]
