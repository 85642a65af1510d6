"""Reflection cycles: two model requests about a batch of cases, repeated for the cases that no answer covered."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any, NamedTuple

import msgspec

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.plain_text import one_line
from donewhen.judging.guidance import GuidanceChange, next_key
from donewhen.judging.mission import Mission
from donewhen.judging.verdict import Verdict
from donewhen.learning.measuring.ticket_reader import TicketReader
from donewhen.learning.reflection.closure import close_batch, retry_batch_size, split_batches
from donewhen.learning.reflection.hypotheses import add_support, promotable_hypotheses
from donewhen.learning.reflection.proposals import (
    DecisionPass,
    HypothesisProposal,
    OpsPass,
    ReadingTerms,
    read_decision,
    read_proposal,
)
from donewhen.learning.reflection.requests import (
    PackedCases,
    decision_request,
    ops_request,
    pack_cases,
    reflection_case,
    shared_prompt,
)
from donewhen.learning.reflection.strict_json import UnusableAnswer
from donewhen.learning.running.changes import GuidanceChanges
from donewhen.learning.running.epoch_verdicts import EpochVerdicts
from donewhen.learning.running.event_content import CasesDecided, ChangesProposed, ProposedHypothesis
from donewhen.learning.running.events import EventType, RunEvent
from donewhen.learning.running.recorder import RunRecorder
from donewhen.learning.running.run_state import RunState
from donewhen.learning.running.unlearned_queue import UnlearnedQueue
from donewhen.models.answer_store import question_key
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import Case, Completion, ModelError, ReflectionRequest, Studious


class ReflectionLimitReached(Exception):  # noqa: N818 - control flow, not an error
    """No further reflection call is allowed in this epoch."""


class _Question(NamedTuple):
    keys: tuple[str, ...]
    attempt: int
    decided: bool
    """Whether the decision pass has already answered for these cases."""


class ReflectionCycles:
    """The reflection of one epoch. ``open_cases`` are the undecided cases; only this class removes them."""

    def __init__(
        self,
        mission: Mission,
        reader: TicketReader,
        metered: MeteredModel,
        recorder: RunRecorder,
        changes: GuidanceChanges,
        queue: UnlearnedQueue,
        rolled: EpochVerdicts,
        open_cases: dict[str, None],
    ) -> None:
        self._mission = mission
        self._settings = mission.settings
        self._reader = reader
        self._metered = metered
        self._recorder = recorder
        self._changes = changes
        self._queue = queue
        self._rolled = rolled
        self._open = open_cases
        self._studied = False
        # Groups that are plain words or plain numbers are excluded: a rule may contain them by chance.
        groups = sorted({key.rpartition("::")[0] for key in rolled.keys})
        self._groups = tuple(group for group in groups if not group.isdigit() and any(map(str.isdigit, group)))

    @property
    def _state(self) -> RunState:
        return self._recorder.state

    async def reflect(self, cycle: str, keys: tuple[str, ...]) -> None:
        """Ask about a batch until each of its cases is covered, without evidence, or out of retries."""
        waiting = deque([_Question(keys, 0, decided=False)])
        attempts = dict.fromkeys(keys, 0)
        count = 0
        while waiting:
            question = waiting.popleft()
            packed = self._pack([self._case(key) for key in question.keys])
            if packed.waiting:
                left = tuple(case.ticket_key for case in packed.waiting)
                waiting.appendleft(question._replace(keys=left))
            count += 1
            for case in packed.cases:
                attempts[case.ticket_key] += 1
            retry, decided = await self._ask(question, cycle, f"{cycle}.{count}", packed, attempts)
            attempt = question.attempt + 1
            size = retry_batch_size(self._settings.reflection.batch_size, attempt)
            waiting.extend(_Question(batch, attempt, decided) for batch in split_batches(retry, size))

    async def _ask(
        self, question: _Question, cycle: str, reflection_id: str, packed: PackedCases, attempts: Mapping[str, int]
    ) -> tuple[tuple[str, ...], bool]:
        """Ask one question. Return the tickets to retry, and whether the decision pass has answered for them."""
        learnable: tuple[Case, ...] | None = packed.cases
        if not question.decided:
            learnable = await self._decide(cycle, reflection_id, question.attempt, packed)
        covered: frozenset[str] = frozenset()
        if learnable:
            covered = await self._propose(cycle, reflection_id, question.attempt, learnable)
        # Cases without evidence were closed by the decision pass. If it had no usable answer, all are still open.
        still_open = [case.ticket_key for case in packed.cases if case.ticket_key in self._open]
        result = close_batch(still_open, covered, attempts, self._settings.reflection.retry_budget_per_group_per_epoch)
        closed = {name: list(keys) for name, keys in result._asdict().items()}
        self._recorder.record("closed", {"cycle": cycle, "reflection_id": reflection_id, **closed})
        for key in result.covered:
            del self._open[key]
        exhausted = {key: self._close_case(key) for key in result.exhausted}
        self._queue.put(exhausted, "budget_exhausted", cycle, reflection_id, "asked about as often as is allowed")
        return result.retry, learnable is not None

    async def _decide(
        self, cycle: str, reflection_id: str, attempt: int, packed: PackedCases
    ) -> tuple[Case, ...] | None:
        """Run the decision pass. Return the learnable cases; None if the answer is unusable."""
        request = decision_request(self._mission, self._state.guidance, packed, attempt)

        async def ask() -> dict[str, Any]:
            self._study()
            answer = await _complete(partial(self._metered.decide, request))
            parsed = answer if isinstance(answer, UnusableAnswer) else read_decision(answer.text, packed.cases)
            decision = parsed if isinstance(parsed, DecisionPass) else DecisionPass((), "", ())
            return {
                **self._event_fields(cycle, reflection_id, attempt, packed.cases, "decision"),
                "no_evidence": list(decision.no_evidence),
                "analysis": decision.analysis,
                "rejections": [rejection.as_dict() for rejection in decision.rejections],
                "unusable": asdict(parsed) if isinstance(parsed, UnusableAnswer) else None,
            }

        decided = (await self._step("decided", ask)).read_as(CasesDecided)
        if decided.unusable is not None:
            return None
        closed = {key: self._close_case(key) for key in decided.no_evidence}
        self._queue.put(closed, "reflection_no_evidence_after_gt", cycle, reflection_id, decided.analysis)
        return tuple(case for case in packed.cases if case.ticket_key not in closed)

    async def _propose(
        self, cycle: str, reflection_id: str, attempt: int, learnable: tuple[Case, ...]
    ) -> frozenset[str]:
        """Run the ops pass, apply the valid proposals, and return the tickets that they cover."""
        guidance = self._state.guidance
        # A subset of cases that fitted into the prompt fits, too.
        packed = self._pack(learnable)
        request = ops_request(self._mission, guidance, packed, attempt)
        terms = ReadingTerms(
            guidance,
            self._mission.language,
            self._settings.rules,
            packed.cases,
            self._settings.reflection.max_operations,
            self._changes.left,
            reflection_id,
            self._groups,
        )

        async def ask() -> dict[str, Any]:
            self._study()
            answer = await _complete(partial(self._metered.propose, request))
            parsed = answer if isinstance(answer, UnusableAnswer) else read_proposal(answer.text, terms)
            proposal = parsed if isinstance(parsed, OpsPass) else OpsPass((), (), "", ())
            return {
                **self._event_fields(cycle, reflection_id, attempt, packed.cases, "ops"),
                "answer": "" if isinstance(answer, UnusableAnswer) else self._answer_id(request, answer),
                "operations": [msgspec.to_builtins(operation) for operation in proposal.operations],
                "hypotheses": [hypothesis._asdict() for hypothesis in proposal.hypotheses],
                "covered": sorted(proposal.covered),
                "analysis": proposal.analysis,
                "rejections": [rejection.as_dict() for rejection in proposal.rejections],
                "unusable": asdict(parsed) if isinstance(parsed, UnusableAnswer) else None,
            }

        proposed = (await self._step("proposed", ask)).read_as(ChangesProposed)
        for hypothesis in proposed.hypotheses:
            self._record_support(hypothesis, cycle, proposed.answer)
        for change in proposed.operations:
            await self._changes.make(change, reflection_id)
        return frozenset(proposed.covered)

    async def promote(self, cycle: str) -> None:
        """Try to promote the hypotheses that have enough support."""
        reflection = self._settings.reflection
        minimums = reflection.hypothesis_min_support_cycles, reflection.hypothesis_min_unique_ticket_keys
        for hypothesis in promotable_hypotheses(self._state.pool, *minimums):
            if self._state.pool[hypothesis.signature].fate == "promoted":
                # A rule that was adopted meanwhile says the same.
                continue
            full = len(self._state.guidance.learned) >= self._settings.rules.max_rules
            capped = self._state.epoch.promotions >= reflection.max_promotions_per_epoch
            if full or capped or not self._changes.left:
                return
            change = GuidanceChange(
                op="add",
                text=hypothesis.text,
                rationale=f"a hypothesis with {len(hypothesis.evidence)} tickets in {len(hypothesis.cycles)} cycles",
                evidence=hypothesis.evidence,
                reflection_id=cycle,
            )
            key = next_key(self._state.guidance)
            accepted, why = await self._changes.make(change, hypothesis.signature)
            fate = msgspec.structs.replace(
                hypothesis,
                fate="promoted" if accepted else "refused",
                key=key if accepted else "",
                why=why,
                tried_with=len(hypothesis.evidence),
            )
            self._recorder.record("fated", {"cycle": cycle, "hypothesis": msgspec.to_builtins(fate)})

    def _answer_id(self, request: ReflectionRequest, answer: Completion) -> str:
        return digest_of([question_key(self._metered.name, "ops", request), answer.text])[7:23]

    def _record_support(self, proposed: ProposedHypothesis, cycle: str, answer: str) -> None:
        proposal = HypothesisProposal(proposed.text, proposed.falsifier, proposed.evidence, proposed.dimension)
        pooled = add_support(self._state.pool, proposal, cycle, self._mission.language, answer)
        self._recorder.record("supported", {"cycle": cycle, "hypothesis": msgspec.to_builtins(pooled)})

    async def _step(self, kind: EventType, ask: Callable[[], Awaitable[dict[str, Any]]]) -> RunEvent:
        limit = self._settings.reflection.max_calls_per_epoch
        if limit is not None and self._state.epoch.reflection_calls >= limit:
            raise ReflectionLimitReached
        return await self._recorder.step(kind, ask)

    def _close_case(self, key: str) -> Verdict:
        """Remove a case from the open ones and return its verdict."""
        del self._open[key]
        return self._rolled[key]

    def _case(self, key: str) -> Case:
        return reflection_case(self._reader.ticket(key), self._rolled[key])

    def _pack(self, cases: Sequence[Case]) -> PackedCases:
        prompts = ("decision", "ops")
        shared = max(len(shared_prompt(self._mission, self._state.guidance, prompt)) for prompt in prompts)
        return pack_cases(cases, self._mission, shared)

    def _event_fields(
        self, cycle: str, reflection_id: str, attempt: int, cases: Sequence[Case], prompt: str
    ) -> dict[str, Any]:
        return {
            "cycle": cycle,
            "reflection_id": reflection_id,
            "attempt": attempt,
            "cases": [case.ticket_key for case in cases],
            "prompt": self._mission.language.hashes[prompt],
            "step": self._state.guidance.step,
        }

    def _study(self) -> None:
        """Let a model that supports it study the verdicts of the epoch: once, and only before its first call."""
        model = self._metered.model
        if self._studied or not isinstance(model, Studious):
            return
        model.study([self._case(key) for key in self._rolled.studied])
        self._studied = True


async def _complete(ask: Callable[[], Awaitable[Completion]]) -> Completion | UnusableAnswer:
    try:
        completion = await ask()
    except ModelError as error:
        return UnusableAnswer("no_answer", one_line(str(error), 300))
    if completion.finish_reason != "stop":
        return UnusableAnswer("cut_off", one_line(completion.text[-200:], 200))
    return completion
