"""The plan, and the reducers that change it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

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
        return self.status in ("done", "cancelled", "removed")


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


def reduce_setup(view: SliceView[Plan], event: SetupPlan) -> Replace[Plan]:
    objective = event.objective.strip()
    if not objective:
        raise PlanError("A plan needs an objective.")
    old = view.latest()
    first_id = 1 + max((step.step_id for step in (*old.steps, *old.dropped)), default=0) if old else 1
    steps = _numbered(event.steps, first_id)
    dropped: tuple[PlanStep, ...] = ()
    if old is not None and (old.dropped or any(step.status != "pending" for step in old.steps)):
        dropped = _missing((*old.dropped, *(step for step in old.steps if not step.closed)), steps)
    return _changed(Plan(objective, steps=steps, dropped=dropped))


def reduce_add(view: SliceView[Plan], event: AddSteps) -> Replace[Plan]:
    plan = _current(view)
    first_id = 1 + max((step.step_id for step in (*plan.steps, *plan.dropped)), default=0)
    added = _numbered(event.titles, first_id)
    return _changed(replace(plan, steps=(*plan.steps, *added), dropped=_missing(plan.dropped, added)))


def reduce_update(view: SliceView[Plan], event: UpdateStep) -> Replace[Plan]:
    plan = _current(view)
    step = _find(plan, event.step_id)
    if event.title is None and event.status is None:
        raise PlanError("Give a new title, a new status, or both.")
    if step in plan.dropped:
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
    if step in plan.dropped:
        return _changed(
            replace(
                plan,
                steps=(*plan.steps, closed),
                dropped=tuple(other for other in plan.dropped if other.step_id != step.step_id),
            )
        )
    return _changed(replace(plan, steps=_put(plan.steps, closed)))


def _changed(plan: Plan) -> Replace[Plan]:
    finished = all(step.closed for step in plan.steps) and not plan.dropped
    return Replace((replace(plan, status="completed" if finished else "active"),))


def _current(view: SliceView[Plan]) -> Plan:
    plan = view.latest()
    if plan is None:
        raise PlanError("There is no plan yet.", next_step="Call planning_setup_plan first.")
    return plan


def _find(plan: Plan, step_id: int) -> PlanStep:
    for step in (*plan.steps, *plan.dropped):
        if step.step_id == step_id:
            return step
    known = ", ".join(str(step.step_id) for step in plan.steps)
    raise PlanError(f"There is no step {step_id}; the plan has {known or 'no steps'}.")


def _numbered(titles: tuple[str, ...], first_id: int) -> tuple[PlanStep, ...]:
    if not titles:
        raise PlanError("Give at least one step.")
    return tuple(PlanStep(first_id + index, _title(title)) for index, title in enumerate(titles))


def _title(title: str) -> str:
    if not title.strip():
        raise PlanError("A step needs a title.")
    return " ".join(title.split())


def _put(steps: tuple[PlanStep, ...], changed: PlanStep) -> tuple[PlanStep, ...]:
    return tuple(changed if step.step_id == changed.step_id else step for step in steps)


def _missing(wanted: tuple[PlanStep, ...], there: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """Return the steps of ``wanted`` without a match in ``there``. A match has the same title and is used once."""
    left = Counter(_same(step.title) for step in there)
    missing = []
    for step in wanted:
        title = _same(step.title)
        if left[title]:
            left[title] -= 1
        else:
            missing.append(step)
    return tuple(missing)


def _same(title: str) -> str:
    return " ".join(title.split()).casefold()
