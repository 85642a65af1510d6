"""Record the events of a run; in a resumed run, replay the recorded steps instead of executing them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from donewhen.foundation.clock import Clock
from donewhen.foundation.errors import DonewhenError
from donewhen.learning.running.event_content import BudgetHit
from donewhen.learning.running.events import EventLog, EventType, RunError, RunEvent
from donewhen.learning.running.run_state import RunState
from donewhen.models.metered import BudgetError, MeteredModel

_METER_FIELDS = (
    *("calls", "rollout_calls", "reflection_calls", "prompt_tokens", "completion_tokens", "cached_tokens"),
    *("cost", "reused", "errors", "epoch_calls", "epoch_tokens", "epoch_cost"),
)


class Watcher(Protocol):
    """Receives the progress of a run."""

    def phase(self, name: str, total: int) -> None: ...
    def advance(self, done: int) -> None: ...
    def event(self, event: RunEvent, state: RunState) -> None: ...


class NoWatcher:
    """Ignores the progress of a run."""

    def phase(self, name: str, total: int) -> None: ...
    def advance(self, done: int) -> None: ...
    def event(self, event: RunEvent, state: RunState) -> None: ...


class BudgetStop(Exception):  # noqa: N818 - control flow, not an error
    """The budget of the run or of the epoch is used up."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.whole_run = not limit.endswith("_per_epoch")


class RunRecorder:
    """Writes and replays the event log of a run. ``state`` is the fold of all events so far."""

    def __init__(self, log: EventLog, metered: MeteredModel, clock: Clock, watcher: Watcher | None = None) -> None:
        self.state = RunState()
        self.watcher: Watcher = watcher or NoWatcher()
        self._log = log
        self._metered = metered
        self._clock = clock
        self._live = False
        self._seconds_before = 0.0
        self._began = clock.monotonic()
        metered.meter.elapsed = self._seconds

    def record(self, kind: EventType, data: Mapping[str, Any]) -> RunEvent:
        """Append an event that follows from earlier ones; raise RunError if a recorded event differs."""
        known = self._next_recorded()
        if known is None:
            self._go_live()
            return self._append(kind, data)
        fresh = RunEvent(known.number, kind, known.at, data, known.spent)
        if fresh.substance != known.substance:
            raise RunError(
                f"The run can't be resumed: the recorded event {known.number} ({known.type!r}) differs from the new "
                f"{kind!r} event.",
                where=str(self._log.path),
                next_step="Tickets, settings or the version have changed; start a new run.",
            )
        self._replay(known)
        return known

    async def step(self, kind: EventType, do: Callable[[], Awaitable[Mapping[str, Any]]]) -> RunEvent:
        """Run a step that calls a model and append its result as an event; a recorded step is not run again."""
        known = self._next_recorded()
        if known is not None:
            if known.type not in (kind, "budget_hit"):
                raise RunError(
                    f"The run can't be resumed: event {known.number} is {known.type!r}, expected {kind!r}.",
                    where=str(self._log.path),
                    next_step="Start a new run.",
                )
            self._replay(known)
            if known.type == "budget_hit":
                raise BudgetStop(known.read_as(BudgetHit).limit)
            return known
        self._go_live()
        # A model that answers without awaiting would block the event loop, including Ctrl-C.
        await asyncio.sleep(0)
        try:
            self._metered.meter.be_in_time()
            data = await do()
        except BudgetError as error:
            await self._metered.settled()
            self._append("budget_hit", {"limit": error.limit, "allowed": error.allowed})
            raise BudgetStop(error.limit) from None
        except DonewhenError:
            # No more calls will follow; wait for those in flight, because they cost money.
            await self._metered.settled()
            raise
        return self._append(kind, data)

    def _next_recorded(self) -> RunEvent | None:
        return None if self._live else self._log.earlier()

    def _replay(self, event: RunEvent) -> None:
        """Replay a recorded event, and set the meter to the cost at that event."""
        for name in _METER_FIELDS:
            value = event.spent.get(name, 0)
            setattr(self._metered.meter, name, value if name.endswith("cost") else int(value))
        self._apply(event)

    def _apply(self, event: RunEvent) -> None:
        self.state.apply(event)
        self.watcher.event(event, self.state)

    def _append(self, kind: EventType, data: Mapping[str, Any]) -> RunEvent:
        event = self._log.append(kind, data, self._spent())
        self._apply(event)
        return event

    def _go_live(self) -> None:
        """Switch from replaying to executing; the meter continues with the recorded cost."""
        if self._live:
            return
        self._live = True
        self._metered.resume()
        self._seconds_before = float(self.state.spent.get("seconds", 0.0))
        self._began = self._clock.monotonic()

    def _seconds(self) -> float:
        return self._seconds_before + self._clock.monotonic() - self._began

    def _spent(self) -> dict[str, float]:
        return {
            **{name: getattr(self._metered.meter, name) for name in _METER_FIELDS},
            "seconds": round(self._seconds(), 3),
        }
