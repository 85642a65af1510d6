"""Rollouts on a real Ray cluster: the same answers, whatever happens to the machines that give them."""

from __future__ import annotations

import asyncio
import fcntl
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest
from ray_kit import HEAD, SECOND, Cluster, command, free_port, session, until

from donewhen import __version__
from donewhen.demo.example_mission import make_mission
from donewhen.foundation.errors import ConfigError
from donewhen.judging.guidance import seed_guidance
from donewhen.judging.guidance_store import read_guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import read_mission
from donewhen.judging.ticket import Ticket
from donewhen.learning.running.events import read_events
from donewhen.models.executors import InProcessExecutor, find_executor
from donewhen.models.ray.ray_cluster import ExecutorError
from donewhen.models.ray.ray_model import RayExecutor, RayModel, _with_absolute_path
from donewhen.models.ray.ray_worker import WorkerAnswer, WorkerReady
from donewhen.models.remote.pacing import Pace, Patience
from donewhen.models.roles import Completion, Decode, Model, Prompt, RolloutRequest
from donewhen.testing.chat_api import ChatCall, ChatServer, Reply
from donewhen.testing.model_contract import ModelContract
from sentences import assert_sentences, lines_with

# Not importorskip: whoever imports it decides from which environment it takes its token.
if importlib.util.find_spec("ray") is None:
    pytest.skip("RAY IS NOT INSTALLED: pip install 'donewhen[ray]'", allow_module_level=True)
if sys.platform != "linux":
    pytest.skip("THE EXECUTOR RAY IS NOT TESTED HERE: two nodes on one machine need Linux", allow_module_level=True)
needs_openai = pytest.mark.skipif(
    importlib.util.find_spec("openai") is None, reason="OPENAI IS NOT INSTALLED: pip install 'donewhen[openai]'"
)

T = TypeVar("T")
KEY = "sk-of-the-nodes-0123456789abcdef"
OTHER_KEY = "sk-of-the-driver-0123456789abcdef"
RULES = {
    "G0": "Unless a rule says otherwise, the verdict is pass.",
    "G1": 'When "skipped" occurs, the verdict is fail.',
}


@contextmanager
def _alone() -> Iterator[None]:
    """Two clusters on the same two addresses would take each other's workers."""
    with (Path(tempfile.gettempdir()) / "donewhen-tests-ray.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster to which this process is connected, as the program of a user would be."""
    made = Cluster({"OPENAI_API_KEY": KEY})
    with _alone(), pytest.MonkeyPatch.context() as patch:
        for name, value in made.access.items():
            patch.setenv(name, value)
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.delenv("OPENAI_BASE_URL", raising=False)
        try:
            made.start()
            RayExecutor(made.address)
            import ray

            ray.init(made.address, log_to_driver=False, logging_level="ERROR")
            yield made
            ray.shutdown()
        finally:
            made.stop()


def opened(cluster: Cluster, choice: str, workers: int = 2, **more: Any) -> RayModel:
    model = RayExecutor(cluster.address, workers, **more).open(choice)
    assert isinstance(model, RayModel)
    return model


def question(text: str, sample: int = 0) -> RolloutRequest:
    return RolloutRequest(Prompt("Judge.", text), RULES, {"text": text}, Decode(0.1, sample), "en")


def played(model: RayModel, asked: Awaitable[T]) -> T:
    """What comes of it, and nothing is left behind."""

    async def play() -> T:
        try:
            return await asked
        finally:
            await model.aclose()

    return asyncio.run(play())


async def staffed(model: RayModel, workers: int) -> None:
    """Wait until so many workers are there."""
    await model.roll(question("first"))
    while len(model._pool.places if model._pool else ()) < workers:
        await asyncio.sleep(0.05)


def said(call: ChatCall) -> Reply:
    """A verdict that follows from the ticket; reflection that has nothing to say."""
    if call.schema is None:
        return Reply(f"Verdict: {'fail' if 'skipped' in call.user else 'pass'}\nReason: {len(call.user)} characters")
    empty = {"array": [], "string": "", "boolean": False}
    return Reply(json.dumps({name: empty[one["type"]] for name, one in call.schema["properties"].items()}))


class _OnRay(ModelContract):
    @pytest.fixture(autouse=True)
    def _at(self, cluster: Cluster) -> None:
        self.cluster = cluster


class TestContrastOnOneWorker(_OnRay):
    def model(self) -> Model:
        return opened(self.cluster, "contrast", 1)


@needs_openai
class TestOpenAIOnTwoWorkers(_OnRay):
    @pytest.fixture(autouse=True)
    def _servers(self, cluster: Cluster) -> Iterator[None]:
        with ChatServer(said, key=KEY) as self.server, ChatServer(lambda _: Reply(gone=True)) as self.broken:
            yield

    def model(self) -> Model:
        return opened(self.cluster, f"openai:any@{self.server.base_url}")

    def failing_model(self) -> Model:
        model = opened(self.cluster, f"openai:any@{self.broken.base_url}")
        assert model._remote is not None
        model._remote.pace = Pace(Patience(tries=2, timeout=10.0, first_pause=0.001, longest_pause=0.002))
        return model


def test_a_worker_that_is_killed_is_replaced_and_what_it_was_asked_is_answered(
    cluster: Cluster, capfd: pytest.CaptureFixture[str]
) -> None:
    model = opened(cluster, "contrast", 1)

    async def asked() -> list[Completion]:
        await staffed(model, 1)
        answers = asyncio.gather(*(model.roll(question(f"{number} skipped")) for number in range(40)))
        await asyncio.sleep(0)
        cluster.kill_workers()
        return [*await answers, await model.roll(question("afterwards"))]

    *answers, last = played(model, asked())
    assert model.lost == 1
    assert {answer.text.partition("\n")[0] for answer in answers} == {"Verdict: fail"}
    assert last.text.startswith("Verdict: pass")
    # Standard output is for verdicts.
    assert capfd.readouterr().out == ""


def test_where_all_workers_are_gone_and_there_is_no_room_for_another_it_is_said(cluster: Cluster) -> None:
    import ray

    model = opened(cluster, "contrast", 2, starting=2.0)

    class Hog:
        def here(self) -> bool:
            return True

    async def asked() -> Completion:
        await staffed(model, 2)
        # They wait for the cores that become free when the workers are gone.
        hogs = [ray.remote(Hog).options(num_cpus=1).remote() for _ in range(2)]
        try:
            cluster.kill_workers()
            await asyncio.gather(*(asyncio.ensure_future(_there(hog)) for hog in hogs))
            return await model.roll(question("any"))
        finally:
            for hog in hogs:
                ray.kill(hog)

    with pytest.raises(ExecutorError) as caught:
        played(model, asked())
    assert "2 seconds" in str(caught.value)
    assert "ray status" in str(caught.value)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_where_there_never_was_room_it_is_said_however_many_workers_were_asked_for(
    cluster: Cluster, workers: int
) -> None:
    import ray

    class Hog:
        def here(self) -> bool:
            return True

    model = opened(cluster, "contrast", workers, starting=1.0)

    async def asked() -> Completion:
        hogs = [ray.remote(Hog).options(num_cpus=1).remote() for _ in range(2)]
        try:
            await asyncio.gather(*(asyncio.ensure_future(_there(hog)) for hog in hogs))
            return await asyncio.wait_for(model.roll(question("any")), 60)
        finally:
            for hog in hogs:
                ray.kill(hog)

    with pytest.raises(ExecutorError) as caught:
        played(model, asked())
    assert "1 seconds" in str(caught.value)


async def _there(hog: Any) -> None:
    await hog.here.remote()


def test_a_question_that_takes_every_worker_with_it_ends_the_run_instead_of_the_cluster(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = opened(cluster, "contrast", 1)
    taken = model._take_worker

    async def killing(own: str) -> Any:
        place = await taken(own)
        cluster.kill_workers()
        return place

    async def asked() -> Completion:
        await staffed(model, 1)
        monkeypatch.setattr(model, "_take_worker", killing)
        return await model.roll(question("any"))

    with pytest.raises(ExecutorError) as caught:
        played(model, asked())
    assert "5" in str(caught.value)
    assert model.lost == 5


def test_a_worker_with_another_version_other_weights_or_no_model_is_refused(cluster: Cluster) -> None:
    model = opened(cluster, "contrast", 1)
    assert model._check_ready(WorkerReady("n", __version__, model.name, None))
    with pytest.raises(ExecutorError) as caught:
        model._check_ready(WorkerReady("n", "0.0", model.name, None))
    assert "donewhen 0.0" in str(caught.value)
    with pytest.raises(ExecutorError) as caught:
        model._check_ready(WorkerReady("n", __version__, "local/1:a.gguf#0", None))
    assert "local/1:a.gguf#0" in str(caught.value)
    problem = WorkerAnswer("refused", why="OPENAI_API_KEY is not set.", next_step="Set it.")
    with pytest.raises(ExecutorError) as caught:
        model._check_ready(WorkerReady("n", __version__, "", problem))
    assert "OPENAI_API_KEY is not set. Set it." in str(caught.value)
    asyncio.run(model.aclose())


@needs_openai
def test_workers_have_the_key_of_their_node_and_a_wrong_one_is_the_same_error_as_here(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ChatServer(said, key=OTHER_KEY) as server:
        with pytest.raises(ConfigError) as here:
            asyncio.run(InProcessExecutor().open(f"openai:any@{server.base_url}").roll(question("any")))
        monkeypatch.setenv("OPENAI_API_KEY", OTHER_KEY)
        model = opened(cluster, f"openai:any@{server.base_url}")
        with pytest.raises(ConfigError) as there:
            played(model, model.roll(question("any")))
    assert (there.value.message, there.value.where) == (here.value.message, here.value.where)
    assert there.value.next_step in (f"The request came from {HEAD}.", f"The request came from {SECOND}.")
    assert KEY not in str(there.value)


@needs_openai
def test_an_answer_costs_what_it_costs_by_the_prices_of_the_driver(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices = tmp_path / "prices.toml"
    prices.write_text('[[price]]\nmodel = "any"\ninput = 1000\noutput = 2000\n')
    monkeypatch.setenv("DONEWHEN_PRICES", str(prices))
    with ChatServer(said, key=KEY) as server:
        here = asyncio.run(InProcessExecutor().open(f"openai:any@{server.base_url}").roll(question("any")))
        model = opened(cluster, f"openai:any@{server.base_url}", 1)
        there = played(model, model.roll(question("any")))
    assert there == here
    assert there.cost > 0


class Throttling:
    """A server that takes so many calls at once, and refuses what is more."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._in_flight = 0
        self.peak = 0
        self.refused = 0

    def __call__(self, call: ChatCall) -> Reply:
        with self._lock:
            self._in_flight += 1
            self.peak = max(self.peak, self._in_flight)
            if self._in_flight > self._most:
                self.refused += 1
                self._in_flight -= 1
                return Reply("Slow down.", status=429, retry_after=0.01)
        time.sleep(0.02)
        with self._lock:
            self._in_flight -= 1
        return said(call)


@needs_openai
def test_what_one_worker_is_refused_slows_all_of_them_down_and_all_is_answered(cluster: Cluster) -> None:
    throttling = Throttling(3)
    with ChatServer(throttling, limit=10_000) as server:
        model = opened(cluster, f"openai:any@{server.base_url}")
        assert model._remote is not None
        model._remote.pace = pace = Pace(Patience(most=12, first_pause=0.01, longest_pause=0.05, tries=50))

        async def asked() -> list[Completion]:
            await staffed(model, 2)
            return await asyncio.gather(*(model.roll(question(f"ticket {number}")) for number in range(150)))

        answers = played(model, asked())
    assert {answer.text.partition("\n")[0] for answer in answers} == {"Verdict: pass"}
    assert throttling.peak <= 12
    # Nobody on a worker tries again: every refusal was heard here.
    assert pace.retries == throttling.refused > 0
    assert len(server.calls) == 151 + throttling.refused
    assert pace.allowed < 12


# Whole commands, each a process of its own.

AT_EVENT = """
import os, signal, sys
from donewhen.learning.running import events
append = events.EventLog.append
def appended(self, kind, data, spent):
    event = append(self, kind, data, spent)
    if event.number == int(sys.argv[1]):
        os.killpg(os.getpgrp(), signal.SIGINT)
    return event
events.EventLog.append = appended
from donewhen.cli import main
sys.exit(main(sys.argv[2:]))
"""

OF_ITS_OWN = """
import asyncio, json
from donewhen.models.ray.ray_model import RayExecutor
from donewhen.models.ray.ray_cluster import ExecutorError
from donewhen.models.roles import Decode, Prompt, RolloutRequest
executor = RayExecutor(workers=1)
first, second = executor.open("contrast"), executor.open("contrast")
import ray
nodes = [one["NodeManagerAddress"] for one in ray.nodes()]
try:
    RayExecutor("192.0.2.1:6379").open("contrast")
except ExecutorError as error:
    other = str(error)
async def asked():
    request = RolloutRequest(Prompt("", "any"), {}, {"text": "any"}, Decode(), "en")
    await first.roll(request)
    await first.aclose()
    answer = await second.roll(request)
    await second.aclose()
    return answer.text
answer = asyncio.run(asked())
print(json.dumps({"nodes": nodes, "other": other, "answer": answer, "still there": ray.is_initialized()}))
"""


def mission_in(folder: Path) -> Path:
    make_mission(folder, 120)
    with (folder / "mission.toml").open("a") as settings:
        settings.write("epochs = 2\nconcurrency = 8\n")
    return folder


def started(arguments: list[str], **env: str) -> subprocess.Popen[str]:
    """A command in a session of its own."""
    # What the cluster of these tests, and Ray in this process, have set.
    kept = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    return subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=kept | {"NO_COLOR": "1"} | env,
        start_new_session=True,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """The exit status, and what was said; when a command is over, so is everything that it has started."""
    out, err = process.communicate(timeout=110)
    until(lambda: not session(process.pid), "nothing of it is left", 20)
    assert "Traceback" not in err
    return process.returncode, out, err


def ran(arguments: list[str], **env: str) -> tuple[int, str, str]:
    return ended(started(arguments, **env))


def learn(mission: Path, *options: str, **env: str) -> tuple[int, str, str]:
    return ran([sys.executable, "-m", "donewhen", "learn", str(mission), *options], **env)


def recorded(mission: Path) -> list[tuple[str, Any, Any]]:
    """What happened, and what it had cost by then, but for times and for the run's name."""
    (events,) = mission.glob("runs/*/events.jsonl")
    return [
        (
            event.type,
            {name: value for name, value in event.data.items() if name != "run"},
            {name: value for name, value in event.spent.items() if name != "seconds"},
        )
        for event in read_events(events)
    ]


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A mission that has learned without Ray."""
    folder = mission_in(tmp_path_factory.mktemp("here") / "reports")
    assert learn(folder, "--quiet")[0] == 0
    return folder


def same(mission: Path, learned: Path) -> None:
    assert recorded(mission) == recorded(learned)
    found, wanted = (read_guidance(one / "guidance.json", "agent-reports") for one in (mission, learned))
    assert found.experiences == wanted.experiences
    assert len(found.experiences) > 1


def test_learning_on_a_cluster_gives_the_same_events_and_the_same_guidance(
    cluster: Cluster, learned: Path, tmp_path: Path
) -> None:
    folder = mission_in(tmp_path / "reports")
    status, out, err = learn(folder, "--executor", "ray", "--address", cluster.address, "--json", **cluster.access)
    assert (status, err) == (0, "")
    assert json.loads(out)["data"]["status"] == "finished"
    same(folder, learned)


def test_ctrl_c_ends_the_run_and_the_cluster_that_was_made_for_it_and_the_run_can_go_on(
    cluster: Cluster, learned: Path, tmp_path: Path
) -> None:
    folder = mission_in(tmp_path / "reports")
    options = ["--executor", "ray", "--workers", "1"]
    status, out, err = ran([sys.executable, "-c", AT_EVENT, "4", "learn", str(folder), *options, "--json"])
    assert (status, err) == (130, "")
    (finding,) = json.loads(out)["findings"]
    assert finding["next"] == f"donewhen learn {folder} --resume --executor ray --workers 1"
    assert len(recorded(folder)) < len(recorded(learned))
    # With the same cluster or with another, or without any.
    at = ("--executor", "ray", "--address", cluster.address)
    assert learn(folder, "--resume", "--quiet", *at, **cluster.access)[0] == 0
    same(folder, learned)


def test_a_cluster_of_our_own_is_on_loopback_for_all_models_of_a_process_and_the_last_takes_it_with_it() -> None:
    status, out, err = ran([sys.executable, "-c", OF_ITS_OWN])
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["nodes"] == ["127.0.0.1"]
    assert_sentences(found["other"])
    assert found["answer"].startswith("Verdict: ")
    assert found["still there"] is False


def test_ctrl_c_while_ray_is_started_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = mission_in(tmp_path / "reports")
    process = started([sys.executable, "-m", "donewhen", "learn", str(folder), "--executor", "ray"])
    until(lambda: any("raylet" in command(one) for one in session(process.pid)), "Ray is being started")
    os.killpg(process.pid, signal.SIGINT)
    status, _, err = ended(process)
    assert status == 130
    assert str(folder) in err
    assert_sentences(err)


def test_an_address_where_nobody_is_is_an_error_that_says_so(tmp_path: Path) -> None:
    folder = mission_in(tmp_path / "reports")
    nobody = f"{HEAD}:{free_port(HEAD)}"
    status, out, err = learn(folder, "--executor", "ray", "--address", nobody)
    assert status == 2
    assert_sentences(lines_with(out + err, nobody)[-1])
    assert not list(folder.glob("runs/*/events.jsonl"))


def test_an_address_without_the_executor_is_an_error(tmp_path: Path) -> None:
    folder = mission_in(tmp_path / "reports")
    status, out, err = learn(folder, "--address", "any")
    assert status == 2
    assert "--executor ray" in out + err


def test_without_ray_it_is_said_how_to_install_it(tmp_path: Path) -> None:
    folder = mission_in(tmp_path / "reports")
    code = "import sys; sys.modules['ray'] = None; from donewhen.cli import main; sys.exit(main(sys.argv[1:]))"
    status, out, err = ran([sys.executable, "-c", code, "learn", str(folder), "--executor", "ray"])
    assert status == 2
    assert "[ray]'" in out + err


def test_the_executor_is_chosen_by_name() -> None:
    assert isinstance(find_executor("local"), InProcessExecutor)
    assert isinstance(find_executor("ray", "any:1", 2), RayExecutor)


def test_weights_have_the_same_path_for_a_worker_which_is_in_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert _with_absolute_path("local:a.gguf") == f"local:{tmp_path}/a.gguf"
    for choice in ("contrast", "local", "local:/a.gguf", "local:~/a.gguf", "openai:local:a@b"):
        assert _with_absolute_path(choice) == choice


class Holding:
    """A server that answers so many calls, then keeps those that come until it is told to go on."""

    def __init__(self, after: int) -> None:
        self._lock = threading.Lock()
        self._after = after
        self._go_on = threading.Event()
        self.asked: Counter[str] = Counter()
        self.held: list[str] = []

    def __call__(self, call: ChatCall) -> Reply:
        body = json.dumps(call.body, sort_keys=True)
        with self._lock:
            self.asked[body] += 1
            holds = self.asked.total() > self._after and not self._go_on.is_set()
            if holds:
                self.held.append(body)
        if holds:
            self._go_on.wait(60)
        return said(call)

    def go_on(self) -> None:
        self._go_on.set()


# The last one, because the cluster is not the same afterwards.
@needs_openai
def test_a_node_that_is_lost_costs_what_it_was_at_and_the_verdicts_are_the_same_in_the_same_order(
    cluster: Cluster, tmp_path: Path
) -> None:
    mission = read_mission(mission_in(tmp_path / "reports"))
    guidance = seed_guidance(mission.name, RULES, "")
    texts = [f"Report {number}: {number % 7} tests {'skipped' if number % 3 else 'run'}." for number in range(150)]
    tickets = [
        Ticket(f"T-{number}", mission.name, "pass", {"text": text}, f"T-{number}") for number, text in enumerate(texts)
    ]
    with ChatServer(said, limit=10_000) as server:
        here = list(
            Judge(mission, guidance, InProcessExecutor().open(f"openai:any@{server.base_url}")).judge_all(tickets)
        )
    holding = Holding(120)
    with ChatServer(holding, limit=10_000) as server:
        model = opened(cluster, f"openai:any@{server.base_url}")

        async def lose_a_node() -> int:
            def busy() -> dict[str, int]:
                return {place.node: place.busy for place in model._pool.places} if model._pool else {}

            # All that was asked has come to the server, and it answers nothing: after a second of that nothing moves.
            still = 0
            while still < 50:
                all_held = len(busy()) == 2 and min(busy().values()) and sum(busy().values()) == len(holding.held)
                still = still + 1 if all_held else 0
                await asyncio.sleep(0.02)
            unfinished = busy()[SECOND]
            await asyncio.to_thread(cluster.kill_node, SECOND)
            holding.go_on()
            return unfinished

        async def judged() -> tuple[list[Any], int]:
            await staffed(model, 2)
            losing = asyncio.ensure_future(lose_a_node())
            there = [one async for one in Judge(mission, guidance, model).stream(tickets)]
            return there, await losing

        there, unfinished = played(model, judged())
    assert [one.as_dict() for one in there] == [one.as_dict() for one in here]
    assert {one.verdict for one in there} == {"pass", "fail"}
    assert model.lost == 1
    again = [body for body, times in holding.asked.items() if times > 1]
    assert len(again) == unfinished > 0
    assert set(again) <= set(holding.held)
    assert max(holding.asked.values()) == 2
