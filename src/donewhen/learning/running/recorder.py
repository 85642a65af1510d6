"""The record of a run while it runs: what is on record is taken from it, what is not is done and written down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol

from donewhen.foundation.clock import Clock
from donewhen.foundation.errors import DonewhenError
from donewhen.learning.running.events import EventLog, EventType, RunError, RunEvent
from donewhen.learning.running.run_state import RunState
from donewhen.models.metered import BudgetError, MeteredModel

_METERED = (
    *("calls", "rollout_calls", "reflection_calls", "prompt_tokens", "completion_tokens", "cached_tokens"),
    *("cost", "reused", "errors", "epoch_calls", "epoch_tokens", "epoch_cost"),
)


class Watcher(Protocol):
    """Somebody who looks on."""

    def phase(self, name: str, total: int) -> None: ...
    def advance(self, done: int) -> None: ...
    def event(self, event: RunEvent, state: RunState) -> None: ...


class NoWatcher:
    """Looks at nothing."""

    def phase(self, name: str, total: int) -> None: ...
    def advance(self, done: int) -> None: ...
    def event(self, event: RunEvent, state: RunState) -> None: ...


class BudgetStop(Exception):  # noqa: N818 - a turn in the flow, not an error
    """The budget is used up: the whole run's, or only the epoch's."""

    def __init__(self, limit: str) -> None:
        super().__init__(limit)
        self.whole_run = not limit.endswith("_per_epoch")


class RunRecorder:
    """Between the flow and its event log. ``state`` is the fold of all events so far."""

    def __init__(self, log: EventLog, asking: MeteredModel, clock: Clock, watcher: Watcher | None = None) -> None:
        self.state = RunState()
        self.watcher: Watcher = watcher or NoWatcher()
        self._log = log
        self._asking = asking
        self._clock = clock
        self._live = False
        self._seconds_before = 0.0
        self._began = clock.monotonic()
        asking.meter.elapsed = self._seconds

    def record(self, kind: EventType, data: Mapping[str, Any]) -> RunEvent:
        """Write down what follows from what is known. On record already, it must be the same."""
        known = self._next_recorded()
        if known is None:
            self._go_live()
            return self._append(kind, data)
        fresh = RunEvent(known.number, kind, known.at, data, known.spent)
        if fresh.substance != known.substance:
            raise RunError(
                f"The run can't be resumed: event {known.number} was {known.type!r}, and now {kind!r} differs from it.",
                where=str(self._log.path),
                next_step="Tickets, settings or the version have changed; start a new run.",
            )
        self._recall(known)
        return known

    async def step(self, kind: EventType, do: Callable[[], Awaitable[Mapping[str, Any]]]) -> Mapping[str, Any]:
        """Do something that asks a model, and write down what came of it; on record already, it is not done again."""
        known = self._next_recorded()
        if known is not None:
            if known.type not in (kind, "budget_hit"):
                raise RunError(
                    f"The run can't be resumed: event {known.number} is {known.type!r} where {kind!r} belongs.",
                    where=str(self._log.path),
                    next_step="Start a new run.",
                )
            self._recall(known)
            if known.type == "budget_hit":
                raise BudgetStop(known.data["limit"])
            return known.data
        self._go_live()
        # A model that answers at once lets nobody in between, not even Ctrl-C.
        await asyncio.sleep(0)
        try:
            self._asking.meter.be_in_time()
            data = await do()
        except BudgetError as error:
            await self._asking.settled()
            self._append("budget_hit", {"limit": error.limit, "allowed": error.allowed})
            raise BudgetStop(error.limit) from None
        except DonewhenError:
            # Nothing more will be asked of the model; what it is still answering is paid for.
            await self._asking.settled()
            raise
        return self._append(kind, data).data

    def _next_recorded(self) -> RunEvent | None:
        return None if self._live else self._log.earlier()

    def _recall(self, event: RunEvent) -> None:
        """Take an event from the record; the meter shows what the run had cost by then, and nothing later."""
        for name in _METERED:
            value = event.spent.get(name, 0)
            setattr(self._asking.meter, name, value if name.endswith("cost") else int(value))
        self._taken(event)

    def _taken(self, event: RunEvent) -> None:
        self.state.apply(event)
        self.watcher.event(event, self.state)

    def _append(self, kind: EventType, data: Mapping[str, Any]) -> RunEvent:
        event = self._log.append(kind, data, self._spent())
        self._taken(event)
        return event

    def _go_live(self) -> None:
        """From here on things happen; what the run has cost so far is on the meter."""
        if self._live:
            return
        self._live = True
        self._asking.resume()
        self._seconds_before = float(self.state.spent.get("seconds", 0.0))
        self._began = self._clock.monotonic()

    def _seconds(self) -> float:
        return self._seconds_before + self._clock.monotonic() - self._began

    def _spent(self) -> dict[str, float]:
        return {**{name: getattr(self._asking.meter, name) for name in _METERED}, "seconds": round(self._seconds(), 3)}
