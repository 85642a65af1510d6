"""How this copy of donewhen was installed, and with which line it is installed again, for example with an extra.

Advice has to work: a copy from a clone or from a Git URL is not on the package index.
"""

from __future__ import annotations

import json
import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit


class Source(NamedTuple):
    """Where a copy of donewhen comes from."""

    place: str | None
    """A path of this machine or a URL; None for the package index."""
    editable: bool = False


def source_of(direct_url: str | None) -> Source:
    """Read what an installer has written into ``direct_url.json``; None if there is none."""
    if direct_url is None:
        return Source(None)
    about = json.loads(direct_url)
    url = str(about["url"])
    if url.startswith("file:"):
        return Source(unquote(urlsplit(url).path), bool(about.get("dir_info", {}).get("editable")))
    vcs = about.get("vcs_info")
    return Source(f"{vcs['vcs']}+{url}@{vcs['commit_id']}" if vcs else url)


def install_line(extra: str) -> str:
    """The command that adds an extra to this copy; empty if where it came from is no longer there."""
    requirement, options = _requirement(_source(), extra)
    if not requirement:
        return ""
    if (Path(sys.prefix) / "uv-receipt.toml").exists():
        tool = ["uv", "tool", "install", "--force"]
    elif (Path(sys.prefix) / "pipx_metadata.json").exists():
        tool = ["pipx", "install", "--force"]
    elif find_spec("pip") is not None:
        tool = ["pip", "install"]
    else:
        tool = ["uv", "pip", "install", "--python", shlex.quote(sys.executable)]
    return " ".join([*tool, *options, f"'{requirement}'"])


def reachable_requirement() -> str | None:
    """What another machine can install; None if this copy comes from a file or folder of this machine."""
    source = _source()
    if source.place is None:
        from donewhen import __version__

        return f"donewhen=={__version__}"
    return None if _is_local(source) else f"donewhen @ {source.place}"


def _requirement(source: Source, extra: str) -> tuple[str, list[str]]:
    if source.place is None:
        return f"donewhen[{extra}]", []
    if not _is_local(source):
        return f"donewhen[{extra}] @ {source.place}", []
    if not Path(source.place).exists():
        return "", []
    return f"{source.place}[{extra}]", ["-e"] if source.editable else []


def _is_local(source: Source) -> bool:
    return source.place is not None and source.place.startswith("/")


def _source() -> Source:
    from importlib.metadata import PackageNotFoundError, distribution

    try:
        return source_of(distribution("donewhen").read_text("direct_url.json"))
    except (PackageNotFoundError, ValueError, KeyError, AttributeError, TypeError):
        # Run from its source, without an installation.
        return Source(str(Path(__file__).parents[3]), editable=True)
