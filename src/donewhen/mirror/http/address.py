"""The GitHub API address, the repository and the token. The token comes from the environment, never from a file."""

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
    """A server and its token. The token never appears in the repr."""

    api: str
    token: str = field(repr=False)

    @property
    def host(self) -> str:
        return urlsplit(self.api).netloc

    @property
    def web(self) -> str:
        """The address of the server's web pages."""
        return web_of(self.api)

    @property
    def loopback(self) -> bool:
        return urlsplit(self.api).hostname in _LOOPBACK


def address_of(setting: str | None, environ: Mapping[str, str] = os.environ) -> Address:
    """Return the server (from the environment, else the settings, else github.com) and the token for it.

    A setting in a file alone never sends a github.com token to another server. GITHUB_API_URL does, because the same
    environment supplies the token.
    """
    from_environment = environ.get(VARIABLE, "").strip()
    api = check_address(from_environment or setting or PUBLIC, VARIABLE if from_environment else "github.api_url")
    names = TOKENS if _is_public(api) else ENTERPRISE_TOKENS + (TOKENS if from_environment else ())
    token = next((environ[name].strip() for name in names if environ.get(name, "").strip()), "")
    if not token:
        raise ConfigError(
            f"No token for {urlsplit(api).netloc} in the environment.",
            next_step=f"Set {' or '.join(names[:2])} to a token that can write issues.",
        )
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError("The token in the environment contains invalid characters.", next_step="Set it again.")
    return Address(api, token)


def check_address(url: str, where: str) -> str:
    """Return the URL if a token may be sent to it (https, or http on loopback); raise ConfigError otherwise."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    safe = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    odd = parts.username is not None or parts.password is not None or parts.query or parts.fragment or port == 0
    if not parts.hostname or not safe or odd or not url.strip().isprintable() or " " in url.strip():
        raise ConfigError(
            f"{one_line(_without_secrets(url), 120)!r} is not a valid API address.",
            where=where,
            next_step="Use a URL such as https://HOST/api/v3. Plain http is allowed only on loopback.",
        )
    return url.strip().rstrip("/")


def web_of(api: str) -> str:
    """Return the web address of a server: github.com for api.github.com, the host itself for Enterprise."""
    parts = urlsplit(api)
    host = parts.netloc
    if _is_public(api):
        host = host.removeprefix("api.")
    return f"{parts.scheme}://{host}"


def check_repository_name(name: str, where: str | None = None) -> str:
    """Return the name if it has the form ``owner/name``; raise UsageError otherwise."""
    if _REPOSITORY.fullmatch(name) is None or name.rpartition("/")[2] in (".", ".."):
        raise UsageError(
            f"{one_line(name, 120)!r} is not a repository name.", where=where, next_step="Write it as owner/name."
        )
    return name


def repository_of(folder: Path, api: str) -> str:
    """Return the repository of the git remote ``origin``; raise UsageError if it is not on that server."""
    answer = git(folder, "config", "--get", "remote.origin.url")
    url = "" if answer is None else answer.decode("utf-8", "replace").strip()
    step = "Name it: donewhen github enable --repo owner/name"
    if not url:
        raise UsageError("No repository given, and the git remote `origin` is not set.", next_step=step)
    match = _REMOTE.fullmatch(url)
    wanted = urlsplit(web_of(api)).hostname or ""
    host = "" if match is None else match["host"] or match["short"]
    if match is None or host.casefold() not in (wanted.casefold(), f"ssh.{wanted}".casefold()):
        safe_url = one_line(_without_secrets(url), 120)
        raise UsageError(f"The git remote `origin` ({safe_url}) is not a repository on {wanted}.", next_step=step)
    return check_repository_name(match["path"], "git remote origin")


def _is_public(api: str) -> bool:
    host = (urlsplit(api).hostname or "").casefold()
    return host == "api.github.com" or (host.startswith("api.") and host.endswith(".ghe.com"))


def _without_secrets(url: str) -> str:
    return re.sub(r"//[^@/]*@", "//…@", url)
