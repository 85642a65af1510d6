"""Every model keeps the contract: the one without a model, scripted ones, and those behind a server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import pytest

from donewhen.models.chat import ChatModel
from donewhen.models.contrast import Contrast
from donewhen.models.remote.pacing import Patience
from donewhen.models.roles import Completion, Model, ModelError, RolloutRequest, Usage
from donewhen.testing.chat_api import ChatCall, ChatServer, Reply
from donewhen.testing.model_contract import ModelContract
from donewhen.testing.models import ScriptedJudge

IMPATIENT = Patience(tries=2, timeout=10.0, first_pause=0.001, longest_pause=0.002)


def answered(call: ChatCall) -> Reply:
    """What a model says that does what it is asked."""
    if call.schema is None:
        return Reply("Verdict: pass\nReason: the log is attached")
    empty = {"array": [], "string": "", "boolean": False}
    # Long answers are asked for in pieces.
    return Reply(json.dumps({name: empty[one["type"]] for name, one in call.schema["properties"].items()}), pieces=9)


class TestContrast(ModelContract):
    def model(self) -> Model:
        return Contrast()


class TestScripted(ModelContract):
    def model(self) -> Model:
        return ScriptedJudge(lambda _: "Verdict: pass\nReason: the log is attached")

    def failing_model(self) -> Model:
        def away(_: object) -> str:
            raise ModelError("away")

        return ScriptedJudge(away, away, away)


class _Remote(ModelContract):
    @pytest.fixture(autouse=True)
    def _servers(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
            monkeypatch.setenv(name, "sk-for-loopback-only-000000")
        with ChatServer(answered) as self.server, ChatServer(lambda _: Reply(gone=True)) as self.broken:
            yield


class TestOpenAI(_Remote):
    def opened(self, server: ChatServer) -> Model:
        pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")
        from donewhen.models.remote.openai_chat import OpenAIChat

        return ChatModel(OpenAIChat("any", server.base_url, IMPATIENT))

    def model(self) -> Model:
        return self.opened(self.server)

    def failing_model(self) -> Model:
        return self.opened(self.broken)


class TestAnthropic(_Remote):
    def opened(self, server: ChatServer) -> Model:
        pytest.importorskip("anthropic", reason="ANTHROPIC IS NOT INSTALLED: pip install 'donewhen[anthropic]'")
        from donewhen.models.remote.anthropic_chat import AnthropicChat

        return ChatModel(AnthropicChat("any", server.root_url, IMPATIENT))

    def model(self) -> Model:
        return self.opened(self.server)

    def failing_model(self) -> Model:
        return self.opened(self.broken)


# The kit itself: a model that breaks a promise is found out.


class _Broken(ScriptedJudge):
    """A model that leaves work behind when it is given up."""

    async def roll(self, request: RolloutRequest) -> Completion:
        if request.decode.sample:
            self._left = asyncio.ensure_future(asyncio.Event().wait())
            await asyncio.shield(self._left)
        return await super().roll(request)


def _contract_of(made: ScriptedJudge) -> ModelContract:
    class Contract(ModelContract):
        def model(self) -> Model:
            return made

        def failing_model(self) -> Model:
            return made

    return Contract()


def _good(_: object) -> str:
    return "Verdict: pass\nReason: fine"


def _raises(_: object) -> str:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("model", "check"),
    [
        (ScriptedJudge(_good, name=" "), "it_has_a_name_and_says_whether_it_is_free"),
        (ScriptedJudge(lambda _: "I think so."), "a_verdict_can_be_read"),
        (ScriptedJudge(lambda _: Completion("Verdict: pass", finish_reason="length")), "a_verdict_can_be_read"),
        (ScriptedJudge(_good, lambda _: "no"), "reflection_is_answered_with_one_json_object"),
        (ScriptedJudge(_good, None, lambda _: "[1]"), "reflection_is_answered_with_one_json_object"),
        (ScriptedJudge(lambda _: Completion("x", Usage(-1))), "what_an_answer_cost_can_be_added_up"),
        (ScriptedJudge(lambda _: Completion("x", Usage(1, 1, 2))), "what_an_answer_cost_can_be_added_up"),
        (ScriptedJudge(lambda _: Completion("x", Usage(1, None))), "what_an_answer_cost_can_be_added_up"),  # type: ignore[arg-type]
        (ScriptedJudge(lambda _: " "), "many_questions_at_once_are_all_answered"),
        (ScriptedJudge(_raises, _raises, _raises), "a_failure_is_a_model_error"),
        (ScriptedJudge(_good), "a_failure_is_a_model_error"),
        (_Broken(_good), "whoever_gives_up_leaves_nothing_pending"),
    ],
)
def test_a_model_that_breaks_the_contract_is_found_out(model: ScriptedJudge, check: str) -> None:
    with pytest.raises((AssertionError, ValueError)):
        getattr(_contract_of(model), f"test_{check}")()
