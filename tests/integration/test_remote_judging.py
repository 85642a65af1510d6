"""Real processes that judge with a model behind a server: killed, out of budget, side by side, and never paid twice."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from donewhen.reports.phrases import large_count
from donewhen.runtime import TokenUsage
from donewhen.testing.chat_api import ChatCall, ChatServer, Reply
from donewhen_kit import run_main
from sentences import assert_sentences

pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")

TICKETS = 30
PRICES = '[[price]]\nmodel = "priced"\ninput = 1000\noutput = 2000\n'
USAGE = TokenUsage(input_tokens=100, output_tokens=5, cached_tokens=80)


class Model:
    """Says pass to everything, and counts. From some call on, it can be told to say nothing."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self.answered: Counter[str] = Counter()
        self.silent_after: int | None = None
        self.held = 0

    def __call__(self, call: ChatCall) -> Reply:
        with self._lock:
            if self.silent_after is not None and self.answered.total() >= self.silent_after:
                self.held += 1
                self._lock.notify_all()
                self._lock.wait_for(lambda: self.silent_after is None, 60)
                return Reply(gone=True)
            self.answered[json.dumps(call.body, sort_keys=True)] += 1
        if call.schema is None:
            return Reply("Verdict: pass\nReason: nothing speaks against it", USAGE)
        empty = {"array": [], "string": "", "boolean": False}
        said = {name: empty.get(one.get("type")) for name, one in call.schema["properties"].items()}
        return Reply(json.dumps(said), USAGE)

    def wait_until_held(self, count: int) -> None:
        with self._lock:
            assert self._lock.wait_for(lambda: self.held >= count, 60), f"{self.held} are held"

    def speak(self) -> None:
        with self._lock:
            self.silent_after = None
            self._lock.notify_all()

    @property
    def calls(self) -> int:
        return self.answered.total()

    @property
    def repeated(self) -> int:
        return self.calls - len(self.answered)


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[ChatServer]:
    with ChatServer(model, limit=100_000) as started:
        yield started
        model.speak()


@pytest.fixture
def mission(tmp_path: Path) -> Path:
    return mission_in(tmp_path / "mission")


def mission_in(folder: Path, more: str = "", count: int = TICKETS, concurrency: int = 4) -> Path:
    folder.mkdir()
    (folder / "mission.toml").write_text(
        f'mission = "m"\nconcurrency = {concurrency}\nepochs = 1\nsampler = [{{ temperature = 0.1 }}]\n{more}'
    )
    (folder / "initial_guidance.json").write_text('{"G0": "The order must have gone through."}')
    rows = (
        {"group_id": f"A{at}", "mission": "m", "label": "fail" if at % 3 else "pass", "text": f"order {at}"}
        for at in range(count)
    )
    (folder / "tickets.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def started(
    verb: str, mission: Path, server: ChatServer, *options: str, name: str = "any", **more: str
) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "donewhen", verb, "--model", f"openai:{name}@{server.base_url}", *options],
        cwd=mission,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**more),
    )


def environment(**more: str) -> dict[str, str]:
    hidden = ("OPENAI_BASE_URL", "DONEWHEN_PRICES")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"NO_COLOR": "1", "OPENAI_API_KEY": "sk-loopback"} | more


def ended(process: subprocess.Popen[str]) -> tuple[int, list[dict[str, Any]], str]:
    """The exit status, the rows of standard output, and what was said besides."""
    out, err = process.communicate(timeout=100)
    return told(process.returncode, out, err)


def told(status: int, out: str, err: str) -> tuple[int, list[dict[str, Any]], str]:
    assert "Traceback" not in err
    return status, [json.loads(line) for line in out.splitlines() if line.startswith("{")], err


def judge(
    mission: Path, server: ChatServer, *options: str, name: str = "any", **more: str
) -> tuple[int, list[dict[str, Any]], str]:
    words = ["judge", "--model", f"openai:{name}@{server.base_url}", "tickets.jsonl", *options]
    done = run_main(words, mission, environment(**more))
    return told(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("fatal", [signal.SIGKILL, signal.SIGINT])
def test_judging_that_broke_off_pays_only_for_what_is_missing(
    mission: Path, server: ChatServer, model: Model, fatal: signal.Signals
) -> None:
    model.silent_after = 11
    broken = started("judge", mission, server, "tickets.jsonl")
    model.wait_until_held(4)
    broken.send_signal(fatal)
    broken.communicate(timeout=100)
    model.speak()
    status, rows, told = judge(mission, server)
    assert (status, len(rows)) == (0, TICKETS)
    assert (model.calls, model.repeated) == (TICKETS, 0)
    assert f"{TICKETS - 11} call(s)" in told
    assert_sentences(told)


def test_a_budget_of_calls_ends_it_cleanly_and_it_can_be_begun_again(
    mission: Path, server: ChatServer, model: Model
) -> None:
    status, rows, told = judge(mission, server, "--max-calls", "10")
    assert (status, model.calls) == (1, 10)
    assert [item["group_id"] for item in rows] == [f"A{at}" for at in range(10)]
    assert_sentences(told)
    status, rows, told = judge(mission, server, "--max-calls", "20")
    assert (status, len(rows)) == (0, TICKETS)
    assert (model.calls, model.repeated) == (TICKETS, 0)


def test_what_is_under_way_when_the_budget_ends_is_kept(tmp_path: Path, server: ChatServer, model: Model) -> None:
    """Tokens are known when the answer is there: the calls beside the last one are paid for, too."""
    mission = mission_in(tmp_path / "mission", "[budget]\ntokens = 700\n")
    status, rows, told = judge(mission, server)
    assert status == 1
    assert 7 <= len(rows) <= model.calls <= 10
    assert "budget.tokens" in told
    status, _, told = judge(mission, server)
    assert model.repeated == 0


def test_programs_get_the_verdicts_that_were_made_and_why_there_are_no_more(
    mission: Path, server: ChatServer, model: Model
) -> None:
    process = started("judge", mission, server, "tickets.jsonl", "--json", "--max-calls", "10")
    envelope = json.loads(process.communicate(timeout=100)[0])
    assert process.returncode == 1
    assert not envelope["ok"]
    assert len(envelope["data"]["verdicts"]) == envelope["data"]["calls"] == 10
    assert [one["code"] for one in envelope["findings"]] == ["budget_exhausted"]


def test_an_out_file_stays_untouched_when_the_budget_ends_and_what_was_made_is_beside_it(
    mission: Path, server: ChatServer
) -> None:
    status, _, told = judge(mission, server, "--max-calls", "10", "--out", "verdicts.jsonl")
    assert status == 1
    assert not (mission / "verdicts.jsonl").exists()
    assert len((mission / "verdicts.jsonl.part").read_text().splitlines()) == 10
    assert_sentences(told)


def test_money_ends_it_and_without_a_price_it_does_not_begin(tmp_path: Path, server: ChatServer, model: Model) -> None:
    mission = mission_in(tmp_path / "mission", "[budget]\ncost = 1.0\n", concurrency=1)
    for verb in ("judge", "audit-mission"):
        files = ["tickets.jsonl"] if verb == "judge" else []
        status, _, told = ended(started(verb, mission, server, *files))
        assert (status, model.calls) == (2, 0)
        assert_sentences(told)
    (tmp_path / "prices.toml").write_text(PRICES)
    # 0.11 a call, one after the other: the tenth is over the limit.
    status, rows, told = judge(mission, server, name="priced", DONEWHEN_PRICES=str(tmp_path / "prices.toml"))
    assert status == 1
    assert len(rows) == model.calls == 10
    assert_sentences(told)


def test_of_half_an_audit_nothing_is_reported_and_the_other_half_is_all_that_is_paid_for(
    mission: Path, server: ChatServer, model: Model
) -> None:
    audit = started("audit-mission", mission, server, "--max-calls", "10", "--out", "audit.json")
    out, err = audit.communicate(timeout=100)
    assert (audit.returncode, out, model.calls) == (1, "", 10)
    assert_sentences(err)
    assert not (mission / "audit.json").exists()
    status, _, _ = ended(started("audit-mission", mission, server, "--out", "audit.json"))
    assert (status, model.calls, model.repeated) == (0, TICKETS, 0)
    cost = json.loads((mission / "audit.json").read_text())["cost"]
    assert (cost["rollout_calls"], cost["reused"]) == (TICKETS - 10, 10)


def test_verbs_pay_for_each_others_answers(mission: Path, server: ChatServer, model: Model) -> None:
    judge(mission, server)
    assert ended(started("audit-mission", mission, server))[0] == 0
    assert model.calls == TICKETS
    assert ended(started("learn", mission, server, "--quiet"))[0] == 0
    assert model.repeated == 0


def test_two_processes_judge_at_once_and_both_are_right(tmp_path: Path, server: ChatServer) -> None:
    mission = mission_in(tmp_path / "mission", count=150)
    both = [started("judge", mission, server, "tickets.jsonl") for _ in range(2)]
    for process in both:
        status, rows, told = ended(process)
        assert status == 0, told
        assert [row["group_id"] for row in rows] == [f"A{at}" for at in range(150)]
    status, _, told = judge(mission, server)
    assert status == 0
    assert_sentences(told)


def test_a_mission_that_can_not_be_written_to_is_judged_without_keeping_answers(
    mission: Path, server: ChatServer, model: Model
) -> None:
    setpriv = shutil.which("setpriv")
    if not os.getuid() and setpriv is None:
        pytest.skip("NO SETPRIV: whoever is root may write anywhere")
    powerless = [] if os.getuid() else [str(setpriv), "--bounding-set=-dac_override,-dac_read_search"]

    def judged_without_power() -> tuple[int, list[dict[str, Any]], str]:
        command = ["-m", "donewhen", "judge", "tickets.jsonl", "--quiet", "--model", f"openai:any@{server.base_url}"]
        process = subprocess.Popen(
            [*powerless, sys.executable, *command],
            cwd=mission,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"NO_COLOR": "1", "OPENAI_API_KEY": "sk-loopback"},
        )
        return ended(process)

    mission.chmod(0o555)
    try:
        status, rows, told = judged_without_power()
    finally:
        mission.chmod(0o755)
    assert (status, len(rows), model.calls) == (0, TICKETS, TICKETS)
    assert told.count("answers are not cached") == len(told.splitlines()) == 1
    # And where there are answers that may be looked at only.
    judge(mission, server)
    (mission / "runs").chmod(0o555)
    try:
        status, rows, told = judged_without_power()
    finally:
        (mission / "runs").chmod(0o755)
    assert (status, len(rows)) == (0, TICKETS), told
    assert told.count("answers are not cached") == len(told.splitlines()) == 1


def test_answers_that_can_not_be_read_are_no_reason_to_pay_again(
    mission: Path, server: ChatServer, model: Model
) -> None:
    (mission / "runs").mkdir()
    (mission / "runs" / "answers.sqlite").write_text("this is no database, and long enough to be sure of that" * 100)
    status, rows, told = judge(mission, server)
    assert (status, rows, model.calls) == (3, [], 0)
    assert "answers.sqlite" in told
    assert_sentences(told)


def test_tokens_that_came_from_a_cache_are_shown(mission: Path, server: ChatServer) -> None:
    _, _, told = judge(mission, server)
    assert str(TICKETS * 105) in told
    assert str(TICKETS * 80) in told
    assert_sentences(told)
    process = started("judge", mission, server, "tickets.jsonl", "--json", name="other")
    assert json.loads(process.communicate(timeout=100)[0])["data"]["cached_tokens"] == TICKETS * 80
    learn = started("learn", mission, server, name="third")
    out, err = learn.communicate(timeout=100)
    assert learn.returncode == 0, err
    report = json.loads(next((mission / "runs").glob("*/report.json")).read_text())
    calls = report["cost"]["rollout_calls"] + report["cost"]["reflection_calls"]
    assert report["cost"]["cached_tokens"] == calls * 80
    assert f"({large_count(calls * 80)} cached)" in out
