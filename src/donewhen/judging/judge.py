"""The judge: a ticket in, a verdict out, under guidance that does not change meanwhile."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable, Iterator

from donewhen.foundation.errors import UsageError
from donewhen.judging.answer import JudgeAnswer, MalformedAnswer, read_answer
from donewhen.judging.guidance import Guidance
from donewhen.judging.mission import Mission
from donewhen.judging.mission_overrides import apply_overrides
from donewhen.judging.prompt_rendering import rollout_prompt, shared_prompt_part
from donewhen.judging.ticket import Ticket
from donewhen.judging.verdict import Verdict, verdict_of
from donewhen.judging.vote import count_votes
from donewhen.models.roles import AnswerForm, Closable, ModelError, Roller, RolloutRequest

HELD = 4
"""How many times as many tickets are held as are judged at once."""


class Judge:
    """Judges tickets of a mission. Nothing is remembered from one ticket to the next.

    It is the plan of the work, whoever does it: which questions to ask about a ticket, and what the answers come to.
    Without ``reasons``, a model that would write them for a reader alone may save itself the trouble.
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

    def judge(self, ticket: Ticket) -> Verdict:
        """Judge one ticket. Inside of a running event loop use ``judged`` instead."""
        _without_a_loop("await judge.judged(ticket)")
        return asyncio.run(self._once(ticket))

    def judge_all(self, tickets: Iterable[Ticket]) -> Iterator[Verdict]:
        """Judge tickets one after the other as they come, never more in memory than are being judged.

        Inside of a running event loop use ``stream`` instead.
        """
        _without_a_loop("async for verdict in judge.stream(tickets)")
        with asyncio.Runner() as runner:
            stream = self.stream(tickets)

            async def following() -> Verdict | None:
                return await anext(stream, None)

            try:
                while (verdict := runner.run(following())) is not None:
                    yield verdict
            finally:
                runner.run(stream.aclose())
                runner.run(self._let_go())

    async def _once(self, ticket: Ticket) -> Verdict:
        try:
            return await self.judged(ticket)
        finally:
            await self._let_go()

    async def _let_go(self) -> None:
        """A loop of our own ends here, and with it the connections that were made in it."""
        if isinstance(self.model, Closable):
            await self.model.aclose()

    async def judged(self, ticket: Ticket) -> Verdict:
        """Judge one ticket: every decode, one vote each."""
        answers = [await self._answer(request) for request in self.requests(ticket)]
        return self.verdict(ticket, answers)

    async def stream(self, tickets: Iterable[Ticket]) -> AsyncGenerator[Verdict, None]:
        """Verdicts in the order of the tickets, with as many at once as the mission says.

        A ticket that takes long holds up the verdicts behind it, and not the work: others are judged meanwhile, until
        a few times as many verdicts are held as are judged at once.
        """
        at_once = self.mission.settings.concurrency
        room = asyncio.Semaphore(at_once)
        waiting: deque[asyncio.Task[Verdict]] = deque()
        failed: list[asyncio.Task[Verdict]] = []

        def ended(task: asyncio.Task[Verdict]) -> None:
            room.release()
            if not task.cancelled() and task.exception() is not None:
                failed.append(task)

        try:
            await room.acquire()
            for ticket in tickets:
                task = asyncio.ensure_future(self.judged(ticket))
                task.add_done_callback(ended)
                waiting.append(task)
                # Before the next ticket is read: whoever gives it may want to see a verdict first.
                await room.acquire()
                while waiting and (waiting[0].done() or len(waiting) >= HELD * at_once):
                    yield await waiting.popleft()
                if failed:
                    # What comes before it is still wanted, and nothing new.
                    break
            while waiting:
                yield await waiting.popleft()
        finally:
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    def requests(self, ticket: Ticket) -> tuple[RolloutRequest, ...]:
        """The questions to a model about a ticket. The label is in none of them."""
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
        """What answers come to."""
        read = tuple(answers)
        vote = count_votes(read)
        final, by = apply_overrides(ticket, vote, self.mission.overrides)
        agreement = self.mission.settings.manual_review.min_verdict_agreement
        told = tuple(map(_told, read))
        return verdict_of(ticket, vote, final, by, agreement, self.guidance.step, told, self._prompt)

    async def _answer(self, request: RolloutRequest) -> JudgeAnswer | MalformedAnswer:
        try:
            completion = await self.model.roll(request)
        except ModelError as error:
            # A bad rollout is data, not a crash; what it cost is with whoever called the model.
            return MalformedAnswer("no_answer", str(error))
        words = self.mission.language.answer
        answer = read_answer(completion.text, words, complete=completion.finish_reason == "stop")
        return answer._replace(margin=completion.margin) if isinstance(answer, JudgeAnswer) else answer


def _without_a_loop(instead: str) -> None:
    """In a notebook, say, there is one already, and it can't be entered twice."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise UsageError("An event loop is running here already.", next_step=f"Write: {instead}")


def _told(answer: JudgeAnswer | MalformedAnswer) -> tuple[str, str]:
    return (answer.verdict, answer.reason) if isinstance(answer, JudgeAnswer) else (answer.why, answer.text)
