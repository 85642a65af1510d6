"""The judge, with models of many behaviours: a bad answer is data, order is kept, and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from judging_kit import FAIL, PASS, RULES, Scripted, many, mission_in, ticket

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.judging.guidance import GuidanceChange, apply_change
from donewhen.judging.judge import Judge
from donewhen.judging.language import SHIPPED
from donewhen.judging.mission import Mission
from donewhen.judging.ticket import Ticket
from donewhen.judging.verdict import Verdict
from donewhen.models.roles import Completion, Decode, ModelError, RolloutRequest, Usage
from sentences import assert_sentences


def judge_of(folder: Path, model: object, toml: str = "") -> Judge:
    mission = mission_in(folder, toml)
    return Judge(mission, mission.guidance(), model)  # type: ignore[arg-type]


def judged(folder: Path, *answers: str | Completion | ModelError, label: str | None = "pass") -> Verdict:
    """A verdict on one ticket, with so many answers."""
    left = iter(answers)

    def answer(request: RolloutRequest) -> str | Completion:
        said = next(left)
        if isinstance(said, ModelError):
            raise said
        return said

    toml = f"[[sampler]]\ntemperature = 0.5\nsamples = {len(answers)}\n"
    return judge_of(folder, Scripted(answer), toml).judge(ticket(label=label))  # type: ignore[arg-type]


# One ticket


def test_every_decode_is_one_vote(tmp_path: Path) -> None:
    model = Scripted(lambda request: PASS if request.decode.temperature < 0.5 else FAIL)
    verdict = judge_of(tmp_path, model).judge(ticket("QC-1", "pass"))
    assert [request.decode for request in model.requests] == [Decode(0.1, 0), Decode(0.4, 0), Decode(0.7, 0)]
    assert (verdict.verdict, verdict.passes, verdict.fails, verdict.malformed) == ("pass", 2, 1, 0)
    assert verdict.reason == "the seal is there"
    assert verdict.signals.low_agreement
    assert verdict.signals.contradiction
    assert verdict.answers == (
        ("pass", "the seal is there"),
        ("pass", "the seal is there"),
        ("fail", "the seal is missing"),
    )


def test_a_model_is_given_the_rules_in_their_order_the_evidence_and_the_language(tmp_path: Path) -> None:
    model = Scripted(lambda request: PASS)
    judge_of(tmp_path, model).judge(ticket(image_2="b", image_1="a"))
    request = model.requests[0]
    assert list(request.rules.items()) == list(RULES.items())
    assert list(request.evidence.items()) == [("image_2", "b"), ("image_1", "a")]
    assert request.language == "en"
    assert all(text in request.prompt.shared for text in RULES.values())


def test_the_language_of_a_request_is_the_name_of_the_language_however_it_was_found(tmp_path: Path) -> None:
    model = Scripted(lambda request: "判定：通过\n理由：有")
    shutil.copytree(SHIPPED / "zh", tmp_path / "words")
    assert judge_of(tmp_path, model, 'language = "./words"\n').judge(ticket()).verdict == "pass"
    assert {request.language for request in model.requests} == {"zh"}


def test_one_malformed_vote_does_not_discard_the_ticket(tmp_path: Path) -> None:
    verdict = judged(tmp_path, PASS, "I would say pass.", PASS)
    assert (verdict.verdict, verdict.passes, verdict.fails, verdict.malformed) == ("pass", 2, 0, 1)
    assert verdict.signals.vote_strength == 1.0
    assert verdict.signals.needs_manual_review
    assert not verdict.signals.low_agreement
    assert verdict.answers[1] == ("no_verdict_line", "I would say pass.")


def test_one_good_vote_among_malformed_ones_decides(tmp_path: Path) -> None:
    verdict = judged(tmp_path, "", FAIL, "Verdict: maybe\nReason: x")
    assert (verdict.verdict, verdict.malformed, verdict.signals.vote_strength) == ("fail", 2, 1.0)


@pytest.mark.parametrize("label", ["pass", "fail", None])
def test_when_every_vote_is_malformed_the_failure_is_on_record(tmp_path: Path, label: str | None) -> None:
    verdict = judged(tmp_path, "?", "", "Verdict: pass", label=label)
    assert (verdict.verdict, verdict.reason, verdict.malformed) == (None, "", 3)
    assert verdict.ticket_key == ("QC-1" if label is None else f"QC-1::{label}")
    assert verdict.signals.needs_manual_review
    assert verdict.signals.low_agreement
    assert verdict.signals.vote_strength == 0.0
    assert verdict.signals.label_match is (None if label is None else False)
    assert verdict.signals.conflict_flag is (label is not None)
    assert [vote for vote, _ in verdict.answers] == ["no_verdict_line", "empty", "no_reason_line"]


def test_a_model_that_gives_no_answer_is_data_and_no_crash(tmp_path: Path) -> None:
    verdict = judged(tmp_path, PASS, ModelError("The server is away."), PASS)
    assert (verdict.verdict, verdict.malformed) == ("pass", 1)
    assert verdict.answers[1] == ("no_answer", "The server is away.")
    nothing = judged(tmp_path, *[ModelError("The server is away.")] * 3)
    assert (nothing.verdict, nothing.malformed) == (None, 3)


@pytest.mark.parametrize("reason", ["length", "refused"])
def test_an_answer_that_did_not_end_by_itself_is_no_vote(tmp_path: Path, reason: str) -> None:
    verdict = judged(tmp_path, Completion(FAIL, Usage(), reason), PASS)  # type: ignore[arg-type]
    assert (verdict.verdict, verdict.malformed, verdict.answers[0][0]) == ("pass", 1, "cut_off")


def test_a_defect_of_a_model_is_not_taken_for_an_answer(tmp_path: Path) -> None:
    def broken(request: RolloutRequest) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        judge_of(tmp_path, Scripted(broken)).judge(ticket())


def test_the_margins_of_the_votes_are_kept(tmp_path: Path) -> None:
    verdict = judged(tmp_path, Completion(PASS, margin=0.5), Completion(FAIL, margin=-1.5), Completion("?", margin=9.0))
    assert verdict.margin == -0.5
    assert judged(tmp_path, PASS).margin is None


def test_a_verdict_names_the_step_of_the_guidance_that_it_was_made_under(tmp_path: Path) -> None:
    mission = mission_in(tmp_path)
    add = GuidanceChange(op="add", text="A torn seal: fail.", evidence=("QC-1::fail",))
    later = apply_change(mission.guidance(), add, "")
    model = Scripted(lambda request: FAIL if "A torn seal" in request.prompt.shared else PASS)
    before, after = (
        Judge(mission, guidance_version, model).judge(ticket()) for guidance_version in (mission.guidance(), later)
    )
    assert [(item.verdict, item.guidance_step) for item in (before, after)] == [("pass", 0), ("fail", 1)]


def test_guidance_that_is_changed_meanwhile_does_not_change_the_judge(tmp_path: Path) -> None:
    mission = mission_in(tmp_path)
    guidance = mission.guidance()
    model = Scripted(lambda request: PASS)
    judge = Judge(mission, guidance, model)
    mission.store.seed(guidance)
    mission.store.apply(GuidanceChange(op="update", key="G0", text="Other.", evidence=("QC-1::fail",)), "me")
    judge.judge(ticket())
    assert model.requests[0].rules["G0"] == RULES["G0"]


def test_overrides_have_the_last_word_and_the_votes_stay_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "def open_door(ticket, vote):\n    return 'fail' if 'open' in ticket.text else None\n"
    )
    judge = judge_of(tmp_path, Scripted(lambda request: PASS), 'overrides = ["mine.py:open_door"]\n')
    verdict = judge.judge(ticket("QC-1", "fail", log="an open door"))
    assert (verdict.verdict, verdict.overridden_by, verdict.passes) == ("fail", "mine.py:open_door", 3)
    assert (verdict.signals.label_match, verdict.signals.conflict_flag) == (True, False)
    other = judge.judge(ticket("QC-2", "pass", log="a closed door"))
    assert (other.verdict, other.overridden_by) == ("pass", None)


def test_an_override_that_says_nonsense_stops_the_judging(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def odd(ticket, vote):\n    return 'maybe'\n")
    judge = judge_of(tmp_path, Scripted(lambda request: PASS), 'overrides = ["mine.py:odd"]\n')
    with pytest.raises(ConfigError) as caught:
        list(judge.judge_all(many(20)))
    assert_sentences(caught.value)


def test_the_same_ticket_gets_the_same_verdict_whatever_came_before(tmp_path: Path) -> None:
    judge = judge_of(tmp_path, Scripted(lambda request: PASS if "7" in request.prompt.own else FAIL))
    alone = judge.judge(ticket("QC-7", image_1="cabinet 7"))
    assert list(judge.judge_all(many(9)))[7] == alone


def test_inside_of_a_running_loop_it_says_what_to_write_instead(tmp_path: Path) -> None:
    judge = judge_of(tmp_path, Scripted(lambda request: PASS))

    async def main() -> Verdict:
        with pytest.raises(UsageError) as caught:
            judge.judge(ticket())
        assert_sentences(caught.value)
        with pytest.raises(UsageError) as caught:
            next(judge.judge_all([ticket()]))
        assert_sentences(caught.value)
        return await judge.judged(ticket())

    assert asyncio.run(main()) == judge.judge(ticket())
    gc.collect()


# Many tickets


class Uneven:
    """Takes its time, differently for each ticket, and knows how many it has at once."""

    def __init__(self, seed: int = 1) -> None:
        self.random = random.Random(seed)
        self.now: set[str] = set()
        self.most = 0
        self.finished = 0
        self.cancelled = 0

    async def roll(self, request: RolloutRequest) -> Completion:
        text = request.evidence["image_1"]
        self.now.add(text)
        self.most = max(self.most, len(self.now))
        try:
            for _ in range(self.random.randrange(1, 8)):
                await asyncio.sleep(0)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.now.discard(text)
        self.finished += 1
        return Completion(f"Verdict: pass\nReason: {text}")


@pytest.mark.parametrize("concurrency", [1, 2, 7, 64])
@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 50])
def test_verdicts_come_in_the_order_of_the_tickets_and_no_more_at_once_than_allowed(
    tmp_path: Path, concurrency: int, count: int
) -> None:
    model = Uneven()
    judge = judge_of(tmp_path, model, f"concurrency = {concurrency}\n")
    found = list(judge.judge_all(many(count)))
    assert [verdict.group_id for verdict in found] == [f"QC-{number}" for number in range(count)]
    assert [verdict.reason for verdict in found] == [f"cabinet {number}" for number in range(count)]
    assert model.most == min(concurrency, count)
    assert model.finished == 3 * count


def test_a_ticket_that_takes_long_keeps_no_other_from_being_judged(tmp_path: Path) -> None:
    class OneWaits(Uneven):
        async def roll(self, request: RolloutRequest) -> Completion:
            if request.evidence["image_1"].endswith(" 0"):
                # Until ten others were judged, three votes each: far more than are judged at once.
                while self.finished < 30:
                    await asyncio.sleep(0)
            return await super().roll(request)

    found = list(judge_of(tmp_path, OneWaits(), "concurrency = 4\n").judge_all(many(15)))
    assert [verdict.group_id for verdict in found] == [f"QC-{number}" for number in range(15)]


def test_no_more_tickets_are_read_than_a_few_times_as_many_as_are_judged_at_once(tmp_path: Path) -> None:
    read = 0

    def counting() -> Iterator[Ticket]:
        nonlocal read
        for counted in many(100):
            read += 1
            yield counted

    judge = judge_of(tmp_path, Uneven(), "concurrency = 5\n")
    for number, _ in enumerate(judge.judge_all(counting()), 1):
        assert read <= number + 4 * 5
    assert (number, read) == (100, 100)


def test_a_slow_ticket_holds_up_its_verdict_and_not_the_work_on_others(tmp_path: Path) -> None:
    done: list[str] = []

    class Slow:
        async def roll(self, request: RolloutRequest) -> Completion:
            text = request.evidence["image_1"]
            if text == "cabinet 0":
                while len(done) < 3:
                    await asyncio.sleep(0)
            elif request.decode.temperature == 0.7:
                done.append(text)
            return Completion(PASS)

    verdicts = judge_of(tmp_path, Slow(), "concurrency = 4\n").judge_all(many(30))
    assert next(verdicts).group_id == "QC-0"
    assert done == ["cabinet 1", "cabinet 2", "cabinet 3"]
    assert [verdict.group_id for verdict in verdicts] == [f"QC-{number}" for number in range(1, 30)]


@pytest.mark.parametrize("taken", [0, 1, 10])
def test_a_stream_that_is_closed_early_leaves_nothing_running(tmp_path: Path, taken: int) -> None:
    model = Uneven()
    judge = judge_of(tmp_path, model, "concurrency = 6\n")

    async def main() -> int:
        stream = judge.stream(many(1000))
        for number in range(taken):
            assert (await anext(stream)).group_id == f"QC-{number}"
        await stream.aclose()
        return len(asyncio.all_tasks()) - 1

    assert asyncio.run(main()) == 0
    assert not model.now
    assert model.finished < 3 * (taken + 7)


def test_a_consumer_that_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    class Stuck:
        started = 0

        async def roll(self, request: RolloutRequest) -> Completion:
            self.started += 1
            await asyncio.Event().wait()
            raise AssertionError

    model = Stuck()
    judge = judge_of(tmp_path, model, "concurrency = 3\n")

    async def consume() -> None:
        async for _ in judge.stream(many(10)):
            raise AssertionError

    async def main() -> int:
        consumer = asyncio.create_task(consume())
        while model.started < 3:
            await asyncio.sleep(0)
        consumer.cancel()
        with pytest.raises(asyncio.CancelledError):
            await consumer
        return len(asyncio.all_tasks()) - 1

    assert asyncio.run(main()) == 0
    assert model.started == 3


@pytest.mark.parametrize("taken", [0, 1, 5])
def test_judging_that_is_given_up_leaves_no_task_and_no_warning(
    tmp_path: Path, taken: int, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    model = Uneven()
    verdicts = judge_of(tmp_path, model).judge_all(many(1000))
    for _ in range(taken):
        next(verdicts)
    verdicts.close()  # type: ignore[attr-defined]
    with pytest.raises(StopIteration):
        next(verdicts)
    again = judge_of(tmp_path, model).judge_all(many(1000))
    next(again)
    del again
    gc.collect()
    assert not model.now
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


def test_an_error_of_one_ticket_ends_the_judging_and_cancels_the_rest(tmp_path: Path) -> None:
    class Breaks(Uneven):
        async def roll(self, request: RolloutRequest) -> Completion:
            if request.evidence["image_1"] == "cabinet 3":
                raise ZeroDivisionError
            return await super().roll(request)

    model = Breaks()
    verdicts = judge_of(tmp_path, model, "concurrency = 4\n").judge_all(many(1000))
    found = []
    with pytest.raises(ZeroDivisionError):
        for verdict in verdicts:
            found.append(verdict.group_id)  # noqa: PERF401 - what came before the error is what is looked at
    assert found == ["QC-0", "QC-1", "QC-2"]
    assert not model.now
    assert model.finished < 40


def test_an_error_of_the_tickets_comes_through_and_cancels_the_rest(tmp_path: Path) -> None:
    def broken() -> Iterator[Ticket]:
        yield from many(10)
        raise ConfigError("The tickets are gone.")

    model = Uneven()
    verdicts = judge_of(tmp_path, model, "concurrency = 4\n").judge_all(broken())
    seen = 0
    with pytest.raises(ConfigError) as caught:
        for _ in verdicts:
            seen += 1
    assert_sentences(caught.value)
    assert seen >= 1
    assert not model.now


def test_verdicts_can_be_taken_while_another_judge_is_at_work(tmp_path: Path) -> None:
    mission: Mission = mission_in(tmp_path)
    first, other = (Judge(mission, mission.guidance(), Uneven(seed)).judge_all(many(30)) for seed in (1, 2))
    assert [(a.group_id, b.group_id) for a, b in zip(first, other, strict=True)] == [
        (f"QC-{number}", f"QC-{number}") for number in range(30)
    ]


STREAMING = """
import asyncio, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from judging_kit import PASS, many, mission_in
from donewhen.judging.judge import Judge
from donewhen.models.roles import Completion
count = int(sys.argv[3])
class Scripted:
    async def roll(self, request):
        await asyncio.sleep(0)
        return Completion(PASS)
mission = mission_in(Path(sys.argv[2]), "[[sampler]]\\ntemperature = 0\\n")
judge = Judge(mission, mission.guidance(), Scripted())
def peak():
    # Not getrusage where it can be helped: that begins with the peak of the test process, which is large.
    if Path("/proc/self/status").exists():
        return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
async def main():
    seen = early = 0
    async for verdict in judge.stream(many(count)):
        seen += 1
        assert verdict.verdict == "pass"
        if seen == count // 20:
            early = peak()
    return seen, early
seen, early = asyncio.run(main())
print(seen, peak() - early)
"""


def test_a_hundred_thousand_tickets_stream_in_the_memory_of_a_few(tmp_path: Path) -> None:
    command = [sys.executable, "-c", STREAMING, str(Path(__file__).parent), str(tmp_path), "100000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seen, more = map(int, done.stdout.split())
    assert seen == 100_000
    # In kilobytes. One verdict that were kept from each would be ten times as much.
    assert more < 8_000
