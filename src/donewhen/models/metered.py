"""Model calls within a budget: calls are counted before they are made, and stored answers are reused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from donewhen.foundation.binary import Binary
from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.models.answer_store import AnswerStore, question_key
from donewhen.models.roles import (
    Closable,
    Completion,
    Decode,
    Model,
    ModelError,
    ReflectionRequest,
    RolloutRequest,
    Terse,
    UnreadRule,
    distinct_decode,
    rules_in_doubt,
    unread_rules,
)

Limit = Literal["calls", "tokens", "cost", "seconds", "calls_per_epoch", "tokens_per_epoch", "cost_per_epoch"]


class BudgetError(DonewhenError):
    """The next call would exceed the budget."""

    code = "budget_exhausted"
    exit_code = ExitCode.GATE_FAILED

    def __init__(self, limit: Limit, allowed: float) -> None:
        super().__init__(f"The budget is exhausted: {limit.replace('_', ' ')}, {allowed:g} allowed.")
        self.limit: Limit = limit
        self.allowed = allowed


class SpendingLimits(NamedTuple):
    """Hard limits over all calls."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    calls_per_epoch: int | None = None
    seconds: float | None = None
    tokens_per_epoch: int | None = None
    cost_per_epoch: float | None = None


@dataclass
class Meter:
    """What was spent. A call is counted before it is made, so that the limit is never exceeded."""

    limits: SpendingLimits = field(default_factory=SpendingLimits)
    calls: int = 0
    rollout_calls: int = 0
    reflection_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    reused: int = 0
    """Questions that another run has paid for."""
    errors: int = 0
    epoch_calls: int = 0
    epoch_tokens: int = 0
    epoch_cost: float = 0.0
    reserved: int = 0
    """Calls reserved for the end of the run."""
    unclaimed: int = 0
    """Calls that an interrupted run had made and whose answers the resumed run has not used yet."""
    elapsed: Callable[[], float] | None = None
    """Returns the seconds since the start."""
    _in_epoch: bool = False

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def begin_epoch(self) -> None:
        self._reset_epoch()
        self._in_epoch = True

    def end_epoch(self) -> None:
        """Leave the epoch: later calls belong to none."""
        self._reset_epoch()
        self._in_epoch = False

    def _reset_epoch(self) -> None:
        self.epoch_calls = self.epoch_tokens = 0
        self.epoch_cost = 0.0

    def be_in_time(self) -> None:
        """Raise BudgetError if the time limit is reached."""
        allowed = self.limits.seconds
        if allowed is not None and self.elapsed is not None and self.elapsed() >= allowed:
            raise BudgetError("seconds", allowed)

    def admit(self, role: str) -> None:
        """Count a call that is about to be made; raise BudgetError if a limit forbids it."""
        limits = self.limits
        self.be_in_time()
        if limits.calls is not None and self.calls + self.unclaimed >= limits.calls - self.reserved:
            raise BudgetError("calls", limits.calls)
        if limits.tokens is not None and self.tokens >= limits.tokens:
            raise BudgetError("tokens", limits.tokens)
        if limits.cost is not None and self.cost >= limits.cost:
            raise BudgetError("cost", limits.cost)
        if self._in_epoch:
            self._admit_in_epoch()
        self._count(role)

    def _admit_in_epoch(self) -> None:
        limits = self.limits
        if limits.calls_per_epoch is not None and self.epoch_calls + self.unclaimed >= limits.calls_per_epoch:
            raise BudgetError("calls_per_epoch", limits.calls_per_epoch)
        if limits.tokens_per_epoch is not None and self.epoch_tokens >= limits.tokens_per_epoch:
            raise BudgetError("tokens_per_epoch", limits.tokens_per_epoch)
        if limits.cost_per_epoch is not None and self.epoch_cost >= limits.cost_per_epoch:
            raise BudgetError("cost_per_epoch", limits.cost_per_epoch)

    def claim(self, role: str) -> None:
        """Count a call that was made before the run was interrupted, without checking the limits again."""
        self.unclaimed -= 1
        self._count(role)

    def _count(self, role: str) -> None:
        self.calls += 1
        self.epoch_calls += 1
        if role == "rollout":
            self.rollout_calls += 1
        else:
            self.reflection_calls += 1

    def record(self, completion: Completion) -> None:
        self.prompt_tokens += completion.usage.prompt_tokens
        self.completion_tokens += completion.usage.completion_tokens
        self.cached_tokens += completion.usage.cached_tokens
        self.cost += completion.cost
        self.epoch_tokens += completion.usage.tokens
        self.epoch_cost += completion.cost


class MeteredModel:
    """A model with a meter and, unless the model is free, a store of answers.

    With a ``run``, the calls that this run paid for count again when it is resumed. Without one, every stored answer
    is free.
    """

    def __init__(
        self, model: Model, meter: Meter | None = None, answers: AnswerStore | None = None, run: str = ""
    ) -> None:
        self.model = model
        self.meter = meter or Meter()
        self._answers = None if model.free else answers
        self._run = run
        self._open: dict[str, asyncio.Future[Completion]] = {}
        self._seen = DiskDict()
        self._counted_before = 0
        # A resumed run claims the calls it has paid for; they use up its budget only once.
        self.resume()

    def resume(self) -> None:
        """Start from the meter's current count: calls up to it are not counted again."""
        self._counted_before = self.meter.calls
        if self._answers is not None and self._run:
            self.meter.unclaimed = self._answers.paid(self._run, self._counted_before)

    async def settled(self) -> None:
        """Wait for the calls in flight: they are paid for, even if the caller was cancelled."""
        while self._open:
            await asyncio.gather(*self._open.values(), return_exceptions=True)

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def free(self) -> bool:
        return self.model.free

    @property
    def reads_reasons(self) -> bool:
        """Whether reflection reads the reasons of verdicts."""
        return self.model.reads_reasons if isinstance(self.model, Terse) else True

    def same_as(self, decode: Decode) -> Decode:
        """Return what identifies a decode for the model."""
        return distinct_decode(self.model, decode)

    def unread_rules(self, rules: Mapping[str, str]) -> tuple[UnreadRule, ...]:
        """Return the rules that the model can't read."""
        return unread_rules(self.model, rules)

    def rules_in_doubt(self, request: RolloutRequest, verdict: Binary) -> tuple[str, ...]:
        """Return the keys of the unread rules that might change the verdict on a ticket."""
        return rules_in_doubt(self.model, request, verdict)

    async def aclose(self) -> None:
        """Cancel the calls in flight and close the model."""
        in_flight = list(self._open.values())
        for call in in_flight:
            call.cancel()
        await asyncio.gather(*in_flight, return_exceptions=True)
        if isinstance(self.model, Closable):
            await self.model.aclose()

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self._ask("rollout", request, lambda: self.model.roll(request))

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._ask("decision", request, lambda: self.model.decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._ask("ops", request, lambda: self.model.propose(request))

    async def _ask(
        self, role: str, request: RolloutRequest | ReflectionRequest, ask: Callable[[], Awaitable[Completion]]
    ) -> Completion:
        if self._answers is None:
            return (await self._call_model(role, ask))[0]
        question = question_key(self.name, role, request)
        pending = self._open.get(question)
        if pending is None:
            pending = self._open[question] = asyncio.ensure_future(
                self._ask_or_reuse(role, question, self._answers, ask)
            )
            pending.add_done_callback(lambda done: self._forget(question, done))
        # Several callers may wait for the same question: cancelling one must not cancel the others.
        return await asyncio.shield(pending)

    def _forget(self, question: str, done: asyncio.Future[Completion]) -> None:
        self._open.pop(question, None)
        if not done.cancelled():
            # Retrieve the exception: if all callers were cancelled, nothing else does.
            done.exception()

    async def _ask_or_reuse(
        self, role: str, question: str, answers: AnswerStore, ask: Callable[[], Awaitable[Completion]]
    ) -> Completion:
        stored = answers.get(question)
        if stored is None:
            completion, call = await self._call_model(role, ask)
            self._is_first_use(question)
            return answers.put(question, completion, self._run, call)
        if not self._is_first_use(question):
            return stored.completion
        if not self._run or stored.payer != self._run:
            self.meter.reused += 1
        elif stored.call > self._counted_before:
            # This run paid for it before it was interrupted: count it against the same budget.
            self.meter.claim(role)
            self.meter.record(stored.completion)
        return stored.completion

    def _is_first_use(self, question: str) -> bool:
        """Whether this run asks a question for the first time; always true without a run."""
        return not self._run or self._seen.first(question, "") is None

    async def _call_model(self, role: str, ask: Callable[[], Awaitable[Completion]]) -> tuple[Completion, int]:
        self.meter.admit(role)
        # Read it now: other calls are counted while this one waits.
        call = self.meter.calls
        try:
            completion = await ask()
        except ModelError:
            self.meter.errors += 1
            raise
        self.meter.record(completion)
        return completion, call
