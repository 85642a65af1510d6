"""Run tests against a mutant, in a temporary copy of the tree."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

from tools.mutating.places import Change, Unit, file_of, mutated_text

Status = Literal["killed", "timeout", "survived", "unreached"]

SLOW_SECONDS = 15.0
"""Slower tests are skipped."""
MOST_SECONDS = 180.0
"""Time limit for all tests of one mutant; beyond it, the tests that are least likely to notice it are skipped."""
_NO_TEST = 5
_LEFT_BEHIND = shutil.ignore_patterns(
    ".git",
    ".venv*",
    "__pycache__",
    ".hypothesis",
    ".mypy_cache",
    ".ruff_cache",
    ".import_linter_cache",
    "build",
    "dist",
)
_HEAVY = ("browser", "test_ray", "test_ci_files", "test_killed", "test_many_processes", "test_ledger_crash")
_WITHOUT = ("-m", "not claude and not codex and not wheel", *(f"--ignore-glob=*{name}*" for name in _HEAVY))
_QUIET = ("-q", "--no-header", "--no-cov", "--hypothesis-seed=0", "-p", "mutants_in_tests")
_LOADED = """
import importlib.util, sys
spec = importlib.util.find_spec(sys.argv[1])
code = compile(open(sys.argv[2], "rb").read(), spec.origin, "exec", dont_inherit=True)
print(spec.origin == sys.argv[2] and spec.loader.get_code(sys.argv[1]) == code)
"""


class TestRun(NamedTuple):
    """The result of a test."""

    outcome: str
    seconds: float
    text: str


class Baseline(NamedTuple):
    """The results of the tests without mutants."""

    seconds: Mapping[str, float]
    """The durations of the tests that pass and are not slow."""
    left_out: Mapping[str, str]
    reached_by: Mapping[str, frozenset[str]]
    """The tests that run the function of each mutant."""


class Measured(NamedTuple):
    """The result of a mutant."""

    status: Status
    killed_by: str | None
    text: str
    tests: tuple[str, ...]
    """The tests to run, in this order, until one fails."""
    left_out: int
    """Number of tests that reach the function but were skipped to save time."""
    seconds: float


class Tree:
    """A copy of a tree with its own environment; all its processes import the copy."""

    def __init__(self, root: Path, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "tree"
        shutil.copytree(root, self.root, ignore=_LEFT_BEHIND, symlinks=True)
        self.python = self._environment()
        self.hits = folder / "hits"

    def _environment(self) -> Path:
        """Create an environment with the copy and the packages of this one. Unlike PYTHONPATH, tests can't clear it."""
        home = self.folder / "env"
        packages = home / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
        packages.mkdir(parents=True)
        shutil.copy(Path(sys.prefix) / "pyvenv.cfg", home)
        (packages / "mutants.pth").write_text(f"{self.root / 'src'}\n{sysconfig.get_path('purelib')}\n")
        for name in ("probe", "in_tests"):
            shutil.copy(Path(__file__).with_name(f"{name}.py"), packages / f"mutants_{name}.py")
        binaries = home / "bin"
        binaries.mkdir()
        for path in (Path(sys.prefix) / "bin").iterdir():
            (binaries / path.name).symlink_to(os.path.realpath(path) if path.name.startswith("python") else path)
        (binaries / "donewhen").unlink(missing_ok=True)
        (binaries / "donewhen").write_text(
            f"#!{binaries / 'python'}\nimport sys\nfrom donewhen.cli import main\nsys.exit(main())\n"
        )
        (binaries / "donewhen").chmod(0o755)
        return binaries / "python"

    def write(self, module: str, text: str) -> None:
        path = file_of(self.root, module)
        path.write_text(text, encoding="utf-8")
        for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            cached.unlink()

    def loads(self, module: str) -> bool:
        """Whether a new process with an empty environment imports the current content of a module's file."""
        argv = [str(self.python), "-c", _LOADED, module, str(file_of(self.root, module))]
        done = subprocess.run(argv, cwd="/", env={}, capture_output=True, text=True, check=False)
        return str(done.stdout) == "True\n"

    def run(
        self, paths: Iterable[str], *options: str, tests: Sequence[str] = (), limit: float
    ) -> dict[str, TestRun] | None:
        """Run the named tests, or all in these files and folders; return None if they take too long."""
        report, chosen, scratch = self.folder / "report", self.folder / "tests", self.folder / "t"
        report.write_text("")
        chosen.write_text(json.dumps(list(tests)))
        environment = {**os.environ, "MUTANTS_REPORT": str(report), "MUTANTS_HITS": str(self.hits)}
        environment.update({"MUTANTS_TESTS": str(chosen)} if tests else {})
        # This process may be a worker of pytest-xdist; the new pytest is not.
        environment.pop("PYTEST_XDIST_WORKER", None)
        environment["PATH"] = f"{self.python.parent}{os.pathsep}{environment.get('PATH', '')}"
        environment["VIRTUAL_ENV"] = str(self.python.parent.parent)
        argv = [str(self.python), "-m", "pytest", *_QUIET, *_WITHOUT, f"--basetemp={scratch}", *options, *paths]
        with (self.folder / "output").open("w") as output:
            process = subprocess.Popen(
                argv, cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                start_new_session=True,
            )  # fmt: skip
            try:
                status = process.wait(limit)
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return None
            finally:
                # Not done by pytest, because its time is measured.
                shutil.rmtree(scratch, ignore_errors=True)
                shutil.rmtree(self.root / ".hypothesis", ignore_errors=True)
        runs: dict[str, TestRun] = {}
        for line in report.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            if row["test"] not in runs or runs[row["test"]].outcome == "passed":
                runs[row["test"]] = TestRun(row["outcome"], row["seconds"], row["text"])
        if status not in (0, 1, _NO_TEST) and not any(run.outcome == "failed" for run in runs.values()):
            printed = (self.folder / "output").read_text(errors="replace")[-2000:]
            runs["pytest"] = TestRun("failed", 0.0, f"pytest ended with status {status}: {printed}")
        return runs


def measure_baseline(tree: Tree, places: Mapping[str, Unit], folders: Sequence[str], workers: int) -> Baseline:
    """Run every test once, and record which tests run the functions that will be changed."""
    originals = {unit.module: unit.text for unit in places.values()}
    for module, text in originals.items():
        probed = {key: unit for key, unit in places.items() if unit.module == module}
        tree.write(module, with_probes(text, probed))
    tree.hits.write_text("")
    tree.hits.chmod(0o666)
    here = [folder for folder in folders if (tree.root / folder).exists()]
    runs = tree.run(here, f"-n{workers}", limit=3 * 3600)
    for module, text in originals.items():
        tree.write(module, text)
    if runs is None or "pytest" in runs or len(runs) < 2:
        why = "they take too long" if runs is None else runs["pytest"].text if "pytest" in runs else "none was run"
        raise SystemExit(f"The tests can't be run unchanged:\n{why}")
    seconds = {name: run.seconds for name, run in runs.items() if run.outcome == "passed"}
    slow = {name: f"slow ({duration:.0f} s)" for name, duration in seconds.items() if duration > SLOW_SECONDS}
    bad = {name: run.outcome for name, run in runs.items() if run.outcome != "passed"}
    good = {name: duration for name, duration in seconds.items() if name not in slow}
    return Baseline(good, {**bad, **slow}, _reached(tree.hits.read_text(encoding="utf-8"), good))


def with_probes(text: str, places: Mapping[str, Unit]) -> str:
    """Return the text of a module whose functions record the test that runs them."""
    lines = text.split("\n")
    begins = [(unit.first_statement, key) for key, unit in places.items()]
    for statement, key in sorted(begins, key=lambda begin: -(begin[0].lineno if begin[0] else 0)):
        if statement is not None:
            decorators = getattr(statement, "decorator_list", ())
            at = min([statement.lineno, *(decorator.lineno for decorator in decorators)]) - 1
            lines.insert(at, f'{" " * statement.col_offset}__import__("mutants_probe").hit("{key}")')
    return "\n".join(lines)


def _reached(hits: str, good: Mapping[str, float]) -> dict[str, frozenset[str]]:
    """Return the tests by mutant. If the setup of a fixture runs the function, all tests of the file are included."""
    files: dict[str, set[str]] = {}
    for name in good:
        files.setdefault(name.partition("::")[0], set()).add(name)
    reached: dict[str, set[str]] = {}
    for line in hits.splitlines():
        key, _, test = line.partition(" ")
        name, _, when = test.rpartition(" ")
        of = reached.setdefault(key, set())
        of |= {name} if name in good else set()
        if when == "(setup)":
            of |= files.get(name.partition("::")[0], set())
    return {key: frozenset(names) for key, names in reached.items()}


def chosen_tests(
    unit: Unit,
    reached: Iterable[str],
    seconds: Mapping[str, float],
    root: Path,
    first: Sequence[str],
    earlier: Sequence[str] = (),
) -> tuple[tuple[str, ...], int]:
    """Return the tests to run, the most likely to notice first, and the number of tests that are skipped.

    If tests were run ``earlier``, those with the same names come first, in whatever file they are now, and the same
    number is run.
    """

    def order(name: str) -> tuple[int, float]:
        path = name.partition("::")[0]
        own = _speaks_of(root, path, unit.module)
        return (0 if own else 1 if path.startswith(tuple(first)) else 2), seconds[name]

    chosen: list[str] = []
    total = 0.0
    wanted = sorted(reached, key=order)
    if earlier:
        known = {name_of(name) for name in earlier}
        wanted.sort(key=lambda name: name_of(name) not in known)
        return tuple(wanted[: len(earlier)]), max(0, len(wanted) - len(earlier))
    for name in wanted:
        if total + seconds[name] <= MOST_SECONDS:
            total += seconds[name]
            chosen.append(name)
    return tuple(chosen), len(wanted) - len(chosen)


def name_of(test: str) -> str:
    """Return a test's name without its file."""
    return test.partition("::")[2]


@cache
def _speaks_of(root: Path, path: str, module: str) -> bool:
    last = module.split(".")[-1]
    if Path(path).stem == f"test_{last}":
        return True
    file = root / path
    return file.is_file() and f"{module} import" in file.read_text(encoding="utf-8")


def measure(tree: Tree, unit: Unit, change: Change, tests: Sequence[str], left_out: int, seconds: float) -> Measured:
    """Run the tests until one fails that passes without the mutant."""
    started = time.monotonic()
    remaining = list(tests)

    def ended(status: Status, by: str | None = None, text: str = "") -> Measured:
        return Measured(status, by, text, tuple(tests), left_out, round(time.monotonic() - started, 1))

    if not tests:
        return ended("unreached")
    limit = 60 + 4 * seconds
    while remaining:
        tree.write(unit.module, mutated_text(unit.text, change))
        try:
            if not tree.loads(unit.module):
                raise SystemExit(f"{unit.name}: the mutant was not imported")
            runs = tree.run(_files(remaining), "-x", "-n0", tests=remaining, limit=limit)
        finally:
            tree.write(unit.module, unit.text)
        if runs is None:
            return ended("timeout", None, f"not finished after {limit:.0f} s")
        failed = next(((name, run) for name, run in runs.items() if run.outcome == "failed"), None)
        if failed is None:
            return ended("survived" if runs else "unreached")
        name, run = failed
        if _passes(tree, name if "::" in name else remaining[0]):
            timeout = "Failed: Timeout" in run.text
            return ended("timeout" if timeout else "killed", name, run.text.strip().split("\n")[-1][:300])
        remaining = [test for test in remaining if not name.startswith(test) and "::" in name]
    return ended("survived")


def _passes(tree: Tree, name: str) -> bool:
    """Whether a test, or each of its cases, passes without the mutant."""
    runs = tree.run(_files([name]), "-n0", tests=[name], limit=600)
    return runs is not None and bool(runs) and all(run.outcome == "passed" for run in runs.values())


def named_tests(root: Path, test: str) -> tuple[str, ...]:
    """Return the tests with this name in all files, with all their cases."""
    name = name_of(test).partition("[")[0]
    written = f"def {name.split('::')[-1]}("
    files = [path for path in sorted((root / "tests").rglob("*.py")) if written in path.read_text(encoding="utf-8")]
    return tuple(f"{file.relative_to(root).as_posix()}::{name}" for file in files)


def _files(tests: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(test.partition("::")[0] for test in tests))
