"""The real thing on this machine: llama.cpp in this process with real weights.

They are small ones that can't judge: what they say is nonsense, but that it is said in the right form, is counted and
can be ended is not. ``make test-model`` runs the same with weights that can.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.error
import urllib.request
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError
from donewhen.judging.answer import JudgeAnswer, read_answer
from donewhen.judging.language import find_language
from donewhen.models.chat import ChatAnswer, ChatMessage, ChatModel, ChatRequest, WordChoice
from donewhen.models.local.local_model import LocalModel
from donewhen.models.local.weights import are_weights_present, find_weights, weights_path
from donewhen.models.registry import open_model
from donewhen.models.roles import Decode, ModelError, Prompt, RolloutRequest
from donewhen.testing.model_contract import ModelContract

pytest.importorskip("xllamacpp", reason="LOUD: XLLAMACPP IS NOT INSTALLED: pip install 'donewhen[local]'")
from donewhen.models.local.local_chat import CONTEXT_VARIABLE, LocalChat, fingerprint
from sentences import assert_sentences

WEIGHTS = find_weights(os.environ.get("DONEWHEN_TEST_WEIGHTS", "smollm2-135m"))

pytestmark = pytest.mark.skipif(
    not are_weights_present(WEIGHTS),
    reason="LOUD: no weights are here, so the local model is NOT tested (donewhen models fetch)",
)

LONG = "You judge reports.\n" + "A report names each test that was run. " * 90


@cache
def loaded() -> LocalChat:
    """One for all, because loading is what takes the time."""
    return LocalChat(weights_path(WEIGHTS))


@pytest.fixture
def chat() -> LocalChat:
    return loaded()


class TestLocalWeights(ModelContract):
    def model(self) -> LocalModel:
        return LocalModel(loaded())


def weighing(shared: str, own: str) -> ChatRequest:
    turns = (ChatMessage("system", shared), ChatMessage("user", own))
    return ChatRequest(turns, 0.0, 0, 1, choice=WordChoice("Verdict:", ("pass", "fail")))


def test_what_two_tickets_share_is_worked_out_once(chat: LocalChat) -> None:
    async def asked() -> list[int]:
        found = [await chat.complete(weighing(LONG, f"Report {number}: all is well.")) for number in range(3)]
        assert all(one.usage.prompt_tokens > 600 for one in found)
        return [one.usage.prompt_tokens - one.usage.cached_tokens for one in found]

    first, *others = asyncio.run(asked())
    assert first > 600
    assert max(others) < 60


def test_margins_are_the_same_with_and_without_the_shared_part_in_memory(chat: LocalChat) -> None:
    question = weighing(LONG, "Report: two tests were skipped.")

    async def margin() -> float:
        # Something else between, and nothing remembered.
        await chat.complete(weighing("Something else.", "At all."))
        chat._answers.clear()
        found = (await chat.complete(question)).margin
        assert found is not None
        return found

    cold = asyncio.run(margin())
    asyncio.run(chat.complete(weighing(LONG, "Report: another.")))
    chat._answers.clear()
    warm = asyncio.run(chat.complete(question)).margin
    assert warm == pytest.approx(cold, abs=0.3)


def test_the_draws_of_one_question_are_one_reading(chat: LocalChat) -> None:
    model = ChatModel(chat)

    def roll(temperature: float, sample: int) -> RolloutRequest:
        return RolloutRequest(Prompt(LONG, "Report: draws."), {}, {}, Decode(temperature, sample), "en", reason=False)

    first = asyncio.run(model.roll(roll(0.1, 0)))
    again = asyncio.run(model.roll(roll(0.7, 1)))
    assert first.margin is not None and again.margin is not None
    assert abs(again.margin) == abs(first.margin)
    assert again.usage.cached_tokens == again.usage.prompt_tokens
    assert isinstance(read_answer(first.text, find_language("en").answer), JudgeAnswer)


def test_the_reason_is_written_once_for_all_draws(chat: LocalChat, monkeypatch: pytest.MonkeyPatch) -> None:
    written = []

    def counted(*asked: Any) -> ChatAnswer:
        written.append(asked)
        return ChatAnswer("because")

    monkeypatch.setattr("donewhen.models.local.local_chat._generate", counted)
    model = ChatModel(chat)
    for sample in range(3):
        request = RolloutRequest(Prompt(LONG, "Report: reasons."), {}, {}, Decode(0.0, sample), "en")
        assert asyncio.run(model.roll(request)).text.endswith("Reason: because")
    assert len(written) == 1


def test_an_answer_is_held_to_a_schema(chat: LocalChat) -> None:
    schema = {
        "type": "object",
        "properties": {"colour": {"enum": ["red", "blue"]}, "count": {"type": "integer"}},
        "required": ["colour", "count"],
        "additionalProperties": False,
    }
    answer = asyncio.run(chat.complete(ChatRequest((ChatMessage("user", "Say anything."),), 0.0, 0, 60, schema)))
    told = json.loads(answer.text)
    assert told["colour"] in ("red", "blue")
    assert isinstance(told["count"], int)
    assert answer.usage.completion_tokens > 3


def test_an_answer_that_was_begun_is_gone_on_with(chat: LocalChat) -> None:
    turns = (ChatMessage("user", "Count: one, two, three"),)
    answer = asyncio.run(chat.complete(ChatRequest(turns, 0.0, 0, 12, begun="one, two, three, four,")))
    assert answer.text
    assert not answer.text.startswith("one, two")


def test_an_answer_that_is_too_long_says_that_it_was_cut_off(chat: LocalChat) -> None:
    turns = (ChatMessage("user", "Write a long story about a dog."),)
    assert asyncio.run(chat.complete(ChatRequest(turns, 0.0, 0, 8))).finish_reason == "length"


def test_whoever_gives_up_does_not_keep_the_next_one_waiting(chat: LocalChat) -> None:
    async def given_up() -> int:
        story = ChatRequest((ChatMessage("user", "Write a very long story."),), 0.9, 1, 4000)
        long = asyncio.ensure_future(chat.complete(story))
        await asyncio.sleep(0.3)
        long.cancel()
        await asyncio.gather(long, return_exceptions=True)
        answer = await chat.complete(ChatRequest((ChatMessage("user", "Hello"),), 0.0, 0, 2))
        return answer.usage.completion_tokens

    # Four thousand tokens would take longer than a test may.
    assert asyncio.run(given_up()) <= 2


@pytest.mark.parametrize("choice", [None, WordChoice("Verdict:", ("pass", "fail"))])
def test_a_ticket_that_does_not_fit_is_a_failed_question_that_says_so(
    chat: LocalChat, choice: WordChoice | None
) -> None:
    request = ChatRequest((ChatMessage("user", "word " * 12_000),), 0.0, 0, 5, choice=choice)
    with pytest.raises(ModelError) as caught:
        asyncio.run(chat.complete(request))
    assert str(CONTEXT_VARIABLE) in str(caught.value)
    assert_sentences(str(caught.value).partition(":")[0], caught.value.next_step)


def test_more_fits_where_more_is_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTEXT_VARIABLE, "256")
    small = LocalChat(weights_path(WEIGHTS))
    with pytest.raises(ModelError, match="256 tokens"):
        asyncio.run(small.complete(weighing(LONG, "Report")))
    monkeypatch.setenv(CONTEXT_VARIABLE, "plenty")
    with pytest.raises(ConfigError) as caught:
        LocalChat(weights_path(WEIGHTS))
    assert_sentences(caught.value)


def test_nobody_else_on_this_machine_may_ask_it(chat: LocalChat) -> None:
    asyncio.run(chat.complete(weighing("a", "b")))
    address = chat._load().listening_address
    assert "127.0.0.1" in address
    for path in ("/v1/completions", "/completion", "/v1/chat/completions"):
        asked = urllib.request.Request(f"{address}{path}", json.dumps({"prompt": "x"}).encode())  # noqa: S310
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(asked, timeout=10)  # noqa: S310
        assert refused.value.code == 401
        refused.value.close()
    with pytest.raises(urllib.error.HTTPError) as hidden:
        urllib.request.urlopen(f"{address}/slots", timeout=10)  # noqa: S310
    hidden.value.close()
    assert hidden.value.code in (401, 404, 501)


def test_any_file_of_weights_can_be_named(tmp_path: Path) -> None:
    other = tmp_path / "mine.gguf"
    other.symlink_to(weights_path(WEIGHTS))
    model = open_model(f"local:{other}")
    assert model.name == f"local/1:mine.gguf#{fingerprint(weights_path(WEIGHTS))}"


def test_weights_that_differ_have_another_name(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    one.write_bytes(b"GGUF" + bytes(5_000_000))
    two.write_bytes(b"GGUF" + bytes(4_999_999) + b"x")
    assert fingerprint(one) != fingerprint(two)
    two.write_bytes(b"GGUF" + bytes(5_000_001))
    assert fingerprint(one) != fingerprint(two)


@pytest.mark.parametrize("content", [None, b"", b"<html>"])
def test_a_file_that_holds_no_weights_is_refused_before_anything_is_asked(
    tmp_path: Path, content: bytes | None
) -> None:
    path = tmp_path / "model.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigError) as refused:
        open_model(f"local:{path}")
    assert_sentences(refused.value)
    assert str(path) in str(refused.value)


def test_a_folder_is_no_file_of_weights(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        open_model(f"local:{tmp_path}")
    assert_sentences(caught.value)


def test_half_a_file_of_weights_stops_the_run_with_a_sentence(tmp_path: Path) -> None:
    half = tmp_path / "half.gguf"
    half.write_bytes(weights_path(WEIGHTS).read_bytes()[: 40 << 20])
    broken = LocalChat(half)
    with pytest.raises(ConfigError) as refused:
        asyncio.run(broken.complete(weighing("a", "b")))
    assert_sentences(refused.value.message.partition(":")[0], refused.value.next_step)
