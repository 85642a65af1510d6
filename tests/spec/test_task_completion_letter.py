"""Programs that were written for the specification run here, and unfinished work never passes for want of state.

These tests build sessions, plans and checkers the way such programs do: they call `_initialize_session` on the class,
dispatch plans as values, and dispatch before anything is installed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import FrozenInstanceError, dataclass, replace
from importlib import import_module

import pytest

from donewhen.adapters.scripted.model import ScriptExhaustedError
from donewhen.completion import PlanBasedChecker, TaskCompletionContext, TaskCompletionResult
from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import AddSteps, CancelStep, Plan, PlanStep, SetupPlan, UpdateStep
from donewhen.dataclasses import FrozenDataclass
from donewhen.prompt import MarkdownSection, Prompt, PromptTemplate, ToolContext, ToolResult, tool
from donewhen.runtime import InProcessDispatcher, Replace, Session, SliceView
from donewhen.testing import Script, ScriptedAdapter, call, say

OPEN = Plan(
    objective="Ship it",
    status="active",
    steps=(PlanStep(step_id=1, title="Code", status="done"), PlanStep(step_id=2, title="Tests", status="pending")),
)
DONE = replace(OPEN, status="completed", steps=tuple(replace(step, status="done") for step in OPEN.steps))


def check(session: Session, plan_type: type = Plan) -> TaskCompletionResult:
    return PlanBasedChecker(plan_type=plan_type).check(TaskCompletionContext(session=session))


def installed() -> Session:
    session = Session(dispatcher=InProcessDispatcher())
    PlanningToolsSection._initialize_session(session)
    return session


# The planning section


def test_the_section_prepares_a_session_without_an_instance() -> None:
    session = installed()
    assert Plan in session
    assert check(session) == TaskCompletionResult.ok("No plan has been created.")
    assert session.dispatch(SetupPlan("x", ("a",))).ok
    assert check(session).complete is False


def test_preparing_a_session_twice_changes_nothing() -> None:
    session = installed()
    PlanningToolsSection._initialize_session(session)
    PlanningToolsSection(session=session)
    assert session.dispatch(OPEN).handled == 1
    assert session[Plan].all() == (OPEN,)


# A dispatched value is state


@pytest.mark.parametrize(("plan", "complete"), [(OPEN, False), (DONE, True), (Plan("x", "active", ()), True)])
def test_a_dispatched_plan_is_the_plan(plan: Plan, complete: bool) -> None:
    session = installed()
    assert session.dispatch(plan).ok
    assert session[Plan].latest() == plan
    assert check(session).complete is complete


def test_the_newest_dispatched_plan_counts() -> None:
    session = installed()
    session.dispatch(DONE)
    session.dispatch(OPEN)
    assert session[Plan].all() == (OPEN,)
    result = check(session)
    assert result.complete is False
    assert "1 incomplete task(s) out of 2" in (result.feedback or "")
    assert (result.feedback or "").endswith("output: Tests")


def test_a_dispatched_plan_can_be_worked_on_with_the_tools() -> None:
    session = installed()
    session.dispatch(OPEN)
    assert session.dispatch(AddSteps(("Docs",))).ok
    assert session.dispatch(UpdateStep(2, status="done")).ok
    assert check(session).complete is False
    assert session.dispatch(UpdateStep(3, status="done")).ok
    assert check(session).complete is True


def test_open_steps_that_a_dispatched_plan_leaves_out_are_remembered() -> None:
    session = installed()
    session.dispatch(OPEN)
    session.dispatch(replace(DONE, steps=DONE.steps[:1]))
    assert "dropped: Tests" in (check(session).feedback or "")
    strict = PlanBasedChecker(plan_type=Plan, allow_shrinking=False)
    assert strict.check(TaskCompletionContext(session=session)).complete is False


WAYS: dict[str, Callable[[Session, Plan], object]] = {
    "dispatch": lambda session, plan: session.dispatch(plan),
    "seed": lambda session, plan: session[Plan].seed(plan),
    "seed with a list": lambda session, plan: session[Plan].seed([DONE, plan]),
    "append": lambda session, plan: session[Plan].append(plan),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize("when", ["never", "before", "after"])
def test_an_unfinished_plan_is_seen_whichever_way_and_whenever_it_came(
    way: Callable[[Session, Plan], object], when: str
) -> None:
    session = Session()
    if when == "before":
        PlanningToolsSection._initialize_session(session)
    way(session, OPEN)
    if when == "after":
        PlanningToolsSection(session=session)
    assert check(session).complete is False
    way(session, DONE)
    assert check(session).complete is True


@dataclass(frozen=True)
class Checklist:
    steps: tuple[PlanStep, ...]


@dataclass(frozen=True)
class DatedPlan(Plan):
    due: str = "2026-12-01"


def test_a_plan_of_your_own_type_needs_no_reducer() -> None:
    session = Session()
    session.dispatch(Checklist((PlanStep(1, "Sweep"),)))
    assert check(session, Checklist).complete is False
    session[Checklist].seed(())
    assert session.dispatch(Checklist((PlanStep(1, "Sweep"),))).ok
    assert check(session, Checklist).complete is False


def test_a_plan_of_a_subclass_is_a_plan() -> None:
    session = installed()
    assert session.dispatch(DatedPlan("x", steps=OPEN.steps)).ok
    assert check(session).complete is False


@dataclass(frozen=True, init=False)
class FixedPlan(Plan):
    """A plan that can't be copied with changes."""

    def __init__(self, *steps: object) -> None:
        object.__setattr__(self, "objective", "x")
        object.__setattr__(self, "steps", steps)
        object.__setattr__(self, "dropped", ())


STRICT = PlanBasedChecker(plan_type=Plan, require_plan=True, allow_empty=False, allow_shrinking=False)
ODD_STEPS = {
    "open dict": ({"step_id": 2, "title": "open", "status": "pending"},),
    "dict without a status": ({"title": "open"},),
    "string": ("open",),
    "None inside": (None,),
    "object": (object(),),
    "None": None,
    "a string": "open",
    "a generator": (step for step in OPEN.steps),
    "an object": object(),
    "a list": [{"title": "open", "status": "in_progress"}],
}


def odd(steps: object) -> Plan:
    return Plan("x", steps=steps)  # type: ignore[arg-type]


@pytest.mark.parametrize("steps", ODD_STEPS.values(), ids=ODD_STEPS.keys())
@pytest.mark.parametrize("before", [DONE, OPEN, odd(({"title": "x", "status": "done"},)), FixedPlan(*DONE.steps)])
def test_a_plan_with_steps_of_another_kind_is_not_lost(before: Plan, steps: object) -> None:
    session = installed()
    session.dispatch(before)
    assert session.dispatch(odd(steps)).ok
    context = TaskCompletionContext(session=session)
    assert STRICT.check(context).complete is False
    assert check(session).complete is False
    assert session.dispatch(AddSteps(("More",))).ok
    assert check(session).complete is False


@pytest.mark.parametrize("steps", ODD_STEPS.values(), ids=ODD_STEPS.keys())
def test_an_open_plan_is_seen_whatever_was_there_before(steps: object) -> None:
    session = installed()
    assert session.dispatch(odd(steps)).ok
    assert session.dispatch(OPEN).ok
    assert check(session).complete is False
    session = installed()
    assert session.dispatch(odd(({"step_id": 1, "title": "x", "status": "done"},))).ok
    assert STRICT.check(TaskCompletionContext(session=session)).complete is True
    assert session.dispatch(Plan("o", steps=(PlanStep(2, "open"),))).ok
    assert STRICT.check(TaskCompletionContext(session=session)).code == "plan_incomplete"


def test_steps_that_are_dicts_can_be_worked_on_with_the_tools() -> None:
    session = installed()
    session.dispatch(odd(({"step_id": 1, "title": "a", "status": "pending"}, {"step_id": 2, "title": "b"})))
    assert session.dispatch(UpdateStep(1, status="done")).ok
    assert session.dispatch(CancelStep(2, "not needed")).ok
    assert STRICT.check(TaskCompletionContext(session=session)).complete is True


def test_a_plan_that_its_reducer_can_not_take_leaves_no_old_answer() -> None:
    session = installed()
    session.dispatch(OPEN)
    session.dispatch(replace(DONE, steps=DONE.steps[:1]))  # "Tests" is dropped
    failed = session.dispatch(FixedPlan(*DONE.steps[:1]))
    assert len(failed.errors) == 1
    assert check(session).code == "gate_error"
    kept = session.snapshot()
    assert session.dispatch(DONE).ok
    assert check(session).complete is True
    session.restore(kept)
    assert check(session).code == "gate_error"


@dataclass(frozen=True)
class Rename:
    title: str


def rename(view: SliceView[Plan], event: Rename) -> Replace[Plan]:
    plan = view.latest()
    if not event.title:
        raise ValueError("no title")
    return Replace((replace(plan or Plan("x"), objective=event.title),))


WRITES: dict[str, Callable[[Session], object]] = {
    "the same event": lambda session: session.dispatch(Rename("x")),
    "a plan": lambda session: session.dispatch(DONE),
    "append": lambda session: session[Plan].append(DONE),
    "seed": lambda session: session[Plan].seed(DONE),
    "clear": lambda session: session[Plan].clear(),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES.keys())
def test_after_a_failed_change_the_old_plan_does_not_answer(write: Callable[[Session], object]) -> None:
    session = installed()
    session[Plan].register(Rename, rename)
    session.dispatch(DONE)
    assert session.dispatch(Rename("")).ok is False
    result = check(session)
    assert (result.complete, result.code) == (False, "gate_error")
    assert "ValueError: no title" in (result.feedback or "")
    session.dispatch(UpdateStep(1, title="Code it"))
    session[Plan].clear(lambda plan: False)
    assert check(session).complete is False
    write(session)
    assert session[Plan].failure is None
    assert check(session).complete is True


def test_a_command_that_the_planning_tools_refuse_leaves_the_plan_as_it_is() -> None:
    session = installed()
    session.dispatch(DONE)
    assert session.dispatch(UpdateStep(9, status="done")).ok is False
    assert session[Plan].failure is None
    assert check(session).complete is True


@pytest.mark.parametrize("when", ["never", "section", "class"])
@pytest.mark.parametrize("plan_type", [Plan, DatedPlan])
def test_a_plan_of_a_subclass_that_came_too_early_is_seen(plan_type: type, when: str) -> None:
    session = Session(bus=InProcessDispatcher())
    session.dispatch(DONE)
    session.dispatch(DatedPlan("x", steps=OPEN.steps))
    if when == "section":
        PlanningToolsSection(session=session)
    elif when == "class":
        PlanningToolsSection._initialize_session(session)
    assert check(session, plan_type).code == "plan_incomplete"
    assert session[Plan].all() == (DONE, DatedPlan("x", steps=OPEN.steps))
    session.restore(session.snapshot())
    assert check(session, plan_type).code == "plan_incomplete"
    session.dispatch(DONE)
    assert check(session).complete is True


def test_a_snapshot_of_what_came_too_early_is_restored_into_a_prepared_session() -> None:
    early, session = Session(), installed()
    early.dispatch(DatedPlan("x", steps=OPEN.steps))
    session.restore(early.snapshot())
    assert check(session).code == "plan_incomplete"


def test_a_plan_of_a_subclass_that_a_tool_returned_is_seen_without_the_section() -> None:
    session = Session()
    session[DatedPlan].append(DatedPlan("x", steps=OPEN.steps))
    assert check(session).code == "plan_incomplete"


@FrozenDataclass()
class SuiteRun:
    failed: int


def test_every_dispatched_result_can_be_read_by_a_checker() -> None:
    session = Session()
    session[SuiteRun].seed(())
    assert [session.dispatch(SuiteRun(number)).ok for number in (2, 0)] == [True, True]
    assert session[SuiteRun].all() == (SuiteRun(2), SuiteRun(0))


# A dispatch that nobody takes


@pytest.mark.parametrize("event", [SetupPlan("x", ("a",)), OPEN, "a string"])
def test_a_dispatch_that_nobody_takes_is_not_ok(event: object) -> None:
    for result in (Session().dispatch(event), InProcessDispatcher().dispatch(event)):
        assert (result.handled, result.errors, result.ok) == (0, (), False)


def test_a_handler_takes_an_event_and_the_session_still_knows_the_plan() -> None:
    bus = InProcessDispatcher()
    seen: list[Plan] = []
    bus.subscribe(Plan, seen.append)
    session = Session(bus=bus)
    assert session.dispatch(OPEN).ok
    assert seen == [OPEN]
    assert check(session).complete is False


# What tools return


@dataclass(frozen=True)
class Title:
    title: str


@tool
def add_task(params: Title, context: ToolContext) -> ToolResult[Plan]:
    """Add a task to the plan."""
    plan = context.session[Plan].latest() or Plan("Tasks")
    step = PlanStep(len(plan.steps) + 1, params.title)
    return ToolResult("Added.", replace(plan, steps=(*plan.steps, step)))


def test_a_plan_that_a_tool_returns_is_the_plan_with_and_without_the_section() -> None:
    for sections in ((), (PlanningToolsSection(),)):
        session = Session()
        own = MarkdownSection(title="Task", key="task", template="Work.", tools=[add_task])
        template = PromptTemplate[None](ns="spec", key="letter", sections=[own, *sections])
        script = Script(call("add_task", title="Code"), call("add_task", title="Tests"), say("Done!"))
        adapter = ScriptedAdapter(script, task_completion_checker=PlanBasedChecker(plan_type=Plan))
        with pytest.raises(ScriptExhaustedError):  # the agent was not allowed to stop
            adapter.evaluate(Prompt(template), session=session)
        result = check(session)
        assert result.complete is False
        assert (result.feedback or "").endswith("output: Code, Tests")


# Names


def test_an_immutable_dataclass_can_be_declared_as_in_the_text() -> None:
    run = SuiteRun(failed=1)
    assert run == SuiteRun(1)
    with pytest.raises(FrozenInstanceError):
        run.failed = 0  # type: ignore[misc]
    with pytest.raises(TypeError):
        FrozenDataclass(frozen=False)

    @FrozenDataclass(kw_only=True, slots=True)
    class Narrow:
        size: int = 1

    assert Narrow(size=2) == replace(Narrow(), size=2)
    assert not hasattr(Narrow(), "__dict__")

    @FrozenDataclass
    class Bare:
        size: int = 1

    assert Bare(size=2) == replace(Bare(), size=2)
    with pytest.raises(FrozenInstanceError):
        Bare().size = 0  # type: ignore[misc]
    with pytest.raises(TypeError):
        FrozenDataclass(True)  # type: ignore[arg-type]


NAMED = {
    "donewhen.adapters": ("ProviderAdapter",),
    "donewhen.adapters.claude_agent_sdk": (
        "ClaudeAgentSDKAdapter",
        "ClaudeAgentSDKClientConfig",
        "CompositeChecker",
        "PlanBasedChecker",
        "TaskCompletionChecker",
        "TaskCompletionContext",
        "TaskCompletionResult",
    ),
    "donewhen.completion": ("FileExistsChecker", "LLMJudgeChecker"),
    "donewhen.contrib.tools": ("InMemoryFilesystem", "PlanningToolsSection"),
    "donewhen.contrib.tools.planning": ("Plan", "PlanStep", "PlanningToolsSection"),
    "donewhen.dataclasses": ("FrozenDataclass",),
    "donewhen.filesystem": ("Filesystem", "InMemoryFilesystem"),
    "donewhen.prompt": ("Prompt", "PromptTemplate"),
    "donewhen.runtime": ("InProcessDispatcher", "Session"),
    "donewhen.runtime.events": ("InProcessDispatcher",),
    "donewhen.runtime.session": ("Session",),
}


@pytest.mark.parametrize("module", NAMED)
def test_every_name_of_the_text_can_be_imported_from_the_room_with_its_name(module: str) -> None:
    for name in NAMED[module]:
        assert getattr(import_module(module), name).__name__ == name
