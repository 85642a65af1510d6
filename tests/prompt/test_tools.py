"""Tools: how they are made, described and called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import pytest

from donewhen.filesystem import InMemoryFilesystem
from donewhen.prompt import PromptError, Tool, ToolContext, ToolResult, call_tool, tool
from donewhen.runtime import Session
from sentences import assert_sentences


@dataclass(frozen=True)
class Greet:
    name: str
    times: int = 1
    tone: Literal["warm", "cold"] = "warm"


@dataclass(frozen=True)
class Greeting:
    text: str


class Struct(msgspec.Struct, frozen=True):
    name: str


@tool
def greet(params: Greet, context: ToolContext) -> ToolResult[Greeting]:
    """Greet somebody.

    As often as it takes.
    """
    return ToolResult(f"Greeted {params.name}.", Greeting(f"Hello {params.name}" * params.times))


def context() -> ToolContext:
    return ToolContext(Session())


def made(handler: Callable[..., Any], params: type = Greet) -> Tool[Any, Any]:
    return Tool("it", "Does it.", params, handler)


class TestMaking:
    def test_the_decorator_takes_name_docstring_and_parameter_type(self) -> None:
        assert isinstance(greet, Tool)
        assert greet.name == "greet"
        assert greet.description == "Greet somebody.\n\nAs often as it takes."
        assert greet.params is Greet

    def test_the_schema_is_that_of_the_parameters_without_a_reference_at_the_top(self) -> None:
        assert greet.input_schema == {
            "title": "Greet",
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "times": {"type": "integer", "default": 1},
                "tone": {"enum": ["cold", "warm"], "default": "warm"},
            },
            "required": ["name"],
            "additionalProperties": False,
        }

    def test_a_struct_may_hold_the_parameters(self) -> None:
        one = made(lambda params, context: ToolResult(params.name), Struct)
        assert one.input_schema["properties"] == {"name": {"type": "string"}}
        assert call_tool(one, {"name": "x"}, context()).message == "x"

    @pytest.mark.parametrize("name", ["a", "A-b_9", "x" * 64])
    def test_these_can_name_a_tool(self, name: str) -> None:
        assert Tool(name, "Does it.", Greet, lambda p, c: ToolResult("")).name == name

    @pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "x" * 65, "a\n"], ids=repr)
    def test_these_can_not(self, name: str) -> None:
        with pytest.raises(PromptError) as caught:
            Tool(name, "Does it.", Greet, lambda p, c: ToolResult(""))
        assert_sentences(caught.value)

    @pytest.mark.parametrize("description", ["", "  \n"])
    def test_a_tool_needs_a_description(self, description: str) -> None:
        with pytest.raises(PromptError) as caught:
            Tool("it", description, Greet, lambda p, c: ToolResult(""))
        assert_sentences(caught.value)

    @pytest.mark.parametrize("params", [dict, str, int, object, None, Greet("an instance")], ids=repr)
    def test_the_parameters_must_be_a_dataclass(self, params: Any) -> None:
        with pytest.raises(PromptError) as caught:
            Tool("it", "Does it.", params, lambda p, c: ToolResult(""))
        assert_sentences(caught.value)

    def test_a_function_without_docstring_is_refused(self) -> None:
        def silent(params: Greet, context: ToolContext) -> ToolResult[None]:
            return ToolResult("")

        with pytest.raises(PromptError) as caught:
            tool(silent)
        assert_sentences(caught.value)

    def test_a_function_without_annotation_is_refused(self) -> None:
        def untyped(params, context):  # type: ignore[no-untyped-def]
            """It does."""

        with pytest.raises(PromptError) as caught:
            tool(untyped)
        assert_sentences(caught.value)

    def test_a_function_without_parameters_is_refused(self) -> None:
        def bare() -> ToolResult[None]:
            """It does."""
            return ToolResult("")

        with pytest.raises(PromptError) as caught:
            tool(bare)  # type: ignore[arg-type]
        assert_sentences(caught.value)

    def test_a_type_that_can_not_be_found_is_refused(self) -> None:
        @dataclass(frozen=True)
        class Local:
            x: int

        def hidden(params: Local, context: ToolContext) -> ToolResult[None]:
            """It does."""
            return ToolResult("")

        # With postponed annotations the name of a local class can't be resolved.
        with pytest.raises(PromptError) as caught:
            tool(hidden)
        assert_sentences(caught.value)

    def test_a_generic_type_is_refused(self) -> None:
        def many(params: list[Greet], context: ToolContext) -> ToolResult[None]:
            """It does."""
            return ToolResult("")

        with pytest.raises(PromptError) as caught:
            tool(many)
        assert_sentences(caught.value)

    def test_a_plain_type_is_refused(self) -> None:
        def word(params: str, context: ToolContext) -> ToolResult[None]:
            """It does."""
            return ToolResult("")

        with pytest.raises(PromptError) as caught:
            tool(word)
        assert_sentences(caught.value)

    def test_the_context_and_the_result_may_be_imported_for_type_checkers_only(self) -> None:
        code = (
            "from __future__ import annotations\n"
            "def mine(params: Greet, context: ToolContext) -> ToolResult[None]:\n"
            "    'It does.'\n"
        )
        module: dict[str, Any] = {"Greet": Greet, "__name__": "mine"}
        exec(code, module)  # noqa: S102 - a module that lacks the two names
        assert tool(module["mine"]).params is Greet

    def test_the_name_of_the_first_parameter_does_not_matter(self) -> None:
        def odd(anything: Greet, tools: ToolContext) -> ToolResult[None]:
            """It does."""
            return ToolResult("")

        assert tool(odd).params is Greet


@dataclass(frozen=True)
class Undescribable:
    what: Callable[[], int]


def test_parameters_that_have_no_json_form_are_refused_when_the_schema_is_asked_for() -> None:
    with pytest.raises(PromptError) as caught:
        made(lambda p, c: ToolResult(""), Undescribable).input_schema  # noqa: B018
    assert_sentences(caught.value)


class TestCalling:
    def test_the_handler_gets_typed_parameters_and_the_context(self) -> None:
        seen: list[object] = []

        def handler(params: Greet, context: ToolContext) -> ToolResult[None]:
            seen.extend((params, context))
            return ToolResult("ok")

        given = ToolContext(Session(), InMemoryFilesystem(), None)
        assert call_tool(made(handler), {"name": "Ada", "times": 2}, given) == ToolResult("ok")
        assert seen == [Greet("Ada", 2), given]

    def test_the_value_becomes_the_latest_of_its_slice(self) -> None:
        given = context()
        result = call_tool(greet, {"name": "Ada"}, given)
        assert result == ToolResult("Greeted Ada.", Greeting("Hello Ada"))
        call_tool(greet, {"name": "Bob"}, given)
        assert given.session[Greeting].all() == (Greeting("Hello Ada"), Greeting("Hello Bob"))

    def test_a_struct_as_value_is_kept_too(self) -> None:
        given = context()
        call_tool(made(lambda p, c: ToolResult("", Struct("x"))), {"name": "x"}, given)
        assert given.session[Struct].all() == (Struct("x"),)

    def test_a_value_that_is_the_latest_already_is_not_kept_twice(self) -> None:
        given = context()
        kept = Greeting("x")
        given.session[Greeting].append(kept)
        call_tool(made(lambda p, c: ToolResult("", kept)), {"name": "x"}, given)
        assert given.session[Greeting].all() == (kept,)

    def test_an_equal_value_is_a_new_one(self) -> None:
        given = context()
        for _ in range(2):
            call_tool(greet, {"name": "Ada"}, given)
        assert len(given.session[Greeting]) == 2

    @pytest.mark.parametrize("value", [None, 7, "text", ["list"], {"a": 1}], ids=repr)
    def test_plain_values_are_not_kept(self, value: object) -> None:
        given = context()
        result = call_tool(made(lambda p, c: ToolResult("ok", value)), {"name": "x"}, given)
        assert result.value == value
        assert given.session.snapshot().slices == {}

    def test_the_value_of_a_failed_call_is_not_kept(self) -> None:
        given = context()
        call_tool(made(lambda p, c: ToolResult("no", Greeting("x"), success=False)), {"name": "x"}, given)
        assert given.session[Greeting].all() == ()

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ({}, "missing required field `name`"),
            ({"name": 7}, "Expected `str`, got `int` - at `$.name`"),
            ({"name": None}, "got `null`"),
            ({"name": "x", "times": "2"}, "Expected `int`, got `str` - at `$.times`"),
            ({"name": "x", "times": 1.5}, "Expected `int`"),
            ({"name": "x", "tone": "rude"}, "Invalid enum value 'rude' - at `$.tone`"),
            ([1, 2], "Invalid arguments for it: "),
            (None, "Invalid arguments for it: "),
            ("name", "Invalid arguments for it: "),
        ],
        ids=repr,
    )
    def test_arguments_that_do_not_fit_are_an_answer_to_the_model(self, arguments: Any, said: str) -> None:
        called: list[object] = []
        result = call_tool(made(lambda p, c: called.append(p)), arguments, context())
        assert result.success is False
        assert_sentences(result.message)
        assert said in result.message
        assert called == []

    def test_an_argument_that_the_tool_does_not_know_is_not_silently_dropped(self) -> None:
        result = call_tool(greet, {"name": "Ada", "tmies": 3}, context())
        assert result.success is False
        assert "tmies" in result.message

    @pytest.mark.parametrize("error", [ValueError("too cold"), SystemExit(0), KeyError("x"), RuntimeError()], ids=repr)
    def test_a_handler_that_raises_is_an_answer_to_the_model(self, error: BaseException) -> None:
        def handler(params: Greet, context: ToolContext) -> ToolResult[None]:
            raise error

        assert call_tool(made(handler), {"name": "x"}, context()) == ToolResult.error(
            f"it failed with {type(error).__name__}: {error}"
        )

    def test_a_keyboard_interrupt_goes_through(self) -> None:
        def handler(params: Greet, context: ToolContext) -> ToolResult[None]:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            call_tool(made(handler), {"name": "x"}, context())

    @pytest.mark.parametrize("answer", [None, "done", True, ("ok", None)], ids=repr)
    def test_a_handler_that_returns_something_else_is_broken(self, answer: object) -> None:
        assert call_tool(made(lambda p, c: answer), {"name": "x"}, context()) == ToolResult.error(
            f"it is broken: it returned {type(answer).__name__}, not a ToolResult."
        )

    @pytest.mark.parametrize("error", [ValueError, RuntimeError, LookupError])
    def test_parameters_that_refuse_themselves_are_an_answer_to_the_model(self, error: type[Exception]) -> None:
        @dataclass(frozen=True)
        class Picky:
            name: str

            def __post_init__(self) -> None:
                raise error("not that name")

        result = call_tool(made(lambda p, c: ToolResult("ok"), Picky), {"name": "x"}, context())
        assert result.success is False
        assert "not that name" in result.message

    def test_parameters_that_refuse_themselves_without_a_word_are_named_by_the_error(self) -> None:
        @dataclass(frozen=True)
        class Silent:
            name: str

            def __post_init__(self) -> None:
                raise LookupError

        result = call_tool(made(lambda p, c: ToolResult("ok"), Silent), {"name": "x"}, context())
        assert result == ToolResult.error("Invalid arguments for it: LookupError")


class TestResults:
    def test_a_result_is_a_success_unless_it_says_otherwise(self) -> None:
        assert ToolResult("x") == ToolResult(message="x", value=None, success=True)

    def test_an_error_has_a_message_and_no_value(self) -> None:
        assert ToolResult.error("x") == ToolResult(message="x", value=None, success=False)
