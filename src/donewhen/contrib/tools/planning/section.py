"""The prompt section with the planning tools."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from donewhen.contrib.tools.planning.any_steps import read_steps, step_field
from donewhen.contrib.tools.planning.plan import (
    AddSteps,
    CancelStep,
    Plan,
    SetupPlan,
    UpdateStep,
    reduce_add,
    reduce_cancel,
    reduce_plan,
    reduce_setup,
    reduce_update,
)
from donewhen.prompt import Section, Tool, ToolContext, ToolResult

if TYPE_CHECKING:
    from donewhen.runtime import Session

_MARKS = {"done": "x", "in_progress": "~", "cancelled": "-", "removed": "-"}

_GUIDE = """\
Keep a plan of your work in this session:

- `planning_setup_plan` starts it: an objective and the steps towards it.
- `planning_add_steps` adds steps that you discover later.
- `planning_update_step` sets a step to `in_progress` when you begin it and to `done` when it really is.
- `planning_cancel_step` closes a step that is no longer needed; say why. Don't start a new plan to get rid of steps.
- `planning_read_plan` shows the current plan.

You may stop when every step is done, or cancelled with a reason."""


@dataclass(frozen=True)
class ReadPlan:
    """No parameters."""


class PlanningToolsSection(Section):
    """Tools to set up, extend, update, shorten (with reasons) and read a :class:`Plan` kept in the session."""

    def __init__(self, *, session: Session | None = None, title: str = "Plan", key: str = "planning-tools") -> None:
        super().__init__(title=title, key=key, tools=_TOOLS)
        if session is not None:
            self.install(session)

    def body(self, params: Sequence[object]) -> str:
        return _GUIDE

    def install(self, session: Session) -> None:
        self._initialize_session(session)

    @staticmethod
    def _initialize_session(session: Session) -> None:
        """Register the plan's reducers. Tests of other programs call this on the class."""
        plans = session[Plan]
        plans.register(Plan, reduce_plan)
        plans.register(SetupPlan, reduce_setup)
        plans.register(AddSteps, reduce_add)
        plans.register(UpdateStep, reduce_update)
        plans.register(CancelStep, reduce_cancel)


def _change(event: object, context: ToolContext) -> ToolResult[Plan]:
    result = context.session.dispatch(event)
    if result.errors:
        return ToolResult.error(" ".join(str(failure.error) for failure in result.errors))
    plan = context.session[Plan].latest()
    if plan is None or not result.handled:
        return ToolResult.error("This session has no planning tools installed.")
    return ToolResult(_shown(plan), plan)


def _read(params: ReadPlan, context: ToolContext) -> ToolResult[Plan]:
    plan = context.session[Plan].latest()
    return ToolResult("There is no plan yet.") if plan is None else ToolResult(_shown(plan), plan)


def _shown(plan: Plan) -> str:
    lines = [f"{plan.objective} ({plan.status})"]
    for step in read_steps(plan.steps):
        status, reason = step_field(step, "status"), step_field(step, "reason")
        note = f" ({status}: {reason})" if reason else ""
        lines.append(f"[{_MARKS.get(str(status), ' ')}] {_numbered_title(step)}{note}")
    if plan.dropped:
        gone = ", ".join(map(_numbered_title, read_steps(plan.dropped)))
        lines.append(f"Dropped after work began; add again, or cancel with a reason: {gone}")
    return "\n".join(lines)


def _numbered_title(step: object) -> str:
    title = step_field(step, "title")
    return f"{step_field(step, 'step_id')}. {title}" if title is not None else "a step that can't be read"


_TOOLS = (
    Tool("planning_setup_plan", "Start a plan: the objective and the titles of its steps.", SetupPlan, _change),
    Tool("planning_add_steps", "Add steps to the end of the plan, by title.", AddSteps, _change),
    Tool(
        "planning_update_step",
        "Change a step's title, or its status as the work proceeds.",
        UpdateStep,
        _change,
    ),
    Tool("planning_cancel_step", "Close a step that is no longer needed, with the reason.", CancelStep, _change),
    Tool("planning_read_plan", "Show the plan as it is now.", ReadPlan, _read),
)
