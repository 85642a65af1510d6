"""One reflection cycle: a batch of cases, two questions, and the same again for those that the answers left out."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import msgspec

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
from donewhen.learning.running.events import EventType
from donewhen.learning.running.recorder import RunRecorder
from donewhen.learning.running.review_queue import ReviewQueue
from donewhen.learning.running.run_state import RunState
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import Case, Completion, ModelError, Studious


class ReflectionLimitReached(Exception):  # noqa: N818 - a turn in the flow, not an error
    """No further question of reflection is allowed in this epoch."""


class _Question(NamedTuple):
    keys: tuple[str, ...]
    attempt: int
    decided: bool
    """Whether the decision pass has spoken of these cases."""


class ReflectionCycles:
    """The reflection of one epoch. ``open_cases`` are those whose fate is not decided yet; nobody else leaves it."""

    def __init__(
        self,
        mission: Mission,
        book: TicketReader,
        asking: MeteredModel,
        recorder: RunRecorder,
        changes: GuidanceChanges,
        queue: ReviewQueue,
        rolled: EpochVerdicts,
        open_cases: dict[str, None],
    ) -> None:
        self._mission = mission
        self._settings = mission.settings
        self._book = book
        self._asking = asking
        self._recorder = recorder
        self._changes = changes
        self._queue = queue
        self._rolled = rolled
        self._open = open_cases
        self._studied = False
        # One that is a mere word or a mere number may stand in a rule without naming anybody.
        groups = sorted({key.rpartition("::")[0] for key in rolled.keys})
        self._groups = tuple(group for group in groups if not group.isdigit() and any(map(str.isdigit, group)))

    @property
    def _state(self) -> RunState:
        return self._recorder.state

    async def reflect(self, cycle: str, keys: tuple[str, ...]) -> None:
        """Ask about a batch until each of its cases is covered, set aside or given up."""
        waiting = deque([_Question(keys, 0, decided=False)])
        attempts = dict.fromkeys(keys, 0)
        asked = 0
        while waiting:
            question = waiting.popleft()
            shown = self._shown([self._case(key) for key in question.keys])
            if shown.waiting:
                left = tuple(one.ticket_key for one in shown.waiting)
                waiting.appendleft(question._replace(keys=left))
            asked += 1
            for one in shown.shown:
                attempts[one.ticket_key] += 1
            again, decided = await self._ask(question, cycle, f"{cycle}.{asked}", shown, attempts)
            attempt = question.attempt + 1
            size = retry_batch_size(self._settings.reflection.batch_size, attempt)
            waiting.extend(_Question(batch, attempt, decided) for batch in split_batches(again, size))

    async def _ask(
        self, question: _Question, cycle: str, reflection_id: str, shown: PackedCases, attempts: Mapping[str, int]
    ) -> tuple[tuple[str, ...], bool]:
        """Put one question; whom it must be put to again, and whether the decision pass has spoken of them."""
        learnable: tuple[Case, ...] | None = shown.shown
        if not question.decided:
            learnable = await self._decide(cycle, reflection_id, question.attempt, shown)
        covered: frozenset[str] = frozenset()
        if learnable:
            covered = await self._propose(cycle, reflection_id, question.attempt, learnable)
        # Whom the decision pass has set aside is closed; whom it could not be asked about is not.
        still = [one.ticket_key for one in shown.shown if one.ticket_key in self._open]
        close = close_batch(still, covered, attempts, self._settings.reflection.retry_budget_per_group_per_epoch)
        told = {name: list(keys) for name, keys in close._asdict().items()}
        self._recorder.record("closed", {"cycle": cycle, "reflection_id": reflection_id, **told})
        for key in close.covered:
            del self._open[key]
        gone = {key: self._closed(key) for key in close.exhausted}
        self._queue.put(gone, "budget_exhausted", cycle, reflection_id, "asked about as often as is allowed")
        return close.retry, learnable is not None

    async def _decide(
        self, cycle: str, reflection_id: str, attempt: int, shown: PackedCases
    ) -> tuple[Case, ...] | None:
        """The cases that something can be learned from; None where the answer can't be used."""
        request = decision_request(self._mission, self._state.guidance, shown, attempt)

        async def ask() -> dict[str, Any]:
            self._study()
            found = await _answered(partial(self._asking.decide, request))
            usable = found if isinstance(found, UnusableAnswer) else read_decision(found.text, shown.shown)
            decision = usable if isinstance(usable, DecisionPass) else DecisionPass((), "", ())
            return {
                **self._about(cycle, reflection_id, attempt, shown.shown, "decision"),
                "no_evidence": list(decision.no_evidence),
                "analysis": decision.analysis,
                "rejections": [rejection.as_dict() for rejection in decision.rejections],
                "unusable": usable._asdict() if isinstance(usable, UnusableAnswer) else None,
            }

        data = await self._step("decided", ask)
        if data["unusable"] is not None:
            return None
        aside = {key: self._closed(key) for key in data["no_evidence"]}
        self._queue.put(aside, "reflection_no_evidence_after_gt", cycle, reflection_id, data["analysis"])
        return tuple(one for one in shown.shown if one.ticket_key not in aside)

    async def _propose(
        self, cycle: str, reflection_id: str, attempt: int, learnable: tuple[Case, ...]
    ) -> frozenset[str]:
        """Ask what the cases teach, take what is valid, and return whom it covers."""
        guidance = self._state.guidance
        # A part of what fitted before fits, too.
        shown = self._shown(learnable)
        request = ops_request(self._mission, guidance, shown, attempt)
        most = self._settings.reflection.max_operations
        terms = ReadingTerms(
            guidance,
            self._mission.language,
            self._settings.rules,
            shown.shown,
            most,
            self._changes.left,
            reflection_id,
            self._groups,
        )

        async def ask() -> dict[str, Any]:
            self._study()
            found = await _answered(partial(self._asking.propose, request))
            usable = found if isinstance(found, UnusableAnswer) else read_proposal(found.text, terms)
            proposal = usable if isinstance(usable, OpsPass) else OpsPass((), (), "", ())
            return {
                **self._about(cycle, reflection_id, attempt, shown.shown, "ops"),
                "operations": [msgspec.to_builtins(operation) for operation in proposal.operations],
                "hypotheses": [hypothesis._asdict() for hypothesis in proposal.hypotheses],
                "covered": sorted(proposal.covered),
                "analysis": proposal.analysis,
                "rejections": [rejection.as_dict() for rejection in proposal.rejections],
                "unusable": usable._asdict() if isinstance(usable, UnusableAnswer) else None,
            }

        data = await self._step("proposed", ask)
        for one in data["hypotheses"]:
            self._support(one, cycle)
        for change in data["operations"]:
            await self._changes.make(msgspec.convert(change, GuidanceChange), reflection_id)
        return frozenset(data["covered"])

    async def promote(self, cycle: str) -> None:
        """Try the hypotheses that have enough support."""
        reflection = self._settings.reflection
        enough = reflection.hypothesis_min_support_cycles, reflection.hypothesis_min_unique_ticket_keys
        for hypothesis in promotable_hypotheses(self._state.pool, *enough):
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

    def _support(self, data: Mapping[str, Any], cycle: str) -> None:
        one = HypothesisProposal(data["text"], data["falsifier"], tuple(data["evidence"]), data["dimension"])
        pooled = add_support(self._state.pool, one, cycle, self._mission.language)
        self._recorder.record("supported", {"cycle": cycle, "hypothesis": msgspec.to_builtins(pooled)})

    async def _step(self, kind: EventType, ask: Callable[[], Awaitable[dict[str, Any]]]) -> Mapping[str, Any]:
        limit = self._settings.reflection.max_calls_per_epoch
        if limit is not None and self._state.epoch.reflection_calls >= limit:
            raise ReflectionLimitReached
        return await self._recorder.step(kind, ask)

    def _closed(self, key: str) -> Verdict:
        """The verdict on a case whose fate is decided."""
        del self._open[key]
        return self._rolled[key]

    def _case(self, key: str) -> Case:
        return reflection_case(self._book.ticket(key), self._rolled[key])

    def _shown(self, cases: Sequence[Case]) -> PackedCases:
        shared = max(len(shared_prompt(self._mission, self._state.guidance, one)) for one in ("decision", "ops"))
        return pack_cases(cases, self._mission, shared)

    def _about(
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
        """Show the epoch to a reflector that wants to see it: once, and only when it is about to be asked."""
        model = self._asking.model
        if self._studied or not isinstance(model, Studious):
            return
        model.study([self._case(key) for key in self._rolled.studied])
        self._studied = True


async def _answered(ask: Callable[[], Awaitable[Completion]]) -> Completion | UnusableAnswer:
    try:
        completion = await ask()
    except ModelError as error:
        return UnusableAnswer("no_answer", one_line(str(error), 300))
    if completion.finish_reason != "stop":
        return UnusableAnswer("cut_off", one_line(completion.text[-200:], 200))
    return completion
