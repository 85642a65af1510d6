"""Sections and prompts: text, placeholders, headings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from donewhen.prompt import MarkdownSection, Prompt, PromptError, PromptTemplate, Section
from donewhen.runtime import Session
from sentences import assert_sentences


@dataclass(frozen=True)
class Params:
    name: str
    topic: object = "bees"


@dataclass(frozen=True)
class More:
    name: str


def markdown(template: str, key: str = "text") -> MarkdownSection:
    return MarkdownSection(title="Text", key=key, template=template)


class TestMarkdown:
    def test_placeholders_are_filled_from_the_bound_dataclasses(self) -> None:
        section = markdown("Dear ${name}, about $topic: $$5.")
        assert section.body([Params("Ada")]) == "Dear Ada, about bees: $5."

    def test_values_of_any_type_are_shown_as_text(self) -> None:
        assert markdown("${topic}").body([Params("x", 7)]) == "7"

    def test_a_value_is_not_read_as_a_template(self) -> None:
        assert markdown("${name}").body([Params("${topic} $x $")]) == "${topic} $x $"

    def test_a_later_field_of_the_same_name_wins(self) -> None:
        assert markdown("${name}").body([Params("first"), More("second")]) == "second"
        assert markdown("${name}").body([More("second"), Params("first")]) == "first"

    def test_white_space_around_the_text_goes(self) -> None:
        assert markdown("\n  text \n\n").body([]) == "text"

    def test_missing_values_are_named(self) -> None:
        with pytest.raises(PromptError) as caught:
            markdown("${age} ${name} ${size} ${age}").body([Params("x")])
        assert_sentences(caught.value)

    @pytest.mark.parametrize("template", ["5 $", "${", "${}", "$1", "${a b}", "a $ b", "${a-b}"])
    def test_a_dollar_that_starts_no_placeholder_is_refused_at_once(self, template: str) -> None:
        with pytest.raises(PromptError) as it:
            markdown(template)
        assert_sentences(it.value)
        assert str(it.value).endswith(" Write '$$'.")

    def test_a_text_without_placeholders_needs_nothing(self) -> None:
        assert markdown("plain").body(()) == "plain"

    @pytest.mark.parametrize("params", [{"name": "x"}, "x", None, Params, 7], ids=repr)
    def test_only_dataclass_instances_can_be_bound(self, params: object) -> None:
        with pytest.raises(PromptError) as caught:
            markdown("${name}").body([params])
        assert_sentences(caught.value)


class TestKeys:
    @pytest.mark.parametrize("key", ["a", "9", "a-b_c.d", "x" * 64])
    def test_these_are_keys(self, key: str) -> None:
        assert markdown("x", key).key == key

    @pytest.mark.parametrize("key", ["", "A", "a b", "-a", ".a", "_a", "ä", "x" * 65, "a\n", "a/b"], ids=repr)
    def test_these_are_not(self, key: str) -> None:
        with pytest.raises(PromptError) as caught:
            markdown("x", key)
        assert_sentences(caught.value)


class TestSection:
    def test_a_section_of_ones_own_needs_a_text(self) -> None:
        class Silent(Section):
            pass

        with pytest.raises(PromptError) as caught:
            Silent(title="T", key="t").body([])
        assert_sentences(caught.value)

    def test_installing_does_nothing_unless_overridden(self) -> None:
        session = Session()
        markdown("x").install(session)
        assert session.snapshot().slices == {}

    def test_tools_and_children_are_kept_as_tuples(self) -> None:
        child = markdown("x", "child")
        section = Section(title="T", key="t", children=[child])
        assert section.children == (child,)
        assert section.tools == ()


class Counting(Section):
    """A section that counts how often it was installed."""

    installed = 0

    def body(self, params: Sequence[object]) -> str:
        return f"{len(params)} bound"

    def install(self, session: Session) -> None:
        self.installed += 1


def nested() -> PromptTemplate[None]:
    def section(title: str, *children: Section) -> MarkdownSection:
        return MarkdownSection(title=title, key=title.lower(), template=f"Text {title}.", children=children)

    return PromptTemplate[None](
        ns="demo", key="nested", sections=[section("A", section("B", section("C")), section("D")), section("E")]
    )


class TestPrompt:
    def test_every_section_gets_a_numbered_heading_by_its_depth(self) -> None:
        assert Prompt(nested()).render().text == (
            "## 1. A\n\nText A.\n\n### 1.1. B\n\nText B.\n\n#### 1.1.1. C\n\nText C.\n\n"
            "### 1.2. D\n\nText D.\n\n## 2. E\n\nText E."
        )

    def test_headings_go_no_deeper_than_six(self) -> None:
        section: Section = markdown("x", "k7")
        for number in range(6, -1, -1):
            section = MarkdownSection(title="T", key=f"k{number}", template="x", children=[section])
        lines = Prompt(PromptTemplate[None](ns="a", key="b", sections=[section])).render().text.split("\n")
        marks = [line.split(" ")[0] for line in lines if line.startswith("#")]
        assert [len(mark) for mark in marks] == [2, 3, 4, 5, 6, 6, 6, 6]

    def test_an_empty_prompt_is_an_empty_text(self) -> None:
        rendered = Prompt(PromptTemplate[None](ns="a", key="b")).render()
        assert (rendered.text, rendered.tools, rendered.output) == ("", (), None)

    def test_binding_makes_a_new_prompt_with_more_values(self) -> None:
        template = PromptTemplate[None](ns="a", key="b", sections=[markdown("${name} on ${topic}")])
        first = Prompt(template)
        second = first.bind(Params("Ada"))
        third = second.bind(More("Bob"))
        assert first.params == ()
        assert second.render().text == "## 1. Text\n\nAda on bees"
        assert third.render().text == "## 1. Text\n\nBob on bees"
        assert Prompt(template, Params("Eve")).render().text.endswith("Eve on bees")
        with pytest.raises(PromptError) as caught:
            first.render()
        assert_sentences(caught.value)

    def test_a_prompt_has_the_name_of_its_template(self) -> None:
        prompt = Prompt(nested())
        assert prompt.name == "demo:nested"
        assert repr(prompt) == "<Prompt demo:nested>"
        assert prompt.render().name == "demo:nested"

    def test_installing_reaches_every_section(self) -> None:
        inner = Counting(title="Inner", key="inner")
        outer = Counting(title="Outer", key="outer", children=[inner])
        prompt = Prompt(PromptTemplate[None](ns="a", key="b", sections=[outer]))
        prompt.install(Session())
        assert (outer.installed, inner.installed) == (1, 1)

    def test_a_section_sees_what_was_bound(self) -> None:
        template = PromptTemplate[None](ns="a", key="b", sections=[Counting(title="T", key="t")])
        assert Prompt(template).bind(Params("x"), More("y")).render().text == "## 1. T\n\n2 bound"
