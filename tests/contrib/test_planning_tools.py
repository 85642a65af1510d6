"""The planning tools as an agent calls them."""

from __future__ import annotations

import sys
import threading
from typing import Any

import pytest

from donewhen.contrib.tools import PlanningToolsSection
from donewhen.contrib.tools.planning import Plan, PlanStep, SetupPlan, UpdateStep
from donewhen.prompt import Prompt, PromptTemplate, ToolContext, ToolResult, call_tool
from donewhen.runtime import InProcessDispatcher, Session
from sentences import assert_sentences

HANG_GUARD = 300.0


class Agent:
    """Calls the tools by name, as a model does."""

    def __init__(self, session: Session | None = None, *, install: bool = True) -> None:
        self.session = session or Session()
        self.section = PlanningToolsSection(session=self.session if install else None)
        self.tools = {tool.name: tool for tool in self.section.tools}

    def call(self, name: str, **arguments: Any) -> ToolResult[Any]:
        return call_tool(self.tools[f"planning_{name}"], arguments, ToolContext(self.session))

    @property
    def plan(self) -> Plan:
        plan = self.session[Plan].latest()
        assert plan is not None
        return plan


@pytest.fixture
def agent() -> Agent:
    return Agent()


@pytest.fixture
def planned(agent: Agent) -> Agent:
    agent.call("setup_plan", objective="Ship it", steps=["Code", "Tests"])
    return agent


class TestTools:
    def test_there_are_five_each_with_a_description_and_a_schema(self, agent: Agent) -> None:
        assert list(agent.tools) == [
            "planning_setup_plan",
            "planning_add_steps",
            "planning_update_step",
            "planning_cancel_step",
            "planning_read_plan",
        ]
        for tool in agent.tools.values():
            assert tool.description.endswith(".")
            assert tool.input_schema["type"] == "object"

    def test_the_schemas_name_the_parameters(self, agent: Agent) -> None:
        properties = {name: set(tool.input_schema["properties"]) for name, tool in agent.tools.items()}
        assert properties == {
            "planning_setup_plan": {"objective", "steps"},
            "planning_add_steps": {"titles"},
            "planning_update_step": {"step_id", "title", "status"},
            "planning_cancel_step": {"step_id", "reason"},
            "planning_read_plan": set(),
        }
        update = agent.tools["planning_update_step"].input_schema["properties"]["status"]
        offered = next(one["enum"] for one in (update, *update.get("anyOf", ())) if "enum" in one)
        assert set(offered) - {None} == {"pending", "in_progress", "done"}

    def test_setting_up_shows_the_plan(self, agent: Agent) -> None:
        result = agent.call("setup_plan", objective="Ship it", steps=["Code", "Tests"])
        assert result.success is True
        assert result.message == "Ship it (active)\n[ ] 1. Code\n[ ] 2. Tests"
        assert agent.plan == Plan("Ship it", steps=(PlanStep(1, "Code"), PlanStep(2, "Tests")))

    def test_adding_updating_and_cancelling_show_the_plan(self, planned: Agent) -> None:
        assert planned.call("add_steps", titles=["Docs"]).message.endswith("[ ] 3. Docs")
        assert "[~] 1. Code" in planned.call("update_step", step_id=1, status="in_progress").message
        assert "[x] 1. Code" in planned.call("update_step", step_id=1, status="done").message
        assert "[ ] 2. Unit tests" in planned.call("update_step", step_id=2, title="Unit tests").message
        assert (
            "[-] 3. Docs (removed: none needed)" in planned.call("cancel_step", step_id=3, reason="none needed").message
        )
        planned.call("update_step", step_id=2, status="in_progress")
        assert (
            "[-] 2. Unit tests (cancelled: too hard)"
            in planned.call("cancel_step", step_id=2, reason="too hard").message
        )
        assert planned.call("read_plan").message == (
            "Ship it (completed)\n[x] 1. Code\n[-] 2. Unit tests (cancelled: too hard)\n"
            "[-] 3. Docs (removed: none needed)"
        )

    def test_dropped_steps_are_shown_with_what_to_do_about_them(self, planned: Agent) -> None:
        planned.call("add_steps", titles=["Docs"])
        planned.call("update_step", step_id=1, status="done")
        message = planned.call("setup_plan", objective="Less", steps=["Release"]).message
        assert_sentences(message)

    def test_reading_without_a_plan_says_so(self, agent: Agent) -> None:
        result = agent.call("read_plan")
        assert_sentences(result.message)
        assert agent.session[Plan].all() == ()

    def test_reading_changes_nothing(self, planned: Agent) -> None:
        before = planned.session.snapshot()
        for _ in range(3):
            assert planned.call("read_plan").success is True
        assert planned.session.snapshot().slices == before.slices

    def test_the_slice_holds_one_plan_however_many_calls_there_were(self, planned: Agent) -> None:
        for number in range(5):
            planned.call("add_steps", titles=[f"More {number}"])
        assert len(planned.session[Plan]) == 1


class TestErrors:
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("setup_plan", {"objective": " ", "steps": ["a"]}),
            ("setup_plan", {"objective": "x", "steps": []}),
            ("setup_plan", {"objective": "x", "steps": [""]}),
            ("add_steps", {"titles": []}),
            ("add_steps", {"titles": [" "]}),
            ("update_step", {"step_id": 1}),
            ("update_step", {"step_id": 9, "status": "done"}),
            ("update_step", {"step_id": 1, "title": ""}),
            ("cancel_step", {"step_id": 9, "reason": "x"}),
            ("cancel_step", {"step_id": 1, "reason": " "}),
        ],
        ids=lambda value: value if isinstance(value, str) else repr(value),
    )
    def test_every_mistake_has_its_message_and_changes_nothing(
        self, planned: Agent, name: str, arguments: dict[str, Any]
    ) -> None:
        before = planned.plan
        result = planned.call(name, **arguments)
        assert not result.success
        assert_sentences(result.message)
        assert planned.plan is before

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("setup_plan", {}),
            ("setup_plan", {"objective": "x", "steps": "Code"}),
            ("setup_plan", {"objective": "x", "steps": [1]}),
            ("add_steps", {"titles": "Code"}),
            ("update_step", {"step_id": "1", "status": "done"}),
            ("update_step", {"step_id": 1, "status": "cancelled"}),
            ("update_step", {"step_id": 1, "status": "removed"}),
            ("update_step", {"step_id": 1, "status": "Done"}),
            ("update_step", {"status": "done"}),
            ("cancel_step", {"step_id": 1}),
            ("cancel_step", {"step_id": 1, "reason": None}),
        ],
        ids=repr,
    )
    def test_arguments_of_the_wrong_type_are_refused(
        self, planned: Agent, name: str, arguments: dict[str, Any]
    ) -> None:
        before = planned.plan
        result = planned.call(name, **arguments)
        assert result.success is False
        assert_sentences(result.message)
        assert planned.plan is before

    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("add_steps", {"titles": ["a"]}),
            ("update_step", {"step_id": 1, "status": "done"}),
            ("cancel_step", {"step_id": 1, "reason": "x"}),
        ],
    )
    def test_without_a_plan_the_way_to_one_is_told(self, agent: Agent, name: str, arguments: dict[str, Any]) -> None:
        result = agent.call(name, **arguments)
        assert not result.success
        assert "planning_setup_plan" in result.message
        assert_sentences(result.message)

    def test_a_closed_and_a_dropped_step_are_told_apart(self, planned: Agent) -> None:
        planned.call("update_step", step_id=1, status="done")
        assert_sentences(planned.call("cancel_step", step_id=1, reason="x").message)
        planned.call("setup_plan", objective="Less", steps=["Release"])
        assert_sentences(planned.call("update_step", step_id=2, status="done").message)

    def test_a_session_without_the_tools_says_so(self) -> None:
        agent = Agent(install=False)
        result = agent.call("setup_plan", objective="x", steps=["a"])
        assert not result.success
        assert_sentences(result.message)

    def test_a_change_that_nobody_takes_is_not_called_a_success(self) -> None:
        agent = Agent(install=False)
        agent.session[Plan].seed(Plan("Seeded", steps=(PlanStep(1, "Code"),)))
        assert agent.call("update_step", step_id=1, status="done").success is False
        assert agent.plan.steps[0].status == "pending"


class TestInstalling:
    def test_a_section_installed_many_times_has_its_effect_once(self) -> None:
        session = Session(bus=InProcessDispatcher())
        section = PlanningToolsSection(session=session)
        section.install(session)
        section._initialize_session(session)
        PlanningToolsSection(session=session)
        assert session.dispatch(SetupPlan("x", ("a",))).handled == 1
        plan = session[Plan].latest()
        assert plan is not None
        assert [step.step_id for step in plan.steps] == [1]

    def test_users_tests_may_install_it_by_its_old_name(self) -> None:
        session = Session()
        PlanningToolsSection()._initialize_session(session)
        assert session.dispatch(SetupPlan("x", ("a",))).ok
        assert session[Plan].latest() is not None

    def test_without_a_session_nothing_is_installed_until_the_run(self) -> None:
        session = Session()
        section = PlanningToolsSection()
        assert Plan not in session
        Prompt(PromptTemplate[None](ns="a", key="b", sections=[section])).install(session)
        assert Plan in session
        assert session[Plan].latest() is None

    def test_one_section_can_serve_several_sessions(self) -> None:
        section = PlanningToolsSection()
        one, two = Session(), Session()
        for session in (one, two):
            section.install(session)
        one.dispatch(SetupPlan("x", ("a",)))
        assert two[Plan].latest() is None

    def test_title_and_key_can_be_set_and_the_text_explains_the_tools(self) -> None:
        section = PlanningToolsSection(title="Your plan", key="my-plan")
        text = Prompt(PromptTemplate[None](ns="a", key="b", sections=[section])).render().text
        assert text.startswith("## 1. Your plan\n\nKeep a plan of your work")
        for tool in section.tools:
            assert f"`{tool.name}`" in text
        assert PlanningToolsSection().key == "planning-tools"
        assert PlanningToolsSection().title == "Plan"


class TestThreads:
    """Agent runtimes call tools in parallel."""

    def test_no_update_is_lost_when_tools_are_called_by_several_threads(self) -> None:
        agent = Agent()
        threads, each = 4, 25
        agent.call("setup_plan", objective="x", steps=[f"s{number}" for number in range(threads * each)])
        start = threading.Barrier(threads)

        def work(first: int) -> None:
            start.wait(HANG_GUARD)
            for step_id in range(first, first + each):
                agent.call("update_step", step_id=step_id, status="done")
                agent.call("read_plan")

        interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            workers = [threading.Thread(target=work, args=(1 + number * each,)) for number in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join(HANG_GUARD)
        finally:
            sys.setswitchinterval(interval)
        assert [step.step_id for step in agent.plan.steps if step.status != "done"] == []

    def test_reading_a_plan_does_not_undo_a_change_made_meanwhile(self) -> None:
        """The same without luck: the change comes exactly between the reading and the end of the call."""

        class Interrupted(Session):
            """A session in which another thread gets its turn after the plan was looked up for the first time."""

            lookups = 0

            def __getitem__(self, slice_type: type[Any]) -> Any:
                if slice_type is Plan:
                    self.lookups += 1
                    if self.lookups == 2:
                        other = threading.Thread(target=self.dispatch, args=(UpdateStep(1, status="done"),))
                        other.start()
                        other.join(HANG_GUARD)
                return super().__getitem__(slice_type)

        session = Interrupted()
        agent = Agent(session)
        session.dispatch(SetupPlan("x", ("Code",)))
        session.lookups = 0
        agent.call("read_plan")
        if session.lookups < 2:
            session.dispatch(UpdateStep(1, status="done"))
        plan = Session.__getitem__(session, Plan).latest()
        assert plan is not None
        assert plan.steps[0].status == "done"
