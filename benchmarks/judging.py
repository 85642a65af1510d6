"""The cost of judging without the model: the overhead of a rollout, and the memory of a long stream."""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from donewhen.judging.guidance import seed_guidance
from donewhen.judging.judge import Judge
from donewhen.judging.mission import Mission, read_mission
from donewhen.judging.ticket import Ticket
from donewhen.models.metered import MeteredModel
from donewhen.models.roles import Completion, RolloutRequest
from donewhen.testing.models import ScriptedJudge

SIZES = (1_000, 100_000)
_TEXT = "The agent opened the page, filled in the form, and reported success. " * 20


def judging_benchmark() -> None:
    """Print the overhead of a rollout, and the time and memory of 100 000 tickets."""
    print("CPU time of a rollout (prompt, vote, signals, meter) compared with a plain call of the same model")
    with tempfile.TemporaryDirectory() as folder:
        mission = _mission(Path(folder))
        bare, judged = _bare(2_000), _judged(mission, 2_000)
    rollouts = 2_000 * len(mission.decodes)
    print(f"  {1e6 * (judged - bare) / rollouts:6.0f} µs per rollout   ({judged / bare:.1f} × the plain call)")
    print("Judging a stream of tickets in a separate process, three decodes each")
    first: tuple[float, int] | None = None
    for count in SIZES:
        seconds, memory = streamed(count)
        first = first or (seconds, memory)
        print(
            f"  {count:7} tickets   {1e6 * seconds / count:6.0f} µs per ticket   "
            f"{memory / first[1]:5.2f} × the memory of {SIZES[0]} tickets ({memory // 1024} MiB)"
        )
    print()


def streamed(count: int) -> tuple[float, int]:
    """Return the CPU seconds and the peak memory (KiB) of a process that judges ``count`` tickets."""
    code = f"from benchmarks.judging import judge_many; judge_many({count})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    costs = json.loads(done.stdout)
    return costs["seconds"], costs["memory"]


def judge_many(count: int) -> None:
    """Judge ``count`` tickets, and print the time and memory."""
    with tempfile.TemporaryDirectory() as folder:
        seconds = _judged(_mission(Path(folder)), count)
    print(json.dumps({"seconds": seconds, "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}))


def _judged(mission: Mission, count: int) -> float:
    judge = Judge(mission, seed_guidance(mission.name, {"G0": "Decide."}, ""), MeteredModel(_Answering()))
    began = time.process_time()
    passes = sum(result.verdict == "pass" for result in judge.judge_all(_tickets(count)))
    assert 0 < passes < count
    return time.process_time() - began


def _bare(count: int) -> float:
    model = _Answering()

    async def call() -> None:
        for ticket in _tickets(count):
            for _ in range(3):
                await model.answer(ticket.evidence["text"])

    began = time.process_time()
    asyncio.run(call())
    return time.process_time() - began


class _Answering(ScriptedJudge):
    """Answers depending on the text, and records nothing."""

    def __init__(self) -> None:
        super().__init__(lambda _: "", free=True)

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self.answer(request.evidence["text"])

    async def answer(self, text: str) -> Completion:
        return Completion(f"Verdict: {'pass' if text.startswith('good') else 'fail'}\nReason: as it begins")


def _tickets(count: int) -> Iterator[Ticket]:
    for number in range(count):
        kind = "good" if number % 3 else "bad"
        yield Ticket(f"T{number}", "bench", None, {"text": f"{kind} {number} {_TEXT}"}, f"T{number}")


def _mission(folder: Path) -> Mission:
    (folder / "mission.toml").write_text('mission = "bench"\n')
    return read_mission(folder)


if __name__ == "__main__":
    judging_benchmark()
