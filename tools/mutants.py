"""Change the deciding code a little, and see whether a test notices: python -m tools.mutants [--sample N] [--seed N]

Each mutant is one small change in one function. The tests that run this function are run against it, in a copy of the
tree. `--json FILE` saves the results, and a table next to the file. `--replay FILE` makes the same changes in a tree
that has changed since, and compares the results; modules may have been moved, and names and messages changed. The test
that noticed a mutant is run first; if it is gone, the other tests that run the function. Places that can't be found
again are reported. Give them with `--map FILE`, as JSON:

  {"donewhen.old": "donewhen.new", "donewhen.old:name": "donewhen.new:other", "ID": "donewhen.new:LINE[:COLUMN]"}
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

from tools.mutating.measuring import (
    Baseline,
    Measured,
    Tree,
    chosen_tests,
    measure,
    measure_baseline,
    name_of,
    named_tests,
)
from tools.mutating.places import MODULE_LEVEL, Change, Unit, all_units, around, unit_from
from tools.mutating.relocating import Found, NotFound, relocate

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("completion", "jobs", "judging", "learning")
LEAST_PER_ROOM = 7
EVERYBODY = ("tests/spec", "tests/adversarial", "tests/property")
TESTS = {
    "completion": ("tests/completion",),
    "jobs": ("tests/jobs", "tests/verifying", "tests/mirror"),
    "judging": ("tests/judging",),
    "learning": ("tests/learning",),
}
ONLY_SHOWING = frozenset(
    {"board", "board_record", "codes", "dashboard_page", "issue_text", "notes", "reporting", "summary", "templates"}
)
"""Modules that only turn decisions of other modules into text and pictures."""
NOTICED = ("killed", "timeout")
_PATIENCE = 30.0
"""Assumed duration in seconds of a test that was not measured yet."""


class Mutant(NamedTuple):
    """One change, at one place."""

    key: str
    unit: Unit
    change: Change

    @property
    def room(self) -> str:
        return self.unit.module.split(".")[1]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.mutants", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sample", type=int, default=40, metavar="N", help="Number of mutants (default: 40).")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="Seed of the sample (default: 1).")
    parser.add_argument("--without", action="append", default=[], metavar="ID", help="Exclude an equivalent mutant.")
    parser.add_argument("--only", action="append", default=[], metavar="ID", help="Run only this mutant of the sample.")
    parser.add_argument("--list", action="store_true", help="Print the mutants and run nothing.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="Write the results here, and a table next to it.")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="Repeat the mutants of an earlier run.")
    parser.add_argument("--noticed", action="store_true", help="Repeat only those that a test noticed (minutes).")
    parser.add_argument("--map", type=Path, metavar="FILE", help="New names of modules, functions and places.")
    parser.add_argument("--tree", type=Path, default=ROOT, metavar="FOLDER", help="The tree to change (default: this).")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="Mutants at the same time (default: 1).")
    given = parser.parse_args(arguments)
    if given.noticed and not given.replay:
        parser.error("--noticed requires --replay")
    root = given.tree.resolve()
    units = all_units(root)
    lost: dict[str, NotFound] = {}
    how: dict[str, Found] = {}
    before: dict[str, Any] = {"mutants": []}
    if given.replay:
        before = json.loads(given.replay.read_text(encoding="utf-8"))
        names = json.loads(given.map.read_text(encoding="utf-8")) if given.map else {}
        mutants, how, lost = replayed(before["mutants"], units, names)
    else:
        mutants = sample(units, given.sample, given.seed, given.without)
    earlier = {entry["id"]: entry for entry in before["mutants"]}
    if given.noticed:
        mutants = [mutant for mutant in mutants if earlier[mutant.key]["result"]["status"] in NOTICED]
    if given.only:
        mutants = [mutant for mutant in mutants if mutant.key in given.only]
    if given.list:
        print("\n".join([*(_listed(mutant, how) for mutant in mutants), *_reported(lost)]))
        return 1 if lost else 0
    record: dict[str, Any] = {
        "version": 1,
        "commit": _commit(root),
        "seed": before.get("seed", given.seed),
        "without": before.get("without", given.without),
        "mutants": [],
        "lost": {key: not_found._asdict() for key, not_found in lost.items()},
    }
    for mutant, measured in _measured(root, mutants, given.jobs, record, earlier):
        record["mutants"].append(_recorded(mutant, measured, how.get(mutant.key), earlier.get(mutant.key)))
        print(
            f"{len(record['mutants']):3} {measured.status:9} {measured.seconds:6.1f} s  {_listed(mutant, how)}",
            flush=True,
        )
        if given.json:
            _write(given.json, record, earlier)
    print("\n".join([_counts(record["mutants"]), *_reported(lost)]))
    return _compared(record, earlier) if given.replay else 0


def sample(units: Sequence[Unit], size: int, seed: int, without: Sequence[str] = ()) -> list[Mutant]:
    """Choose mutants from every deciding room, by its size but at least some, in many modules and of many kinds."""
    sizes = {room: sum(_lines(unit) for unit in units if _in_room(unit, room)) for room in ROOMS}
    of_kind: Counter[str] = Counter()
    chosen: list[Mutant] = []
    for room, quota in quotas(sizes, size).items():
        candidates = [mutant for mutant in _candidates(units, room) if mutant.key not in without]
        candidates.sort(key=lambda mutant: sha256(f"{seed} {mutant.key}".encode()).digest())
        modules = len({mutant.unit.module for mutant in candidates})
        most_of_module = -(-quota // modules) if modules else 0
        of_module: Counter[str] = Counter()
        taken = 0
        for mutant in candidates:
            module, kind = mutant.unit.module, mutant.change.operator
            few = of_module[module] < most_of_module and of_kind[kind] < max(1, size // 7)
            if few and taken < quota:
                of_module[module] += 1
                of_kind[kind] += 1
                taken += 1
                chosen.append(mutant)
    return chosen


def quotas(sizes: Mapping[str, int], size: int) -> dict[str, int]:
    """Return the number of mutants of each room: by size, but at least a few."""
    least = min(LEAST_PER_ROOM, size // len(sizes))
    fixed: dict[str, int] = {}
    while True:
        rest = {room: lines for room, lines in sizes.items() if room not in fixed}
        left = size - sum(fixed.values())
        share = {room: left * lines / sum(rest.values()) for room, lines in rest.items()}
        small = {room: least for room, number in share.items() if number < least}
        if not small:
            break
        fixed |= small
    whole = {room: int(number) for room, number in share.items()}
    for room in sorted(share, key=lambda room: whole[room] - share[room])[: left - sum(whole.values())]:
        whole[room] += 1
    return {room: (fixed | whole)[room] for room in sizes}


def replayed(
    recorded: Sequence[Mapping[str, Any]], units: Sequence[Unit], names: Mapping[str, str]
) -> tuple[list[Mutant], dict[str, Found], dict[str, NotFound]]:
    """Return the mutants of an earlier run at their places in this tree, how they were found, and those not found."""
    mutants: list[Mutant] = []
    how: dict[str, Found] = {}
    lost: dict[str, NotFound] = {}
    for entry in recorded:
        old = unit_from(entry["module"], entry["function"], entry["source"])
        wanted = next(
            change
            for change in old.changes
            if (change.operator, change.node, change.part) == (entry["operator"], entry["node"], entry["part"])
        )
        place = relocate(old, wanted, units, names, names.get(entry["id"]))
        if isinstance(place, NotFound):
            lost[entry["id"]] = place
        else:
            how[entry["id"]] = place
            mutants.append(Mutant(entry["id"], place.unit, place.change))
    return mutants, how, lost


def _candidates(units: Sequence[Unit], room: str) -> Iterator[Mutant]:
    for unit in units:
        if not _in_room(unit, room) or unit.only_words or ONLY_SHOWING & set(unit.module.split(".")):
            continue
        for at, change in enumerate(unit.changes):
            if unit.function == MODULE_LEVEL and change.operator not in ("boolean", "number"):
                continue
            name = f"{unit.name} {change.operator} {change.original} {change.mutated} {at}"
            yield Mutant(sha256(name.encode()).hexdigest()[:8], unit, change)


def _in_room(unit: Unit, room: str) -> bool:
    return f"{unit.module}.".startswith(f"donewhen.{room}.")


def _lines(unit: Unit) -> int:
    return unit.text.count("\n") if unit.function == MODULE_LEVEL else 0


def _measured(
    root: Path, mutants: Sequence[Mutant], jobs: int, record: dict[str, Any], earlier: Mapping[str, Any]
) -> Iterator[tuple[Mutant, Measured]]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # Some tests start processes of another user.
        trees: SimpleQueue[Tree] = SimpleQueue()
        for at in range(jobs):
            (folder / str(at)).mkdir()
            trees.put(Tree(root, folder / str(at)))

        def noticed_again(mutant: Mutant) -> tuple[Mutant, Measured | None]:
            """Run the test that noticed it before; if it notices it again, no other test is needed."""
            by = earlier[mutant.key]["result"]["killed_by"] if mutant.key in earlier else None
            tests = named_tests(root, by) if by else ()
            tree = trees.get()
            try:
                measured = measure(tree, mutant.unit, mutant.change, tests, 0, _PATIENCE) if tests else None
            finally:
                trees.put(tree)
            return mutant, measured if measured and measured.status == "killed" else None

        def one(mutant: Mutant) -> tuple[Mutant, Measured]:
            likely, known = _likely(mutant, baseline), _tests_of(earlier.get(mutant.key))
            first = TESTS.get(mutant.room, ())
            tests, left_out = chosen_tests(mutant.unit, likely, baseline.seconds, root, first, known)
            seconds = sum(baseline.seconds[name] for name in tests)
            tree = trees.get()
            try:
                return mutant, measure(tree, mutant.unit, mutant.change, tests, left_out, seconds)
            finally:
                trees.put(tree)

        with ThreadPoolExecutor(jobs) as pool:
            rest: list[Mutant] = []
            for mutant, measured in pool.map(noticed_again, mutants):
                if measured is None:
                    rest.append(mutant)
                else:
                    yield mutant, measured
            if not rest:
                return
            tree = trees.get()
            baseline = _baseline(tree, rest, max(jobs, 2))
            trees.put(tree)
            record["baseline"] = {"tests": len(baseline.seconds), "left_out": dict(baseline.left_out)}
            yield from pool.map(one, rest)


def _baseline(tree: Tree, mutants: Sequence[Mutant], workers: int) -> Baseline:
    started = time.monotonic()
    rooms = sorted({mutant.room for mutant in mutants})
    folders = [*(folder for room in rooms for folder in TESTS.get(room, ())), *EVERYBODY]
    baseline = measure_baseline(tree, {mutant.key: mutant.unit for mutant in mutants}, folders, workers)
    minutes = f"{(time.monotonic() - started) / 60:.0f} minutes"
    print(f"{len(baseline.seconds)} tests pass unchanged, {len(baseline.left_out)} left out ({minutes})", flush=True)
    return baseline


def _likely(mutant: Mutant, baseline: Baseline) -> set[str]:
    """Return the tests of the room, and those for all rooms, that run the function."""
    folders = (*TESTS.get(mutant.room, ()), *EVERYBODY)
    reached = baseline.reached_by.get(mutant.key, frozenset())
    tests = baseline.seconds if mutant.unit.function == MODULE_LEVEL else reached
    return {test for test in tests if test.startswith(tuple(f"{folder}/" for folder in folders))}


def _tests_of(recorded: Mapping[str, Any] | None) -> Sequence[str]:
    return recorded["result"]["tests"] if recorded else ()


def _recorded(
    mutant: Mutant, measured: Measured, found: Found | None, before: Mapping[str, Any] | None
) -> dict[str, Any]:
    unit, change = mutant.unit, mutant.change
    again = {name_of(test) for test in measured.tests} & {name_of(test) for test in _tests_of(before)}
    return {
        "id": mutant.key,
        "room": mutant.room,
        "module": unit.module,
        "function": unit.function,
        "operator": change.operator,
        "original": change.original,
        "mutated": change.mutated,
        "line": change.line,
        "column": change.column,
        "node": change.node,
        "part": change.part,
        "around": around(unit, change),
        "source": unit.source,
        **({"found_by": found.how, "likeness": round(found.likeness, 2)} if found else {}),
        **({"same_tests": len(again)} if before else {}),
        "result": measured._asdict(),
    }


def _write(path: Path, record: Mapping[str, Any], earlier: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text("\n".join(_table(record, earlier)) + "\n", encoding="utf-8")


def _table(record: Mapping[str, Any], earlier: Mapping[str, Any]) -> Iterator[str]:
    yield f"# Mutants at {record['commit']}\n\n{_counts(record['mutants'])}\n"
    before = " before |" if earlier else ""
    yield f"| id | place | change | tests | result |{before} noticed by |"
    yield f"| --- | --- | --- | --- | --- |{' --- |' if earlier else ''} --- |"
    for entry in record["mutants"]:
        result = entry["result"]
        name = f"{entry['module'].removeprefix('donewhen.')}:{entry['function'] or '(module)'}:{entry['line']}"
        change = _cell(f"`{entry['original']}` → `{entry['mutated']}` ({entry['operator']})")
        if earlier:
            old = earlier[entry["id"]]
            change += f"; was `{_cell(old['original'])}`" if old["original"] != entry["original"] else ""
            before = f" {old['result']['status']} |"
        tests = f"{len(result['tests'])}" + (f" (+{result['left_out']})" if result["left_out"] else "")
        noticed_by = _cell(result["killed_by"] or "")
        yield f"| {entry['id']} | {name} | {change} | {tests} | {result['status']} |{before} {noticed_by} |"
    for key, lost in record["lost"].items():
        yield f"\n{key} was not found again: {lost['why']} ({', '.join(lost['candidates'])})"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _listed(mutant: Mutant, how: Mapping[str, Found]) -> str:
    unit, change = mutant.unit, mutant.change
    found_by = f" [{how[mutant.key].how} {how[mutant.key].likeness:.2f}]" if mutant.key in how else ""
    place = f"{unit.module}:{unit.function or '(module)'}:{change.line}"
    return f"{mutant.key} {place} {change.operator}: {change.original} → {change.mutated}{found_by}"


def _reported(lost: Mapping[str, NotFound]) -> list[str]:
    return [f"{key} was not found again: {place.why} ({', '.join(place.candidates)})" for key, place in lost.items()]


def _counts(mutants: Sequence[Mapping[str, Any]]) -> str:
    counted = Counter(entry["result"]["status"] for entry in mutants)
    return f"{len(mutants)} mutants: " + ", ".join(f"{count} {status}" for status, count in sorted(counted.items()))


def _compared(record: Mapping[str, Any], earlier: Mapping[str, Any]) -> int:
    """Print the differences; return 1 if a mutant is no longer noticed or its place was not found."""
    now = {entry["id"]: entry["result"]["status"] for entry in record["mutants"]}
    worse = [key for key in now if earlier[key]["result"]["status"] in NOTICED and now[key] not in NOTICED]
    better = [key for key in now if earlier[key]["result"]["status"] not in NOTICED and now[key] in NOTICED]
    print(f"noticed before and not now: {', '.join(worse) or 'none'}")
    print(f"noticed now and not before: {', '.join(better) or 'none'}")
    return 1 if worse or record["lost"] else 0


def _commit(root: Path) -> str:
    done = subprocess.run(
        ["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() or "no commit"


if __name__ == "__main__":
    sys.exit(main())
