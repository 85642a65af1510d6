"""A crash log for an internal error: the traceback, the versions and the command line, without secrets."""

from __future__ import annotations

import os
import platform
import shlex
import sys
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from tempfile import gettempdir

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.foundation.secrets import REDACTED, redact_secrets

_KEPT = 20
_PACKAGES = ("donewhen", "click", "msgspec", "pyyaml", "rich")
# The value of such an option may be a secret in a form that no pattern knows.
_SECRET_OPTIONS = ("key", "token", "passphrase", "password", "secret")


def write_crash_log(
    error: BaseException, command: Sequence[str], environ: Mapping[str, str] = CALLER_VARIABLES
) -> Path | None:
    """Write a crash log that only the user can read, and return its path; None if no folder is writable.

    It never raises: a second error must not hide the first. The newest logs are kept, older ones are removed.
    """
    name = f"crash-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.log"
    content = redact_secrets(_content(error, command), environ).encode("utf-8", "backslashreplace")
    for folder in _folders(environ):
        with suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if folder.stat().st_uid != os.getuid():
                continue
            path = folder / name
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            _remove_old_logs(folder)
            return path
    return None


def _folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """The folders to try, in order: the user's state folder, then one of their own among the temporary files."""
    temporary = Path(gettempdir()) / f"donewhen-{os.getuid()}" / "crashes"
    state = environ.get("XDG_STATE_HOME")
    if state and Path(state).is_absolute():
        return Path(state) / "donewhen" / "crashes", temporary
    home = environ.get("HOME")
    return (Path(home) / ".local" / "state" / "donewhen" / "crashes", temporary) if home else (temporary,)


def _content(error: BaseException, command: Sequence[str]) -> str:
    lines = [
        f"command: {shlex.join(_without_secret_options(command))}",
        f"python: {platform.python_implementation()} {platform.python_version()} on {platform.platform()}",
        *(f"{package}: {_version(package)}" for package in _PACKAGES),
        "",
        *traceback.format_exception(error),
    ]
    return "\n".join(line.rstrip("\n") for line in lines) + "\n"


def _without_secret_options(command: Sequence[str]) -> list[str]:
    shown: list[str] = []
    for word in command:
        option = shown[-1] if shown else ""
        if _names_secret(option) and "=" not in option:
            shown.append(REDACTED)
        elif _names_secret(word) and "=" in word:
            shown.append(word.split("=", 1)[0] + "=" + REDACTED)
        else:
            shown.append(word)
    return shown


def _names_secret(option: str) -> bool:
    name = option.split("=", 1)[0].lower()
    return name.startswith("--") and any(part in name for part in _SECRET_OPTIONS)


def _version(package: str) -> str:
    if package == "donewhen":
        return str(getattr(sys.modules.get("donewhen"), "__version__", "unknown"))
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _remove_old_logs(folder: Path) -> None:
    for path in sorted(folder.glob("crash-*.log"))[:-_KEPT]:
        with suppress(OSError):
            path.unlink()
