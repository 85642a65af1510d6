"""How sure a model was of its verdict, where its server tells log-probabilities."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from donewhen.models.chat import ChatModel
from donewhen.models.remote.pacing import Patience
from donewhen.models.roles import AnswerForm, Completion, Decode, Prompt, ReflectionRequest, RolloutRequest
from donewhen.testing.chat_api import ChatServer, Reply, unknown

pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")

QUICK = Patience(tries=2, first_pause=0.0, longest_pause=0.0)
TEXT = "Verdict: pass\nReason: it is there"
ENGLISH = AnswerForm()
CHINESE = AnswerForm("判定", "理由", "通过", "不通过")

Tokens = Sequence[tuple[str, Mapping[str, float]]]

SURE: dict[str, float] = {" pass": -0.25, " fail": -2.0, " Pass": -9.0}


def rolled(
    *replies: Reply, form: AnswerForm = ENGLISH, times: int = 1
) -> tuple[list[Completion], list[dict[str, Any]]]:
    """What a model says of a ticket, and what its server was asked."""
    from donewhen.models.remote.openai_chat import OpenAIChat

    request = RolloutRequest(Prompt("rules", "ticket"), {}, {}, Decode(), "en", form)
    with ChatServer(replies) as server:
        model = ChatModel(OpenAIChat("any", server.base_url, QUICK))

        async def whole() -> list[Completion]:
            try:
                return [await model.roll(request) for _ in range(times)]
            finally:
                await model.aclose()

        return asyncio.run(whole()), [dict(call.body) for call in server.calls]


def margin(tokens: Tokens, form: AnswerForm = ENGLISH) -> float | None:
    (found,), _ = rolled(Reply(TEXT, tokens=tokens), form=form)
    assert found.text == TEXT
    return found.margin


def plain(*tokens: str) -> list[tuple[str, Mapping[str, float]]]:
    return [(token, {token: -0.1}) for token in tokens]


def test_the_token_after_the_label_decides() -> None:
    found = margin([*plain("Verdict", ":"), (" pass", SURE), *plain("\n", "Reason", ":", " it")])
    assert found == pytest.approx(math.log(math.exp(-0.25) + math.exp(-9.0)) + 2.0)


@pytest.mark.parametrize(
    "before",
    [["Verdict:"], ["Ver", "dict", " :"], ["Verdict", ":", " "], ["\n", "Verdict", ":", "\n", " "], ["So. Verdict:"]],
    ids=repr,
)
def test_how_the_label_is_cut_into_tokens_does_not_matter(before: list[str]) -> None:
    found = margin([*plain(*before), ("pass", {"pass": -0.5, "fail": -1.5})])
    assert found == pytest.approx(1.0)


@pytest.mark.parametrize("colon", [":", "："])
def test_other_languages_have_other_words(colon: str) -> None:
    found = margin([*plain("判定", colon), ("不", {"不": -0.5, "通过": -1.5})], CHINESE)
    assert found == pytest.approx(-1.0)


@pytest.mark.parametrize(
    "tokens",
    [
        [],
        plain("pass"),
        plain("Verdict", ":"),
        [*plain("Verdict", ":"), (" maybe", {" maybe": -0.1})],
        [*plain("Verdict", ":"), (" pass", {})],
    ],
    ids=repr,
)
def test_where_nothing_is_told_nothing_is_known(tokens: Tokens) -> None:
    assert margin(tokens) is None


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        7,
        {},
        {"content": None},
        {"content": 7},
        {"content": [None]},
        {"content": ["Verdict:"]},
        {"content": [{"token": None}]},
        {"content": [{"token": "Verdict:"}, {"token": "pass"}]},
        {"content": [{"token": "Verdict:"}, {"token": "pass", "top_logprobs": [None]}]},
        {"content": [{"token": "Verdict:"}, {"token": "pass", "top_logprobs": [{"token": "pass", "logprob": "no"}]}]},
        {"content": [{"token": "Verdict:"}, {"token": "pass", "top_logprobs": [{"token": "pass", "logprob": 1e9}]}]},
        {"content": [{"token": "Verdict:"}, {"token": "pass", "top_logprobs": [{"token": 5, "logprob": -1.0}]}]},
    ],
    ids=str,
)
def test_an_answer_is_one_whatever_is_told_beside_it(logprobs: object) -> None:
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}, "logprobs": logprobs}
    (found,), _ = rolled(Reply(body=json.dumps({"choices": [choice]}).encode()))
    assert (found.text, found.margin) == (TEXT, None)


@pytest.mark.parametrize(
    "refusal",
    [
        unknown("logprobs"),
        unknown("top_logprobs"),
        Reply("You are not allowed to request logprobs from this model.", status=403),
    ],
    ids=lambda reply: reply.text,
)
def test_a_server_that_does_not_tell_them_is_not_asked_again(refusal: Reply) -> None:
    found, bodies = rolled(refusal, Reply(TEXT), Reply(TEXT), times=2)
    assert [(answer.text, answer.margin) for answer in found] == [(TEXT, None)] * 2
    assert [body.get("top_logprobs") for body in bodies] == [20, None, None]
    assert ["logprobs" in body for body in bodies] == [True, False, False]


def test_reflection_does_not_ask_for_them() -> None:
    from donewhen.models.remote.openai_chat import OpenAIChat

    request = ReflectionRequest(Prompt("rules", "cases"), {}, (), "en", {"type": "object"})
    with ChatServer([Reply("{}")]) as server:
        model = ChatModel(OpenAIChat("any", server.base_url, QUICK))

        async def whole() -> None:
            await model.propose(request)
            await model.aclose()

        asyncio.run(whole())
    assert "logprobs" not in server.calls[0].body
