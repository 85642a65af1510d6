"""Real processes that learn with a model behind a server: killed, interrupted, refused, and out of money."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from donewhen.demo.example_mission import make_mission
from donewhen.learning.running.events import RunEvent, read_events
from donewhen.testing.chat_api import ChatCall, ChatServer, Reply
from donewhen_kit import run_main
from sentences import assert_sentences

pytest.importorskip("openai", reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'")

KEY = "sk-loopback-0123456789abcdef"
AT_ONCE = 64
# Not more than are in flight from the start: whether more are tried depends on the speed of the machine.
MANY = AT_ONCE
PASS = Reply("Verdict: pass\nReason: no rule speaks against it")
PRICES = '[[price]]\nmodel = "priced"\ninput = 1000\noutput = 2000\n'


class Model:
    """What the server says, how often it has said it, and when it says nothing."""

    def __init__(self) -> None:
        self._lock = threading.Condition()
        self.answered: Counter[str] = Counter()
        self.holding: Callable[[ChatCall, int], bool] = lambda _call, _answered: False
        self.held = 0

    def __call__(self, call: ChatCall) -> Reply:
        with self._lock:
            if self.holding(call, self.answered.total()):
                self.held += 1
                self._lock.notify_all()
                # Until whoever asked is gone: this call is never answered.
                self._lock.wait_for(lambda: not self.holding(call, self.answered.total()), 60)
                return Reply(gone=True)
            self.answered[json.dumps(call.body, sort_keys=True)] += 1
        return _said(call)

    def wait_until_held(self, count: int) -> None:
        with self._lock:
            assert self._lock.wait_for(lambda: self.held == count, 60), f"{self.held} are held"

    def let_go(self) -> None:
        with self._lock:
            self.holding = lambda _call, _answered: False
            self._lock.notify_all()

    @property
    def repeated(self) -> int:
        """How many answers were given a second time."""
        return self.answered.total() - len(self.answered)


def _said(call: ChatCall) -> Reply:
    """Everything passes, and nothing can be learned from it."""
    if call.schema is None:
        return PASS
    empty = {"array": [], "string": "", "boolean": False}
    return Reply(json.dumps({name: empty.get(one.get("type")) for name, one in call.schema["properties"].items()}))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def server(model: Model) -> Iterator[ChatServer]:
    with ChatServer(model, limit=100_000, key=KEY) as started:
        yield started
        model.let_go()


def mission_in(folder: Path, more: str = "", count: int = 200, at_once: int = AT_ONCE) -> Path:
    make_mission(folder, count)
    with (folder / "mission.toml").open("a") as settings:
        settings.write(f"epochs = 1\nconcurrency = {at_once}\n{more}")
    return folder


def environment(**more: str) -> dict[str, str]:
    hidden = ("OPENAI_BASE_URL", "DONEWHEN_PRICES", "ANTHROPIC_API_KEY")
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    return kept | {"NO_COLOR": "1", "OPENAI_API_KEY": KEY} | more


def started(
    mission: Path, server: ChatServer, *options: str, name: str = "any", first: int | None = None, **env: str
) -> subprocess.Popen[str]:
    """A run; with a ``first``, one that may have so many calls in flight before it has seen what the server takes."""
    start = ["-m", "donewhen"]
    if first is not None:
        program = f"from donewhen.models.remote import allowance; allowance.FIRST = {first}; import donewhen.__main__"
        start = ["-c", program]
    command = [sys.executable, *start, "learn", "--model", f"openai:{name}@{server.base_url}", *options]
    return subprocess.Popen(
        command,
        cwd=mission,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(**env),
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """How a process ended, and what it said; the key is nowhere in it."""
    out, err = process.communicate(timeout=100)
    return told(process.returncode, out, err)


def told(status: int, out: str, err: str) -> tuple[int, str]:
    assert KEY not in out + err
    assert "Traceback" not in err
    return status, out + err


def learn(mission: Path, server: ChatServer, *options: str, name: str = "any", **more: str) -> tuple[int, str]:
    words = ["learn", "--model", f"openai:{name}@{server.base_url}", *options]
    done = run_main(words, mission, environment(**more))
    return told(done.returncode, done.stdout, done.stderr)


def recorded(mission: Path) -> tuple[RunEvent, ...]:
    (events,) = mission.glob("runs/*/events.jsonl")
    return read_events(events)


def no_key_in(mission: Path) -> None:
    files = [path for path in mission.rglob("*") if path.is_file()]
    assert any(file.name == "events.jsonl" for file in files)
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []


def held_out(mission: Path) -> int:
    sizes: dict[str, Any] = recorded(mission)[0].data["splits"]["sizes"]
    return int(sizes["test"])


def second_votes_of_training(mission: Path) -> Callable[[ChatCall, int], bool]:
    """All calls for a ticket's second vote, once the held-out tickets were judged with three votes each.

    So many calls are held as may be under way, and all that was answered before is on record: who asks for a second
    vote has put the first one down.
    """
    before: list[int] = []

    def holding(call: ChatCall, answered: int) -> bool:
        if not before:
            before.append(3 * held_out(mission))
        return answered >= before[0] and call.body["temperature"] == 0.4

    return holding


def at_its_height(mission: Path, server: ChatServer, model: Model, at_once: int = AT_ONCE) -> subprocess.Popen[str]:
    """A run with as many calls in flight as there may be, of which none is answered."""
    model.holding = second_votes_of_training(mission)
    # Far more than are asked for, so that the speed of this machine does not decide how many there are.
    process = started(mission, server, "--quiet", first=3 * at_once)
    try:
        model.wait_until_held(at_once)
    except BaseException:
        process.kill()
        print(process.communicate())
        raise
    assert len(server.calls) == model.answered.total() + at_once
    return process


def goes_on(mission: Path, server: ChatServer, model: Model) -> None:
    """The run comes to its end, nothing that was answered is asked again, and all of it is counted."""
    model.let_go()
    status, said = learn(mission, server, "--quiet", "--resume")
    assert status == 0, said
    assert model.repeated == 0
    last = recorded(mission)[-1]
    assert last.type == "run_finished"
    assert last.spent["calls"] == model.answered.total()
    assert last.spent["prompt_tokens"] == 10 * model.answered.total()
    no_key_in(mission)


def test_a_run_that_is_killed_with_many_calls_in_flight_repeats_no_answered_call(
    tmp_path: Path, server: ChatServer, model: Model
) -> None:
    mission = mission_in(tmp_path / "reports", count=450, at_once=MANY)
    process = at_its_height(mission, server, model, MANY)
    process.kill()
    assert ended(process) == (-signal.SIGKILL, "")
    no_key_in(mission)
    goes_on(mission, server, model)


def test_ctrl_c_gives_up_what_is_in_flight_and_the_rest_is_kept(
    tmp_path: Path, server: ChatServer, model: Model
) -> None:
    mission = mission_in(tmp_path / "reports")
    process = at_its_height(mission, server, model)
    process.send_signal(signal.SIGINT)
    status, said = ended(process)
    assert status == 130
    assert_sentences(said)
    assert f"--resume --model openai:any@{server.base_url}" in said
    # Nothing was asked on the way out.
    assert len(server.calls) == model.answered.total() + AT_ONCE
    no_key_in(mission)
    goes_on(mission, server, model)


def test_a_key_that_is_refused_in_the_middle_ends_the_run_and_a_good_one_goes_on(
    tmp_path: Path, server: ChatServer, model: Model
) -> None:
    mission = mission_in(tmp_path / "reports", "sampler = [{ temperature = 0.1 }]\n", 80, at_once=1)

    def expired(_: ChatCall, answered: int) -> bool:
        if answered == 30:
            server.key = "sk-another-0123456789abcdef"
        return False

    model.holding = expired
    status, said = learn(mission, server)
    assert status == 2
    assert str(server.base_url) in said
    assert_sentences(said)
    assert "(status 401)" in said
    assert model.answered.total() == 31
    no_key_in(mission)
    # Still refused, and nothing is lost by trying.
    assert learn(mission, server, "--resume")[0] == 2
    server.key = KEY
    goes_on(mission, server, model)


def test_a_budget_of_money_ends_the_run_where_it_is_used_up(tmp_path: Path, server: ChatServer, model: Model) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text(PRICES)
    mission = mission_in(tmp_path / "reports", "[budget]\ncost = 1.0\n", 80, at_once=1)
    status, said = learn(mission, server, name="priced", DONEWHEN_PRICES=str(prices))
    assert status in (0, 1), said
    # Ten tokens in and five out are two cents, so that fifty calls are a dollar.
    assert model.answered.total() == 50
    hits = [one.data for one in recorded(mission) if one.type == "budget_hit"]
    assert hits[0] == {"limit": "cost", "allowed": 1.0}
    assert recorded(mission)[-1].spent["cost"] == pytest.approx(1.0)
    no_key_in(mission)


def test_a_budget_of_money_needs_a_price(tmp_path: Path, server: ChatServer, model: Model) -> None:
    mission = mission_in(tmp_path / "reports", "[budget]\ncost = 1.0\n", 80)
    status, said = learn(mission, server)
    assert status == 2
    assert_sentences(said)
    assert "DONEWHEN_PRICES" in said
    assert server.calls == ()
