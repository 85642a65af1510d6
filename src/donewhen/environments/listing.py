"""The list of what programs could load besides the files of their project, in the form in which it is stored."""

from __future__ import annotations

import msgspec

_VERSION = 1


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    """A program that checks start."""

    hash: str
    real: str = ""
    """Where it really is, if its path leads through a link."""


class Distribution(msgspec.Struct, frozen=True, omit_defaults=True):
    """An installed Python distribution."""

    name: str
    """Normalized."""
    version: str = ""
    hash: str = ""
    """Of the content of its files, without what the installer notes about itself."""
    groups: tuple[str, ...] = ()
    """The groups of its entry points besides those of programs: what loads plug-ins asks for such a group."""
    source: str = ""
    """The address or folder that it comes from, if that is no index."""
    starts: tuple[str, ...] = ()
    """Its files that Python runs at every start."""
    tops: tuple[str, ...] = ()
    """The names under which it is imported."""
    scripts: tuple[str, ...] = ()
    """The names of its programs."""
    requires: tuple[str, ...] = ()
    """The distributions that it needs."""
    optional: tuple[str, ...] = ()
    """Those that it needs for its extras."""
    own: bool = False
    """Whether it is the project itself, installed so that its files are those of the project."""


class PythonEnvironment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A folder with installed Python packages."""

    distributions: tuple[Distribution, ...] = ()
    loose: dict[str, str] = {}
    """What belongs to no distribution, by its name in the folder."""
    settings: dict[str, str] = {}
    """Which interpreter it uses, and whether with that one's packages."""


class Interpreter(msgspec.Struct, frozen=True, omit_defaults=True):
    """An installed Python: its program and its standard library."""

    version: str = ""
    library: dict[str, str] = {}


class NodePackage(msgspec.Struct, frozen=True, omit_defaults=True):
    """An installed package of Node.js."""

    name: str
    version: str = ""
    hash: str = ""
    requires: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


class NodeModules(msgspec.Struct, frozen=True, omit_defaults=True):
    """A folder ``node_modules``."""

    packages: dict[str, NodePackage] = {}
    """By their folders."""
    loose: dict[str, str] = {}


class Listing(msgspec.Struct, frozen=True, omit_defaults=True):
    """What programs could load. Paths in the project start with ``./``, those in the home folder with ``~/``."""

    version: int = _VERSION
    programs: dict[str, Program] = {}
    """By their paths."""
    searched: dict[str, Program] = {}
    """Programs in the person's own folders of PATH, by their paths; ``real`` is the one that such a program hides."""
    interpreters: dict[str, Interpreter] = {}
    python: dict[str, PythonEnvironment] = {}
    node: dict[str, NodeModules] = {}
    tools: dict[str, dict[str, str]] = {}
    """Other installations, such as a compiler: parts of them with hashes."""
    others: dict[str, dict[str, str]] = {}
    """Folders and modules elsewhere that environments and programs load from: parts of them with hashes."""
    stores: dict[str, dict[str, str]] = {}
    """Packages in the stores of package managers, with hashes."""


def listing_bytes(listing: Listing) -> bytes:
    """The stored form of a listing; equal listings have equal bytes."""
    return msgspec.json.encode(listing, order="deterministic")


def read_listing(data: bytes) -> Listing | None:
    """Read a stored listing; None if it is damaged or was written by a newer version."""
    try:
        listing = msgspec.json.decode(data, type=Listing)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError, RecursionError):
        return None
    return listing if listing.version == _VERSION else None
