"""How much probes say about work whose tests pass: `make bench-strength DATA=folder`.

``DATA/greens/given.jsonl`` has small solutions with passing tests, some of which are wrong by tests that are not here.
The weights of ``donewhen.mutation.doubt`` were fitted on one half of the tasks; the figures are of the other half.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import math
import multiprocessing
import os
import random
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from donewhen.mutation.code_changes import code_changes
from donewhen.mutation.doubt import STRONG_BELOW, CodeSigns, doubt, sign_values
from donewhen.mutation.injected.calls import TimeIsUp, large_failures, near_answers
from donewhen.mutation.injected.near_inputs import Arguments, is_plain

_SECONDS = 20.0
"""The time limit of a solution."""
_LEAST_SECONDS = 0.25
_MEMORY = 2 << 30
_SAMPLES = 1000
_AIM_ABOVE_SIZE, _AIM_SHARE, _AIM_MISSED = 0.04, 0.7, 0.25
SIGNS = ("places for a mistake", "unnoticed changes", "larger inputs that fail")


@dataclass(frozen=True)
class Solution:
    """A solution, what was measured about it, and whether it is wrong."""

    task: str
    wrong: bool
    lines: int
    signs: CodeSigns
    survived: int
    seconds: float

    @property
    def is_for_fitting(self) -> bool:
        """Whether its task is in the half that the weights were fitted on."""
        return hashlib.sha256(self.task.encode()).digest()[0] % 2 == 0


def measure(row: Mapping[str, str]) -> Solution:
    """Probe one solution in a process of its own."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _measure_in_child(row, writing)
    os.close(writing)
    data, start = b"", time.monotonic()
    while select.select([reading], [], [], max(0.0, start + _SECONDS - time.monotonic()))[0]:
        part = os.read(reading, 65536)
        if not part:
            break
        data += part
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    possible = len(code_changes(row["solution"]))
    found = json.loads(data) if data.endswith(b"}") else {"tried": 0, "unnoticed": 0, "large": 0, "failing": 0}
    signs = CodeSigns(possible, found["tried"], found["unnoticed"], found["large"], found["failing"])
    lines = len({node.lineno for node in ast.walk(ast.parse(row["solution"])) if isinstance(node, ast.stmt)})
    wrong = row["truth"] == "fail"
    return Solution(row["task"], wrong, lines, signs, found.get("survived", 0), time.monotonic() - start)


def _measure_in_child(row: Mapping[str, str], pipe: int) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    sys.setrecursionlimit(500)
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    try:
        os.write(pipe, json.dumps(_probe(row["solution"], row["tests"], row["name"])).encode())
    finally:
        os._exit(0)


def _probe(code: str, tests: str, name: str) -> dict[str, int]:
    end = time.monotonic() + _SECONDS * 0.6
    calls = _calls(code, tests, name)
    start = time.monotonic()
    _passes(code, tests, 5.0)
    limit = max(_LEAST_SECONDS, 10 * (time.monotonic() - start) + 0.1)
    usual = _answers(code, name, calls)
    tried = survived = unnoticed = 0
    for change in code_changes(code):
        if time.monotonic() > end:
            break
        changed = change.applied_to(code)
        tried += 1
        if _passes(changed, tests, limit):
            survived += 1
            unnoticed += any(one != other for one, other in zip(usual, _answers(changed, name, calls), strict=False))
    large, failing = large_failures(_load(code)[name], calls)
    return {"tried": tried, "survived": survived, "unnoticed": unnoticed, "large": large, "failing": failing}


def _load(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "solution"}
    exec(code, names)  # noqa: S102 - in a process of its own
    return names


def _calls(code: str, tests: str, name: str) -> list[Arguments]:
    """The arguments with which the tests call the solution."""
    names = _load(code)
    function, found = names[name], []

    def recording(*arguments: Any, **named: Any) -> Any:
        if not named and is_plain(arguments):
            found.append(deepcopy(arguments))
        return function(*arguments, **named)

    with suppress(Exception):
        _timed(lambda: exec(tests, {**names, name: recording}), 5.0)  # noqa: S102
    return found


def _answers(code: str, name: str, calls: Sequence[Arguments]) -> list[str]:
    try:
        return near_answers(_load(code)[name], calls, 2.0)
    except BaseException:  # noqa: BLE001 - a change of code may raise anything
        return []


def _passes(code: str, tests: str, seconds: float) -> bool:
    try:
        _timed(lambda: exec(tests, _load(code)), seconds)  # noqa: S102
    except BaseException:  # noqa: BLE001 - a change of code may raise anything
        return False
    return True


def _timed(run: Callable[[], object], seconds: float) -> None:
    def stop(_signal: int, _frame: object) -> None:
        raise TimeIsUp

    signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        run()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def area(scores: Sequence[float], wrong: Sequence[bool]) -> float:
    """The chance that a wrong solution has a higher score than a right one."""
    rows = sorted(zip(scores, wrong, strict=True))
    bad = sum(wrong)
    good = len(rows) - bad
    if not bad or not good:
        return math.nan
    ranks, start = 0.0, 0
    while start < len(rows):
        end = start
        while end < len(rows) and rows[end][0] == rows[start][0]:
            end += 1
        ranks += sum(is_wrong for _, is_wrong in rows[start:end]) * (start + end - 1) / 2
        start = end
    return (ranks - bad * (bad - 1) / 2) / (bad * good)


def interval(
    solutions: Sequence[Solution], figure: Callable[[Sequence[Solution]], float]
) -> tuple[float, float, float]:
    """A figure with its 95 % interval: tasks are drawn again, with all of their solutions."""
    tasks: dict[str, list[Solution]] = {}
    for solution in solutions:
        tasks.setdefault(solution.task, []).append(solution)
    names, lot = sorted(tasks), random.Random(7)
    drawn = (
        figure([solution for task in lot.choices(names, k=len(names)) for solution in tasks[task]])
        for _ in range(_SAMPLES)
    )
    values = sorted(value for value in drawn if not math.isnan(value))
    return figure(solutions), values[int(0.025 * len(values))], values[int(0.975 * len(values)) - 1]


def strong_share(solutions: Sequence[Solution]) -> float:
    """The share of wrong solutions among the strong ones, relative to that among all."""
    strong = [solution for solution in solutions if doubt(solution.signs) < STRONG_BELOW]
    wrong, base = sum(solution.wrong for solution in strong), sum(solution.wrong for solution in solutions)
    return (wrong / len(strong)) / (base / len(solutions)) if strong and base else math.nan


def strong_missed(solutions: Sequence[Solution]) -> float:
    """The share of right solutions that are not strong."""
    right = [solution for solution in solutions if not solution.wrong]
    return sum(doubt(solution.signs) >= STRONG_BELOW for solution in right) / len(right) if right else math.nan


def fitted(solutions: Sequence[Solution], penalty: float = 3.0) -> tuple[list[tuple[float, float, float]], float]:
    """Mean, deviation and weight of each sign by logistic regression, and the level below which 80 % of the right
    solutions are."""
    rows = [sign_values(solution.signs) for solution in solutions]
    columns = list(zip(*rows, strict=True))
    means = [sum(column) / len(column) for column in columns]
    deviations = [
        math.sqrt(sum((value - mean) ** 2 for value in column) / len(column)) or 1.0
        for column, mean in zip(columns, means, strict=True)
    ]
    inputs = [
        [1.0, *((value - mean) / deviation for value, mean, deviation in zip(row, means, deviations, strict=True))]
        for row in rows
    ]
    weights = [0.0] * 4
    for _ in range(20_000):
        slope = [penalty * weight if place else 0.0 for place, weight in enumerate(weights)]
        for row, solution in zip(inputs, solutions, strict=True):
            chance = 1 / (1 + math.exp(-sum(weight * value for weight, value in zip(weights, row, strict=True))))
            slope = [old + (chance - solution.wrong) * value for old, value in zip(slope, row, strict=True)]
        if max(map(abs, slope)) < 1e-4:
            break
        weights = [weight - 0.005 * step for weight, step in zip(weights, slope, strict=True)]
    scores = sorted(
        sum(weight * value for weight, value in zip(weights[1:], row[1:], strict=True))
        for row, solution in zip(inputs, solutions, strict=True)
        if not solution.wrong
    )
    return list(zip(means, deviations, weights[1:], strict=True)), scores[int(0.8 * len(scores))]


def figures(solutions: Sequence[Solution]) -> dict[str, tuple[float, float, float]]:
    """The area under the curve of each part and of the whole, each with its interval."""
    parts: dict[str, Callable[[Solution], float]] = {
        "lines of code alone": lambda solution: solution.lines,
        "surviving mutants": lambda solution: solution.survived / max(1, solution.signs.tried),
    }
    for place, name in enumerate(SIGNS):
        parts[name] = lambda solution, place=place: sign_values(solution.signs)[place]  # type: ignore[misc]
    parts["all signs together"] = lambda solution: doubt(solution.signs)

    def figure(part: Callable[[Solution], float]) -> Callable[[Sequence[Solution]], float]:
        return lambda found: area([part(solution) for solution in found], [solution.wrong for solution in found])

    rows = {name: interval(solutions, figure(part)) for name, part in parts.items()}
    size, whole = figure(parts["lines of code alone"]), figure(parts["all signs together"])
    return {**rows, "above lines of code": interval(solutions, lambda found: whole(found) - size(found))}


def show(solutions: Sequence[Solution]) -> None:
    """Print the tables."""
    for name, half in (
        ("tasks that the weights were fitted on", [found for found in solutions if found.is_for_fitting]),
        ("the other tasks", [found for found in solutions if not found.is_for_fitting]),
    ):
        wrong = sum(solution.wrong for solution in half)
        tasks = len({solution.task for solution in half})
        print(f"\n{name}: {tasks} tasks, {len(half)} solutions with passing tests, {wrong} wrong")
        found = figures(half)
        for part, (value, low, high) in found.items():
            print(
                f"  {part:26} {value:+.3f}  [{low:+.3f}, {high:+.3f}]"
                if "above" in part
                else f"  {part:26}  {value:.3f}  [ {low:.3f},  {high:.3f}]"
            )
        share, missed = interval(half, strong_share), interval(half, strong_missed)
        print(f"  strong: wrong ones of base  {share[0]:.2f}  [ {share[1]:.2f},   {share[2]:.2f}]")
        print(f"  strong: right ones missed   {missed[0]:.2f}  [ {missed[1]:.2f},   {missed[2]:.2f}]")
        aims = {
            f"above size by {_AIM_ABOVE_SIZE}": found["above lines of code"][0] >= _AIM_ABOVE_SIZE,
            f"wrong ones at most {_AIM_SHARE} of the base rate": share[0] <= _AIM_SHARE,
            f"right ones missed at most {_AIM_MISSED}": missed[0] <= _AIM_MISSED,
        }
        for aim, met in aims.items():
            print(f"  {'met' if met else 'MISSED'}: {aim}")
    seconds = sorted(solution.seconds for solution in solutions)
    print(
        f"\nseconds per solution: median {seconds[len(seconds) // 2]:.2f}, mean {sum(seconds) / len(seconds):.2f}, ",
        end="",
    )
    print(f"longest {seconds[-1]:.1f}; in the product, the time is that of the suite")


def main() -> int:
    parser = argparse.ArgumentParser(description="How much probes say about work whose tests pass.")
    parser.add_argument("data", nargs="?", type=Path, help="the folder with greens/given.jsonl")
    parser.add_argument("--fit", action="store_true", help="also print weights that are fitted now")
    given = parser.parse_args()
    file = None if given.data is None else given.data / "greens" / "given.jsonl"
    if file is None or not file.is_file():
        hint = "Give the folder of the data: make bench-strength DATA=folder"
        print(f"There is no greens/given.jsonl. {hint}", file=sys.stderr)
        return 2
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    with multiprocessing.Pool(os.cpu_count()) as pool:
        solutions = pool.map(measure, rows, chunksize=8)
    show(solutions)
    if given.fit:
        weights, level = fitted([solution for solution in solutions if solution.is_for_fitting])
        print("\nfitted now, as mean, deviation and weight:")
        for name, row in zip(SIGNS, weights, strict=True):
            print(f"  {name:26} " + " ".join(f"{value:.3f}" for value in row))
        print(f"  strong below {level:.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
