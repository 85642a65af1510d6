"""Decides what is in the room: pure functions of the agreed tree, the files on disk, and the contract."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.git_objects import LINK, TreeFile
from donewhen.jobs.room.names import SamePaths
from donewhen.jobs.room.work_area import JudgingFiles, Kind, WorkArea, is_dependency_file

ChangeKind = Literal["added", "changed", "removed"]
Tree = Mapping[str, TreeFile]


class Change(NamedTuple):
    """A file that differs from the agreed one, and what it is."""

    name: str
    how: ChangeKind
    kind: Kind
    blob: str
    """The name of its content; empty if it was removed."""


@dataclass(frozen=True)
class RoomPlan:
    """The files of the two runs. Names are relative to the repository."""

    agreed: Tree = field(repr=False)
    """The first run: everything as agreed, except the work."""
    whole: Tree = field(repr=False)
    """The second run: everything as the agent has it."""
    changes: tuple[Change, ...]
    """All differences between the agreed tree and the files on disk."""
    accepted: frozenset[str] = frozenset()
    """The changes that a person has accepted."""

    @property
    def work(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind == "work" or change.name in self.accepted)

    @property
    def outside(self) -> tuple[Change, ...]:
        """Changes that are not in the first run, except those of tests."""
        return tuple(change for change in self._kept if change.kind in ("outside", "judges"))

    @property
    def tests(self) -> tuple[Change, ...]:
        """Changes of tests, which are not in the first run."""
        return tuple(change for change in self._kept if change.kind == "tests")

    @property
    def two_runs(self) -> bool:
        """Whether the first run differs from what the agent has."""
        return bool(self._kept)

    @property
    def digest(self) -> str:
        """A hash of the contents of both runs."""
        return digest_of({"agreed": tree_digest(self.agreed), "whole": tree_digest(self.whole)})

    @property
    def _kept(self) -> tuple[Change, ...]:
        return tuple(change for change in self.changes if change.kind != "work" and change.name not in self.accepted)


def plan_room(
    agreed: Tree,
    disk: Tree,
    area: WorkArea,
    judges: JudgingFiles,
    *,
    accepted: Mapping[str, str] | None = None,
    only_dependencies: Callable[[str], bool] = lambda _: False,
    is_same: Callable[[str], bool] = lambda _: False,
    locked: Collection[str] = (),
    leading_out: Collection[str] = (),
) -> RoomPlan:
    """Decide for each file whether it comes from the agreement or from the disk.

    ``accepted`` are contents that a person accepted, by name (empty for a removed file). ``only_dependencies`` says
    whether a manifest differs in its dependencies alone, ``is_same`` whether a file has the agreed content in the form
    of a checkout, for example with other line ends. ``locked`` names are taken from the agreement wherever they lie.
    ``leading_out`` are links on disk that lead out of the repository: they are absent, agreed or not.
    """
    accepted = accepted or {}
    paths = SamePaths(agreed)
    first: dict[str, TreeFile] = {}
    whole: dict[str, TreeFile] = {}
    changes: list[Change] = []
    taken: set[str] = set()
    for name in sorted({*agreed, *disk}):
        old, new = agreed.get(name), disk.get(name)
        if old is not None and new is not None and (_is_equal(old, new) or is_same(name)):
            if name not in leading_out:
                first[name] = whole[name] = _with_mode(name, old, new, area, judges)
            continue
        if new is not None:
            whole[name] = new
        change = _change(name, old, new, paths.same_as(name), area, judges, only_dependencies)
        if change.how == "added" and change.kind == "work" and _is_stub(name, disk) and not area.is_output(name):
            change = change._replace(kind="judges")
        changes.append(change)
        if accepted.get(name) == change.blob and name not in locked:
            taken.add(name)
        source = new if (change.kind == "work" and name not in locked) or name in taken else old
        if source is not None:
            first[name] = source
    return RoomPlan(_without_blocked(first, agreed), whole, tuple(changes), frozenset(taken))


def tree_digest(tree: Tree) -> str:
    """A hash of the names, modes and contents of a tree."""
    return digest_of({_text(name): f"{file.mode} {file.blob}" for name, file in tree.items()})


def _change(
    name: str,
    old: TreeFile | None,
    new: TreeFile | None,
    same: str,
    area: WorkArea,
    judges: JudgingFiles,
    only_dependencies: Callable[[str], bool],
) -> Change:
    kind = judges.kind_of(same, area, is_link=new is not None and new.mode == LINK)
    if (
        kind == "judges"
        and old is not None
        and new is not None
        and is_dependency_file(same)
        and only_dependencies(name)
    ):
        kind = "work"
    if kind == "work" and same != name and same in judges.agreed_names and judges.kind_of(name, area) != "work":
        kind = "outside"
    how: ChangeKind = "added" if old is None else "removed" if new is None else "changed"
    return Change(name, how, kind, "" if new is None else new.blob)


def _is_stub(name: str, disk: Tree) -> bool:
    """Whether type checkers read this file, and not the module beside it."""
    return name.endswith(".pyi") and name[:-1] in disk


def _with_mode(name: str, old: TreeFile, new: TreeFile, area: WorkArea, judges: JudgingFiles) -> TreeFile:
    """The agreed file; one of the work becomes a program if the agent has made it one."""
    if old.mode == new.mode or LINK in (old.mode, new.mode) or judges.kind_of(name, area) != "work":
        return old
    return TreeFile(new.mode, old.blob)


def _is_equal(old: TreeFile, new: TreeFile) -> bool:
    """Whether a file has the agreed content; some file systems don't keep the mode of programs."""
    return old.blob == new.blob and (old.mode == LINK) == (new.mode == LINK)


def _without_blocked(tree: dict[str, TreeFile], agreed: Tree) -> Tree:
    """The tree without files of the work that lie where the agreement has a file or link on the way."""
    blocked = [name for name in tree if "/" in name and any(f"{parent}" in tree for parent in _parents(name))]
    for name in blocked:
        # Of two, the agreed one stays.
        parents = [parent for parent in _parents(name) if parent in tree]
        if name in agreed:
            for parent in parents:
                del tree[parent]
        elif parents:
            del tree[name]
    return tree


def _parents(name: str) -> list[str]:
    parts = name.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _text(name: str) -> str:
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
