"""Templates: the sections of a prompt, and the type of its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args, get_origin

from donewhen.prompt.errors import PromptError
from donewhen.prompt.section import Section, checked_key
from donewhen.prompt.structured import OutputSpec

if TYPE_CHECKING:
    from donewhen.prompt.tool import Tool
    from donewhen.protocols import TaskCompletionChecker

OutputT = TypeVar("OutputT")


# Not a frozen dataclass: for those, PromptTemplate[Report](...) can't store Report (and with slots
# CPython 3.12.1 raises).
class PromptTemplate(Generic[OutputT]):
    """``PromptTemplate[Report](ns=..., key=..., sections=[...])``; ``[None]`` for a prompt without typed output.

    ``task_completion_checker`` guards every run of this template. If the adapter has a checker as well, both must
    pass.
    """

    def __init__(
        self,
        *,
        ns: str,
        key: str,
        sections: Sequence[Section] = (),
        task_completion_checker: TaskCompletionChecker | None = None,
    ) -> None:
        self.ns = checked_key(ns, "namespace of a prompt")
        self.key = checked_key(key, "key of a prompt")
        self.sections = tuple(sections)
        self.task_completion_checker = task_completion_checker
        for item in (
            *self.sections,
            *(child for section, _ in self.walk() for child in getattr(section, "children", ())),
        ):
            if not isinstance(item, Section):
                raise PromptError(f"{item!r} is not a section.", next_step="Derive it from donewhen.prompt.Section.")
        _refuse_doubles("section key", (section.key for section, _ in self.walk()))
        _refuse_doubles("tool", (tool.name for tool in self.tools))

    @property
    def name(self) -> str:
        return f"{self.ns}:{self.key}"

    @property
    def tools(self) -> tuple[Tool[Any, Any], ...]:
        """The tools of all sections, in order."""
        return tuple(tool for section, _ in self.walk() for tool in section.tools)

    @property
    def output(self) -> OutputSpec[OutputT] | None:
        """The type in the brackets; None for ``PromptTemplate[None]`` and without brackets."""
        kind = _bracketed(self)
        return None if kind in (None, type(None)) or isinstance(kind, TypeVar) else OutputSpec(kind)

    def walk(self) -> Iterator[tuple[Section, int]]:
        """Yield every section with its depth, parents first."""
        waiting = [(section, 0) for section in reversed(self.sections)]
        while waiting:
            section, depth = waiting.pop()
            yield section, depth
            waiting += [(child, depth + 1) for child in reversed(getattr(section, "children", ()))]

    def __repr__(self) -> str:
        return f"<PromptTemplate {self.name}>"


def _bracketed(template: PromptTemplate[Any]) -> Any:
    """Return the type argument of ``PromptTemplate[X](...)`` or of ``class Mine(PromptTemplate[X])``."""
    return _argument(template.__dict__.get("__orig_class__", type(template)))


def _argument(kind: Any) -> Any:
    """Return the type that ``kind``, a class or a class with brackets, passes to PromptTemplate."""
    origin, given = get_origin(kind) or kind, get_args(kind)
    if origin is PromptTemplate:
        return given[0] if given else None
    for base in origin.__dict__.get("__orig_bases__", origin.__bases__):
        if not issubclass(get_origin(base) or base, PromptTemplate):
            continue
        argument = _argument(base)
        names = getattr(origin, "__parameters__", ())
        return given[names.index(argument)] if given and argument in names else argument
    return None


def _refuse_doubles(what: str, names: Iterator[str]) -> None:
    doubles = sorted(name for name, count in Counter(names).items() if count > 1)
    if doubles:
        raise PromptError(f"Duplicate {what} in the prompt: {', '.join(doubles)}.")
