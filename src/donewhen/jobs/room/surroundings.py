"""What a command finds around it, besides the files of the room: variables, folders, the network."""

from __future__ import annotations

import hashlib
import os
import platform
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.foundation.canonical import digest
from donewhen.foundation.executables import safe_path
from donewhen.foundation.process import small_environment
from donewhen.isolation.levels import Level, Network
from donewhen.jobs.ledger.entry_content import AgreedEnvironment
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis
from donewhen.jobs.room.reach import Reach
from donewhen.jobs.room.tool_folders import tool_folders

# Where tools are installed. They come from the agreement, so that it makes no difference who starts a check.
_PLACES = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "PYENV_ROOT", "PYENV_VERSION", "CARGO_HOME", "RUSTUP_HOME", "GOPATH"),
    *("JAVA_HOME", "NVM_DIR", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
# New and empty for each command, or without a meaning for it.
_OWN = ("HOME", "TMPDIR", "GOCACHE", "PATH", "SHELL")
# They change how a program writes, and not what it decides; evidence is made again if they change.
_LANGUAGE = ("LANG", "LANGUAGE", "TZ", "TERM", "CI", "NO_COLOR", "USER", "LOGNAME")
# A rotated secret is no other environment.
_SECRET_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS", "PASSPHRASE")


@dataclass(frozen=True)
class Surroundings:
    """What a command finds around it."""

    variables: Mapping[str, str]
    private: bool = False
    """Whether the command is kept apart from everything else, with a home folder, a temporary folder and caches that
    are new and empty. Commands of jobs that were agreed to without an environment have those of the caller."""
    isolation: Level | None = None
    """The isolation that the project demands; None for the best that works here."""
    network: Network = "host"
    stores: tuple[Path, ...] = ()
    """Folders in the home folder with installed tools and packages, which stay in reach and can't be written to."""
    environments: tuple[str, ...] = ()
    """The folders in the repository with installed packages."""
    reach: Reach = field(default_factory=Reach, repr=False)
    """What else outside of the project is in reach."""
    bytecode: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Compiled modules that each command finds in its cache, by their names in it."""
    on_bytecode: Callable[[Path], None] | None = field(default=None, repr=False)
    """Gets the folder with what a command has compiled, before it is removed."""


def machine_name() -> str:
    """What names this machine: a short hash."""
    for path in ("/etc/machine-id", "/var/lib/dbus/machine-id"):
        with suppress(OSError):
            found = Path(path).read_bytes().strip()
            if found:
                return digest(found)[7:19]
    return digest(f"{socket.gethostname()} {sys.platform} {platform.machine()}".encode("utf-8", "surrogateescape"))[
        7:19
    ]


def current_places(workspace: Workspace) -> AgreedEnvironment:
    """The folders and variables as they are for the caller, for an agreement."""
    home = os.path.expanduser("~")  # noqa: PTH111
    passed = small_environment(workspace.settings().jobs.pass_env)
    return AgreedEnvironment(
        machine=machine_name(),
        path=[_without_home(folder, home) for folder in safe_path(workspace.root).split(os.pathsep)],
        variables={name: _without_home(passed[name], home) for name in _PLACES if name in passed},
        sealed={name: short_hash(name, value) for name, value in sorted(passed.items()) if _is_sealed(name)},
    )


def surroundings_of(workspace: Workspace, agreed: AgreedEnvironment | None) -> Surroundings:
    """What the commands of a job find around them; ``agreed`` is None for jobs of versions that did not record it.

    On the machine of the agreement, programs are searched for where they were then.
    """
    passed = small_environment(workspace.settings().jobs.pass_env) | {"PATH": safe_path(workspace.root)}
    if agreed is None:
        return Surroundings(passed)
    home = os.path.expanduser("~")  # noqa: PTH111
    variables = {name: value for name, value in passed.items() if name not in _OWN or name == "PATH"}
    if agreed.machine == machine_name():
        variables = {name: value for name, value in variables.items() if name not in _PLACES}
        variables |= {name: _with_home(value, home) for name, value in agreed.variables.items()}
        variables["PATH"] = os.pathsep.join(_with_home(folder, home) for folder in agreed.path)
    network: Network = "host" if agreed.network == "host" else "own"
    demanded = workspace.settings().jobs.isolation
    return Surroundings(variables, True, demanded, network, tool_folders(variables, Path(home)))


def surroundings_in(workspace: Workspace, basis: RoomBasis | None) -> Surroundings:
    """The same, for a job with this basis: as it was accepted on this machine, or else agreed to on another one."""
    return surroundings_of(
        workspace, None if basis is None else basis.environment_on(machine_name()) or basis.environment
    )


def short_hash(name: str, value: str) -> str:
    """A hash that is long enough to detect a change and too short to recover the value."""
    return hashlib.sha256(f"{name}={value}".encode("utf-8", "surrogateescape")).hexdigest()[:8]


def changed_variables(agreed: AgreedEnvironment, now: AgreedEnvironment) -> Sequence[str]:
    """The variables that judge and have another value than when they were agreed to."""
    return sorted(name for name in {*agreed.sealed, *now.sealed} if agreed.sealed.get(name) != now.sealed.get(name))


def _is_sealed(name: str) -> bool:
    known = (*_PLACES, *_OWN, *_LANGUAGE)
    return name not in known and not name.startswith("LC_") and not name.upper().endswith(_SECRET_ENDINGS)


def _without_home(path: str, home: str) -> str:
    return f"~{path.removeprefix(home)}" if home != "/" and (path == home or path.startswith(f"{home}/")) else path


def _with_home(path: str, home: str) -> str:
    return f"{home}{path[1:]}" if path == "~" or path.startswith("~/") else path
