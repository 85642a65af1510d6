"""What tests in several rooms share: small workspaces, git, and somebody to play the person at the terminal."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import pytest

# The kits here and in the rooms are imported by their names.
sys.path.insert(0, str(Path(__file__).parent))

from hypothesis import HealthCheck, settings

from donewhen_kit import examples, git_command, quiet_environment, run_main, run_process, sampled
from listing_memo import let_the_machine_write, remember_own_installations

pytest_plugins = ["sentences"]

# What hypothesis tries where a test does not say how much.
# Whether making examples is slow says something about the machine.
settings.register_profile("donewhen", max_examples=examples(100), suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("donewhen")

# A CI system is part of the environment that evidence is bound to. Which tests are in one, they say themselves.
for _mark in ("CI", "GITHUB_ACTIONS"):
    os.environ.pop(_mark, None)

# Crash logs of tests are nobody's.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="donewhen-tests-state-")

_SCENES_OF_A_FILE = 4
_FIRST = ("test_ray", "test_one_loop", "browser")
_Report = TypeVar("_Report", pytest.TestReport, pytest.CollectReport)

# Where a shell started these tests in the background, Ctrl-C is ignored, here and in whatever they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
for _signal in (signal.SIGHUP, signal.SIGQUIT):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, signal.SIG_DFL)

# A process of its own, because forking one with threads is not safe; and one that has left its parents behind, because
# donewhen takes whoever descends from an agent's program for an agent, and an agent may be running these tests.
_PLAYER = r"""
import json, os, pty, re, sys
if os.fork():
    os._exit(0)
given = json.loads(sys.argv[1])
process, terminal = pty.fork()
if process == 0:
    os.execv(given["argv"][0], given["argv"])
screen, answered = b"", 0
try:
    while chunk := os.read(terminal, 4096):
        screen += chunk
        shown = re.findall(rb"type ([a-z]+-[a-z]+) and\s+press", screen)
        if screen[answered:].rstrip().endswith((b"word:", b"passphrase:", b"confirmation:")):
            answered = len(screen)
            word = given["answer"].encode() if given["answer"] is not None else shown[-1]
            os.write(terminal, word + b"\n")
        elif screen[answered:].rstrip().endswith((b"q quit", b"q stop reading \xe2\x94\x80\xe2\x94\x80")):
            answered = len(screen)
            os.write(terminal, given["keys"].pop(0).encode() if given["keys"] else b"q")
except OSError:
    pass
_, status = os.waitpid(process, 0)
print(json.dumps({"status": os.waitstatus_to_exitcode(status), "screen": screen.decode("utf-8", "replace")}))
"""


class Played(NamedTuple):
    """How a command ended that a person ran, and what they saw."""

    status: int
    screen: str


def play_person(
    arguments: Sequence[str],
    cwd: Path,
    *,
    answer: str | None = None,
    keys: Sequence[str] = (),
    env: dict[str, str] | None = None,
    words: Sequence[str] = (),
) -> Played:
    """Run ``donewhen`` on a real pseudo-terminal and type the word that it shows (or ``answer`` instead).

    ``keys`` are pressed where a review asks for one; after the last of them, it is left. ``words`` stand before the
    command, as those of a sandbox do.
    """
    argv = [*words, sys.executable, "-m", "donewhen", *arguments]
    done = subprocess.run(
        [sys.executable, "-c", _PLAYER, json.dumps({"argv": argv, "answer": answer, "keys": [*keys]})],
        cwd=cwd,
        env=quiet_environment() if env is None else env,
        stdout=subprocess.PIPE,
        text=True,
    )
    played = json.loads(done.stdout)
    # A terminal echoes a key that is pressed before the program listens; whether that happens is a matter of moments.
    screen = re.sub(r"(q quit *\r?\n)\S{1,8}(?=\r?\n)", r"\1", played["screen"])
    return Played(played["status"], re.sub(r"(?m)^[^\d\s]{1,4}(?=\d+ verdict\(s\) given)", "", screen))


_FSYNC = os.fsync


def _only_checked(descriptor: int) -> None:
    os.fstat(descriptor)


@pytest.fixture(autouse=True, scope="session")
def nothing_waits_for_the_disk() -> Iterator[None]:
    """No test loses power, and a flush takes milliseconds. Processes that tests start do flush."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", _only_checked)
        yield


@pytest.fixture(autouse=True)
def checks_are_not_probed(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Probing tests that have passed takes as long again. Processes that tests start do it."""
    if request.node.get_closest_marker("probes") is None:
        monkeypatch.setattr("donewhen.jobs.evidence.probes.runs_tests", lambda _argv, _run: False)


@pytest.fixture(autouse=True, scope="session")
def own_installations_are_read_once() -> Iterator[None]:
    """The environment of these tests has thousands of files. Processes that tests start read them all."""
    with pytest.MonkeyPatch.context() as patch:
        remember_own_installations(patch)
        yield


@pytest.fixture
def real_fsync(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what reaches the disk, and when."""
    monkeypatch.setattr(os, "fsync", _FSYNC)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        let_the_machine_write()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--scenes",
        choices=["whole", "sample"],
        default="whole",
        help="Of each file marked `scenes`, run all tests (default), or a fixed sample, as `make test` does.",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes longest comes first: workers take tests from each other's ends, and would wait for it in the end."""
    if config.getoption("scenes") == "sample":
        _keep_sample(config, items)
    items.sort(key=lambda item: next((at for at, name in enumerate(_FIRST) if name in item.path.name), len(_FIRST)))


def _keep_sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep some tests of each file whose tests play whole commands on whole projects."""
    scenes: dict[Path, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("scenes") is not None:
            scenes.setdefault(item.path, []).append(item)
    kept = {item.nodeid for tests in scenes.values() for item in sampled(tests, _SCENES_OF_A_FILE)}
    left_out = [item for tests in scenes.values() for item in tests if item.nodeid not in kept]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        names = {item.nodeid for item in left_out}
        items[:] = [item for item in items if item.nodeid not in names]


def pytest_collection_finish() -> None:
    """Thousands of collected tests stay until the end: don't search them for garbage again and again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    return _as_a_failure((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    return _as_a_failure((yield))


def _as_a_failure(report: _Report) -> _Report:
    """In CI, what was skipped is what nobody has tested: there it is a failure."""
    if report.skipped and not hasattr(report, "wasxfail") and os.environ.get("DONEWHEN_CI_NO_SKIPS"):
        report.outcome = "failed"
        why = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.longrepr = f"{report.nodeid}: nothing may be skipped here (DONEWHEN_CI_NO_SKIPS is set). {why}"
    return report


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Whoever is root may write everywhere: a test marked ``powerless`` is run again by one who may not."""
    if pyfuncitem.get_closest_marker("powerless") is None or not _may_write_everywhere():
        return None
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("LOUD: this is root, and setpriv is not here to drop its privileges")
    argv = [setpriv, "--bounding-set=-all", "--inh-caps=-all", sys.executable, "-m", "pytest", "-n0", "--no-cov"]
    with tempfile.TemporaryDirectory() as folder:
        # Its own folder: otherwise it would first clear away what earlier runs have left.
        words = [*argv, f"--basetemp={folder}/t", pyfuncitem.nodeid]
        done = subprocess.run(words, cwd=pyfuncitem.config.rootpath, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return True


def _may_write_everywhere() -> bool:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o500)
        return os.access(folder, os.W_OK)


@pytest.fixture
def as_person() -> Callable[..., Played]:
    """``as_person(["agree"], folder)``: a person runs donewhen at a terminal."""
    return play_person


@pytest.fixture
def donewhen() -> Callable[..., subprocess.CompletedProcess[str]]:
    """``donewhen(["status"], folder)``: donewhen without a terminal, inside this process."""
    return run_main


@pytest.fixture
def donewhen_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same in a process of its own, where a process is the point."""
    return run_process


@pytest.fixture
def git() -> Callable[..., str]:
    """``git(folder, "commit", …)``."""
    return git_command


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """An empty git repository."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git_command(folder, "init", "-q", "-b", "main")
    return folder
