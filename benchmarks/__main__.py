"""python -m benchmarks"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.chains import chains_benchmark
from benchmarks.completing import completing_benchmark
from benchmarks.controls import controls_benchmark
from benchmarks.environments import environments_benchmark
from benchmarks.isolation import isolation_benchmark
from benchmarks.jobs import jobs_benchmark
from benchmarks.judging import judging_benchmark
from benchmarks.rooms import rooms_benchmark
from donewhen.completion import PlanBasedChecker, TaskCompletionContext
from donewhen.contrib.tools.planning import Plan, PlanStep
from donewhen.runtime import Append, Session, SliceView
from donewhen.testing import make_context

ROUNDS = 21


def main() -> None:
    # What donewhen keeps outside of projects is nobody's here.
    with tempfile.TemporaryDirectory() as state:
        os.environ["XDG_STATE_HOME"] = state
        _run_all()


def _run_all() -> None:
    print(
        f"Python {sys.version.split()[0]}, medians of {ROUNDS}. Ratios matter; absolute times depend on the machine.\n"
    )
    imports()
    hooks()
    plans()
    dispatching()
    jobs_benchmark()
    completing_benchmark()
    controls_benchmark()
    rooms_benchmark()
    isolation_benchmark()
    environments_benchmark()
    chains_benchmark()
    judging_benchmark()


def imports() -> None:
    print("CPU time of a fresh interpreter, compared with `python -c pass`")
    bare = _cpu_of("pass")
    for statement in (
        "import donewhen",
        "import donewhen.completion",
        "import donewhen.adapters.claude_agent_sdk",
        "import donewhen.cli._app",
    ):
        cost = _cpu_of(statement)
        print(f"  {statement:45} {cost / bare:5.2f} ×   (+{1000 * (cost - bare):5.1f} ms on {1000 * bare:.1f} ms)")
    print()


def hooks() -> None:
    print("CPU time of `donewhen hook stop`, compared with `python -c pass`")
    bare = _cpu_of("pass")
    with tempfile.TemporaryDirectory() as folder:
        names = [f"file{number}.txt" for number in range(5)]
        for name in names:
            Path(folder, name).write_text("x")
        event = json.dumps({"session_id": "s", "cwd": folder, "hook_event_name": "Stop", "stop_hook_active": False})
        run = (
            "import sys; from donewhen.cli import main; sys.argv[1:] = ['hook', 'stop', '--runtime', 'claude']; main()"
        )
        for label, settings in (
            ("no settings: silent allow", None),
            ("5 files to check", f"[stop]\nfiles = {json.dumps(names)}\n"),
        ):
            if settings is not None:
                Path(folder, "donewhen.toml").write_text(settings)
            cost = _cpu_of(run, event)
            print(f"  {label:45} {cost / bare:5.2f} ×   (+{1000 * (cost - bare):5.1f} ms)")
    print()


def plans() -> None:
    print("PlanBasedChecker, all steps done, compared with a plain loop that reads each step's status")
    for count in (100, 1_000, 10_000, 100_000):
        plan = Plan("x", steps=tuple(PlanStep(number, f"step {number}", "done") for number in range(count)))
        context = make_context(plan)
        checker = PlanBasedChecker(plan_type=Plan)

        def loop(plan: Plan = plan) -> int:
            return sum(1 for step in plan.steps if step.status != "done")

        def check(checker: PlanBasedChecker = checker, context: TaskCompletionContext = context) -> object:
            return checker.check(context)

        checked = _seconds(check)
        looped = _seconds(loop)
        print(f"  {count:7} steps   {checked / looped:5.2f} ×   ({1e9 * checked / count:6.1f} ns per step)")
    print()


@dataclass(frozen=True)
class Tick:
    number: int


def _keep(view: SliceView[Tick], event: Tick) -> Append[Tick]:
    return Append(event)


def dispatching() -> None:
    print("Dispatching an event that is appended, compared with appending to a list under a lock")
    for count in (1_000, 10_000, 100_000):
        ticks = [Tick(number) for number in range(count)]

        def dispatch(ticks: list[Tick] = ticks) -> None:
            session = Session()
            session[Tick].register(Tick, _keep)
            for tick in ticks:
                session.dispatch(tick)

        def append(ticks: list[Tick] = ticks) -> None:
            import threading

            lock = threading.RLock()
            kept: list[Tick] = []
            for tick in ticks:
                with lock:
                    kept.append(tick)

        ours, theirs = _seconds(dispatch, 5), _seconds(append, 5)
        print(f"  {count:7} events  {ours / theirs:5.1f} ×   ({1e6 * ours / count:5.2f} µs per event)")


def _seconds(function: Callable[[], object], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return statistics.median(times) or 1e-9


def _cpu_of(statement: str, stdin: str = "") -> float:
    # Byte code is cached, as on every machine that has run the program once.
    surroundings = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    times = []
    for _ in range(ROUNDS + 1):
        before = _children()
        subprocess.run(
            [sys.executable, "-c", statement],
            check=True,
            env=surroundings,
            input=stdin,
            text=True,
            stdout=subprocess.DEVNULL,
        )
        times.append(_children() - before)
    return statistics.median(times[1:])


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
