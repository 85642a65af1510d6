"""Contract tests for models: derive from :class:`ModelContract`, implement ``model``, and run pytest.

The tests cover what the judge and the learner rely on: answers can be parsed and counted, and failures are a
``ModelError``. They don't check the content of answers.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from collections.abc import Coroutine
from typing import Any, TypeVar

from donewhen.foundation.coroutines import run_awaitable
from donewhen.judging.answer import JudgeAnswer, read_answer
from donewhen.judging.language import find_language
from donewhen.models.roles import (
    AnswerForm,
    Case,
    Closable,
    Completion,
    Decode,
    Model,
    ModelError,
    Prompt,
    ReflectionRequest,
    RolloutRequest,
)

__all__ = ["ModelContract"]

T = TypeVar("T")

_RULES = {"G0": "When no rule applies, the verdict is pass."}
_SCHEMAS: dict[str, dict[str, Any]] = {
    "decide": {
        "type": "object",
        "properties": {
            "no_evidence_group_ids": {"type": "array", "items": {"type": "string"}},
            "decision_analysis": {"type": "string"},
        },
        "required": ["no_evidence_group_ids", "decision_analysis"],
        "additionalProperties": False,
    },
    "propose": {
        "type": "object",
        "properties": {
            "has_evidence": {"type": "boolean"},
            "evidence_analysis": {"type": "string"},
            "operations": {"type": "array", "items": {"type": "object"}},
            "hypotheses": {"type": "array", "items": {"type": "object"}},
        },
        "required": ["has_evidence", "evidence_analysis", "operations", "hypotheses"],
        "additionalProperties": False,
    },
}


# The assertions below are the product: this class is a test kit.
# ruff: noqa: S101
class ModelContract(ABC):
    """The checks. Each gets a new model and closes it at the end."""

    @abstractmethod
    def model(self) -> Model:
        """The model under test, ready to answer."""

    def failing_model(self) -> Model | None:
        """The same model, set up to fail within reasonable time; None if it can't fail."""
        return None

    # The requests; override them for a model that needs other words.

    def rollout(self, temperature: float = 0.1, sample: int = 0) -> RolloutRequest:
        """A judgement of one ticket."""
        words = find_language("en").answer
        form = AnswerForm(words.verdict, words.reason, words.pass_, words.fail)
        shared = (
            "You judge reports.\n[G0] When no rule applies, the verdict is pass.\n"
            f"Answer in two lines:\n{form.verdict}: {form.pass_} or {form.fail}\n{form.reason}: one sentence"
        )
        text = "All tests pass, and the log is attached."
        return RolloutRequest(Prompt(shared, text), _RULES, {"text": text}, Decode(temperature, sample), "en", form)

    def reflection(self, kind: str, attempt: int = 0) -> ReflectionRequest:
        """A question about two cases: ``decide`` or ``propose``."""
        cases = (
            Case("a::fail", "fail", {"text": "Two tests were skipped."}, "pass", "no rule speaks of it", 3),
            Case("b::pass", "pass", {"text": "All tests were run."}, "pass", "no rule speaks of it", 3),
        )
        listing = "\n".join(f"{case.ticket_key} ({case.label}): {case.evidence['text']}" for case in cases)
        prompt = Prompt(f"Answer with one JSON object: {json.dumps(_SCHEMAS[kind])}", listing)
        return ReflectionRequest(prompt, _RULES, cases, "en", _SCHEMAS[kind], 2, attempt)

    # The checks.

    def test_it_has_a_name_and_says_whether_it_is_free(self) -> None:
        model = self.model()
        assert model.name.strip() == model.name != ""
        assert isinstance(model.free, bool)
        assert self.model().name == model.name, "the same model must have the same name: answers are stored under it"

    def test_a_verdict_can_be_read(self) -> None:
        model = self.model()
        completion = self.played(model, model.roll(self.rollout()))
        assert completion.finish_reason == "stop"
        read = read_answer(completion.text, find_language("en").answer)
        assert isinstance(read, JudgeAnswer), f"not an answer: {completion.text!r}"

    def test_the_same_question_is_answered_twice_and_so_is_another_draw(self) -> None:
        model = self.model()

        async def asked() -> list[Completion]:
            requests = (self.rollout(), self.rollout(), self.rollout(0.7, 1))
            return [await model.roll(request) for request in requests]

        for completion in self.played(model, asked()):
            assert completion.text.strip()

    def test_reflection_is_answered_with_one_json_object(self) -> None:
        model = self.model()

        async def asked() -> list[Completion]:
            return [
                await model.decide(self.reflection("decide")),
                await model.propose(self.reflection("propose")),
                await model.propose(self.reflection("propose", attempt=1)),
            ]

        for completion in self.played(model, asked()):
            assert isinstance(json.loads(completion.text), dict), f"not an object: {completion.text!r}"

    def test_what_an_answer_cost_can_be_added_up(self) -> None:
        model = self.model()
        completion = self.played(model, model.roll(self.rollout()))
        assert all(type(count) is int for count in completion.usage), completion.usage
        assert min(completion.usage) >= 0
        assert completion.usage.cached_tokens <= completion.usage.prompt_tokens
        assert completion.cost >= 0.0
        assert completion.margin is None or isinstance(completion.margin, float)

    def test_many_questions_at_once_are_all_answered(self) -> None:
        model = self.model()

        async def asked() -> list[Completion]:
            return await asyncio.gather(*(model.roll(self.rollout(0.7, sample)) for sample in range(16)))

        assert all(completion.text.strip() for completion in self.played(model, asked()))

    def test_a_failure_is_a_model_error(self) -> None:
        model = self.failing_model()
        if model is None:
            return

        async def asked() -> list[Completion | BaseException]:
            calls = (
                model.roll(self.rollout()),
                model.decide(self.reflection("decide")),
                model.propose(self.reflection("propose")),
            )
            return list(await asyncio.gather(*calls, return_exceptions=True))

        for result in self.played(model, asked()):
            assert isinstance(result, ModelError), f"not a ModelError: {result!r}"
            assert str(result).strip()

    def test_whoever_gives_up_leaves_nothing_pending(self) -> None:
        model = self.model()

        async def given_up() -> tuple[int, Completion]:
            before = len(asyncio.all_tasks())
            calls = [asyncio.ensure_future(model.roll(self.rollout(0.7, sample))) for sample in range(8)]
            # So that some calls have started and some have not.
            for call in calls:
                await asyncio.sleep(0)
                call.cancel()
            await asyncio.gather(*calls, return_exceptions=True)
            await _close(model)
            left = len(asyncio.all_tasks()) - before
            return left, await model.roll(self.rollout())

        left, completion = self.played(model, given_up())
        assert left == 0
        assert completion.text.strip()

    def test_it_can_be_let_go_of_twice_and_asked_again(self) -> None:
        model = self.model()

        async def asked() -> Completion:
            await _close(model)
            await model.roll(self.rollout())
            await _close(model)
            await _close(model)
            return await model.roll(self.rollout())

        assert self.played(model, asked()).text.strip()

    def test_it_can_be_asked_from_another_event_loop(self) -> None:
        model = self.model()
        first = self.played(model, model.roll(self.rollout()))
        second = self.played(model, model.roll(self.rollout()))
        assert first.text.strip() and second.text.strip()

    @staticmethod
    def played(model: Model, asked: Coroutine[Any, Any, T]) -> T:
        """Run in a new event loop, and close the model at the end."""

        async def run() -> T:
            try:
                return await asked
            finally:
                await _close(model)

        return run_awaitable(run())


async def _close(model: Model) -> None:
    if isinstance(model, Closable):
        await model.aclose()
