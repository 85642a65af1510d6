"""Benefit and cost of Ray: one worker and two, a rollout with and without Ray, and the maximum rate of the driver.

Run ``python -m benchmarks.on_ray``. The model is contrast, which needs no server and only uses the CPU, on long
tickets. Ray, the driver and the workers share the cores of this machine, so two workers can only be twice as fast as
one if there are at least three cores.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import throughput
from donewhen.judging.guidance import seed_guidance
from donewhen.judging.judge import Judge
from donewhen.models.answer_store import AnswerStore
from donewhen.models.executors import Executor, InProcessExecutor
from donewhen.models.metered import MeteredModel
from donewhen.models.ray.ray_model import RayExecutor
from donewhen.models.roles import Decode, Model, Prompt, RolloutRequest

_RULES = {
    "G0": "Unless a rule says otherwise, the verdict is pass.",
    "G1": 'With 2+ of: "skipped"; no "tested"; under 3 sections; 3+ late "error", the verdict is fail.',
}
_LONG, _SHORT = 1100, 1
_SENTENCE = "The agent opened page {number}, read the log and reported that error {number} had gone. "
_AT_ONCE = 32
_LATENCY = 0.05
_ROUNDS = 5


class Measured(NamedTuple):
    """Number of answers, elapsed seconds, and CPU seconds of the driver process."""

    answers: int
    seconds: float
    driver: float

    @property
    def rate(self) -> float:
        return self.answers / self.seconds


def main() -> int:
    print(f"Cores: {len(os.sched_getaffinity(0))}, shared by the driver, Ray's processes and the workers.\n")
    long, short = questions(300, _LONG), questions(3000, _SHORT)
    here, there = asyncio.run(_measured(InProcessExecutor().open("contrast"), 0, long, short))
    print(f"(a) contrast on {len(long)} tickets of {len(long[0].prompt.own) // 1000} kB, {_AT_ONCE} at once")
    print(f"    {'without Ray':20} {here.rate:8.1f} answers/s")
    rates: dict[int, list[float]] = {1: [], 2: []}
    quick: dict[int, Measured] = {}
    # Keeps the cluster running, so that it starts only once. The sizes alternate, because the machine load varies.
    holding = RayExecutor(workers=1).open("contrast")
    for workers in (1, 2) * _ROUNDS:
        measured, quick[workers] = asyncio.run(
            _measured(RayExecutor(workers=workers).open("contrast"), workers, long, short)
        )
        rates[workers].append(measured.rate)
    asyncio.run(_closed(holding))
    for workers, samples in rates.items():
        print(f"    {f'Ray, {workers} worker(s)':20} {statistics.median(samples):8.1f} answers/s, median of {_ROUNDS}")
    ratios = [double / single for single, double in zip(rates[1], rates[2], strict=True)]
    print(
        f"    1 → 2 workers: × {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f}). "
        "On two cores × 2 is impossible: the driver and Ray need CPU time as well."
    )
    local, remote = here_alone(), asyncio.run(_alone(RayExecutor(workers=1).open("contrast")))
    print("\n(b) One short question at a time, median")
    more = f"{1000 * (remote - local):.2f} ms more per rollout"
    print(f"    without Ray {1000 * local:.2f} ms, on Ray {1000 * remote:.2f} ms: {more}")
    print(f"\n(c) Short questions, {_AT_ONCE} at once: maximum rate of the driver")
    print(f"    {'without Ray':20} {there.rate:8.0f} answers/s")
    for workers, measured in quick.items():
        cpu = 1000 * measured.driver / measured.answers
        print(
            f"    {f'Ray, {workers} worker(s)':20} {measured.rate:8.0f} answers/s, {cpu:.2f} ms of driver CPU each: "
            f"at most {1000 / cpu:.0f} answers/s from one driver"
        )
    print("\n(d) A model on a server, with stored answers: driver CPU per answer")
    for name, executor in (("in the driver", InProcessExecutor()), ("on two workers", RayExecutor(workers=2))):
        cpu = 1000 * behind_a_server(executor)
        print(f"    the client {name:15} {cpu:.2f} ms: at most {1000 / cpu:.0f} answers/s from one driver", flush=True)
    return 0


def behind_a_server(executor: Executor) -> float:
    """Return the driver's CPU seconds per answer, after a warm-up."""
    with (
        throughput._server(_LATENCY) as url,
        tempfile.TemporaryDirectory() as folder,
        AnswerStore(Path(folder) / "answers.sqlite") as answers,
    ):
        asking = MeteredModel(executor.open(f"openai:any@{url}"), answers=answers)
        mission = throughput._mission(Path(folder), 256)
        verdicts = Judge(mission, seed_guidance("bench", {"G0": "Decide."}, ""), asking).judge_all(
            throughput._tickets(2500)
        )
        for _ in range(500):
            next(verdicts)
        worked = time.process_time()
        count = sum(1 for _ in verdicts)
        return (time.process_time() - worked) / count


def questions(count: int, sentences: int, first: int = 0) -> list[RolloutRequest]:
    """Return different tickets of this length. They must differ, because contrast caches what it has read."""
    requests = []
    for ticket in range(first, first + count):
        text = f"Ticket {ticket}. " + "".join(_SENTENCE.format(number=ticket + index) for index in range(sentences))
        requests.append(RolloutRequest(Prompt("Judge.", text), _RULES, {"text": text}, Decode(), "en"))
    return requests


async def _measured(
    model: Model, workers: int, long: Sequence[RolloutRequest], short: Sequence[RolloutRequest]
) -> tuple[Measured, Measured]:
    try:
        await _warm(model, workers)
        return await _asked(model, long), await _asked(model, short)
    finally:
        await _closed(model)


async def _warm(model: Model, workers: int) -> None:
    """Wait until all workers have started, so that Ray's start-up time is not measured."""
    for question in questions(40 * max(1, workers), _SHORT, 30_000):
        await model.roll(question)
    pool = getattr(model, "_pool", None)
    while pool is not None and len(pool.places) < workers:
        await asyncio.sleep(0.1)
    await asyncio.gather(*(model.roll(question) for question in questions(200, _SHORT, 10_000)))


async def _asked(model: Model, requests: Sequence[RolloutRequest]) -> Measured:
    left = iter(requests)

    async def asking() -> None:
        for request in left:
            await model.roll(request)

    began, worked = time.monotonic(), time.process_time()
    await asyncio.gather(*(asking() for _ in range(_AT_ONCE)))
    return Measured(len(requests), time.monotonic() - began, time.process_time() - worked)


def here_alone() -> float:
    return asyncio.run(_alone(InProcessExecutor().open("contrast")))


async def _alone(model: Model) -> float:
    try:
        await _warm(model, 0)
        seconds = []
        for question in questions(300, _SHORT, 20_000):
            began = time.perf_counter()
            await model.roll(question)
            seconds.append(time.perf_counter() - began)
        return statistics.median(seconds)
    finally:
        await _closed(model)


async def _closed(model: Model) -> None:
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()


if __name__ == "__main__":
    sys.exit(main())
