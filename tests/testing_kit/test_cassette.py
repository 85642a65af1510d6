"""Cassettes: what a model has said is recorded once, and said again without it."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.errors import ConfigError, DonewhenError, UsageError
from donewhen.models.contrast import Contrast
from donewhen.models.roles import (
    Case,
    Closable,
    Completion,
    Decode,
    Model,
    ModelError,
    Prompt,
    ReflectionRequest,
    RolloutRequest,
    Usage,
)
from donewhen.testing import Cassette, CassetteError, ModelContract, ScriptedJudge
from sentences import assert_sentences

FORMAT = "donewhen/cassette/v1"


@pytest.fixture(autouse=True)
def _no_override(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DONEWHEN_CASSETTES", raising=False)


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "tapes" / "one.jsonl"


def rollout(own: str = "a ticket", temperature: float = 0.4, sample: int = 2, shared: str = "rules") -> RolloutRequest:
    return RolloutRequest(Prompt(shared, own), {}, {"text": own}, Decode(temperature, sample), "en")


def reflection(attempt: int = 0) -> ReflectionRequest:
    case = Case("a::fail", "fail", {"text": "skipped"}, "pass", "why not")
    return ReflectionRequest(Prompt("rules", "cases"), {}, (case,), "en", {"type": "object"}, 2, attempt)


def echo(name: str = "scripted/1", **more: Any) -> ScriptedJudge:
    return ScriptedJudge(lambda request: f"Verdict: pass\nReason: {request.prompt.own}", name=name, **more)


def rolled(model: Model, *requests: RolloutRequest) -> list[Completion]:
    async def asked() -> list[Completion]:
        return [await model.roll(request) for request in requests or (rollout(),)]

    return asyncio.run(asked())


def recorded(tape: Path, *owns: str, **more: Any) -> ScriptedJudge:
    """A tape with the answers to some tickets, and the model that gave them."""
    model = echo(**more)
    with Cassette(tape, model) as cassette:
        rolled(cassette, *map(rollout, owns or ("a ticket",)))
    return model


def lines(tape: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tape.read_text(encoding="utf-8").splitlines()]


# Recording and replaying


def test_what_was_said_is_said_again_without_the_model(tape: Path) -> None:
    message = Completion("a\nb  \u2028 \u901a\u8fc7 \ud800", Usage(7, 5, 3), "length", -0.25, 1.5e-5)
    model = ScriptedJudge(lambda _: message, lambda _: {"of": "decide"}, lambda request: {"of": request.attempt})

    async def asked(model: Model) -> list[Completion]:
        return [
            await model.roll(rollout()),
            await model.decide(reflection()),
            await model.propose(reflection()),
            await model.propose(reflection(1)),
        ]

    with Cassette(tape, model) as cassette:
        first = asyncio.run(asked(cassette))
    assert first[0] == message
    assert [answer.text for answer in first[1:]] == ['{"of": "decide"}', '{"of": 0}', '{"of": 1}']
    assert asyncio.run(asked(Cassette(tape))) == first
    assert model.calls == 4


def test_every_draw_is_a_question_of_its_own(tape: Path) -> None:
    answers = iter("abc")
    draws = [rollout(), rollout(temperature=0.7), rollout(sample=3)]
    with Cassette(tape, ScriptedJudge(lambda _: next(answers))) as cassette:
        assert [answer.text for answer in rolled(cassette, *draws)] == ["a", "b", "c"]
    assert [answer.text for answer in rolled(Cassette(tape), *reversed(draws))] == ["c", "b", "a"]


def test_what_is_not_there_yet_is_asked_for_and_the_rest_is_not(tape: Path) -> None:
    recorded(tape, "one")
    model = echo()
    with Cassette(tape, model) as cassette:
        rolled(cassette, rollout("one"), rollout("two"), rollout("two"))
    assert [request.prompt.own for request in model.rollouts] == ["two"]
    assert len(rolled(Cassette(tape), rollout("one"), rollout("two"))) == 2


def test_the_same_question_at_the_same_time_has_one_answer(tape: Path) -> None:
    answers = iter("ab")

    async def slow() -> str:
        text = next(answers)
        await asyncio.sleep(0)
        return text

    async def both(cassette: Model) -> list[Completion]:
        return await asyncio.gather(cassette.roll(rollout()), cassette.roll(rollout()))

    with Cassette(tape, ScriptedJudge(lambda _: slow())) as cassette:
        assert [answer.text for answer in asyncio.run(both(cassette))] == ["a", "a"]
    assert rolled(Cassette(tape))[0].text == "a"


def test_a_model_that_has_no_answer_has_none_again(tape: Path) -> None:
    def away(_: object) -> str:
        raise ModelError("It is not there.", where="somewhere")

    with Cassette(tape, ScriptedJudge(away)) as cassette, pytest.raises(ModelError) as first:
        rolled(cassette)
    with pytest.raises(ModelError) as again:
        rolled(Cassette(tape))
    assert str(again.value) == str(first.value) == "somewhere: It is not there."


def test_other_errors_are_not_recorded(tape: Path) -> None:
    def broke(_: object) -> str:
        raise ConfigError("no key")

    with Cassette(tape, ScriptedJudge(broke)) as cassette, pytest.raises(ConfigError):
        rolled(cassette)
    assert not tape.exists()


def test_a_replay_has_the_identity_of_the_model(tape: Path) -> None:
    recorded(tape, name="big/7", free=True)
    replay = Cassette(tape)
    assert (replay.name, replay.free, replay.priced) == ("big/7", True, True)


def test_whether_its_price_is_known_is_kept(tape: Path) -> None:
    class Unpriced(ScriptedJudge):
        priced = False

    with Cassette(tape, Unpriced(lambda _: "x")) as cassette:
        rolled(cassette)
        assert not cassette.priced
    assert not Cassette(tape).priced


def test_a_model_that_studies_has_studied_before_it_is_asked(tape: Path) -> None:
    class Student(ScriptedJudge):
        seen: Sequence[Case] = ()

        def study(self, cases: Sequence[Case]) -> None:
            self.seen = cases

    def propose(_: ReflectionRequest) -> dict[str, Any]:
        return {"seen": [case.ticket_key for case in model.seen]}

    async def asked(model: Cassette) -> str:
        model.study(reflection().cases)
        return (await model.propose(reflection())).text

    model = Student(lambda _: "x", None, propose)
    with Cassette(tape, model) as cassette:
        assert asyncio.run(asked(cassette)) == '{"seen": ["a::fail"]}'
    assert asyncio.run(asked(Cassette(tape))) == '{"seen": ["a::fail"]}'


def test_whoever_lets_go_of_it_lets_go_of_the_model_and_puts_the_tape_in_order(tape: Path) -> None:
    class Held(ScriptedJudge):
        closed = 0

        async def aclose(self) -> None:
            self.closed += 1

    async def asked(cassette: Cassette) -> None:
        for own in ("b", "a"):
            await cassette.roll(rollout(own))
        await cassette.aclose()

    model = Held(lambda _: "x")
    cassette = Cassette(tape, model)
    assert isinstance(cassette, Closable)
    asyncio.run(asked(cassette))
    assert model.closed == 1
    assert [line["question"][0] for line in lines(tape)[1:]] == ["a", "b"]


def test_a_model_named_by_a_string_is_opened_when_it_is_asked(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    recorded(tape, "one", name="openai:large")
    cassette = Cassette(tape, "openai:large")
    assert rolled(cassette, rollout("one"))[0].text.endswith("one")
    with pytest.raises(DonewhenError) as caught:
        rolled(cassette, rollout("two"))
    assert caught.value.code in ("config", "missing_extra")


def test_a_string_chooses_what_is_recorded(tape: Path) -> None:
    with Cassette(tape, "contrast") as cassette:
        first = rolled(cassette)
    assert lines(tape)[0]["chosen"] == "contrast"
    assert (Cassette(tape).name, rolled(Cassette(tape, "contrast"))) == (Contrast().name, first)
    with pytest.raises(CassetteError) as caught:
        Cassette(tape, "openai:large")
    assert_sentences(caught.value)


# What is not on the tape


def test_what_is_not_on_the_tape_stops_everything_and_is_named(tape: Path) -> None:
    recorded(tape, "one")
    with pytest.raises(CassetteError) as caught:
        rolled(Cassette(tape), rollout("another\nticket"))
    assert not isinstance(caught.value, ModelError)
    assert_sentences(caught.value.message)
    assert caught.value.where == str(tape)
    assert_sentences(caught.value.next_step)


@pytest.mark.parametrize(("method", "called"), [("decide", "decision pass"), ("propose", "ops pass")])
def test_reflection_that_is_not_on_the_tape_is_named_by_its_cases(tape: Path, method: str, called: str) -> None:
    recorded(tape)
    with pytest.raises(CassetteError) as caught:
        asyncio.run(getattr(Cassette(tape), method)(reflection(1)))
    assert_sentences(caught.value)


def test_a_ticket_under_other_rules_is_another_question_and_that_is_said(tape: Path) -> None:
    recorded(tape, "one")
    with pytest.raises(CassetteError) as caught:
        rolled(Cassette(tape), rollout("one", shared="other rules"))
    assert_sentences(caught.value)


def test_without_a_tape_there_is_nothing_to_replay(tape: Path) -> None:
    with pytest.raises(CassetteError) as caught:
        Cassette(tape)
    assert_sentences(caught.value)
    assert not tape.parent.exists()


def test_a_tape_of_another_model_is_not_taken_for_its_answers(tape: Path) -> None:
    recorded(tape, name="one")
    with pytest.raises(CassetteError) as caught:
        Cassette(tape, echo("two"))
    assert_sentences(caught.value)


# How to record


def test_none_asks_nothing_although_there_is_a_model(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tape, "one")
    model = echo()
    monkeypatch.setenv("DONEWHEN_CASSETTES", "none")
    rolled(Cassette(tape, model), rollout("one"))
    for cassette in (Cassette(tape, model), Cassette(tape, model, record="none")):
        with pytest.raises(CassetteError) as caught:
            rolled(cassette, rollout("two"))
        assert_sentences(caught.value)
    assert model.calls == 0
    with Cassette(tape, model, record="new") as cassette:
        rolled(cassette, rollout("two"))
    assert model.calls == 1


def test_all_asks_everything_again_and_keeps_what_was_not_asked(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tape, "one", "two")
    model = ScriptedJudge(lambda _: "other")
    monkeypatch.setenv("DONEWHEN_CASSETTES", "all")
    with Cassette(tape, model) as cassette:
        rolled(cassette, rollout("one"), rollout("one"), rollout("three"))
    assert model.calls == 2
    found = rolled(Cassette(tape), rollout("one"), rollout("two"), rollout("three"))
    assert [answer.text for answer in found] == ["other", "Verdict: pass\nReason: two", "other"]


def test_a_tape_that_is_recorded_again_can_be_read_meanwhile(tape: Path) -> None:
    recorded(tape, "one")
    cassette = Cassette(tape, ScriptedJudge(lambda _: "other"), record="all")
    rolled(cassette, rollout("one"), rollout("two"))
    found = rolled(Cassette(tape), rollout("one"), rollout("two"))
    assert [answer.text for answer in found] == ["Verdict: pass\nReason: one", "other"]
    cassette.close()


def test_all_takes_the_place_of_another_models_tape(tape: Path) -> None:
    recorded(tape, "one", "two", name="before")
    with Cassette(tape, echo("after"), record="all") as cassette:
        rolled(cassette, rollout("one"))
    assert Cassette(tape).name == "after"
    assert len(lines(tape)) == 2


def test_a_way_to_record_that_is_none_is_refused(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DONEWHEN_CASSETTES", "sometimes")
    with pytest.raises(ConfigError) as caught:
        Cassette(tape, echo())
    assert_sentences(caught.value)
    with pytest.raises(UsageError) as caught:
        Cassette(tape, record="new")
    assert_sentences(caught.value)


# The file


def test_a_tape_can_be_read_by_people(tape: Path) -> None:
    recorded(tape, "an order that went through")
    header, entry = lines(tape)
    assert header == {"format": FORMAT, "free": False, "model": "scripted/1", "priced": True}
    assert entry.pop("key").startswith("sha256:")
    assert entry == {
        "role": "rollout",
        "question": "an order that went through (temperature 0.4, sample 2)",
        "answer": {
            "text": "Verdict: pass\nReason: an order that went through",
            "prompt_tokens": 10,
            "completion_tokens": 12,
            "cached_tokens": 0,
            "finish_reason": "stop",
            "margin": None,
            "cost": 0.0,
        },
    }


def test_the_same_answers_are_the_same_bytes_in_whichever_order_they_came(tmp_path: Path) -> None:
    tapes = [tmp_path / "a.jsonl", tmp_path / "b.jsonl", tmp_path / "c.jsonl"]
    recorded(tapes[0], "1", "2", "3")
    recorded(tapes[1], "3", "1", "2")
    recorded(tapes[2], "2")
    recorded(tapes[2], "3", "1")
    assert len({path.read_bytes() for path in tapes}) == 1


def test_a_replay_leaves_the_file_alone(tape: Path) -> None:
    recorded(tape, "b", "a")
    header, *entries = tape.read_bytes().splitlines(keepends=True)
    before = b"".join([header, *reversed(entries)])
    tape.write_bytes(before)
    with Cassette(tape, echo()) as cassette:
        rolled(cassette, rollout("a"), rollout("b"))
    assert tape.read_bytes() == before


def _header(**more: Any) -> bytes:
    payload = {"format": FORMAT, "model": "scripted/1", "free": False, "priced": True} | more
    return json.dumps(payload).encode() + b"\n"


def test_nothing_of_the_environment_is_on_the_tape(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "open-sesame-1")
    monkeypatch.setenv("DONEWHEN_CASSETTES", "new")

    def leaks(request: RolloutRequest) -> str:
        raise ModelError(f"The key {os.environ['OPENAI_API_KEY']} was refused.")

    with Cassette(tape, ScriptedJudge(leaks)) as cassette, pytest.raises(ModelError) as caught:
        rolled(cassette, rollout("my key is open-sesame-1, and the ticket goes on"))
    assert_sentences(caught.value)
    text = tape.read_text()
    assert "open-sesame-1" not in text
    assert not any(value in text for value in (os.environ["PATH"], str(Path.cwd()), str(tape)))


_KILLED = """
import asyncio, os, sys
from donewhen.testing import Cassette, ScriptedJudge
from donewhen.models.roles import Decode, Prompt, RolloutRequest
cassette = Cassette(sys.argv[1], ScriptedJudge(lambda one: "said"))
for own in ("one", "two"):
    asyncio.run(cassette.roll(RolloutRequest(Prompt("rules", own), {}, {"text": own}, Decode(0.4, 2), "en")))
os.kill(os.getpid(), 9)
"""


def test_whoever_is_killed_has_lost_no_answer(tape: Path) -> None:
    done = subprocess.run([sys.executable, "-c", _KILLED, str(tape)], timeout=60, check=False)
    assert done.returncode == -9
    assert [answer.text for answer in rolled(Cassette(tape), rollout("one"), rollout("two"))] == ["said", "said"]
    assert len(recorded(tape, "one", "two", "three").rollouts) == 1


def test_half_a_line_at_the_end_is_recorded_again(tape: Path) -> None:
    recorded(tape, "a", "b")
    whole = tape.read_bytes()
    tape.write_bytes(whole[:-20])
    with pytest.raises(CassetteError) as caught:
        Cassette(tape)
    assert_sentences(caught.value)
    assert caught.value.where == f"{tape}:3"
    assert len(recorded(tape, "a", "b").rollouts) == 1
    assert tape.read_bytes() == whole


def test_an_answer_without_the_end_of_its_line_is_one(tape: Path) -> None:
    recorded(tape, "a")
    tape.write_bytes(tape.read_bytes()[:-1])
    assert len(recorded(tape, "a", "b").rollouts) == 1
    assert len(lines(tape)) == 3


@pytest.mark.parametrize("lost", [1, 20])
def test_what_is_recorded_behind_a_bad_end_can_be_read_at_once(tape: Path, lost: int) -> None:
    recorded(tape, "a", "b")
    tape.write_bytes(tape.read_bytes()[:-lost])
    cassette = Cassette(tape, echo())
    rolled(cassette, rollout("c"))
    # As whoever comes after one that is killed here.
    assert len(rolled(Cassette(tape), rollout("a"), rollout("c"))) == 2
    cassette.close()


def test_an_empty_file_is_a_tape_to_be(tape: Path) -> None:
    tape.parent.mkdir()
    tape.touch()
    recorded(tape, "a")
    assert len(lines(tape)) == 2


ENTRY = '{"key": "k", "role": "rollout", "question": "q", "error": "e"}\n'


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"\xff\xfe\n", 1),
        (b"hello\n", 1),
        (b"[]\n", 1),
        (b"\n", 1),
        (_header(format="donewhen/cassette/v2"), 1),
        (_header(more=1), 1),
        (_header() + b'{"key": "k", "rol\n', 2),
        (_header() + ENTRY.encode() + b"\n", 3),
        (_header() + ENTRY.replace("rollout", "song").encode(), 2),
        (_header() + ENTRY.replace('"e"', "null").encode(), 2),
        (_header() + ENTRY.replace('"q"', '"q", "key": "l"').encode(), 2),
        (_header() + ENTRY.replace('"e"', '"\xff"').encode("latin-1"), 2),
        (_header() + (ENTRY + ENTRY.replace('"e"', '"f"')).encode(), 3),
        (_header() + b"[" * 100_000 + b"\n", 2),
    ],
    ids=str,
)
def test_a_broken_tape_is_named_with_its_line(tape: Path, content: bytes, line: int) -> None:
    tape.parent.mkdir()
    tape.write_bytes(content)
    for opened in (lambda: Cassette(tape), lambda: Cassette(tape, echo())):
        with pytest.raises(CassetteError) as caught:
            opened()
        assert_sentences(caught.value.message)
        assert caught.value.where == f"{tape}:{line}"
    assert tape.read_bytes() == content


def test_the_same_answer_twice_is_one(tape: Path) -> None:
    recorded(tape)
    header, entry = tape.read_bytes().splitlines()
    tape.write_bytes(b"\n".join([header, entry, entry, b""]))
    assert len(rolled(Cassette(tape))) == 1


def test_a_folder_is_no_tape(tmp_path: Path) -> None:
    for opened in (lambda: Cassette(tmp_path), lambda: Cassette(tmp_path, echo())):
        with pytest.raises(CassetteError) as caught:
            opened()
        assert_sentences(caught.value)
        assert caught.value.where == str(tmp_path)


def test_a_tape_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cassette = Cassette(tmp_path / "file2" / "tape.jsonl", echo())
    (tmp_path / "file2").touch()
    with pytest.raises(CassetteError) as caught:
        rolled(cassette)
    assert_sentences(caught.value)


def _full(*_: object, **__: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_disk_that_is_full_is_named_and_others_may_record_then(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded(tape, "one")
    before = tape.read_bytes()
    cassette = Cassette(tape, echo())
    with monkeypatch.context() as patched:
        patched.setattr(os, "write", _full)
        with pytest.raises(CassetteError) as caught:
            rolled(cassette, rollout("two"))
        assert_sentences(caught.value)
        with pytest.raises(CassetteError) as caught:
            rolled(Cassette(tape.with_name("new.jsonl"), echo()))
        assert_sentences(caught.value)
    with monkeypatch.context() as patched:
        patched.setattr("donewhen.testing._tape.write_atomically", _full)
        with pytest.raises(CassetteError) as caught:
            cassette.close()
        assert_sentences(caught.value)
    assert tape.read_bytes() == before
    recorded(tape, "two")
    recorded(tape.with_name("new.jsonl"))


# Several at once


def test_only_one_records_at_a_time_and_the_others_are_told(tape: Path) -> None:
    first, second = Cassette(tape, echo()), Cassette(tape, echo())
    rolled(first, rollout("one"))
    with pytest.raises(CassetteError) as caught:
        rolled(second, rollout("two"))
    assert_sentences(caught.value)
    first.close()
    rolled(second, rollout("two"))
    second.close()
    assert len(rolled(Cassette(tape), rollout("one"), rollout("two"))) == 2


def test_what_others_have_recorded_meanwhile_counts(tape: Path) -> None:
    late = ScriptedJudge(lambda _: "late")
    cassette = Cassette(tape, late)
    recorded(tape, "one", "two")
    assert [answer.text for answer in rolled(cassette, rollout("one"), rollout("two"))] == [
        "Verdict: pass\nReason: one",
        "Verdict: pass\nReason: two",
    ]
    cassette.close()
    assert late.calls == 1
    assert len(lines(tape)) == 3


def test_whoever_comes_as_another_ends_records_on_the_file_that_is_there_now(
    tape: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, came = fcntl.flock, False

    def late(descriptor: int, how: int) -> None:
        nonlocal came
        if not came:
            came = True
            # In a thread, because an event loop is running here.
            with ThreadPoolExecutor(1) as other:
                other.submit(recorded, tape, "theirs").result()
        lock(descriptor, how)

    cassette = Cassette(tape, echo())
    monkeypatch.setattr(fcntl, "flock", late)
    rolled(cassette, rollout("mine"))
    assert len(rolled(Cassette(tape), rollout("mine"), rollout("theirs"))) == 2
    cassette.close()


def test_a_tape_that_became_another_models_meanwhile_is_left_alone(tape: Path) -> None:
    cassette = Cassette(tape, echo("mine"))
    recorded(tape, name="theirs")
    before = tape.read_bytes()
    with pytest.raises(CassetteError) as caught:
        rolled(cassette)
    assert_sentences(caught.value)
    cassette.close()
    assert tape.read_bytes() == before
    recorded(tape, "more", name="theirs")


# The contract


class _Recorded(ModelContract):
    @pytest.fixture(autouse=True)
    def _tape(self, tmp_path: Path) -> None:
        self.tape = tmp_path / "tape.jsonl"
        self.failures = tmp_path / "failures.jsonl"

    def behind(self) -> Model:
        return ScriptedJudge(lambda _: "Verdict: pass\nReason: the log is attached")

    def broken(self) -> Model:
        def away(_: object) -> str:
            raise ModelError("away")

        return ScriptedJudge(away, away, away)


class TestRecording(_Recorded):
    def model(self) -> Model:
        return Cassette(self.tape, self.behind())

    def failing_model(self) -> Model:
        return Cassette(self.failures, self.broken())


class TestRecordingContrast(_Recorded):
    def model(self) -> Model:
        return Cassette(self.tape, "contrast")


class TestReplaying(_Recorded):
    def model(self) -> Model:
        if not self.tape.exists():
            self.record(self.tape, self.behind())
        return Cassette(self.tape)

    def failing_model(self) -> Model:
        self.record(self.failures, self.broken())
        return Cassette(self.failures)

    def record(self, tape: Path, model: Model) -> None:
        """Everything that the contract asks."""
        rolls = [self.rollout(), self.rollout(0.7, 1), *(self.rollout(0.7, sample) for sample in range(16))]

        async def asked(cassette: Cassette) -> None:
            calls: list[Callable[[], Any]] = [lambda roll=roll: cassette.roll(roll) for roll in rolls]
            calls += [lambda: cassette.decide(self.reflection("decide"))]
            calls += [lambda at=at: cassette.propose(self.reflection("propose", at)) for at in range(2)]
            await asyncio.gather(*(call() for call in calls), return_exceptions=True)

        with Cassette(tape, model) as cassette:
            asyncio.run(asked(cassette))
