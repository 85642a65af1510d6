"""Answers that are JSON, and no answers."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from donewhen.models.chat import ChatModel
from donewhen.models.remote.pacing import Patience
from donewhen.models.roles import Completion, Decode, ModelError, Prompt, RolloutRequest, Usage
from donewhen.testing.chat_api import ChatServer, Reply
from sentences import assert_sentences

QUICK = Patience(tries=2, first_pause=0.0, longest_pause=0.0)
REQUEST = RolloutRequest(Prompt("rules", "ticket"), {}, {}, Decode(), "en")


def asked(dialect: str, body: dict[str, Any]) -> Completion:
    """What a model says of a body that comes every time."""
    pytest.importorskip(dialect, reason=f"{dialect.upper()} IS NOT INSTALLED: pip install 'donewhen[{dialect}]'")
    from donewhen.models.remote.anthropic_chat import AnthropicChat
    from donewhen.models.remote.openai_chat import OpenAIChat

    with ChatServer(lambda _: Reply(body=json.dumps(body).encode())) as server:
        if dialect == "openai":
            model = ChatModel(OpenAIChat("any", server.base_url, QUICK))
        else:
            model = ChatModel(AnthropicChat("any", server.root_url, QUICK))

        async def whole() -> Completion:
            try:
                return await model.roll(REQUEST)
            finally:
                await model.aclose()

        return asyncio.run(whole())


@pytest.mark.parametrize(
    "body",
    [
        {"choices": None},
        {"choices": []},
        {"choices": [None]},
        {"choices": [{}]},
        {"choices": ["yes"]},
        {"choices": "yes"},
        {"choices": {"0": 1}},
        {"choices": 7},
        {"choices": [{"message": None}]},
        {"choices": [{"message": "yes"}]},
        {"choices": [{"message": {"content": 5}}]},
        {"choices": [{"message": {"content": ["yes"]}}]},
    ],
    ids=str,
)
def test_what_has_no_choice_is_no_answer(body: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as caught:
        asked("openai", body)
    assert_sentences(caught.value)


@pytest.mark.parametrize(
    "body",
    [
        {"content": None},
        {"content": 7},
        {"content": [None]},
        {"content": ["yes"]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "text", "text": 5}]},
        {"content": {"type": "text"}},
    ],
    ids=str,
)
def test_what_has_no_content_is_no_answer(body: dict[str, Any]) -> None:
    with pytest.raises(ModelError) as caught:
        asked("anthropic", body)
    assert_sentences(caught.value)


@pytest.mark.parametrize("usage", [None, {}, "many", 7, {"prompt_tokens": "many", "input_tokens": None}], ids=str)
def test_an_answer_without_its_cost_is_an_answer(usage: object) -> None:
    said = {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}], "usage": usage}
    assert asked("openai", said) == Completion("yes", Usage())
    payload = {"content": [{"type": "text", "text": "yes"}], "stop_reason": "end_turn", "usage": usage}
    assert asked("anthropic", payload) == Completion("yes", Usage())


def test_a_refusal_in_its_own_field_is_one() -> None:
    message = {"role": "assistant", "content": None, "refusal": "I would rather not."}
    found = asked("openai", {"choices": [{"finish_reason": "stop", "message": message}]})
    assert (found.text, found.finish_reason) == ("", "refused")
