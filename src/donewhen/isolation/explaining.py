"""Says why namespaces don't work on a machine, and what a person can do about it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_INSTALL = {
    "debian": "sudo apt install bubblewrap",
    "fedora": "sudo dnf install bubblewrap",
    "rhel": "sudo dnf install bubblewrap",
    "arch": "sudo pacman -S bubblewrap",
    "suse": "sudo zypper install bubblewrap",
    "alpine": "sudo apk add bubblewrap",
}
_ANY = (
    "install it: apt install bubblewrap (Debian, Ubuntu), dnf install bubblewrap (Fedora), pacman -S bubblewrap (Arch)"
)
_CONTAINERS = ("/.dockerenv", "/run/.containerenv", "/run/host/container-manager")
_RELEASE = Path("/etc/os-release")
_CONTAINER_VARIABLE = b"container="


@dataclass(frozen=True)
class Forbidden:
    """What on a machine can forbid namespaces to a process."""

    max_namespaces: int | None = None
    """user.max_user_namespaces"""
    debian_switch: int | None = None
    """kernel.unprivileged_userns_clone"""
    app_armor: int | None = None
    """kernel.apparmor_restrict_unprivileged_userns"""
    container: bool = False
    filtered: bool = False
    """Whether system calls of this process are filtered."""

    @classmethod
    def here(cls) -> Forbidden:
        """As it is for this process."""
        return cls(
            _number("/proc/sys/user/max_user_namespaces"),
            _number("/proc/sys/kernel/unprivileged_userns_clone"),
            _number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
            any(map(os.path.lexists, _CONTAINERS)) or _first_process_is_in_container(),
            _is_filtered(),
        )


def forbidden_namespaces(message: str, forbidden: Forbidden) -> str:
    """Why bubblewrap does not work although it is installed; ``message`` is its own."""
    return f"bubblewrap is installed, but {_cause(forbidden)} ({message.rstrip('.')})"


def install_advice() -> str:
    """How to install bubblewrap here."""
    with suppress(OSError):
        for line in _RELEASE.read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition("=")
            if name in ("ID", "ID_LIKE"):
                for system in value.strip('"').split():
                    if system in _INSTALL:
                        return f"install it: {_INSTALL[system]}"
    return _ANY


def _cause(forbidden: Forbidden) -> str:
    if forbidden.max_namespaces == 0:
        return (
            "user namespaces are switched off for this process: user.max_user_namespaces is 0, set by the machine's "
            "administrator or by a sandbox around this process"
        )
    if forbidden.debian_switch == 0:
        return (
            "this machine does not allow user namespaces to ordinary users; "
            "allow them: sudo sysctl kernel.unprivileged_userns_clone=1"
        )
    if forbidden.container or forbidden.filtered:
        return (
            "a container, or a sandbox around this process such as an agent's own, forbids namespaces; "
            "run donewhen outside of it, or allow them there"
        )
    if forbidden.app_armor == 1:
        return (
            "AppArmor does not allow user namespaces to it (kernel.apparmor_restrict_unprivileged_userns is 1); add an "
            "AppArmor profile for bwrap that has `userns,`, or allow them to all programs: "
            "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0"
        )
    return "namespaces can't be made here: a container, a sandbox around this process, or the kernel forbids them"


def _number(path: str) -> int | None:
    with suppress(OSError, ValueError):
        return int(Path(path).read_text())
    return None


def _first_process_is_in_container() -> bool:
    with suppress(OSError):
        variables = Path("/proc/1/environ").read_bytes().split(b"\0")
        return any(variable.startswith(_CONTAINER_VARIABLE) for variable in variables)
    return False


def _is_filtered() -> bool:
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text("utf-8", "replace").splitlines():
            name, _, value = line.partition(":")
            if name == "Seccomp":
                return value.strip() != "0"
    return False
