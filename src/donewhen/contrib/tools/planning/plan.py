"""The plan, and the reducers that change it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, cast

from donewhen.contrib.tools.planning.any_steps import (
    CLOSED,
    is_closed,
    missing_steps,
    next_step_id,
    read_steps,
    step_field,
)
from donewhen.foundation.errors import DonewhenError
from donewhen.runtime import Replace

if TYPE_CHECKING:
    from donewhen.runtime import SliceView

StepStatus = Literal["pending", "in_progress", "done", "cancelled", "removed"]
"""``cancelled``: closed after work had begun. ``removed``: closed before work had begun. Both need a reason."""
PlanStatus = Literal["active", "completed"]


class PlanError(DonewhenError):
    """An invalid change of the plan."""

    code = "plan"


@dataclass(frozen=True)
class PlanStep:
    """One step. ``reason`` says why it was cancelled or removed."""

    step_id: int
    title: str
    status: StepStatus = "pending"
    reason: str | None = None

    @property
    def closed(self) -> bool:
        return self.status in CLOSED


@dataclass(frozen=True)
class Plan:
    """An objective and the steps towards it.

    ``dropped`` holds the open steps that disappeared when the plan was set up again after work had begun.
    """

    objective: str
    status: PlanStatus = "active"
    steps: tuple[PlanStep, ...] = ()
    dropped: tuple[PlanStep, ...] = ()


@dataclass(frozen=True)
class SetupPlan:
    """Start a plan, or start over."""

    objective: str
    steps: tuple[str, ...]


@dataclass(frozen=True)
class AddSteps:
    """Append steps to the plan."""

    titles: tuple[str, ...]


@dataclass(frozen=True)
class UpdateStep:
    """Change a step's title or status."""

    step_id: int
    title: str | None = None
    status: Literal["pending", "in_progress", "done"] | None = None


@dataclass(frozen=True)
class CancelStep:
    """Close a step that will not be done, with a reason."""

    step_id: int
    reason: str


def reduce_plan(view: SliceView[Plan], event: Plan) -> Replace[Plan]:
    """Make a dispatched plan the current one, as it is; open steps that are missing from it count as dropped."""
    known = read_steps(event.dropped)
    dropped = _dropped(view.latest(), read_steps(event.steps), known)
    return Replace((event if len(dropped) == len(known) else replace(event, dropped=dropped),))


def reduce_setup(view: SliceView[Plan], event: SetupPlan) -> Replace[Plan]:
    objective = event.objective.strip()
    if not objective:
        raise PlanError("A plan needs an objective.")
    old = view.latest()
    first_id = next_step_id(_all_steps(old)) if old else 1
    steps = _numbered(event.steps, first_id)
    return _changed(Plan(objective, steps=steps, dropped=_dropped(old, steps)))


def reduce_add(view: SliceView[Plan], event: AddSteps) -> Replace[Plan]:
    plan = _current(view)
    added = _numbered(event.titles, next_step_id(_all_steps(plan)))
    dropped = missing_steps(read_steps(plan.dropped), added)
    return _changed(replace(plan, steps=(*read_steps(plan.steps), *added), dropped=dropped))


def reduce_update(view: SliceView[Plan], event: UpdateStep) -> Replace[Plan]:
    plan = _current(view)
    step = _find(plan, event.step_id)
    if event.title is None and event.status is None:
        raise PlanError("Give a new title, a new status, or both.")
    if _is_dropped(plan, step):
        raise PlanError(
            f"Step {step.step_id} ({step.title}) is no longer in the plan.",
            next_step="Add it again, or cancel it with a reason.",
        )
    title = _title(event.title) if event.title is not None else step.title
    changed = replace(step, title=title, status=event.status or step.status)
    if changed.status in ("pending", "in_progress", "done"):
        changed = replace(changed, reason=None)
    return _changed(replace(plan, steps=_put(plan.steps, changed)))


def reduce_cancel(view: SliceView[Plan], event: CancelStep) -> Replace[Plan]:
    plan = _current(view)
    step = _find(plan, event.step_id)
    reason = event.reason.strip()
    if not reason:
        raise PlanError("Cancelling a step needs a reason.", next_step="Say why the step is no longer needed.")
    if step.closed:
        raise PlanError(f"Step {step.step_id} is {step.status} already.")
    closed = replace(step, status="removed" if step.status == "pending" else "cancelled", reason=reason)
    if _is_dropped(plan, step):
        left = tuple(other for other in read_steps(plan.dropped) if step_field(other, "step_id") != step.step_id)
        return _changed(replace(plan, steps=(*read_steps(plan.steps), closed), dropped=left))
    return _changed(replace(plan, steps=_put(plan.steps, closed)))


def _changed(plan: Plan) -> Replace[Plan]:
    finished = all(is_closed(step) for step in read_steps(plan.steps)) and not plan.dropped
    return Replace((replace(plan, status="completed" if finished else "active"),))


def _current(view: SliceView[Plan]) -> Plan:
    plan = view.latest()
    if plan is None:
        raise PlanError("There is no plan yet.", next_step="Call planning_setup_plan first.")
    return plan


def _find(plan: Plan, step_id: int) -> PlanStep:
    for step in _all_steps(plan):
        if step_field(step, "step_id") == step_id:
            return _as_step(step, step_id)
    known = ", ".join(str(step_field(step, "step_id")) for step in read_steps(plan.steps))
    raise PlanError(f"There is no step {step_id}; the plan has {known or 'no steps'}.")


def _as_step(step: PlanStep, step_id: int) -> PlanStep:
    """The step of a plan that was built by hand, so that it can be changed."""
    if isinstance(step, PlanStep):
        return step
    title, status, reason = (step_field(step, name) for name in ("title", "status", "reason"))
    if not isinstance(title, str):
        raise PlanError(f"Step {step_id} has no title.", next_step="Set up the plan again.")
    known = cast("StepStatus", status) if status in ("in_progress", *CLOSED) else "pending"
    return PlanStep(step_id, title, known, reason if isinstance(reason, str) else None)


def _all_steps(plan: Plan) -> tuple[PlanStep, ...]:
    return (*read_steps(plan.steps), *read_steps(plan.dropped))


def _is_dropped(plan: Plan, step: PlanStep) -> bool:
    return step.step_id not in {step_field(other, "step_id") for other in read_steps(plan.steps)}


def _numbered(titles: tuple[str, ...], first_id: int) -> tuple[PlanStep, ...]:
    if not titles:
        raise PlanError("Give at least one step.")
    return tuple(PlanStep(first_id + index, _title(title)) for index, title in enumerate(titles))


def _title(title: str) -> str:
    if not title.strip():
        raise PlanError("A step needs a title.")
    return " ".join(title.split())


def _put(steps: tuple[PlanStep, ...], changed: PlanStep) -> tuple[PlanStep, ...]:
    return tuple(changed if step_field(step, "step_id") == changed.step_id else step for step in read_steps(steps))


def _dropped(
    old: Plan | None, steps: tuple[PlanStep, ...], accounted: tuple[PlanStep, ...] = ()
) -> tuple[PlanStep, ...]:
    """Return the steps that a new plan drops: the open steps of a plan that was begun, without a match in the new."""
    if old is None:
        return accounted
    old_steps, old_dropped = read_steps(old.steps), read_steps(old.dropped)
    if not (old_dropped or any(step_field(step, "status") != "pending" for step in old_steps)):
        return accounted
    open_steps = (*old_dropped, *(step for step in old_steps if not is_closed(step)))
    return (*accounted, *missing_steps(open_steps, (*steps, *accounted)))
