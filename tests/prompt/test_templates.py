"""Templates: what they refuse, and the output type in their brackets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import pytest

from donewhen.completion import PlanBasedChecker
from donewhen.prompt import (
    MarkdownSection,
    OutputSpec,
    Prompt,
    PromptError,
    PromptTemplate,
    Section,
    Tool,
    ToolContext,
    ToolResult,
)
from donewhen.prompt.structured import as_json, decode, json_schema
from sentences import assert_sentences

T = TypeVar("T")


@dataclass(frozen=True)
class Inner:
    number: int


@dataclass(frozen=True)
class Report:
    title: str
    inner: Inner
    lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Nothing:
    pass


def a_tool(name: str) -> Tool[Nothing, None]:
    def handler(params: Nothing, context: ToolContext) -> ToolResult[None]:
        return ToolResult("")

    return Tool(name, "Does it.", Nothing, handler)


def section(key: str, *tools: Tool[Any, Any], children: tuple[Section, ...] = ()) -> MarkdownSection:
    return MarkdownSection(title=key, key=key, template="x", tools=tools, children=children)


class TestMaking:
    def test_a_template_has_a_name_of_namespace_and_key(self) -> None:
        template = PromptTemplate[None](ns="demo", key="with-plan")
        assert template.name == "demo:with-plan"
        assert repr(template) == "<PromptTemplate demo:with-plan>"

    @pytest.mark.parametrize(
        ("ns", "key", "what"), [("Demo", "k", "namespace"), ("", "k", "namespace"), ("d", "K", "key")]
    )
    def test_a_bad_name_is_refused(self, ns: str, key: str, what: str) -> None:
        with pytest.raises(PromptError) as caught:
            PromptTemplate[None](ns=ns, key=key)
        assert_sentences(caught.value)

    def test_the_tools_of_all_sections_are_listed_in_their_order(self) -> None:
        one, two, three = a_tool("one"), a_tool("two"), a_tool("three")
        template = PromptTemplate[None](
            ns="d", key="k", sections=[section("a", one, children=(section("b", two),)), section("c", three)]
        )
        assert template.tools == (one, two, three)

    def test_the_same_section_key_twice_is_refused_at_any_depth(self) -> None:
        for sections in ([section("a"), section("a")], [section("a", children=(section("a"),))]):
            with pytest.raises(PromptError) as caught:
                PromptTemplate[None](ns="d", key="k", sections=sections)
            assert_sentences(caught.value)

    def test_the_same_tool_twice_is_refused(self) -> None:
        sections = [section("a", a_tool("x"), a_tool("y")), section("b", a_tool("y"), a_tool("x"))]
        with pytest.raises(PromptError) as caught:
            PromptTemplate[None](ns="d", key="k", sections=sections)
        assert_sentences(caught.value)

    @pytest.mark.parametrize("thing", ["text", None, object(), MarkdownSection], ids=lambda thing: type(thing).__name__)
    def test_what_is_no_section_is_refused(self, thing: Any) -> None:
        with pytest.raises(PromptError) as caught:
            PromptTemplate[None](ns="d", key="k", sections=[thing])
        assert_sentences(caught.value)

    @pytest.mark.parametrize("thing", ["text", None, object()], ids=lambda thing: type(thing).__name__)
    def test_a_child_that_is_no_section_is_refused_too(self, thing: Any) -> None:
        with pytest.raises(PromptError) as caught:
            PromptTemplate[None](ns="d", key="k", sections=[section("a", children=(thing,))])
        assert_sentences(caught.value)

    def test_a_checker_may_stand_on_the_template(self) -> None:
        checker = PlanBasedChecker()
        assert PromptTemplate[None](ns="d", key="k", task_completion_checker=checker).task_completion_checker is checker
        assert PromptTemplate[None](ns="d", key="k").task_completion_checker is None


class Mine(PromptTemplate[Report]):
    pass


class Derived(Mine):
    pass


class Open(PromptTemplate[T]):
    pass


class Closed(Open[Report]):
    pass


class Silent(PromptTemplate[None]):
    pass


class Bare(PromptTemplate):  # type: ignore[type-arg]
    pass


class Mixed(PromptTemplate[Report], Generic[T]):
    pass


class Named:
    pass


class WithMixin(Named, PromptTemplate[Report]):
    pass


class TestOutput:
    def test_the_type_in_the_brackets_is_remembered(self) -> None:
        # On CPython 3.12.1 this very call raises for a frozen generic dataclass with slots.
        template = PromptTemplate[Report](ns="d", key="k")
        assert template.output == OutputSpec(Report)
        assert Prompt(template).render().output == OutputSpec(Report)

    def test_two_templates_do_not_share_their_type(self) -> None:
        one, two = PromptTemplate[Report](ns="d", key="k"), PromptTemplate[Inner](ns="d", key="k")
        assert (one.output, two.output) == (OutputSpec(Report), OutputSpec(Inner))

    def test_without_a_type_there_is_no_output(self) -> None:
        for template in (
            PromptTemplate[None](ns="d", key="k"),
            PromptTemplate(ns="d", key="k"),
            PromptTemplate[T](ns="d", key="k"),  # type: ignore[valid-type]
            Silent(ns="d", key="k"),
            Bare(ns="d", key="k"),
            Open(ns="d", key="k"),
        ):
            assert template.output is None

    def test_a_subclass_may_fix_the_type(self) -> None:
        assert Mine(ns="d", key="k").output == OutputSpec(Report)
        assert Derived(ns="d", key="k").output == OutputSpec(Report)
        assert WithMixin(ns="d", key="k").output == OutputSpec(Report)

    def test_a_generic_subclass_takes_the_type_in_its_own_brackets(self) -> None:
        assert Open[Report](ns="d", key="k").output == OutputSpec(Report)

    def test_a_subclass_of_a_generic_subclass_does_not_lose_the_type(self) -> None:
        assert Closed(ns="d", key="k").output == OutputSpec(Report)

    def test_other_brackets_of_a_subclass_do_not_replace_the_output_type(self) -> None:
        assert Mixed[int](ns="d", key="k").output == OutputSpec(Report)


class TestStructured:
    def test_the_schema_has_no_reference_at_the_top(self) -> None:
        schema = OutputSpec(Report).schema
        assert "$ref" not in schema
        assert schema["type"] == "object"
        assert set(schema["properties"]) == {"title", "inner", "lines"}
        assert schema["required"] == ["title", "inner"]
        assert schema["$defs"].keys() == {"Inner"}

    def test_a_flat_type_needs_no_definitions(self) -> None:
        assert "$defs" not in json_schema(Inner)

    def test_a_type_that_refers_to_itself_keeps_what_it_refers_to(self) -> None:
        schema = json_schema(Tree)
        references = {schema["properties"]["children"]["items"]["$ref"].rsplit("/", 1)[-1]}
        assert schema["type"] == "object"
        assert references <= schema.get("$defs", {}).keys()

    def test_plain_types_are_described_too(self) -> None:
        assert json_schema(int) == {"type": "integer"}

    def test_a_type_without_a_json_form_is_refused(self) -> None:
        with pytest.raises(PromptError) as caught:
            json_schema(object())
        assert_sentences(caught.value)

    def test_a_payload_becomes_the_output_type(self) -> None:
        payload = {"title": "T", "inner": {"number": 1}, "lines": ["a", "b"]}
        assert OutputSpec(Report).decode(payload) == Report("T", Inner(1), ("a", "b"))

    @pytest.mark.parametrize(
        ("payload", "said"),
        [
            ({}, "missing required field `title`"),
            ({"title": 1, "inner": {"number": 1}}, "at `$.title`"),
            ({"title": "T", "inner": {"number": "1"}}, "at `$.inner.number`"),
            ({"title": "T", "inner": {"number": True}}, "at `$.inner.number`"),
            ({"title": "T", "inner": None}, "at `$.inner`"),
            ([], "Expected `object`, got `array`"),
        ],
        ids=repr,
    )
    def test_a_payload_that_does_not_fit_says_where(self, payload: object, said: str) -> None:
        with pytest.raises(ValueError) as caught:
            decode(payload, Report)
        assert said in str(caught.value)

    @pytest.mark.parametrize(
        ("value", "text"),
        [
            (Inner(1), '{\n  "number": 1\n}'),
            ({"b": 1, "a": "é"}, '{\n  "a": "é",\n  "b": 1\n}'),
            ({1: (2, 3)}, '{\n  "1": [\n    2,\n    3\n  ]\n}'),
            (complex(1, 2), '"(1+2j)"'),
            (None, "null"),
        ],
        ids=repr,
    )
    def test_anything_can_be_shown_as_json(self, value: object, text: str) -> None:
        assert as_json(value) == text


@dataclass(frozen=True)
class Tree:
    name: str
    children: tuple[Tree, ...] = ()
