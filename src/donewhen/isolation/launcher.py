"""Starts a command, and ends with it whatever it has started. A program of its own, without the rest of donewhen.

It is started by the gate's interpreter as `python -I -S -B launcher.py SPECIFICATION STATUS`: two open files. The first
has a marshalled dictionary:

    argv, cwd, environment    the command
    gate                      the process that waits for it
    landlock                  None, or {"handled": …, "scoped": …, "rules": [[path, access, file_access], …]}

To the second it writes one line: `exited STATUS`, `signaled NUMBER`, `not started REASON`, `not confined REASON` or
`not ended`. A command that was started can't write there.

It is the reaper of all processes below it, also of those that have left their parents and their session; a command of
another user could not be ended, so commands get no new privileges. It kills only processes that it has not waited for,
whose ids can't be used again meanwhile.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time

TYPE_CHECKING = False  # importing typing takes longer than all the rest
if TYPE_CHECKING:
    from typing import Any

_SET_PDEATHSIG, _SET_DUMPABLE, _CAPBSET_DROP, _SET_CHILD_SUBREAPER, _SET_NO_NEW_PRIVS = 1, 4, 24, 36, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_PATH_BENEATH = 1
_WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
_GRACE = 1.0
_GIVE_UP = 10.0
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [("handled", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathAttributes(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("parent", ctypes.c_int32)]


def main() -> None:
    specification, status = int(sys.argv[1]), int(sys.argv[2])
    for descriptor in (specification, status):
        os.set_inheritable(descriptor, False)
    import marshal

    with open(specification, "rb") as file:
        command = marshal.load(file)  # noqa: S302 - from the process that has started this one
    # Signals wait until they are asked for, so that none is lost.
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    _prctl(_SET_PDEATHSIG, signal.SIGTERM)
    _prctl(_SET_DUMPABLE, 0)
    _prctl(_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != command["gate"]:
        return
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _become(command, writing)
    os.close(writing)
    ended = _wait(child)
    problem = os.read(reading, 4096)
    left = _kill_all()
    if problem:
        line = problem
    elif left:
        line = b"not ended"
    elif os.WIFSIGNALED(ended):
        line = b"signaled %d" % os.WTERMSIG(ended)
    else:
        line = b"exited %d" % os.WEXITSTATUS(ended)
    os.write(status, line + b"\n")


def _become(command: dict[str, Any], writing: int) -> None:
    """Become the command."""
    stage = b"not confined "
    try:
        parent = os.getppid()
        _prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(127)
        os.setsid()
        _prctl(_SET_NO_NEW_PRIVS, 1)
        if command["landlock"] is not None:
            _drop_capabilities()
            _restrict(command["landlock"])
        stage = b"not started "
        # Python ignores these; commands expect that they are not.
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _WATCHED)
        os.chdir(command["cwd"])
        os.execve(command["argv"][0], command["argv"], command["environment"])
    except BaseException as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else repr(error)
        os.write(writing, stage + reason.encode("utf-8", "replace")[:2000])
    os._exit(127)


def _wait(child: int) -> int:
    """Wait until the command has ended. If this process is to end, it has a moment to do so itself."""
    while True:
        ended = _reap(child)
        if ended is not None:
            return ended
        if signal.sigwait(_WATCHED) != signal.SIGCHLD:
            break
    _signal(-child, signal.SIGTERM)
    deadline = time.monotonic() + _GRACE
    while (left := deadline - time.monotonic()) > 0:
        ended = _reap(child)
        if ended is not None:
            return ended
        signal.sigtimedwait(_WATCHED, left)
    _signal(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def _reap(child: int) -> int | None:
    """Forget the processes that have ended; return the status of the command if it is one of them."""
    while True:
        found, ended = os.waitpid(-1, os.WNOHANG)
        if found == child:
            return ended
        if found == 0:
            return None


def _kill_all() -> bool:
    """Kill what is left, until nothing is: what a killed process has started becomes a child of this one.

    Return whether something still runs.
    """
    deadline = time.monotonic() + _GIVE_UP
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return False
        for process in _children():
            _signal(process, signal.SIGKILL)
        if time.monotonic() > deadline:
            return True
        signal.sigtimedwait((signal.SIGCHLD,), 0.01)


def _children() -> list[int]:
    own = os.getpid()
    try:
        with open(f"/proc/self/task/{own}/children", "rb") as file:
            return [int(number) for number in file.read().split()]
    except OSError:
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == own]


def _parent(process: str) -> int:
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name of the program can have spaces and parentheses.
            return int(file.read().rpartition(b")")[2].split()[1])
    except (OSError, IndexError, ValueError):
        return 0


def _signal(process: int, number: int) -> None:
    try:
        os.kill(process, number)
    except (ProcessLookupError, PermissionError):
        pass


def _drop_capabilities() -> None:
    """Make permissions apply to root, too; other users have none of these."""
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            _prctl(_CAPBSET_DROP, capability)
        except OSError:
            return


def _restrict(landlock: dict[str, Any]) -> None:
    """Let this process and those that it starts reach nothing but what the rules name."""
    attributes = _RulesetAttributes(landlock["handled"], 0, landlock["scoped"])
    # Older kernels know the first part only.
    size = ctypes.c_size_t(24 if landlock["scoped"] else 8)
    ruleset = _checked(_libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), size, 0))
    for path, access, file_access in landlock["rules"]:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue
        is_folder = os.stat(descriptor).st_mode & 0o170000 == 0o040000
        rule = _PathAttributes(access if is_folder else access & file_access, descriptor)
        _checked(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0))
        os.close(descriptor)
    _checked(_libc.syscall(_RESTRICT_SELF, ruleset, 0))
    os.close(ruleset)


def _prctl(option: int, value: int) -> None:
    _checked(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)))


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


if __name__ == "__main__":
    main()
