"""The judge: takes a ticket, returns a verdict, under fixed guidance."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator

from donewhen.foundation.binary import Binary
from donewhen.foundation.coroutines import is_loop_running, run_awaitable
from donewhen.foundation.errors import UsageError
from donewhen.judging.answer import JudgeAnswer, MalformedAnswer, read_answer
from donewhen.judging.guidance import Guidance
from donewhen.judging.mission import Mission
from donewhen.judging.mission_overrides import apply_overrides
from donewhen.judging.prompt_rendering import rollout_prompt, shared_prompt_part
from donewhen.judging.ticket import Ticket
from donewhen.judging.verdict import Verdict, verdict_of
from donewhen.judging.vote import count_votes
from donewhen.models.roles import (
    AnswerForm,
    Closable,
    Decode,
    ModelError,
    Roller,
    RolloutRequest,
    distinct_decode,
    rules_in_doubt,
    unread_rules,
)

HELD = 4
"""Tickets held in memory, as a multiple of the concurrency."""


class Judge:
    """Judges tickets of a mission. Keeps no state between tickets.

    ``requests`` and ``verdict`` can also be used alone, if the caller runs the model. With ``reasons=False`` a model
    whose reasons are only for readers may omit them.
    """

    def __init__(self, mission: Mission, guidance: Guidance, model: Roller, *, reasons: bool = True) -> None:
        self.mission = mission
        self.guidance = guidance
        self.model = model
        self._shared = shared_prompt_part(guidance, mission.language)
        self._rules = guidance.rules
        self._decodes = mission.decodes
        self._reasons = reasons
        self._prompt = mission.language.hashes["rollout"]
        self.unread = unread_rules(model, self._rules)
        """The rules that the model can't read: a verdict that they might change needs a person."""

    def judge(self, ticket: Ticket) -> Verdict:
        """Judge one ticket. Inside a running event loop use ``judged`` instead."""
        _raise_if_loop_running("await judge.judged(ticket)")
        return run_awaitable(self._judge_and_close(ticket))

    def judge_all(self, tickets: Iterable[Ticket]) -> Iterator[Verdict]:
        """Judge tickets as they come, with bounded memory.

        Inside a running event loop use ``stream`` instead.
        """
        _raise_if_loop_running("async for verdict in judge.stream(tickets)")
        with asyncio.Runner() as runner:
            stream = self.stream(tickets)

            async def next_verdict() -> Verdict | None:
                return await anext(stream, None)

            try:
                while (verdict := runner.run(next_verdict())) is not None:
                    yield verdict
            finally:
                runner.run(stream.aclose())
                runner.run(self._close_model())

    async def _judge_and_close(self, ticket: Ticket) -> Verdict:
        try:
            return await self.judged(ticket)
        finally:
            await self._close_model()

    async def _close_model(self) -> None:
        """Close the model's connections, because the event loop that they belong to ends."""
        if isinstance(self.model, Closable):
            await self.model.aclose()

    async def judged(self, ticket: Ticket) -> Verdict:
        """Judge one ticket: one vote for each decode. Decodes that ask the model the same question share an answer."""
        known: dict[Decode, JudgeAnswer | MalformedAnswer] = {}
        answers = []
        for request in self.requests(ticket):
            question = distinct_decode(self.model, request.decode)
            if question not in known:
                known[question] = await self._request_answer(request)
            answers.append(known[question])
        return self.verdict(ticket, answers)

    async def stream(self, tickets: Iterable[Ticket]) -> AsyncGenerator[Verdict, None]:
        """Yield verdicts in the order of the tickets, judged concurrently as the mission's settings say.

        A slow ticket delays the verdicts behind it, but not the work: others are judged meanwhile, until ``HELD`` times
        the concurrency is held.
        """
        at_once = self.mission.settings.concurrency
        slots = asyncio.Semaphore(at_once)
        waiting: deque[asyncio.Task[Verdict]] = deque()
        failed: list[asyncio.Task[Verdict]] = []

        def on_done(task: asyncio.Task[Verdict]) -> None:
            slots.release()
            if not task.cancelled() and task.exception() is not None:
                failed.append(task)

        try:
            await slots.acquire()
            for ticket in tickets:
                task = asyncio.ensure_future(self.judged(ticket))
                task.add_done_callback(on_done)
                waiting.append(task)
                # Wait before the next ticket is read: its producer may need a verdict first.
                await slots.acquire()
                while waiting and (waiting[0].done() or len(waiting) >= HELD * at_once):
                    yield await waiting.popleft()
                if failed:
                    # Yield the verdicts before the failed ticket, but start nothing new.
                    break
            while waiting:
                yield await waiting.popleft()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def requests(self, ticket: Ticket) -> tuple[RolloutRequest, ...]:
        """The model requests for a ticket. None of them contains the label."""
        prompt = rollout_prompt(self._shared, ticket.evidence)
        words = self.mission.language.answer
        form = AnswerForm(words.verdict, words.reason, words.pass_, words.fail)
        return tuple(
            RolloutRequest(
                prompt, self._rules, ticket.evidence, decode, self.mission.language.name, form, self._reasons
            )
            for decode in self._decodes
        )

    def verdict(self, ticket: Ticket, answers: Iterable[JudgeAnswer | MalformedAnswer]) -> Verdict:
        """The verdict that follows from the answers to a ticket."""
        parsed = tuple(answers)
        vote = count_votes(parsed)
        final, by = apply_overrides(ticket, vote, self.mission.overrides)
        agreement = self.mission.settings.manual_review.min_verdict_agreement
        rows = tuple(map(_answer_row, parsed))
        unread = self._rules_in_doubt(ticket, final)
        return verdict_of(
            ticket, vote, final, by, agreement, self.guidance.step, rows, self._prompt, unread_rules=unread
        )

    def _rules_in_doubt(self, ticket: Ticket, final: Binary | None) -> tuple[str, ...]:
        """The keys of the rules that the model can't read and that might change a verdict."""
        if final is None or not self.unread:
            return ()
        keys = {key for request in self.requests(ticket) for key in rules_in_doubt(self.model, request, final)}
        return tuple(rule.key for rule in self.unread if rule.key in keys)

    async def _request_answer(self, request: RolloutRequest) -> JudgeAnswer | MalformedAnswer:
        try:
            completion = await self.model.roll(request)
        except ModelError as error:
            # A failed rollout is data, not a crash. The caller of the model accounts for its cost.
            return MalformedAnswer("no_answer", str(error))
        words = self.mission.language.answer
        answer = read_answer(completion.text, words, complete=completion.finish_reason == "stop")
        return answer._replace(margin=completion.margin) if isinstance(answer, JudgeAnswer) else answer


def calls_per_ticket(mission: Mission, model: Roller) -> int:
    """How often a model is asked about each ticket."""
    return len({distinct_decode(model, decode) for decode in mission.decodes})


def _raise_if_loop_running(instead: str) -> None:
    """Raise UsageError inside a running event loop, as in a notebook: asyncio loops can't be nested."""
    if is_loop_running():
        raise UsageError("An event loop is already running.", next_step=f"Use: {instead}")


def _answer_row(answer: JudgeAnswer | MalformedAnswer) -> tuple[str, str]:
    return (answer.verdict, answer.reason) if isinstance(answer, JudgeAnswer) else (answer.why, answer.text)
