"""A small model with code at its side: what it is asked, and what is made of its answers. The chat is a fake here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from donewhen.judging.answer import JudgeAnswer, MalformedAnswer, read_answer
from donewhen.judging.language import find_language
from donewhen.models.chat import Ability, ChatAnswer, ChatModel, ChatRequest
from donewhen.models.contrast import default_rule
from donewhen.models.local.local_model import LocalModel
from donewhen.models.roles import (
    AnswerForm,
    Binary,
    Case,
    Completion,
    Decode,
    ModelError,
    Prompt,
    ReflectionRequest,
    RolloutRequest,
    Usage,
)
from donewhen.testing.model_contract import ModelContract
from sentences import assert_sentences

RULES = {"G0": default_rule("pass", "en")}


class FakeChat:
    """Weighs two words by a function of what it is shown; writes what a function says."""

    name = "fake"
    priced = True
    abilities: frozenset[Ability] = frozenset({"schema", "choice"})

    def __init__(
        self,
        margin: Callable[[str], float | None] = lambda _: 1.0,
        writes: Callable[[ChatRequest], ChatAnswer] = lambda _: ChatAnswer(" it is there", Usage(30, 4)),
    ) -> None:
        self._margin = margin
        self._writes = writes
        self.asked: list[ChatRequest] = []

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        self.asked.append(request)
        if request.choice is not None:
            margin = self._margin(request.messages[-1].content)
            return ChatAnswer(f"{request.choice.after} maybe", Usage(20, 1, 15), margin=margin)
        return self._writes(request)

    async def aclose(self) -> None:
        pass


def rollout(text: str = "all is done", *, reason: bool = False) -> RolloutRequest:
    evidence = {"text": text}
    return RolloutRequest(Prompt("the rules", text), RULES, evidence, Decode(0.0, 0), "en", AnswerForm(), reason)


def rolled(chat: FakeChat, request: RolloutRequest) -> Completion:
    return asyncio.run(ChatModel(chat).roll(request))


def read(completion: Completion) -> JudgeAnswer | MalformedAnswer:
    return read_answer(completion.text, find_language("en").answer)


@pytest.mark.parametrize(("margin", "verdict"), [(2.0, "pass"), (-2.0, "fail")])
def test_the_verdict_comes_from_the_margin_and_nothing_is_written_for_it(margin: float, verdict: str) -> None:
    chat = FakeChat(lambda _: margin)
    completion = rolled(chat, rollout())
    answer = read(completion)
    assert isinstance(answer, JudgeAnswer)
    assert answer.verdict == verdict
    assert completion.margin == 2.0
    assert f"{margin:+.2f}" in answer.reason
    assert len(chat.asked) == 1
    assert chat.asked[0].choice == ("Verdict:", ("pass", "fail"))


def test_a_reason_is_written_where_somebody_reads_it_and_both_questions_are_paid_for() -> None:
    chat = FakeChat(lambda _: -2.0, lambda _: ChatAnswer(" two tests\nwere skipped", Usage(30, 4, 29)))
    completion = rolled(chat, rollout(reason=True))
    assert completion.text == "Verdict: fail\nReason: two tests"
    assert completion.usage == Usage(50, 5, 44)
    assert chat.asked[1].begun == "Verdict: fail\nReason:"
    assert chat.asked[1].choice is None


def test_a_reason_that_was_cut_off_or_is_empty_takes_nothing_from_the_verdict() -> None:
    cut = FakeChat(writes=lambda _: ChatAnswer("two tests were", finish_reason="length"))
    assert rolled(cut, rollout(reason=True)).text == "Verdict: pass\nReason: two tests were"
    assert rolled(cut, rollout(reason=True)).finish_reason == "stop"
    empty = FakeChat(writes=lambda _: ChatAnswer("\n"))
    assert isinstance(read(rolled(empty, rollout(reason=True))), JudgeAnswer)


def test_without_a_margin_the_answer_is_what_the_model_said_and_no_verdict() -> None:
    completion = rolled(FakeChat(lambda _: None), rollout())
    assert completion.margin is None
    assert isinstance(read(completion), MalformedAnswer)


def test_a_near_tie_is_drawn_both_ways_at_a_high_temperature_and_the_margin_says_which_was_lucky() -> None:
    chat = FakeChat(lambda _: 0.1)
    found = set()
    for sample in range(40):
        completion = rolled(chat, rollout()._replace(decode=Decode(0.7, sample)))
        found.add((completion.text.partition("\n")[0], completion.margin))
    assert found == {("Verdict: pass", 0.1), ("Verdict: fail", -0.1)}


@pytest.mark.parametrize(
    ("text", "margin"),
    [
        ("Verdict: pass", 1.5),
        ("Verdict: fail", -1.5),
        ("Verdict:  Fail", -1.5),
        ("verdict : fail", -1.5),
        ("Verdict：fail", -1.5),
    ],
)
def test_a_model_that_writes_its_verdict_may_tell_the_margin_as_well(text: str, margin: float) -> None:
    class Writes(FakeChat):
        abilities: frozenset[Ability] = frozenset()

        async def complete(self, request: ChatRequest) -> ChatAnswer:
            return ChatAnswer(f"{text}\nReason: so", margin=1.5)

    assert rolled(Writes(), rollout()).margin == margin


def some(label: Binary, texts: Iterable[str]) -> tuple[Case, ...]:
    return tuple(
        Case(f"t{number}::{label}", label, {"text": text}, "pass", "no rule", 3) for number, text in enumerate(texts)
    )


CASES = (
    *some("fail", (f"in round {number} two tests were skipped by us" for number in range(16))),
    *some("pass", (f"in round {number} all tests were run by us" for number in range(16))),
)
FEW = (CASES[0], CASES[16])


def reflection(cases: tuple[Case, ...] = CASES, attempt: int = 0, language: str = "en") -> ReflectionRequest:
    return ReflectionRequest(Prompt("s", "o"), {"G0": RULES["G0"]}, cases, language, {"type": "object"}, 2, attempt)


def proposed(chat: FakeChat, request: ReflectionRequest) -> dict[str, Any]:
    model = LocalModel(chat)
    model.study(request.cases)
    found: dict[str, Any] = json.loads(asyncio.run(model.propose(request)).text)
    return found


def having(condition: str, verdict: str, cases: list[int]) -> Callable[[ChatRequest], ChatAnswer]:
    payload = json.dumps({"condition": condition, "verdict": verdict, "cases": cases})
    return lambda _: ChatAnswer(payload, Usage(100, 20))


def test_an_idea_of_the_model_comes_beside_what_the_contrast_shows() -> None:
    # Three of each are shown, the refused after the accepted.
    chat = FakeChat(writes=having("the report admits a gap.", "fail", [4, 5]))
    found = proposed(chat, reflection())
    idea = found["hypotheses"][-1]
    assert idea["text"] == "If the report admits a gap, the verdict is fail."
    assert idea["evidence"] == ["t0::fail", "t1::fail"]
    assert_sentences(idea["falsifier"])
    assert any(op["op"] == "add" for op in found["operations"])
    schema = chat.asked[0].schema
    assert schema is not None
    assert schema["properties"]["cases"]["items"]["enum"] == [1, 2, 3, 4, 5, 6]


def test_what_the_model_gets_right_by_itself_needs_no_rule() -> None:
    def texts(*how: str) -> Iterable[str]:
        return (f"in round {number} tests were {how[number % len(how)]} by us" for number in range(16))

    # Whatever speaks of skipped tests is refused already; what is left to learn is about ignored ones.
    known = tuple(case._replace(verdict="fail") for case in some("fail", texts("skipped")))
    new = tuple(case._replace(ticket_key=f"n{case.ticket_key}") for case in some("fail", texts("ignored")))
    # No phrase is in all that pass, so that nothing but its own word tells what is new.
    passing = some("pass", texts("run", "kept", "read", "sent"))
    found = proposed(FakeChat(), reflection((*known, *new, *passing), attempt=1))
    first = found["operations"][0]
    assert first["op"] == "add"
    assert '"ignored"' in first["text"]
    assert set(first["evidence"]) == {case.ticket_key for case in new}


FAILS = 'When "skipped" occurs, the verdict is fail.'


def asked_by(rules: dict[str, str], text: str = "two tests were skipped") -> tuple[Completion, int]:
    chat = FakeChat()
    completion = asyncio.run(LocalModel(chat).roll(rollout(text)._replace(rules=rules)))
    return completion, len(chat.asked)


def test_a_rule_that_code_can_follow_decides_without_the_model() -> None:
    completion, asked = asked_by({**RULES, "G1": FAILS})
    answer = read(completion)
    assert isinstance(answer, JudgeAnswer)
    assert answer.verdict == "fail"
    assert "G1" in answer.reason
    assert asked == 0


def test_where_no_such_rule_applies_the_model_decides_and_not_the_default() -> None:
    completion, asked = asked_by({"G0": default_rule("fail", "en"), "G1": FAILS}, "all tests were run")
    assert completion.text.startswith("Verdict: pass")
    assert asked == 1


def test_a_scaffold_that_code_cannot_read_keeps_it_from_deciding_by_lesser_rules() -> None:
    prose = {"S1": "Work for the moon is always fine.", "G1": FAILS}
    assert asked_by(prose)[1] == 1
    assert asked_by({**prose, "S2": FAILS})[1] == 1, "the two may contradict each other"
    assert asked_by({"G1": "Work for the moon is always fine.", "S1": FAILS})[1] == 0, "guidance is below it"


def test_guidance_that_code_cannot_read_keeps_it_from_deciding_by_the_rest() -> None:
    assert asked_by({"G1": FAILS})[1] == 0
    assert asked_by({"G1": FAILS, "G2": "Work for the moon is always fine."})[1] == 1


def test_an_idea_covers_the_cases_that_it_names() -> None:
    # Two cases alone are too few for the contrast.
    chat = FakeChat(writes=having("the report admits a gap", "fail", [2]))
    found = proposed(chat, reflection(FEW))
    covered = found["coverage"]
    assert "t0::fail" in covered["covered_ticket_keys"]
    assert "t0::fail" not in covered["uncovered_ticket_keys"]
    assert sorted(covered["covered_ticket_keys"] + covered["uncovered_ticket_keys"]) == ["t0::fail", "t0::pass"]
    assert found["has_evidence"]


@pytest.mark.parametrize(
    "writes",
    [
        pytest.param(having("the report admits a gap", "fail", [1, 2]), id="it names cases of the other label"),
        pytest.param(having("  . ", "fail", [4]), id="it says nothing"),
        pytest.param(lambda _: ChatAnswer('{"condition": "the rep', finish_reason="length"), id="it is cut off"),
    ],
)
def test_an_idea_that_nothing_bears_out_is_no_hypothesis(writes: Callable[[ChatRequest], ChatAnswer]) -> None:
    found = proposed(FakeChat(writes=writes), reflection())
    assert all(hypothesis["dimension"] != "idea" for hypothesis in found["hypotheses"])
    assert found["operations"]


def test_a_model_that_has_no_idea_does_not_take_away_what_the_contrast_shows() -> None:
    def broken(_: ChatRequest) -> ChatAnswer:
        raise ModelError("away")

    assert proposed(FakeChat(writes=broken), reflection())["operations"]


@pytest.mark.parametrize(
    "request_",
    [
        pytest.param(reflection(attempt=1), id="asked again"),
        pytest.param(reflection(language="de"), id="a language without words"),
        pytest.param(reflection(CASES[:12]), id="one label alone"),
    ],
)
def test_the_model_is_not_asked_where_nothing_can_come_of_it(request_: ReflectionRequest) -> None:
    chat = FakeChat()
    proposed(chat, request_)
    assert chat.asked == []


def test_long_cases_are_cut_in_the_middle_and_only_a_few_are_shown() -> None:
    texts = [f"start {number} {'x' * 5000} end {number}" for number in range(8)]
    long = (*some("pass", texts), *some("fail", texts))
    chat = FakeChat(writes=having("the report admits a gap", "fail", [5]))
    proposed(chat, reflection(long))
    shown = chat.asked[0].messages[-1].content
    assert shown.count("Case ") == 6
    assert len(shown) < 4000
    assert "[…]" in shown


def test_cases_that_were_judged_wrong_are_shown_first() -> None:
    right = tuple(Case(f"r{n}::fail", "fail", {"text": f"right {n}"}, "fail", "", 0, 3) for n in range(4))
    chat = FakeChat(writes=having("the report admits a gap", "fail", [4]))
    proposed(chat, reflection((*right, *FEW)))
    shown = chat.asked[0].messages[-1].content
    assert "two tests were skipped" in shown
    assert [f"right {n}" in shown for n in range(4)] == [True, True, False, False]


class TestLocalOnAFake(ModelContract):
    def model(self) -> LocalModel:
        return LocalModel(FakeChat(writes=lambda request: _anything(request)))

    def failing_model(self) -> None:
        return None


def _anything(request: ChatRequest) -> ChatAnswer:
    if request.schema is None:
        return ChatAnswer(" it is there")
    return ChatAnswer(json.dumps({"condition": "a test was skipped", "verdict": "fail", "cases": [2]}))
