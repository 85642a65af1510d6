"""Plans: what holds for every plan and every sequence of changes."""

from __future__ import annotations

import enum
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from donewhen.completion import PlanBasedChecker, ReasonCode, run_check
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import AddSteps, CancelStep, Plan, PlanStep, SetupPlan, UpdateStep
from donewhen.prompt import ToolContext, call_tool
from donewhen.runtime import Session
from donewhen.testing import make_context
from donewhen_kit import examples

MODEST = settings(max_examples=examples(100), deadline=None)


@dataclass(frozen=True)
class AnyPlan:
    steps: Any
    dropped: Any = ()


@dataclass(frozen=True)
class AnyStep:
    title: Any
    status: Any
    reason: Any


class Status(enum.Enum):
    DONE = "done"
    PENDING = "pending"
    CANCELLED = "cancelled"
    ODD = 7


WORDS = st.sampled_from(["done", "pending", "in_progress", "cancelled", "removed", "Done", "", "complete"])
STATUSES = WORDS | st.sampled_from(Status) | st.none() | st.booleans() | st.integers() | st.text(max_size=5)
REASONS = st.none() | st.sampled_from(["", "  ", "because"]) | st.integers()
TITLES = st.text(max_size=8) | st.none() | st.integers()


def as_dict(step: AnyStep) -> dict[str, Any]:
    return {"title": step.title, "status": step.status, "reason": step.reason}


OBJECTS = st.builds(AnyStep, TITLES, STATUSES, REASONS)
STEPS = OBJECTS | OBJECTS.map(as_dict) | st.builds(dict, title=TITLES) | st.sampled_from([None, "done", 7])


def is_closed(step: Any) -> bool:
    """What closed means, said a second time and without haste."""
    read = step.get if isinstance(step, dict) else lambda name: getattr(step, name, None)
    status = read("status")
    status = status.value if isinstance(status, enum.Enum) else status
    if status == "done":
        return True
    reason = read("reason")
    return status in ("cancelled", "removed") and isinstance(reason, str) and bool(reason.strip())


@MODEST
@given(st.lists(STEPS, max_size=8))
def test_a_plan_is_complete_exactly_when_every_step_is_closed(steps: list[Any]) -> None:
    result = PlanBasedChecker(plan_type=AnyPlan).check(make_context(AnyPlan(tuple(steps))))
    still_open = sum(not is_closed(step) for step in steps)
    assert result.complete is (still_open == 0)
    if still_open:
        assert result.code is ReasonCode.PLAN_INCOMPLETE
        assert (result.feedback or "").startswith(f"You have {still_open} incomplete task(s) out of {len(steps)}. ")
    else:
        assert (result.feedback or "").startswith(f"All {len(steps)} task(s) in the plan are complete.")


@MODEST
@given(st.lists(STEPS, max_size=8))
def test_strictness_never_turns_an_incomplete_plan_into_a_complete_one(steps: list[Any]) -> None:
    context = make_context(AnyPlan(tuple(steps)))
    lenient = PlanBasedChecker(plan_type=AnyPlan).check(context)
    strict = PlanBasedChecker(plan_type=AnyPlan, require_plan=True, allow_empty=False, allow_shrinking=False)
    assert strict.check(context).complete is (lenient.complete and bool(steps))


@MODEST
@given(st.lists(st.text(max_size=300), min_size=1, max_size=6))
def test_the_feedback_is_one_short_plain_line_whatever_the_titles(titles: list[str]) -> None:
    steps = tuple(AnyStep(title, "pending", None) for title in titles)
    feedback = PlanBasedChecker(plan_type=AnyPlan).check(make_context(AnyPlan(steps))).feedback or ""
    assert len(feedback.splitlines()) == 1
    assert len(feedback) < 700
    assert all(character.isprintable() or character == " " for character in feedback if ord(character) < 0xA0)


@MODEST
@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=3), lambda inner: st.lists(inner) | st.sets(st.integers())
    )
)
def test_whatever_the_steps_are_the_checker_answers_and_only_closed_steps_pass(steps: Any) -> None:
    result = run_check(PlanBasedChecker(plan_type=AnyPlan, allow_empty=False), make_context(AnyPlan(steps)))
    assert result.complete is False


TITLE = st.sampled_from(["Code", "code ", "Tests", "Docs", "Release", " ", ""])
IDS = st.integers(0, 8)
CHANGES = st.one_of(
    st.builds(SetupPlan, st.sampled_from(["Ship", "", "Again"]), st.lists(TITLE, max_size=3).map(tuple)),
    st.builds(AddSteps, st.lists(TITLE, max_size=2).map(tuple)),
    st.builds(UpdateStep, IDS, st.none() | TITLE, st.none() | st.sampled_from(["pending", "in_progress", "done"])),
    st.builds(CancelStep, IDS, st.sampled_from(["", "moot"])),
)


def same(title: str) -> str:
    return " ".join(title.split()).casefold()


def open_titles(plan: Plan) -> Counter[str]:
    return Counter(same(step.title) for step in (*plan.steps, *plan.dropped) if not step.closed)


@MODEST
@given(st.lists(CHANGES, max_size=12))
def test_whatever_an_agent_does_ids_stay_unique_and_closed_means_closed(changes: list[Any]) -> None:
    session = Session()
    PlanningToolsSection(session=session)
    for change in changes:
        before = session[Plan].latest()
        result = session.dispatch(change)
        plan = session[Plan].latest()
        assert len(session[Plan]) <= 1
        if not result.ok:
            assert plan is before
        if plan is None:
            continue
        everything: tuple[PlanStep, ...] = (*plan.steps, *plan.dropped)
        assert len({step.step_id for step in everything}) == len(everything)
        assert all(step.title.strip() for step in everything)
        assert all((step.reason is not None) is (step.status in ("cancelled", "removed")) for step in everything)
        assert not any(step.closed for step in plan.dropped)
        assert (plan.status == "completed") is (all(step.closed for step in plan.steps) and not plan.dropped)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(CHANGES, max_size=12))
def test_once_work_has_begun_no_open_step_disappears_unseen(changes: list[Any]) -> None:
    session = Session()
    PlanningToolsSection(session=session)
    for change in changes:
        before = session[Plan].latest()
        session.dispatch(change)
        after = session[Plan].latest()
        begun = before is not None and (before.dropped or any(step.status != "pending" for step in before.steps))
        if not begun or isinstance(change, UpdateStep | CancelStep) or before is None or after is None:
            continue
        # Every open step of before is still open, in the plan or among the dropped ones.
        assert open_titles(before) - open_titles(after) == Counter()


@MODEST
@given(st.lists(CHANGES, max_size=8))
def test_the_strict_checker_passes_a_plan_only_when_it_is_completed(changes: list[Any]) -> None:
    session = Session()
    PlanningToolsSection(session=session)
    for change in changes:
        session.dispatch(change)
    context = make_context()
    context.session = session
    plan = session[Plan].latest()
    strict = PlanBasedChecker(plan_type=Plan, require_plan=True, allow_empty=False, allow_shrinking=False)
    assert strict.check(context).complete is (plan is not None and plan.status == "completed")


@MODEST
@given(
    st.sampled_from([tool.name for tool in PlanningToolsSection().tools]),
    st.dictionaries(
        st.sampled_from(["objective", "steps", "titles", "step_id", "title", "status", "reason", "other"]),
        st.none()
        | st.booleans()
        | st.integers(-2, 9)
        | st.text(max_size=5)
        | st.lists(st.text(max_size=5), max_size=3),
    ),
)
def test_no_arguments_of_a_model_can_crash_a_tool(name: str, arguments: dict[str, Any]) -> None:
    session = Session()
    section = PlanningToolsSection(session=session)
    session.dispatch(SetupPlan("x", ("Code", "Tests")))
    tool = next(one for one in section.tools if one.name == name)
    result = call_tool(tool, arguments, ToolContext(session))
    assert isinstance(result.message, str)
    assert result.message
    plan = session[Plan].latest()
    assert isinstance(plan, Plan)
