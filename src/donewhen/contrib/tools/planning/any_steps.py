"""Read the steps of a plan that somebody else has built: mappings, strings, or nothing at all.

A plan that is dispatched becomes the current one, whatever its steps are; a checker judges them. So nothing here
raises, and a step that can't be read is open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from donewhen.contrib.tools.planning.plan import PlanStep

CLOSED = ("done", "cancelled", "removed")


def read_steps(steps: Any) -> tuple[PlanStep, ...]:
    """The steps as a tuple. What is no collection of steps counts as one step that can't be read."""
    if steps is None:
        return ()
    collection = isinstance(steps, Iterable) and isinstance(steps, Sized)
    # An iterator could be read only once, and a checker must read it, too.
    single = not collection or isinstance(steps, str | bytes | Mapping | Iterator)
    return cast("tuple[PlanStep, ...]", (steps,) if single else tuple(steps))


def step_field(step: object, name: str) -> Any:
    """An attribute of a step, or the value of a key; None without it."""
    value = step.get(name) if isinstance(step, Mapping) else getattr(step, name, None)
    return value.value if isinstance(value, Enum) else value


def is_closed(step: object) -> bool:
    return step_field(step, "status") in CLOSED


def next_step_id(steps: Iterable[object]) -> int:
    """The first number above those of the steps."""
    numbers = (step_field(step, "step_id") for step in steps)
    return 1 + max((number for number in numbers if isinstance(number, int)), default=0)


def missing_steps(wanted: tuple[PlanStep, ...], there: tuple[PlanStep, ...]) -> tuple[PlanStep, ...]:
    """The steps of ``wanted`` without a match in ``there``. A match has the same title and is used once."""
    left = Counter(_identity(step) for step in there)
    missing = []
    for step in wanted:
        identity = _identity(step)
        if left[identity]:
            left[identity] -= 1
        else:
            missing.append(step)
    return tuple(missing)


def _identity(step: object) -> str | int:
    """The title, or the identity of a step without one: it matches itself alone."""
    title = step_field(step, "title")
    return " ".join(title.split()).casefold() if isinstance(title, str) else id(step)
