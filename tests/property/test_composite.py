"""Checkers made of checkers: what holds for every tree of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from donewhen.completion import (
    AtLeast,
    CompositeChecker,
    Not,
    ReasonCode,
    TaskCompletionContext,
    TaskCompletionResult,
    run_check,
)
from donewhen.testing import make_context
from donewhen_kit import examples

MODEST = settings(max_examples=examples(150), deadline=None)

Answer = Literal["pass", "fail", "broken"]


class Leaf:
    """One check; a broken one answers in one of the ways in which a check can be broken."""

    def __init__(self, answer: Answer, number: int = 0) -> None:
        self.answer = answer
        self.number = number

    def check(self, context: TaskCompletionContext) -> Any:
        if self.answer == "pass":
            return TaskCompletionResult.ok("yes")
        if self.answer == "fail":
            return TaskCompletionResult.incomplete("no")
        match self.number % 4:
            case 0:
                raise ValueError("broken")
            case 1:
                raise SystemExit(0)
            case 2:
                return True
            case _:
                return TaskCompletionResult.incomplete("too slow", code=ReasonCode.COMMAND_TIMEOUT)


@dataclass(frozen=True)
class Tree:
    """A description of a checker, from which it can be built with other answers at the leaves."""

    kind: Literal["leaf", "all", "collect", "any", "not", "at least"]
    children: tuple[Tree, ...] = ()
    number: int = 0

    def leaves(self) -> int:
        return 1 if self.kind == "leaf" else sum(child.leaves() for child in self.children)


def build(tree: Tree, answers: Sequence[Answer]) -> Any:
    waiting = iter(enumerate(answers))

    def make(one: Tree) -> Any:
        if one.kind == "leaf":
            number, answer = next(waiting)
            return Leaf(answer, number)
        members = [make(child) for child in one.children]
        match one.kind:
            case "all":
                return CompositeChecker(members)
            case "collect":
                return CompositeChecker(members, collect_all=True)
            case "any":
                return CompositeChecker(members, all_must_pass=False)
            case "not":
                return Not(members[0])
            case _:
                return AtLeast(1 + one.number % len(members), members)

    return make(tree)


def value(tree: Tree, answers: Sequence[bool]) -> bool:
    """What plain logic says, when every check could be made."""
    waiting = iter(answers)

    def of(one: Tree) -> bool:
        if one.kind == "leaf":
            return next(waiting)
        members = [of(child) for child in one.children]
        match one.kind:
            case "all" | "collect":
                return all(members)
            case "any":
                return any(members)
            case "not":
                return not members[0]
            case _:
                return sum(members) >= 1 + one.number % len(members)

    return of(tree)


def grown(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    members = st.lists(inner, min_size=1, max_size=4).map(tuple)
    return st.one_of(
        st.builds(Tree, st.sampled_from(["all", "collect", "any"]), members),
        st.builds(Tree, st.just("not"), inner.map(lambda one: (one,))),
        st.builds(Tree, st.just("at least"), members, st.integers(0, 3)),
    )


TREES = st.recursive(st.just(Tree("leaf")), grown, max_leaves=8)


@st.composite
def answered(draw: st.DrawFn, answers: Sequence[Answer]) -> tuple[Tree, list[Answer]]:
    tree = draw(TREES)
    count = tree.leaves()
    return tree, draw(st.lists(st.sampled_from(answers), min_size=count, max_size=count))


@MODEST
@given(answered(("pass", "fail")))
def test_when_every_check_can_be_made_a_tree_follows_plain_logic(case: tuple[Tree, list[Answer]]) -> None:
    tree, answers = case
    result = build(tree, answers).check(make_context())
    assert result.complete is value(tree, [answer == "pass" for answer in answers])


@MODEST
@given(answered(("pass", "fail", "broken")), st.data())
def test_a_broken_check_never_makes_a_pass_that_it_would_not_make_when_mended(
    case: tuple[Tree, list[Answer]], data: st.DataObject
) -> None:
    tree, answers = case
    if not run_check(build(tree, answers), make_context()).complete:
        return
    # Whatever the broken checks would have said, the tree must still pass.
    mended = [
        answer == "pass" if answer != "broken" else data.draw(st.booleans(), label="mended") for answer in answers
    ]
    assert value(tree, mended) is True


@MODEST
@given(answered(("pass", "fail", "broken")))
def test_a_failed_tree_always_says_why(case: tuple[Tree, list[Answer]]) -> None:
    tree, answers = case
    result = run_check(build(tree, answers), make_context())
    assert isinstance(result, TaskCompletionResult)
    assert result.complete or result.feedback


@MODEST
@given(answered(("pass", "fail", "broken")))
def test_denying_twice_never_passes_more_than_not_denying(case: tuple[Tree, list[Answer]]) -> None:
    tree, answers = case
    once = run_check(build(tree, answers), make_context())
    twice = run_check(Not(Not(build(tree, answers))), make_context())
    assert twice.complete is once.complete


@MODEST
@given(answered(("pass", "fail", "broken")))
def test_a_check_and_its_denial_never_both_pass(case: tuple[Tree, list[Answer]]) -> None:
    tree, answers = case
    yes = run_check(build(tree, answers), make_context()).complete
    denied = run_check(Not(build(tree, answers)), make_context()).complete
    assert not (yes and denied)


@MODEST
@given(st.lists(st.tuples(st.booleans(), st.sampled_from([None, "", "A.", "B."])), max_size=6), st.booleans())
def test_the_feedback_of_a_composite_is_that_of_its_members(
    members: list[tuple[bool, str | None]], all_must_pass: bool
) -> None:
    class Says:
        def __init__(self, complete: bool, feedback: str | None) -> None:
            self.result = TaskCompletionResult(complete=complete, feedback=feedback)

        def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
            return self.result

    checkers = [Says(*member) for member in members]
    result = CompositeChecker(checkers, all_must_pass).check(make_context())
    decisive = [checker.result for checker in checkers if checker.result.complete is not all_must_pass]
    if not members:
        assert result == TaskCompletionResult.ok("No checkers configured.")
    elif decisive:
        assert result is decisive[0]
    else:
        nothing_said = "All checks passed." if all_must_pass else "No checks passed."
        assert result.feedback == (" ".join(feedback for _, feedback in members if feedback) or nothing_said)
