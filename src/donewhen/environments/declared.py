"""What manifests and lock files of the work declare, and which changes of installed packages that explains."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Ecosystem = Literal["python", "node", "cargo", "go"]


class Item(NamedTuple):
    """A package in a manifest or lock file."""

    ecosystem: Ecosystem
    name: str
    version: str = ""
    """Empty if it is not pinned to one."""
    host: str = ""
    """Where it is loaded from, if the file says so; ``other`` if that is no registry."""


_Packages = Mapping[tuple[Ecosystem, str], frozenset[str]]
"""Packages with the versions to which they are pinned; none if any will do."""


@dataclass(frozen=True)
class Declared:
    """The packages that the manifests and lock files of the work name."""

    packages: _Packages = field(default_factory=dict)
    """Those that are new there, or have another version than in the agreed ones."""
    agreed: _Packages = field(default_factory=dict)
    """Those that the agreed ones name as well. They may be installed now if they were not."""

    def has(self, ecosystem: Ecosystem, name: str, version: str, *, is_new: bool = False) -> bool:
        """Whether a package was declared in this version."""
        if _is_one_of(version, self.packages.get((ecosystem, name))):
            return True
        agreed = self.agreed.get((ecosystem, name))
        return (is_new or bool(agreed)) and _is_one_of(version, agreed)


def _is_one_of(version: str, versions: frozenset[str] | None) -> bool:
    # `2.1+cpu` is a build of 2.1.
    return versions is not None and (not versions or version in versions or version.partition("+")[0] in versions)


OTHER = "other"
_REGISTRIES = frozenset(
    {"", "pypi.org", "files.pythonhosted.org", "registry.npmjs.org", "registry.yarnpkg.com", "github.com/rust-lang"}
)


def declared_between(before: Iterable[Item], after: Iterable[Item]) -> Declared:
    """What is declared after, and was not before. A package from a registry that nobody has agreed to is not."""
    known = {*before}
    hosts = {item.host for item in known} - {OTHER} | _REGISTRIES
    listed = [*after]
    refused = {(item.ecosystem, item.name) for item in listed if item.host not in hosts}
    changed = _versions((item for item in listed if item not in known), refused)
    return Declared(changed, _versions((item for item in listed if item in known), {*refused, *changed}))


def _versions(items: Iterable[Item], without: Collection[tuple[Ecosystem, str]]) -> _Packages:
    found: dict[tuple[Ecosystem, str], set[str]] = {}
    for item in items:
        if (item.ecosystem, item.name) not in without:
            found.setdefault((item.ecosystem, item.name), set()).update({item.version} - {""})
    return {key: frozenset(versions) for key, versions in found.items()}
