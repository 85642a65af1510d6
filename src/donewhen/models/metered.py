"""Asking a model within limits: every question is counted before it is put, and none is put twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from donewhen.foundation.disk_dict import DiskDict
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.models.answer_store import AnswerStore, question_key
from donewhen.models.roles import Closable, Completion, Model, ModelError, ReflectionRequest, RolloutRequest, Terse

Limit = Literal["calls", "tokens", "cost", "seconds", "calls_per_epoch", "tokens_per_epoch", "cost_per_epoch"]


class BudgetError(DonewhenError):
    """The next call would be more than was allowed."""

    code = "budget_exhausted"
    exit_code = ExitCode.GATE_FAILED

    def __init__(self, limit: Limit, allowed: float) -> None:
        super().__init__(f"The budget is used up: {limit.replace('_', ' ')}, {allowed:g} allowed.")
        self.limit: Limit = limit
        self.allowed = allowed


class SpendingLimits(NamedTuple):
    """Hard caps over all calls, whatever they are for."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None
    calls_per_epoch: int | None = None
    seconds: float | None = None
    tokens_per_epoch: int | None = None
    cost_per_epoch: float | None = None


@dataclass
class Meter:
    """What was spent. A call is counted before it is made, so that the last one allowed is the last one made."""

    limits: SpendingLimits = field(default_factory=SpendingLimits)
    calls: int = 0
    rollout_calls: int = 0
    reflection_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cost: float = 0.0
    reused: int = 0
    """Questions that another run had paid for."""
    errors: int = 0
    epoch_calls: int = 0
    epoch_tokens: int = 0
    epoch_cost: float = 0.0
    reserved: int = 0
    """Calls that are kept back for what comes at the end."""
    unclaimed: int = 0
    """Calls that a run had made when it was killed, and whose answers it has not come to yet."""
    elapsed: Callable[[], float] | None = None
    """How many seconds it has been at work."""
    _in_epoch: bool = False

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens

    def begin_epoch(self) -> None:
        self._reset_epoch()
        self._in_epoch = True

    def end_epoch(self) -> None:
        """What comes now belongs to no epoch."""
        self._reset_epoch()
        self._in_epoch = False

    def _reset_epoch(self) -> None:
        self.epoch_calls = self.epoch_tokens = 0
        self.epoch_cost = 0.0

    def be_in_time(self) -> None:
        """BudgetError where the time is over."""
        allowed = self.limits.seconds
        if allowed is not None and self.elapsed is not None and self.elapsed() >= allowed:
            raise BudgetError("seconds", allowed)

    def admit(self, role: str) -> None:
        """Count a call that is about to be made; BudgetError where it may not be."""
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
        """Count a call that was made before the run was killed: it was allowed then."""
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
    """A model behind a meter and, where asking costs something, behind the answers that are known.

    Under the name of a ``run``, what that run has paid for counts as paid when it goes on. Without one there is nothing
    to go on with: an answer that is known is free, whoever paid for it.
    """

    def __init__(
        self, model: Model, meter: Meter | None = None, answers: AnswerStore | None = None, run: str = ""
    ) -> None:
        self.model = model
        self.meter = meter or Meter()
        self._answers = None if model.free else answers
        self._run = run
        self._open: dict[str, asyncio.Future[Completion]] = {}
        self._met = DiskDict()
        self._counted_before = 0
        # Whoever goes on under the name of a run has what it paid for to claim, and no budget for it a second time.
        self.resume()

    def resume(self) -> None:
        """The meter was set to what is on record: what was paid for until then is not counted again."""
        self._counted_before = self.meter.calls
        if self._answers is not None and self._run:
            self.meter.unclaimed = self._answers.paid(self._run, self._counted_before)

    async def settled(self) -> None:
        """Wait for the answers that are under way: they are paid for, whether or not somebody still wants them."""
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
        """Whether reflection reads what was said for a verdict."""
        return self.model.reads_reasons if isinstance(self.model, Terse) else True

    async def aclose(self) -> None:
        """Let go of what the model holds, and of what is under way: nobody may ask through what is closed."""
        under_way = list(self._open.values())
        for one in under_way:
            one.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        if isinstance(self.model, Closable):
            await self.model.aclose()

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self._asked("rollout", request, lambda: self.model.roll(request))

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._asked("decision", request, lambda: self.model.decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._asked("ops", request, lambda: self.model.propose(request))

    async def _asked(
        self, role: str, request: RolloutRequest | ReflectionRequest, ask: Callable[[], Awaitable[Completion]]
    ) -> Completion:
        if self._answers is None:
            return (await self._counted(role, ask))[0]
        question = question_key(self.name, role, request)
        asked = self._open.get(question)
        if asked is None:
            asked = self._open[question] = asyncio.ensure_future(self._kept(role, question, self._answers, ask))
            asked.add_done_callback(lambda done: self._closed(question, done))
        # The question may be one for several; giving up one of them must not take it from the others.
        return await asyncio.shield(asked)

    def _closed(self, question: str, done: asyncio.Future[Completion]) -> None:
        self._open.pop(question, None)
        if not done.cancelled():
            # Looked at, because all who asked may have given up: then nobody else does.
            done.exception()

    async def _kept(
        self, role: str, question: str, answers: AnswerStore, ask: Callable[[], Awaitable[Completion]]
    ) -> Completion:
        kept = answers.get(question)
        if kept is None:
            completion, call = await self._counted(role, ask)
            self._meets(question)
            return answers.put(question, completion, self._run, call)
        if not self._meets(question):
            return kept.completion
        if not self._run or kept.payer != self._run:
            self.meter.reused += 1
        elif kept.call > self._counted_before:
            # What this run has paid for counts as paid: one that was killed has the budget that it had, and no more.
            self.meter.claim(role)
            self.meter.record(kept.completion)
        return kept.completion

    def _meets(self, question: str) -> bool:
        """Whether a run comes to a question for the first time; without a run, every time is the first."""
        return not self._run or self._met.first(question, "") is None

    async def _counted(self, role: str, ask: Callable[[], Awaitable[Completion]]) -> tuple[Completion, int]:
        self.meter.admit(role)
        # Now, and not when the answer is there: others are counted meanwhile.
        call = self.meter.calls
        try:
            completion = await ask()
        except ModelError:
            self.meter.errors += 1
            raise
        self.meter.record(completion)
        return completion, call
