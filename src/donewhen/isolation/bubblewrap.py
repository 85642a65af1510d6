"""Runs a command in namespaces of its own, with bubblewrap (``bwrap``)."""

from __future__ import annotations

import os
import re
import select
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import IO

from donewhen.foundation.process import CommandNotRunnableError, CommandResult, run_command
from donewhen.isolation.confinement import Confinement, ConfinementError
from donewhen.isolation.levels import Network
from donewhen.isolation.mounts import Mount, mounts_of

# Fixed places: whoever sets PATH does not choose the program.
_PLACES = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap")
_NOBODY = 65534
"""The owner of files whose real owner does not exist in this user namespace."""
_FORBIDS_NAMESPACES = (0, 8)
"""The first version that keeps commands from making namespaces of their own."""
_NOT_STARTED = "execvp "
CAN_NOT = "bubblewrap can't keep the command apart from everything else: "
_FIRST_PROCESS = re.compile(rb'"child-pid": (\d+)')
_TIME_TO_END = 30.0
"""They are being killed already. On a machine that is busy it may take longer."""


class NoBubblewrapError(ConfinementError):
    """There is no program that is bubblewrap beyond doubt."""

    code = "bubblewrap_missing"


@dataclass(frozen=True)
class Bubblewrap:
    """The program, and the options for what every command gets."""

    path: str
    can_forbid_namespaces: bool

    def options(self, network: Network) -> tuple[str, ...]:
        """The options for namespaces, for a machine that can't be written to, and for no privileges."""
        return (
            *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"),
            *(("--disable-userns",) if self.can_forbid_namespaces else ()),
            *(("--unshare-net",) if network == "own" else ()),
            # In a session of its own, so that a command that kills its process group does not kill bubblewrap.
            *("--new-session", "--die-with-parent", "--cap-drop", "ALL"),
            *("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        )


@lru_cache(maxsize=1)
def bubblewrap() -> Bubblewrap:
    """The program of the system; raise NoBubblewrapError if there is none, or one that others can replace."""
    doubtful = ""
    for place in _PLACES:
        path = os.path.realpath(place)
        if not os.path.lexists(path):
            continue
        if not _is_of_system(path):
            doubtful = f"{place} is not used, because others than root can change it"
            continue
        return Bubblewrap(path, _version(path) >= _FORBIDS_NAMESPACES)
    raise NoBubblewrapError(doubtful or "bubblewrap is not installed")


def run_in_namespaces(
    argv: Sequence[str],
    cwd: Path,
    variables: Mapping[str, str],
    confinement: Confinement,
    timeout: float,
    pass_fds: Sequence[int] = (),
) -> CommandResult:
    """Run a command in namespaces of its own. It finds the room at the place that it stands for."""
    place = os.path.realpath(confinement.place)
    inner = os.path.normpath(f"{place}/{os.path.relpath(cwd, confinement.room)}")
    result, started = _run(argv, inner, variables, confinement, timeout, pass_fds)
    if _has_not_begun(result, started):
        # A socket or a folder may have been removed since it was listed.
        result, started = _run(argv, inner, variables, confinement, timeout, pass_fds)
    if not started and result.ending == "exited":
        raise _error(argv[0], result)
    return replace(result, argv=tuple(argv))


def _has_not_begun(result: CommandResult, started: bool) -> bool:
    """Whether bubblewrap gave up before the command: it was not killed while that ran."""
    return not started and result.ending == "exited" and result.exit_code == 1 and _NOT_STARTED not in result.output


def _run(
    argv: Sequence[str],
    cwd: str,
    variables: Mapping[str, str],
    confinement: Confinement,
    timeout: float,
    pass_fds: Sequence[int],
) -> tuple[CommandResult, bool]:
    """Run a command once; return also whether it was started."""
    program = bubblewrap()
    options = [*program.options(confinement.network), *mount_options(mounts_of(confinement)), "--chdir", cwd]
    # Not as arguments, which every user of the machine can read.
    for name, value in variables.items():
        options += ["--setenv", name, value]
    with passed_file(b"\0".join(map(os.fsencode, options))) as arguments, passed_file() as status:
        words = [program.path, "--args", str(arguments.fileno()), "--json-status-fd", str(status.fileno()), "--", *argv]
        descriptors = (arguments.fileno(), status.fileno(), *pass_fds)
        result = run_command(words, cwd=Path("/"), timeout=timeout, env={}, pass_fds=descriptors)
        reported = os.pread(status.fileno(), 1 << 16, 0)
    _wait_until_gone(reported)
    # Only said about a command that was started: its own output can't be taken for a message of bubblewrap.
    return result, b'"exit-code"' in reported


def _wait_until_gone(reported: bytes) -> None:
    """Wait until the first process of the namespace has ended, and with it all others; bubblewrap does not wait."""
    first = _FIRST_PROCESS.search(reported)
    if first is None:
        return
    try:
        descriptor = os.pidfd_open(int(first[1]))
    except ProcessLookupError:
        return
    except OSError as error:
        raise ConfinementError(f"The end of the command's processes can't be waited for: {error.strerror}.") from error
    try:
        if not select.select([descriptor], [], [], _TIME_TO_END)[0]:
            raise ConfinementError("Processes that the command has started don't end.")
    finally:
        os.close(descriptor)


def mount_options(mounts: Iterable[Mount]) -> Iterator[str]:
    """The options of bubblewrap for mounts."""
    closed = []
    for mount in mounts:
        if mount.kind in ("tmpfs", "closed"):
            yield from ("--tmpfs", mount.path)
        else:
            yield from (f"--{mount.kind}", mount.source, mount.path)
        if mount.kind == "closed":
            closed.append(mount.path)
    # After the folders for other mounts were made there.
    for path in closed:
        yield from ("--remount-ro", path)


@contextmanager
def passed_file(content: bytes = b"") -> Iterator[IO[bytes]]:
    """A file without a name, for a process to read or to write to."""
    with ExitStack() as stack:
        try:
            file = stack.enter_context(tempfile.TemporaryFile())
            file.write(content)
            file.seek(0)
        except OSError as error:
            raise ConfinementError(
                f"A temporary file can't be written: {error.strerror}.",
                next_step="Make space or set the permissions there, or set TMPDIR to a folder on another disk than "
                f"{tempfile.gettempdir()}.",
            ) from error
        yield file


def _error(name: str, result: CommandResult) -> CommandNotRunnableError:
    """Why the command was not started, or has no exit status."""
    message = result.output.strip().rpartition("\n")[2].removeprefix("bwrap: ")
    if message.startswith(_NOT_STARTED):
        reason = message.rpartition(": ")[2]
        return CommandNotRunnableError(
            f"The command {name!r} could not be started where it is kept apart from everything else: {reason}.",
            next_step="Programs in the home folder and in temporary folders are out of reach of checks, except those "
            "of virtual environments, of version managers, and in the folders of PATH.",
        )
    if result.exit_code < 0 or not message:
        return ConfinementError(
            "bubblewrap, which keeps the command apart from everything else, was killed while it ran "
            f"(exit status {result.exit_code}), so nothing is known about the command.",
            next_step="Run it again; see whether the machine has enough memory.",
        )
    return ConfinementError(f"{CAN_NOT}{message}.")


def _is_of_system(path: str) -> bool:
    """Whether a program and the folders on the way to it belong to the system, and only root can replace them."""
    folders = [path]
    while folders[-1] != "/":
        folders.append(os.path.dirname(folders[-1]))  # noqa: PTH120
    with suppress(OSError):
        found = [os.lstat(folder) for folder in folders]
        owners = {0} if os.geteuid() == _NOBODY else {0, _NOBODY}
        return stat.S_ISREG(found[0].st_mode) and all(
            status.st_uid in owners and not status.st_mode & 0o022 for status in found
        )
    return False


def _version(path: str) -> tuple[int, ...]:
    with suppress(OSError, ValueError, IndexError, subprocess.SubprocessError):
        done = subprocess.run([path, "--version"], env={}, capture_output=True, timeout=60, check=False)
        return tuple(int(part) for part in done.stdout.split()[-1].decode().split(".")[:2])
    return (0,)
