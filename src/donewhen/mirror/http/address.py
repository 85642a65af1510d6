"""Where GitHub is, what repository is meant, and by what token one asks: from the environment, never from a file."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.foundation.git import git
from donewhen.foundation.plain_text import one_line

PUBLIC = "https://api.github.com"
VARIABLE = "GITHUB_API_URL"
TOKENS = ("GH_TOKEN", "GITHUB_TOKEN")
ENTERPRISE_TOKENS = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,38}/[A-Za-z0-9._-]{1,100}")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
# ssh://git@host:22/owner/name.git, https://host/owner/name, git@host:owner/name.git
_REMOTE = re.compile(
    r"(?:(?:https?|ssh|git)://(?:[^@/]*@)?(?P<host>[^/:]+)(?::[0-9]+)?/|(?:[^@/:]+@)(?P<short>[^/:]+):/?)"
    r"(?P<path>[^/]+/[^/]+?)(?:\.git)?/?"
)


@dataclass(frozen=True)
class Address:
    """A server, and the token for it. The token is shown nowhere."""

    api: str
    token: str = field(repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.api).netloc

    @property
    def web(self) -> str:
        """Where people look at what the API gives."""
        return web_of(self.api)

    @property
    def loopback(self) -> bool:
        return urlsplit(self.api).hostname in _LOOPBACK


def address_of(setting: str | None, environ: Mapping[str, str] = os.environ) -> Address:
    """The server: as the environment says, else as the settings say, else github.com; with the token for it.

    A token for github.com is not sent anywhere else because a file says so. Whoever sets GITHUB_API_URL sets the token
    beside it.
    """
    told = environ.get(VARIABLE, "").strip()
    api = check_address(told or setting or PUBLIC, VARIABLE if told else "github.api_url")
    names = TOKENS if _public(api) else ENTERPRISE_TOKENS + (TOKENS if told else ())
    token = next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")
    if not token:
        raise ConfigError(
            f"There is no token for {urlsplit(api).netloc} in the environment.",
            next_step=f"Set {' or '.join(names[:2])} to one that may write issues.",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("The token in the environment has characters that no token has.", next_step="Set it anew.")
    return Address(api, token)


def check_address(url: str, where: str) -> str:
    """An address that a token may be sent to: encrypted, or on this very machine."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    odd = parts.username is not None or parts.password is not None or parts.query or parts.fragment or port == 0
    if not parts.hostname or not safe or odd or not url.strip().isprintable() or " " in url.strip():
        raise ConfigError(
            f"{one_line(_without_secrets(url), 120)!r} is no address for the API.",
            where=where,
            next_step="Give one such as https://HOST/api/v3; without https only on this machine.",
        )
    return url.strip().rstrip("/")


def web_of(api: str) -> str:
    """The server's pages: github.com for api.github.com, the host itself for an Enterprise server."""
    parts = urlsplit(api)
    host = parts.netloc
    if _public(api):
        host = host.removeprefix("api.")
    return f"{parts.scheme}://{host}"


def check_repository_name(name: str, where: str | None = None) -> str:
    """``owner/name``."""
    if _REPOSITORY.fullmatch(name) is None or name.rpartition("/")[2] in (".", ".."):
        raise UsageError(f"{one_line(name, 120)!r} is no repository.", where=where, next_step="Write it as owner/name.")
    return name


def repository_of(folder: Path, api: str) -> str:
    """The repository that the git remote ``origin`` names, if it is on that server."""
    answer = git(folder, "config", "--get", "remote.origin.url")
    url = "" if answer is None else answer.decode("utf-8", "replace").strip()
    step = "Name it: donewhen github enable --repo owner/name"
    if not url:
        raise UsageError("No repository is named, and there is no git remote `origin`.", next_step=step)
    found = _REMOTE.fullmatch(url)
    wanted = urlsplit(web_of(api)).hostname or ""
    host = "" if found is None else found["host"] or found["short"]
    if found is None or host.casefold() not in (wanted.casefold(), f"ssh.{wanted}".casefold()):
        shown = one_line(_without_secrets(url), 120)
        raise UsageError(f"The git remote `origin` ({shown}) is no repository on {wanted}.", next_step=step)
    return check_repository_name(found["path"], "git remote origin")


def _public(api: str) -> bool:
    host = (urlsplit(api).hostname or "").casefold()
    return host == "api.github.com" or (host.startswith("api.") and host.endswith(".ghe.com"))


def _without_secrets(url: str) -> str:
    return re.sub(r"//[^@/]*@", "//…@", url)
