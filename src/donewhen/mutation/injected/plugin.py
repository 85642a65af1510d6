"""A plug-in of pytest that probes the tests: each trial is a process forked before anything of the project is loaded.

The process that pytest started never runs a test itself. It forks one child for each trial, which goes on as an
ordinary run of pytest on a selection of tests, and ends with the verdict of the trial as its exit status:

1. ``measure``: which tests pass, how long they take, and with which arguments they call the changed functions
2. ``order``: the same tests in the opposite order
3. ``alone``: some of the tests, each alone
4. ``mutants``: the same tests on one small change of the work at a time

What is to be done comes in a variable; the result is printed. After the time limit nothing new is begun.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import sys
import time
import zlib
from ast import literal_eval
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from .calls import Calls, RecordingFinder, large_failures, near_answers
from .near_inputs import Arguments

VARIABLE = "DONEWHEN_PROBES"
MARK = "DONEWHEN-PROBES "
"""What the line of the result starts with."""
GREEN, RED, NOTHING_RAN = 0, 1, 5
_SHARE_MEASURING, _SHARE_COMPANY = 0.35, 0.35
"""How much of the time may be spent on the first trial; and on order and single tests, of what is left."""
_SLOWER = 3.0
"""A trial of the same tests may take this many times as long as before, and a moment more."""
_MOMENT = 0.3
_SECONDS_NEAR = 1.0


class _Trial:
    """What one child does: which tests it runs, and what it reports."""

    def __init__(self, kind: str, pipe: int) -> None:
        self.kind, self.pipe = kind, pipe
        self.files: set[str] | None = None
        self.tests: set[str] | None = None
        self.calls: Calls = {}
        self.functions: Calls = {}
        self.passed = 0
        self.seconds: float | None = None
        """The time of the test that runs now, if it has passed so far."""
        self.bad: set[str] = set()
        self.quickest: list[str] = []
        """The tests that have noticed something before; they come first."""

    def send(self, **message: object) -> None:
        data = (json.dumps(message) + "\n").encode()
        while data:
            data = data[os.write(self.pipe, data) :]


_child: _Trial | None = None


class _GoOn(BaseException):
    """Leaves the parent's code in a child."""


class _Parent:
    """Runs the trials in turn, within the time limit."""

    def __init__(self, spec: dict[str, Any]) -> None:
        self.spec = spec
        self.here = Path.cwd()
        self.start = time.monotonic()
        self.end = self.start + float(spec["seconds"])
        self.report: dict[str, Any] = {"tests": 0, "alone": [], "order": None, "mutants": {}, "functions": []}
        self.touched = 0
        self.quickest: list[str] = []

    def run(self) -> None:
        """Return in the children only."""
        measured = self.trial("measure", self.left() * _SHARE_MEASURING)
        passed = [row for row in measured if row.get("test") and row["outcome"] == "passed"]
        files = sorted({row["file"] for row in measured if "file" in row})
        self.report["tests"] = len(passed)
        self.report["complete"] = any("end" in row for row in measured)
        self.report["functions"] = [
            [len(row["answers"]), row["large"], row["failing"]] for row in measured if "function" in row
        ]
        tests = {row["test"] for row in passed}
        usual = sum(row["seconds"] for row in passed) + next((row["begin"] for row in measured if "begin" in row), 0.5)
        if tests:
            if self.spec["company"]:
                self.try_company(passed, files, usual)
            self.try_mutants(tests, files, usual, measured)
        self.report["seconds"] = round(time.monotonic() - self.start, 3)
        print(MARK + json.dumps(self.report), flush=True)

    def try_company(self, passed: list[dict[str, Any]], files: list[str], usual: float) -> None:
        end = time.monotonic() + self.left() * _SHARE_COMPANY
        tests = [row["test"] for row in passed]
        if len(tests) > 1 and usual <= end - time.monotonic():
            bad = self.failing("order", usual, set(tests), files)
            # A second time, because a test may fail for another reason, once.
            again = self.failing("order", usual, set(tests), files) if bad else set()
            if bad is not None and again is not None:
                self.report["order"] = sorted(bad & again)
        for test in sorted(
            tests, key=lambda test: (test.partition("::")[0] not in self.spec["first"], zlib.crc32(test.encode()))
        ):
            if len(tests) == 1 or time.monotonic() >= end:
                break
            file = [row["file"] for row in passed if row["test"] == test]
            bad = self.failing("alone", usual, {test}, file)
            if bad:
                bad = self.failing("alone", usual, {test}, file)
            if bad is not None:
                self.report["alone"].append([test, not bad])

    def try_mutants(self, tests: set[str], files: list[str], usual: float, measured: list[dict[str, Any]]) -> None:
        loaded = {row["code"] for row in measured if "code" in row}
        answers = {(row["code"], row["function"]): row["answers"] for row in measured if "function" in row}
        calls = {
            (row["code"], row["function"]): [literal_eval(call) for call in row["calls"]]
            for row in measured
            if "function" in row
        }
        unloaded: set[str] = set()
        for number, mutant in enumerate(self.spec["mutants"]):
            if self.left() < usual * 0.5:
                break
            file = self.here / mutant["file"]
            name = os.path.realpath(str(file))
            try:
                original = file.read_bytes()
            except OSError:
                continue
            if name not in loaded and name not in unloaded:
                # No test has loaded it in its own process. Perhaps in another: then this is noticed.
                verdict, _ = self.changed(file, original, b"raise SystemExit(86)\n", tests, files, usual, {}, name)
                (unloaded if verdict == GREEN else loaded).add(name)
            if name in unloaded:
                self.report["mutants"][str(number)] = ["not_loaded", None]
                continue
            text = original[: mutant["start"]] + mutant["replacement"].encode() + original[mutant["end"] :]
            own = {function: found for (code, function), found in calls.items() if code == name}
            verdict, rows = self.changed(file, original, text, tests, files, usual, own, name)
            if verdict is None:
                break
            differs = None
            if verdict == GREEN and own:
                differs = any(
                    before != now
                    for row in rows
                    if "function" in row
                    for before, now in zip(answers.get((name, row["function"]), []), row["answers"])
                    if before is not None
                )
            self.report["mutants"][str(number)] = ["survived" if verdict == GREEN else "noticed", differs]

    def changed(
        self,
        file: Path,
        original: bytes,
        text: bytes,
        tests: set[str],
        files: list[str],
        usual: float,
        functions: dict[str, list[Arguments]],
        name: str,
    ) -> tuple[int | None, list[dict[str, Any]]]:
        """The verdict on the tests with another content of a file, which is put back."""
        stamps = file.stat()
        try:
            write(file, text)
            # A compiled module is only used for the same time and size.
            self.touched += 1
            os.utime(str(file), (stamps.st_atime, 1_000_000 + self.touched))
            keys = {(name, function): found for function, found in functions.items()}
            return self.verdict("mutant", usual, tests, files, keys)
        finally:
            # Children leave this way, too.
            if _child is None:
                write(file, original)
                os.utime(str(file), ns=(stamps.st_atime_ns, stamps.st_mtime_ns))

    def failing(self, kind: str, usual: float, tests: set[str], files: list[str]) -> set[str] | None:
        """The tests that don't pass in a trial; None if there was no time for it."""
        limit = usual * _SLOWER + _MOMENT
        if limit > self.left() + _MOMENT and usual > self.left():
            return None
        rows = self.trial(kind, min(limit, self.left() + _MOMENT), tests, files)
        passed = {row["test"] for row in rows if row.get("outcome") == "passed"}
        return tests - passed if any("end" in row for row in rows) else None

    def verdict(
        self, kind: str, usual: float, tests: set[str], files: list[str], functions: Calls
    ) -> tuple[int | None, list[dict[str, Any]]]:
        limit = usual * _SLOWER + _MOMENT
        rows = self.trial(kind, min(limit, self.left() + _MOMENT), tests, files, functions)
        end = next((row["end"] for row in rows if "end" in row), None)
        noticed = [row["noticed"] for row in rows if "noticed" in row]
        if not self.report["order"]:
            self.quickest = [*noticed, *(test for test in self.quickest if test not in noticed)]
        if end is None:
            # It did not end by itself: it was ended by the change, or by the time limit.
            cut = any("cut" in row for row in rows)
            return (None if cut and limit > self.left() + _MOMENT else RED), rows
        return (GREEN if end == GREEN else RED), rows

    def trial(
        self,
        kind: str,
        limit: float,
        tests: set[str] | None = None,
        files: list[str] | None = None,
        functions: Calls | None = None,
    ) -> list[dict[str, Any]]:
        """Fork a child, and return what it has sent."""
        reading, writing = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(reading)
            self.become(_Trial(kind, writing), tests, files, functions or {})
        os.close(writing)
        rows = receive(reading, time.monotonic() + limit)
        end_group(child)
        return rows

    def become(self, trial: _Trial, tests: set[str] | None, files: list[str] | None, functions: Calls) -> None:
        """In a child: go on as a run of pytest, which ends in a hook below."""
        global _child
        os.setpgid(0, 0)
        _die_with_parent()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        trial.tests, trial.functions, trial.quickest = tests, functions, self.quickest
        chosen = self.spec["files"] if files is None else None
        if chosen is not None:
            trial.files = {os.path.realpath(str(self.here / name)) for name in chosen}
        elif files is not None:
            trial.files = set(files)
        if trial.kind == "measure":
            names = {os.path.realpath(str(self.here / name)) for name in self.spec["code"]}
            trial.calls = {}
            sys.meta_path.insert(0, RecordingFinder(names if self.spec["near"] else (), trial.calls))
        _child = trial
        raise _GoOn

    def left(self) -> float:
        return self.end - time.monotonic()


def receive(pipe: int, end: float) -> list[dict[str, Any]]:
    """The lines that come through a pipe until it is closed or the time is up."""
    data, rows = b"", []
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            rows.append({"cut": True})
            break
        part = os.read(pipe, 65536)
        if not part:
            break
        data += part
        if b'"end"' in part and data.endswith(b"}\n"):
            break
    os.close(pipe)
    for line in data.split(b"\n"):
        try:
            row = json.loads(line)
        except ValueError:
            continue
        if isinstance(row, dict):
            rows.append(row)
    return rows


def end_group(child: int) -> None:
    """End a child with everything that it has started."""
    with suppress(OSError):
        os.killpg(child, signal.SIGKILL)
    with suppress(OSError):
        os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def write(file: Path, content: bytes) -> None:
    with file.open("r+b" if file.exists() else "wb") as stream:
        stream.write(content)
        stream.truncate()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Run in one process and without measuring coverage."""
    if _ONLY is not None:
        # What can't be collected says nothing about the others.
        args += ["--continue-on-collection-errors"]
        return
    has = early_config.pluginmanager.hasplugin
    if has("xdist") or has("xdist.plugin"):
        args += ["-n0"]
    if has("pytest_cov") or has("_cov"):
        args += ["--no-cov"]


def pytest_ignore_collect(collection_path: Any, config: Any) -> bool | None:
    """Leave out the files of other tests, unless they are named in the command."""
    path = os.path.realpath(str(collection_path))
    files = _ONLY if _child is None else _child.files
    if files is None or not os.path.isfile(path) or path in files:
        return None
    if os.path.basename(path) in ("conftest.py", "__init__.py"):
        return None
    here = str(config.invocation_params.dir)
    named = {os.path.realpath(os.path.join(here, word.split("::")[0])) for word in config.args}
    return None if path in named else True


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Keep the tests of the trial, in its order."""
    if _child is None:
        if _ONLY is not None:
            items[:] = [item for item in items if _file_of(item) in _ONLY]
        return
    kept = [item for item in items if _child.files is None or _file_of(item) in _child.files]
    if _child.tests is not None:
        kept = [item for item in kept if item.nodeid in _child.tests]
    items[:] = reversed(kept) if _child.kind == "order" else kept
    places = {test: place for place, test in enumerate(_child.quickest)}
    if _child.kind == "mutant":
        items.sort(key=lambda item: places.get(item.nodeid, len(places)))
    if _child.kind == "measure":
        _child.send(begin=round(time.monotonic() - _STARTED, 4))
        for file in sorted({_file_of(item) for item in items}):
            _child.send(file=file)


def pytest_collectreport(report: Any) -> None:
    if _child is not None and report.failed and _child.kind != "measure":
        _finish(RED)


def pytest_runtest_logreport(report: Any) -> None:
    """Send each outcome; the first failure decides on a mutant."""
    if _child is None:
        return
    if report.failed:
        _child.bad.add(report.nodeid)
        if _child.kind == "mutant":
            _child.send(noticed=report.nodeid)
            _finish(RED)
    if report.when == "call" and report.passed:
        _child.passed += 1
        _child.seconds = float(report.duration)
    if report.when == "teardown":
        is_passed = _child.seconds is not None and report.nodeid not in _child.bad
        file = os.path.realpath(os.path.join(str(_rootdir), report.location[0]))
        outcome, seconds = "passed" if is_passed else "other", round(_child.seconds or 0.0, 4)
        _child.seconds = None
        _child.send(test=report.nodeid, outcome=outcome, seconds=seconds, file=file)


_rootdir: Any = os.getcwd()


def pytest_configure(config: Any) -> None:
    global _rootdir
    _rootdir = config.rootdir


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: Any) -> None:
    """End the child with its verdict."""
    if _child is None:
        return
    if _child.kind == "measure":
        _send_code(_child)
    elif _child.kind == "mutant" and not _child.bad and _child.passed:
        for (file, name), calls in _child.functions.items():
            function, seconds = _function(file, name), _SECONDS_NEAR / len(_child.functions)
            if function is not None:
                _child.send(code=file, function=name, answers=near_answers(function, calls, seconds))
    _finish(RED if _child.bad else GREEN if _child.passed else NOTHING_RAN)


def _send_code(trial: _Trial) -> None:
    """Report which of the changed files were loaded, and how their functions answer to inputs near those of the
    tests."""
    names = {os.path.realpath(os.path.join(_HERE, name)) for name in _SPEC["code"]}
    for file in sorted(names & {os.path.realpath(getattr(m, "__file__", None) or "") for m in _modules()}):
        trial.send(code=file)
    for (file, name), calls in trial.calls.items():
        function = getattr(_function(file, name), "__wrapped__", None)
        if function is None or not calls:
            continue
        first, second = (near_answers(function, calls, _SECONDS_NEAR) for _ in range(2))
        # An answer that is not always the same says nothing.
        answers = [answer if answer == again else None for answer, again in zip(first, second)]
        number, failing = large_failures(function, calls)
        kept = [repr(call) for call in calls]
        trial.send(code=file, function=name, calls=kept, answers=answers, large=number, failing=failing)


def _modules() -> list[Any]:
    return list(sys.modules.values())


def _function(file: str, name: str) -> Any:
    for module in _modules():
        if os.path.realpath(getattr(module, "__file__", None) or "") == file:
            return getattr(module, name, None)
    return None


def _file_of(item: Any) -> str:
    return os.path.realpath(str(getattr(item, "path", None) or item.fspath))


def _finish(code: int) -> NoReturn:
    if _child is not None:
        _child.send(end=code)
    os._exit(code)


def _hide() -> None:
    """Leave nothing for commands that the tests start."""
    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    sys.path[:] = [folder for folder in sys.path if folder != own]
    folders = [folder for folder in os.environ.get("PYTHONPATH", "").split(os.pathsep) if folder != own]
    options = os.environ.get("PYTEST_ADDOPTS", "").replace("-p " + __name__, "").strip()
    for name, value in (("PYTHONPATH", os.pathsep.join(folders)), ("PYTEST_ADDOPTS", options)):
        os.environ.pop(name, None)
        if value:
            os.environ[name] = value


def _die_with_parent() -> None:
    """Have the system end this process when its parent ends, where it can."""
    with suppress(Exception):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)


_SPEC: dict[str, Any] = {}
_ONLY: set[str] | None = None
"""The files of the only tests to run, in a run that is no probe of its own."""
_HERE = os.getcwd()
_STARTED = time.monotonic()
if VARIABLE in os.environ:
    _SPEC = json.loads(zlib.decompress(base64.b64decode(os.environ.pop(VARIABLE))))
    _hide()
    if "only" in _SPEC:
        _ONLY = {os.path.realpath(name) for name in _SPEC["only"]}
    else:
        try:
            _Parent(_SPEC).run()
        except _GoOn:
            _STARTED = time.monotonic()
        else:
            os._exit(0)
