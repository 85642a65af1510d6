"""Where a model is: on this machine, or at the address of a server. Opens and imports nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from donewhen.foundation.caller_variables import CALLER_VARIABLES
from donewhen.models.registry import split_url

_IN_PROCESS = frozenset({"contrast", "local"})
_SERVERS: Mapping[str, tuple[str, str]] = {
    "openai": ("OPENAI_BASE_URL", "https://api.openai.com/v1"),
    "anthropic": ("ANTHROPIC_BASE_URL", "https://api.anthropic.com"),
}


@dataclass(frozen=True)
class OtherAddress:
    """An address to which a variable of the caller leads, instead of the one that belongs to a model's name."""

    variable: str
    address: str
    expected: str


def runs_in_process(choice: str) -> bool:
    """Whether this model gets no text out of this process. A server on this machine may pass on what it gets."""
    return choice.partition(":")[0] in _IN_PROCESS


def other_address(choice: str, environ: Mapping[str, str] = CALLER_VARIABLES) -> OtherAddress | None:
    """Return where a variable leads instead of the address that belongs to a model's name; None if nothing does."""
    kind, _, rest = choice.partition(":")
    if kind not in _SERVERS:
        return None
    variable, default = _SERVERS[kind]
    named = split_url(rest)[1]
    if named is None:
        address = environ.get(variable) or default
        if address.rstrip("/") != default:
            return OtherAddress(variable, address, default)
    return _proxy(named or default, environ)


def _proxy(address: str, environ: Mapping[str, str]) -> OtherAddress | None:
    """A proxy can answer in the place of a server that is called without TLS."""
    parts = urlsplit(address)
    if parts.scheme != "http" or _is_exempt(parts.hostname or "", environ):
        return None
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        if environ.get(name):
            return OtherAddress(name, environ[name], address)
    return None


def _is_exempt(host: str, environ: Mapping[str, str]) -> bool:
    """Whether NO_PROXY exempts a host, as the HTTP client reads it."""
    exempt = (environ.get("no_proxy") or environ.get("NO_PROXY") or "").split(",")
    names = [name.strip().lstrip(".").casefold() for name in exempt]
    return any(name == "*" or (name and (host == name or host.endswith(f".{name}"))) for name in names)
