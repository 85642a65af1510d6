"""What a refusal says beside its sentence, and what it does not say."""

from __future__ import annotations

import asyncio

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.models.chat import ChatModel
from donewhen.models.remote.pacing import Patience
from donewhen.models.remote.server_errors import UnsupportedOption, raise_for_refusal
from donewhen.models.roles import Decode, ModelError, Prompt, RolloutRequest
from donewhen.testing.chat_api import ChatServer, Reply
from sentences import assert_sentences


def test_a_code_beside_the_sentence_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")
    from donewhen.models.remote.openai_chat import OpenAIChat

    monkeypatch.setenv("OPENAI_API_KEY", "sk-for-loopback-only-000000")
    request = RolloutRequest(Prompt("rules", "ticket"), {}, {}, Decode(), "en")

    async def asked(model: ChatModel) -> None:
        try:
            await model.roll(request)
        finally:
            await model.aclose()

    reply = Reply("That was it.", status=429, code="insufficient_quota")
    with ChatServer([reply]) as server:
        model = ChatModel(OpenAIChat("any", server.base_url, Patience(tries=2, first_pause=0.0)))
        with pytest.raises(ConfigError) as caught:
            asyncio.run(asked(model))
        assert_sentences(caught.value)
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    "told",
    [
        "'max_tokens' is too large: 400. This model's maximum context length is 4096 tokens.",
        "The prompt is too long for max_tokens.",
    ],
)
def test_a_ticket_that_is_too_long_takes_no_option_from_the_others(told: str) -> None:
    with pytest.raises(ModelError):
        raise_for_refusal(400, told, {}, "http://server", ["max_tokens"])


def test_an_option_is_named_by_its_whole_name() -> None:
    with pytest.raises(ModelError):
        raise_for_refusal(400, "The model was seeded badly.", {}, "http://server", ["seed"])
    with pytest.raises(UnsupportedOption):
        raise_for_refusal(400, "seed: extra inputs are not permitted", {}, "http://server", ["seed"])
