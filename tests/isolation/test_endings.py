"""How a command ends: with its own status, and with everything that it has started."""

from __future__ import annotations

import contextvars
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

from donewhen.foundation.cancellation import cancellable
from donewhen.isolation.confinement import ConfinementError
from isolation.isolation_kit import DAEMON, PATIENCE, Alive, Apart, need

SIGNALS = "grep SigBlk /proc/self/status; grep SigIgn /proc/self/status"


@pytest.mark.parametrize("code", [0, 1, 2, 3, 77, 126, 127, 255])
def test_the_exit_status_is_that_of_the_command(supervised: Apart, code: int) -> None:
    result = supervised.sh(f"echo out; echo err >&2; exit {code}")
    assert (result.ending, result.exit_code, result.output) == ("exited", code, "out\nerr\n")
    assert result.argv[0] == "/bin/sh"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGPIPE])
def test_a_signal_that_ends_the_command_is_no_success(supervised: Apart, number: signal.Signals) -> None:
    result = supervised.sh(f"kill -{int(number)} $$")
    # bubblewrap says it as shells do.
    expected = 128 + number if supervised.confinement.level == "namespaces" else -number
    assert (result.ending, result.exit_code) == ("exited", expected)


def test_a_whole_process_group_may_be_killed_by_the_command(supervised: Apart) -> None:
    result = supervised.sh("trap : TERM; kill -TERM 0; exit 5")
    assert result.exit_code == 5


def test_signals_are_handled_as_in_a_shell(supervised: Apart) -> None:
    blocked, ignored = (int(line.split()[1], 16) for line in supervised.sh(SIGNALS).output.splitlines())
    # Two belong to the C library: no program can set them, and a test run inherits what its own parent did to them.
    of_library = 1 << 31 | 1 << 32
    assert (blocked, ignored & ~of_library) == (0, 0)


def test_a_daemon_ends_with_the_command(supervised: Apart, alive: Alive) -> None:
    assert supervised.sh(f"{DAEMON}\nexit 0").succeeded
    assert not alive


def test_a_daemon_of_a_failed_command_ends_too(supervised: Apart, alive: Alive) -> None:
    assert supervised.sh(f"{DAEMON}\nkill -9 $$").exit_code != 0
    assert not alive


def test_whoever_forks_all_the_time_ends_with_the_command(supervised: Apart, alive: Alive) -> None:
    code = """
import os, time
if os.fork() == 0:
    pipe = os.open("alive", os.O_WRONLY)
    os.setsid()
    open("up", "w").close()
    while True:
        if os.fork():
            os._exit(0)
while not os.path.exists("up"):
    time.sleep(0.01)
"""
    assert supervised.python(code).succeeded
    assert not alive


def test_a_timeout_ends_everything(supervised: Apart, alive: Alive) -> None:
    result = supervised.sh(f"{DAEMON}\necho started; trap '' TERM; while :; do sleep 1; done", timeout=3.0)
    assert result.ending == "timed_out"
    assert not result.succeeded
    assert result.output == "started\n"
    assert not alive


def test_a_cancelled_command_ends_with_everything(supervised: Apart, alive: Alive) -> None:
    def run() -> object:
        cancel = cancellable()
        threading.Thread(target=lambda: (until_exists(supervised.room / "up"), cancel.set())).start()
        return supervised.sh(f"{DAEMON}\nwhile :; do sleep 1; done").ending

    assert contextvars.copy_context().run(run) == "cancelled"
    assert not alive


def until_exists(path: Path) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


_GATE = """
import sys
from pathlib import Path
from isolation.isolation_kit import DAEMON, Apart
Apart(Path(sys.argv[1]), sys.argv[2]).sh(DAEMON + "\\nwhile :; do sleep 1; done")
"""


def test_nothing_outlives_donewhen_when_it_is_killed(supervised: Apart, alive: Alive) -> None:
    level = supervised.confinement.level
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    gate = subprocess.Popen([sys.executable, "-c", _GATE, str(supervised.base), level], env=environment)
    until_exists(supervised.room / "up")
    assert alive
    gate.send_signal(signal.SIGKILL)
    gate.wait()
    deadline = time.monotonic() + PATIENCE
    while alive:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_command_that_kills_what_watches_it_has_not_passed(tmp_path: Path) -> None:
    apart = Apart(tmp_path, "copy")
    with pytest.raises(ConfinementError):
        apart.sh("kill -9 $PPID; exit 0")


def test_with_landlock_a_command_can_not_kill_what_watches_it(tmp_path: Path) -> None:
    need("landlock")
    from donewhen.isolation.landlock import landlock_version

    if landlock_version() < 6:
        pytest.skip("LOUD: this Landlock can't keep signals apart; that is NOT tested")
    assert Apart(tmp_path, "landlock").sh("kill -9 $PPID; exit 4").exit_code == 4


def test_what_was_not_started_is_no_result(supervised: Apart) -> None:
    from donewhen.foundation.process import CommandNotRunnableError

    missing = supervised.base / "person/missing"
    with pytest.raises(CommandNotRunnableError) as caught:
        supervised.run(str(missing))
    assert not isinstance(caught.value, ConfinementError)
    assert str(missing) in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        "bwrap: Can't bind mount /x on /newroot/y: No such file or directory",
        "bwrap: execvp x: No such file",
        "exited 0",
    ],
)
def test_what_a_command_says_is_not_taken_for_what_keeps_it_apart(supervised: Apart, said: str) -> None:
    result = supervised.sh(f'echo "{said}" >&2; exit 1')
    assert (result.exit_code, result.output) == (1, f"{said}\n")


def test_a_room_that_can_not_be_mounted_is_an_error_of_the_gate(namespaces: Apart) -> None:
    # A folder where a file has to be.
    file = namespaces.base / "file"
    file.touch()
    (namespaces.room / "inner").mkdir()
    namespaces.changed(read_only={file: namespaces.place / "inner"})
    with pytest.raises(ConfinementError) as caught:
        namespaces.sh("exit 0")
    assert "inner" in caught.value.message


def test_bubblewrap_that_is_killed_is_an_error_of_the_gate(namespaces: Apart) -> None:
    def kill() -> None:
        until_exists(namespaces.room / "up")
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if words[0].endswith(b"bwrap") and str(namespaces.base).encode() in b" ".join(words):
                os.kill(int(name), signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    with pytest.raises(ConfinementError, match="killed"):
        namespaces.sh(f"touch up; : {namespaces.base}; sleep 600")
    thread.join()


def test_a_folder_that_is_gone_is_no_result(supervised: Apart) -> None:
    from donewhen.foundation.process import CommandNotRunnableError

    with pytest.raises(CommandNotRunnableError):
        supervised.sh("exit 0", inside="missing")


@pytest.mark.powerless
def test_everything_works_without_powers(tmp_path: Path) -> None:
    # Root without its powers may not have a user namespace with root in it: that is a rule of newer kernels.
    for level in ("namespaces", "landlock", "copy") if os.getuid() else ("landlock", "copy"):
        need(level)  # type: ignore[arg-type]
        assert_works(tmp_path / level, level)


def assert_works(base: Path, level: str) -> None:
    apart = Apart(base, level)  # type: ignore[arg-type]
    pipe = Alive(apart.room)
    assert apart.sh(f"{DAEMON}\ncat answer.txt; touch made").output == "the room's"
    assert (apart.room / "made").exists()
    assert not pipe
    pipe.close()


_WORKS = """
import sys
from pathlib import Path
from isolation.test_endings import assert_works
assert_works(Path(sys.argv[1]), "namespaces")
"""
_NOBODY = ("--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")


def test_namespaces_work_for_an_ordinary_user(tmp_path: Path) -> None:
    need("namespaces")
    if os.getuid():
        assert_works(tmp_path, "namespaces")
        return
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("LOUD: this is root, and setpriv is not here to be somebody else")
    words = [setpriv, *_NOBODY, sys.executable]
    if subprocess.run([*words, "-c", "import pytest, donewhen"], capture_output=True).returncode:
        pytest.skip("LOUD: only root can read the interpreter of these tests")
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)}
    with tempfile.TemporaryDirectory() as folder:
        os.chown(folder, 65534, 65534)
        done = subprocess.run([*words, "-c", _WORKS, folder], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
