"""Which differences the work explains, because its manifests and lock files declare them; a person sees the others.

A manifest is written by whoever does the work. So it explains packages that the work uses, and never what could judge
the work: what checks start or load by themselves, and everything that this needs.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from donewhen.environments.declared import Declared
from donewhen.environments.differences import Difference, join
from donewhen.environments.listing import Distribution, Listing, NodeModules, NodePackage, PythonEnvironment

_LOADED_BY_NAME = ("karma-", "prettier-plugin-", "@prettier/plugin-")
"""Packages of Node.js that a tool loads because they are installed. All others load what their settings name."""
_INSTALLER = "pip"

IsAskedFor = Callable[[str, str, Collection[str]], bool]
"""Whether something in an environment, besides modules of these names, loads the plug-ins of a group."""


def unexplained(
    found: Iterable[Difference],
    declared: Declared,
    accepted: Listing,
    now: Listing,
    *,
    words: Collection[str] = (),
    is_asked_for: IsAskedFor = lambda _, __, ___: True,
) -> tuple[Difference, ...]:
    """The differences that a person has to see. ``words`` are those of the commands that check the work."""
    kept: list[Difference] = []
    by_environment: dict[str, list[Difference]] = {}
    for difference in found:
        if difference.where in now.python or difference.where in now.node:
            by_environment.setdefault(difference.where, []).append(difference)
        else:
            kept.append(difference)
    for where, differing in by_environment.items():
        if where in now.python:
            before = accepted.python.get(where)
            python = _Python(before or PythonEnvironment(), now.python[where], where, declared, words, is_asked_for)
            kept += differing if before is None else python.unexplained(differing)
        else:
            node = _Node(accepted.node.get(where, NodeModules()), now.node[where], where, declared, words)
            kept += node.unexplained(differing)
    return tuple(kept)


class _Python:
    """The differences in one folder with Python packages."""

    def __init__(
        self,
        before: PythonEnvironment,
        now: PythonEnvironment,
        where: str,
        declared: Declared,
        words: Collection[str],
        is_asked_for: IsAskedFor,
    ) -> None:
        self._before, self._now, self._where, self._declared = before, now, where, declared
        self._words, self._is_asked_for = words, is_asked_for
        self._asked: dict[str, bool] = {}
        self._judging = self._judging_names()

    def unexplained(self, differing: Iterable[Difference]) -> Iterator[Difference]:
        differing = [*differing]
        declared = self._declared_names(differing)
        for difference in differing:
            if difference.distribution is None:
                yield difference
                continue
            old, new = difference.distribution
            why = self._why(old, new, declared)
            if why is not None:
                yield _with_reason(difference, why)

    def _why(self, old: Distribution | None, new: Distribution | None, declared: Collection[str]) -> str | None:
        """Why a person has to see it: a reason that is not in its sentence, or nothing; None if nobody has to."""
        if new is None:
            # What is gone can't be loaded; but a check could have been done by it.
            return "checks load it" if old is not None and old.name in self._judging else None
        if old == new:
            return None
        if new.own and old is not None and old.own:
            same = old.hash == new.hash and old.starts != () and len(old.starts) == len(new.starts)
            return None if same and not self._new_plugins(old, new) else ""
        if new.source and (old is None or old.source != new.source):
            return ""
        if new.starts and (old is None or old.starts != new.starts or old.hash != new.hash):
            return (
                "" if old is None or old.starts != new.starts else f"{join(new.starts)} runs at every start of Python"
            )
        if self._new_plugins(old, new):
            return ""
        if old is not None and old.version == new.version:
            return None if _is_only_description(old, new) else ""
        if new.name in self._judging:
            return "checks load it"
        if new.name == _INSTALLER and old is not None:
            return None
        if new.name not in declared:
            return "no manifest in the work area declares it"
        if taken := self._taken(old, new):
            return f"it has modules of others: {join(taken)}"
        return None

    def _new_plugins(self, old: Distribution | None, new: Distribution) -> bool:
        known = () if old is None else old.groups
        own = {top.partition("/")[0] for top in new.tops}
        return any(group not in known and self._asks(group, own) for group in new.groups)

    def _asks(self, group: str, own: Collection[str] = ()) -> bool:
        if group not in self._asked:
            self._asked[group] = self._is_asked_for(self._where, group, own)
        return self._asked[group]

    def _judging_names(self) -> set[str]:
        """The distributions that checks load: those that commands name, plug-ins, and what these need."""
        both = (*self._before.distributions, *self._now.distributions)
        requires: dict[str, set[str]] = {}
        for distribution in both:
            requires.setdefault(distribution.name, set()).update(distribution.requires)
        words = {word.casefold() for word in self._words}
        level = {
            distribution.name
            for distribution in self._before.distributions
            if not distribution.own
            and (
                words & {distribution.name, *map(str.casefold, (*distribution.scripts, *distribution.tops))}
                or any(self._asks(group) for group in distribution.groups)
            )
        }
        found: set[str] = set()
        while level:
            found |= level
            level = {name for judge in level for name in requires.get(judge, ())} - found
        own = {distribution.name for distribution in both if distribution.own}
        return found - own

    def _declared_names(self, differing: Iterable[Difference]) -> set[str]:
        """What manifests declare, and what this needs in turn."""
        now = {distribution.name: distribution for distribution in self._now.distributions}
        known = {distribution.name for distribution in self._before.distributions}
        level = {
            name
            for name, found in now.items()
            if self._declared.has("python", name, found.version, is_new=name not in known)
        }
        changed = {difference.name for difference in differing}
        found: set[str] = set()
        while level:
            found |= level
            needed = {name for declared in level for name in (*now[declared].requires, *now[declared].optional)}
            level = {name for name in needed if name in now and name in changed} - found
        return found

    def _taken(self, old: Distribution | None, new: Distribution) -> list[str]:
        """The names of modules that others have, too, so that another one could be loaded instead of theirs."""
        added = {*new.tops} - ({*old.tops} if old is not None else set())
        others = {
            top
            for distribution in (*self._before.distributions, *self._now.distributions)
            if distribution.name != new.name
            for top in distribution.tops
        }
        others |= {_module(name) for name in self._before.loose}
        parents = {top.partition("/")[0] for top in others}
        return sorted(
            top
            for top in added
            if top in others or ("/" not in top and top in parents) or top.partition("/")[0] in others
        )


def _is_only_description(old: Distribution, new: Distribution) -> bool:
    """Whether nothing that could be loaded differs: who has installed it, or what it can be used with."""
    return old.hash == new.hash and old.starts == new.starts and old.own == new.own


def _module(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].partition(".")[0]


class _Node:
    """The differences in one folder with packages of Node.js."""

    def __init__(
        self, before: NodeModules, now: NodeModules, where: str, declared: Declared, words: Collection[str]
    ) -> None:
        self._before, self._now, self._where, self._declared = before, now, where, declared
        self._words = words
        self._judging = {*_reached(before, words), *_reached(now, words)}
        self._names = {
            package.name
            for place in self._judging
            for modules in (before, now)
            if (package := modules.packages.get(place)) is not None
        }

    def unexplained(self, differing: Iterable[Difference]) -> Iterator[Difference]:
        differing = [*differing]
        declared = self._declared_names(differing)
        for difference in differing:
            if difference.package is not None:
                why = self._why(difference.name, *difference.package, declared)
                if why is not None:
                    yield _with_reason(difference, why)
            elif not self._is_explained_link(difference, declared):
                yield difference

    def _why(
        self, place: str, old: NodePackage | None, new: NodePackage | None, declared: Collection[str]
    ) -> str | None:
        if new is None:
            return "checks load it" if place in self._judging else None
        if old is not None and (old.name, old.version) == (new.name, new.version):
            return ""
        if place in self._judging:
            return "checks load it"
        if new.name.startswith(_LOADED_BY_NAME):
            return "a tool loads it because it is installed"
        if posixpath.basename(place) != posixpath.basename(new.name) and not self._is_alias(place, declared):
            return "it calls itself differently"
        return None if place in declared else "no manifest in the work area declares it"

    def _is_alias(self, place: str, declared: Collection[str]) -> bool:
        names = {
            self._declared.packages.get(("node", _name_at(place))),
            self._declared.agreed.get(("node", _name_at(place))),
        }
        return names != {None} and place in declared

    def _declared_names(self, differing: Iterable[Difference]) -> set[str]:
        """The places of what manifests declare, and of what this needs in turn."""
        packages = self._now.packages
        level = {
            place
            for place, package in packages.items()
            if any(
                self._declared.has("node", name, package.version, is_new=place not in self._before.packages)
                for name in (package.name, _name_at(place))
            )
        }
        changed = {difference.name for difference in differing}
        found: set[str] = set()
        while level:
            found |= level
            needed = {inner for place in level for inner in _needed(self._now, place)}
            level = {place for place in needed if place in changed} - found
        return found

    def _is_explained_link(self, difference: Difference, declared: Collection[str]) -> bool:
        """Whether a link in the folder leads to a declared package, to the project, or nowhere any more."""
        name = posixpath.basename(difference.name)
        inner = posixpath.dirname(difference.name)
        if posixpath.basename(inner) == ".bin" or inner == ".bin":
            if name in self._words:
                return False
        elif _name_at(difference.name) in self._names:
            return False
        if not difference.content:
            return True
        kind, _, rest = difference.content.partition(" ")
        target = rest.partition(" ")[0]
        if kind != "link" or target.startswith("/"):
            return False
        folder = posixpath.normpath(self._where)
        place = posixpath.normpath(posixpath.join(folder, inner, target))
        if "node_modules" not in place.split("/"):
            # A package of the project's own.
            return place.partition("/")[0] not in ("..", "~", "")
        return any(f"{place}/".startswith(f"{folder}/{known}/") for known in declared)


def _name_at(place: str) -> str:
    return place.rpartition("node_modules/")[2]


def _reached(modules: NodeModules, words: Collection[str]) -> Iterator[str]:
    """The places of the packages that commands name, and of what these load in turn."""
    level = {place for place, package in modules.packages.items() if {package.name, *package.scripts} & {*words}}
    found: set[str] = set()
    while level:
        found |= level
        level = {inner for place in level for inner in _needed(modules, place)} - found
    yield from found


def _needed(modules: NodeModules, place: str) -> Iterator[str]:
    """Where the packages lie that a package would load."""
    for name in modules.packages[place].requires:
        folder = place
        while True:
            candidate = f"{folder}/node_modules/{name}" if folder else name
            if candidate in modules.packages:
                yield candidate
                break
            if not folder:
                # Through links: each package of this name can be the one.
                yield from (other for other in modules.packages if _name_at(other) == name)
                break
            folder = folder.rpartition("/node_modules/")[0] if "/node_modules/" in folder else ""


def _with_reason(difference: Difference, why: str) -> Difference:
    if not why:
        return difference
    return Difference(
        f"{difference.sentence} ({why})",
        difference.where,
        difference.distribution,
        difference.package,
        difference.name,
        difference.content,
    )


def shortened(found: Mapping[str, str]) -> list[str]:
    """What could not be read, as sentences."""
    return [f"{path} can't be read: {why}" for path, why in sorted(found.items())]
