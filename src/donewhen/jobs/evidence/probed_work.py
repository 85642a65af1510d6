"""What the probes of a job look at: the changed product code, its tests, and how both were before the work."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from donewhen.foundation.git_objects import LINK
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.room.blobs import Blobs
from donewhen.jobs.room.room_plan import Change, Tree
from donewhen.jobs.room.surroundings import Surroundings
from donewhen.mutation.changed_lines import changed_lines
from donewhen.mutation.code_changes import CodeChange, code_changes
from donewhen.mutation.reaching import reaching_tests
from donewhen.mutation.sampling import spread

_MOST_SOURCES = 4000


class ProbedRoom(Protocol):
    """A room with what would be merged."""

    def run(
        self, argv: Sequence[str], surroundings: Surroundings, timeout: float, changed: Mapping[str, bytes | None]
    ) -> ReportedRun:
        """Run a command, while some files of the repository have another content or are missing."""
        ...


@dataclass(frozen=True)
class Versions:
    """The files before the work and with it. Names are relative to the repository."""

    inside: str
    """The project's folder, with a trailing slash."""
    before: Tree = field(repr=False)
    after: Tree = field(repr=False)
    changes: tuple[Change, ...]
    work: tuple[Change, ...]
    is_test: Callable[[str], bool]
    old: Blobs = field(repr=False)
    new: Blobs = field(repr=False)

    def tests(self) -> list[Change]:
        """The changes of tests, whoever may change them."""
        return [change for change in self.changes if change.kind == "tests" or self.is_test(change.name)]


@dataclass(frozen=True)
class Mutant:
    """A small change of a changed file, whose name is relative to the project."""

    file: str
    change: CodeChange


@dataclass(frozen=True)
class ProbedWork:
    """The work in the form in which it is probed. Names are relative to the project, if nothing else is said."""

    inside: str
    changed: Mapping[str, str] = field(repr=False)
    """The changed Python files of the product, with their texts."""
    others: tuple[str, ...]
    """Changed files of the product in other languages."""
    mutants: tuple[Mutant, ...] = field(repr=False)
    """All small changes of the changed lines, in the order in which they are tried."""
    reaching: tuple[str, ...]
    """The test files whose imports lead to the changed ones."""
    old_tests: Mapping[str, str] = field(repr=False)
    new_tests: Mapping[str, str] = field(repr=False)
    """The texts of changed test files, before and now."""
    changed_tests: tuple[str, ...]
    undone: Mapping[str, bytes | None] = field(repr=False)
    """The files without the work, by their names in the repository; None for those that did not exist."""

    @property
    def lines(self) -> int:
        """The changed lines that something can be changed in."""
        return len({(mutant.file, mutant.change.line) for mutant in self.mutants})


def probed_work(versions: Versions, seed: str) -> ProbedWork:
    """Read the work; ``seed`` decides on the order of the mutants."""
    inside, tests = versions.inside, versions.tests()
    product = [change for change in versions.work if change not in tests and change.name.startswith(inside)]
    present = [change.name for change in product if change.name in versions.after]
    python = [name for name in present if name.endswith(".py")]
    before = _texts(versions.old, versions.before, python)
    after = _texts(versions.new, versions.after, python)
    mutants = [
        Mutant(name.removeprefix(inside), change)
        for name, text in after.items()
        for change in code_changes(text, changed_lines(before.get(name), text))
    ]
    test_names = [change.name for change in tests]
    undone = [change.name for change in versions.changes if change not in tests and change.kind != "judges"]
    return ProbedWork(
        inside=inside,
        changed={name.removeprefix(inside): text for name, text in after.items()},
        others=tuple(name.removeprefix(inside) for name in present if name not in after),
        mutants=spread(mutants, lambda mutant: (mutant.file, mutant.change.line), seed),
        reaching=_reaching(versions, after),
        old_tests=_relative(_texts(versions.old, versions.before, test_names), inside),
        new_tests=_relative(_texts(versions.new, versions.after, test_names), inside),
        changed_tests=tuple(name.removeprefix(inside) for name in test_names if name in versions.after),
        undone={**dict.fromkeys(undone, None), **_contents(versions.old, versions.before, undone)},
    )


def _reaching(versions: Versions, changed: Mapping[str, str]) -> tuple[str, ...]:
    names = [name for name in versions.after if name.endswith(".py") and name.startswith(versions.inside)]
    tests = [name for name in names if versions.is_test(name)]
    if not changed or len(names) > _MOST_SOURCES:
        return ()
    sources = _texts(versions.new, versions.after, names)
    return tuple(name.removeprefix(versions.inside) for name in reaching_tests(sources, changed, tests))


def _relative(texts: Mapping[str, str], inside: str) -> dict[str, str]:
    return {name.removeprefix(inside): text for name, text in texts.items()}


def _texts(blobs: Blobs, tree: Tree, names: Sequence[str]) -> dict[str, str]:
    """The texts of those of the files that there are and that are UTF-8."""
    texts: dict[str, str] = {}
    for name, content in _contents(blobs, tree, names).items():
        try:
            texts[name] = content.decode()
        except UnicodeDecodeError:
            continue
    return texts


def _contents(blobs: Blobs, tree: Tree, names: Sequence[str]) -> dict[str, bytes]:
    """The contents of those of the files that there are, without links."""
    kept = [name for name in names if name in tree and tree[name].mode != LINK]
    return dict(zip(kept, blobs.contents([(name, tree[name].blob) for name in kept]), strict=True))
