"""A checker that requires every step of the plan to be closed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sized
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from donewhen.completion.checking import gate_error
from donewhen.foundation.plain_text import one_line
from donewhen.protocols import ReasonCode, TaskCompletionContext, TaskCompletionResult

if TYPE_CHECKING:
    from donewhen.runtime import DispatchError, Session

_SHOWN = 3
_CLOSED_WITH_REASON = ("cancelled", "removed")
_OPEN = ("pending", "in_progress")
_MISSING = object()


@dataclass(frozen=True)
class PlanBasedChecker:
    """Complete when every step of the session's latest plan is done, or cancelled with a reason.

    ``plan_type`` is the plan's class: :class:`donewhen.contrib.tools.planning.Plan`, or one of your own whose
    ``steps`` have a ``status`` and a ``title`` (attributes or dict keys). Without it the checker is a no-op.

    By default a session without a plan, and a plan without steps, count as complete. The strict variants are
    better where a plan is part of the job: ``require_plan=True`` wants one, ``allow_empty=False`` wants steps
    in it, ``allow_shrinking=False`` wants every step that was dropped after work had begun back or accounted for.
    """

    plan_type: type[Any] | None = None
    require_plan: bool = False
    allow_empty: bool = True
    allow_shrinking: bool = True

    def __post_init__(self) -> None:
        if self.plan_type is None:
            if self.require_plan or not self.allow_empty or not self.allow_shrinking:
                raise ValueError("a strict PlanBasedChecker needs plan_type: without it, nothing is checked")
        elif not isinstance(self.plan_type, type):
            raise TypeError(f"plan_type must be a class, not {self.plan_type!r}")

    def check(self, context: TaskCompletionContext) -> TaskCompletionResult:
        if self.plan_type is None:
            return TaskCompletionResult.ok("No planning tools available.")
        plan, failure = _latest_plan(context.session, self.plan_type)
        if failure is not None:
            return gate_error(self, f"found a plan that is out of date, because a change failed: {failure}")
        if plan is None:
            if self.require_plan:
                return TaskCompletionResult.incomplete(
                    "No plan has been created. Set up a plan for the task, then work through its steps.",
                    code=ReasonCode.PLAN_MISSING,
                )
            return TaskCompletionResult.ok("No plan has been created.")
        steps = _steps_or_problem(_field(plan, "steps"))
        if isinstance(steps, str):
            return gate_error(self, steps)
        dropped = _dropped_titles(plan)
        if dropped is None:
            if not self.allow_shrinking:
                return gate_error(self, "found dropped steps that it can't read; keep them in a tuple")
            dropped = ()
        return self._result_for(_Tally(steps), dropped)

    def _result_for(self, tally: _Tally, dropped: tuple[str, ...]) -> TaskCompletionResult:
        if tally.open_titles:
            return TaskCompletionResult.incomplete(
                f"You have {len(tally.open_titles)} incomplete task(s) out of {tally.total}. Please either complete "
                "all remaining tasks or update the plan to remove tasks that are no longer needed before "
                f"producing output: {_join_titles(tally.open_titles)}{tally.remarks()}",
                code=ReasonCode.PLAN_INCOMPLETE,
            )
        if not tally.total and not self.allow_empty:
            return TaskCompletionResult.incomplete(
                "The plan has no steps. Add the steps that the task needs, then work through them.",
                code=ReasonCode.PLAN_EMPTY,
            )
        if dropped and not self.allow_shrinking:
            return TaskCompletionResult.incomplete(
                f"The plan shrank after work began; {len(dropped)} open task(s) were dropped. Please add them again, "
                f"or cancel each with a reason: {_join_titles(dropped)}",
                code=ReasonCode.PLAN_SHRUNK,
            )
        shrunk = f" The plan shrank after work began; dropped: {_join_titles(dropped)}." if dropped else ""
        return TaskCompletionResult.ok(
            f"All {tally.total} task(s) in the plan are complete.{tally.cancellations()}{shrunk}"
        )


def _latest_plan(session: Session, plan_type: type[Any]) -> tuple[Any, DispatchError | None]:
    """Return the newest plan, and the failure of a change to it that was not made good.

    A plan of a subclass may be in the slice of its base class.
    """
    plans = session[plan_type]
    if plans.latest() is None:
        plans = session[session.home(plan_type)]
    return plans.latest(), plans.failure


class _Tally:
    """The steps of a plan, sorted into done, cancelled and open."""

    def __init__(self, steps: tuple[object, ...]) -> None:
        self.total = len(steps)
        self.open_titles: list[str] = []
        self._cancelled: list[str] = []
        self._remarks: list[str] = []
        for step in _possibly_open(steps):
            self._classify(step)

    def _classify(self, step: object) -> None:
        status = _field(step, "status")
        status = status.value if isinstance(status, Enum) else status
        if status == "done":
            return
        title = _title(step)
        if status in _CLOSED_WITH_REASON:
            reason = _field(step, "reason")
            if isinstance(reason, str) and reason.strip():
                self._cancelled.append(f"{title} ({one_line(reason, 80)})")
                return
            self._remarks.append(f"{title} is {status} without a reason")
        elif status is _MISSING:
            self._remarks.append(f"{title} has no status")
        elif status not in _OPEN:
            self._remarks.append(f"{title} has the unknown status {one_line(repr(status), 40)}")
        self.open_titles.append(title)

    def remarks(self) -> str:
        return f"\nNote: {'; '.join(self._remarks[:_SHOWN])}." if self._remarks else ""

    def cancellations(self) -> str:
        return f" {len(self._cancelled)} cancelled: {_join_titles(self._cancelled)}." if self._cancelled else ""


def _possibly_open(steps: tuple[Any, ...]) -> tuple[object, ...] | list[object]:
    """Return the steps that are not clearly done; in the usual case this costs one plain loop."""
    try:
        return [step for step in steps if step.status != "done"]
    except AttributeError:
        return steps


def _field(thing: object, name: str) -> object:
    if isinstance(thing, Mapping):
        return thing.get(name, _MISSING)
    return getattr(thing, name, _MISSING)


def _title(step: object) -> str:
    title = _field(step, "title")
    return one_line(title, 120) if isinstance(title, str) and title.strip() else "a step without a title"


def _join_titles(titles: list[str] | tuple[str, ...]) -> str:
    return ", ".join(titles[:_SHOWN]) + ("..." if len(titles) > _SHOWN else "")


def _dropped_titles(plan: object) -> tuple[str, ...] | None:
    """Return the titles of the dropped steps; None if they can't be read."""
    dropped = _field(plan, "dropped")
    if dropped is _MISSING or not dropped:
        return ()
    return tuple(_title(step) for step in dropped) if isinstance(dropped, tuple | list) else None


def _steps_or_problem(steps: object) -> tuple[object, ...] | str:
    """Return the steps, or a message that says why they can't be used."""
    if steps is _MISSING:
        return "found a plan that has no steps attribute"
    if isinstance(steps, tuple | list):
        return tuple(steps)
    once = "found steps that can be read only once (a generator); keep them in a tuple"
    if isinstance(steps, Iterator):
        return once
    if isinstance(steps, str | bytes | Mapping) or not isinstance(steps, Iterable) or not isinstance(steps, Sized):
        return f"found steps of type {type(steps).__name__}; keep them in a tuple"
    first, second = tuple(steps), tuple(steps)
    return first if len(first) == len(second) == len(steps) else once
