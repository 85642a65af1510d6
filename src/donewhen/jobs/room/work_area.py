"""The work area of a job: what may come from the agent, and what in it stays as agreed."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Literal

from donewhen.jobs.room.built_files import BuiltFiles
from donewhen.jobs.room.judging_names import (
    DEPENDENCY_FILES,
    NamedFile,
    is_build_script,
    is_settings,
    is_test,
    module_files,
)
from donewhen.jobs.room.loaded_files import possible_files
from donewhen.jobs.room.names import is_pattern, matches_pattern
from donewhen.jobs.room.shadowing_names import is_library_of_python, is_shadowing, shadows_library
from donewhen.test_reports.collected_files import is_collected

Kind = Literal["work", "tests", "judges", "outside"]
"""What a changed file is: work, a test, something else that judges, or a file outside the work area."""

_ROOT_FOLDERS = ("src", "lib", "python")
_CODE = (".py", ".pyi", ".so", ".pyd", ".pyc", ".pyo")


@dataclass(frozen=True)
class WorkArea:
    """What may come from the agent. Names are relative to the repository."""

    inside: str
    """The project's folder in the repository, with a trailing slash; empty if it is the repository."""
    patterns: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """Agreed outputs; a pattern does not cover what lies below."""
    checked: tuple[str, ...] = ()
    """The files that file checks read. They are in the area, but a test among them is still a test."""
    may_change: tuple[str, ...] = ()
    """Tests that were agreed to change."""

    def has(self, name: str) -> bool:
        """Whether a file lies in the area."""
        # Asked for thousands of files: most patterns are folders, which need no matching.
        plain = name if name.isascii() else unicodedata.normalize("NFC", name)
        return (
            plain.startswith(self._folders)
            or any(matches_pattern(name, pattern) for pattern in self._other_patterns)
            or self.is_output(name)
            or any(matches_pattern(name, path, below=False) for path in self.checked)
        )

    @cached_property
    def _folders(self) -> tuple[str, ...]:
        """The folders that patterns such as `src/shop/**` name, with a trailing slash."""
        literal = (pattern.removesuffix("**") for pattern in self.patterns if pattern.endswith("/**"))
        return tuple(unicodedata.normalize("NFC", folder) for folder in literal if not is_pattern(folder))

    @cached_property
    def _other_patterns(self) -> tuple[str, ...]:
        return tuple(
            pattern
            for pattern in self.patterns
            if not pattern.endswith("/**") or is_pattern(pattern.removesuffix("**"))
        )

    @cached_property
    def named_prefixes(self) -> tuple[str, ...]:
        """The folders and files that patterns name without a wildcard, the longest first."""
        found = {
            "/".join(takewhile(lambda part: not is_pattern(part), pattern.split("/"))) for pattern in self.patterns
        }
        return tuple(sorted(found - {""}, key=len, reverse=True))

    def is_named_output(self, name: str) -> bool:
        """Whether a file is itself an agreed output, not one of those that a pattern covers."""
        return any(not is_pattern(output) and matches_pattern(name, output, below=False) for output in self.outputs)

    def tests_may_change(self, name: str) -> bool:
        return any(matches_pattern(name, pattern) for pattern in self.may_change)

    def names_folder(self, folder: str) -> bool:
        """Whether a pattern says this folder or file itself, so that a person agreed to it by its name."""
        wanted = folder.rstrip("/").split("/")
        return any(pattern.split("/")[: len(wanted)] == wanted for pattern in (*self.patterns, *self.outputs))

    def is_output(self, name: str) -> bool:
        """Whether a file is an agreed output."""
        return any(matches_pattern(name, output, below=False) for output in self.outputs)


@dataclass(frozen=True)
class JudgingFiles:
    """What judges the work: of a tree, and of the checks of a job."""

    inside: str
    named: frozenset[str] = frozenset()
    """Files that checks name, relative to the repository."""
    named_folders: frozenset[str] = frozenset()
    """Folders of such files; what lies directly in them judges, too."""
    named_modules: frozenset[str] = frozenset()
    """Agreed modules that ``python -m`` runs, or that settings or scripts have loaded, without their endings: another
    file of that name would be run instead."""
    read_if_there: frozenset[str] = frozenset()
    """Files and patterns that agreed scripts include as soon as there are such files."""
    scripts: frozenset[str] = frozenset()
    """Agreed scripts of checks that are no product code."""
    collected: frozenset[str] = frozenset()
    """Files from which the agreed test run collected tests."""
    test_patterns: tuple[str, ...] = ()
    """Files from which the checks collect tests (see ``is_collected``)."""
    import_roots: frozenset[str] = frozenset()
    """Folders from which modules are imported, with a trailing slash; empty for the repository."""
    installed: frozenset[str] = frozenset()
    """Top-level names that installed packages have."""
    agreed_names: Collection[str] = field(default=(), repr=False)
    agreed_folders: Collection[str] = field(default=(), repr=False)
    built: BuiltFiles = field(default_factory=BuiltFiles, repr=False)
    """What agreed makefiles build."""

    def kind_of(self, name: str, area: WorkArea, *, is_link: bool = False) -> Kind:
        """What a changed or new file is; ``name`` is its name in the agreed tree, or where it would lie in it.

        ``is_link`` says that it is a link, which may lead to a folder.
        """
        manifest = is_dependency_file(name) and name in self.agreed_names
        if area.is_named_output(name) and not manifest:
            return "work"
        if not area.has(name):
            return "tests" if self.is_test(name) else "outside"
        if area.tests_may_change(name):
            return "work"
        if self.is_test(name):
            return "tests"
        if manifest or (is_settings(_below_named(name, area)) and is_settings(name)):
            return "judges"
        if name in self.agreed_names and (name in self.named or self._builds(name, area)):
            return "judges"
        if name.rpartition("/")[0] in self.named_folders or self._is_named_module(name) or self._is_in_the_way(name):
            return "judges"
        if any(matches_pattern(name, pattern, below=False) for pattern in self.read_if_there):
            return "judges"
        return "outside" if self._takes_over(name, area, is_link=is_link) else "work"

    def judges(self, name: str) -> bool:
        """Whether a file judges work, wherever the work area lies."""
        return (
            is_settings(name)
            or name in self.named
            or is_build_script(name)
            or self.kind_of(name, WorkArea(self.inside, (name,))) != "work"
        )

    def is_test(self, name: str) -> bool:
        inner = name.removeprefix(self.inside)
        return name in self.collected or is_test(inner) or is_collected(inner, self.test_patterns)

    @cached_property
    def _test_folders(self) -> frozenset[str]:
        return frozenset(name.rpartition("/")[0] for name in self.agreed_names if self.is_test(name))

    def _builds(self, name: str, area: WorkArea) -> bool:
        """Whether a program loads a file because of its place, and nobody agreed to it by its own name."""
        return is_build_script(name) and bool(_below_named(name, area))

    def _is_in_the_way(self, name: str) -> bool:
        """Whether `make` would take a new file for what it has to build, and would not run anything."""
        return name not in self.agreed_names and self.built.prevents_building(name, self.agreed_folders)

    def _is_named_module(self, name: str) -> bool:
        if name in self.agreed_names:
            return False
        return _module_stem(name) in self.named_modules

    def _takes_over(self, name: str, area: WorkArea, *, is_link: bool) -> bool:
        """Whether a new file adds a top-level module, which could be imported instead of an agreed or installed one."""
        if name not in self.agreed_names and not area.is_output(name) and is_shadowing(name):
            return True
        if not name.endswith(_CODE) and not is_link:
            return False
        if name not in self.agreed_names and shadows_library(
            name, self.agreed_names, self.agreed_folders, self._test_folders, self.installed
        ):
            return True
        for root in self.import_roots:
            if not name.startswith(root):
                continue
            first, inner, _ = name.removeprefix(root).partition("/")
            if f"{root}{first}" in (self.agreed_folders if inner else self.agreed_names):
                continue
            module = first.partition(".")[0]
            taken = is_library_of_python(module, self.installed)
            # A package or an extension module comes before a module of the same name.
            other = f"{root}{module}.py"
            taken = taken or (other in self.agreed_names and not area.has(other))
            if taken or (module.isidentifier() and not area.names_folder(f"{root}{first}")):
                return True
        return False


def _below_named(name: str, area: WorkArea) -> str:
    """A name without the folders that a pattern names: a person who agrees to `/.github/**` agrees to hidden files."""
    for prefix in area.named_prefixes:
        if name == prefix:
            return ""
        if name.startswith(f"{prefix}/"):
            return name[len(prefix) + 1 :]
    return name


def judging_files(
    inside: str,
    agreed: Mapping[str, object],
    folders: Collection[str],
    commands: Iterable[Sequence[NamedFile]],
    *,
    collected: Iterable[str] = (),
    test_patterns: Sequence[str] = (),
    installed: Iterable[str] = (),
    built: BuiltFiles | None = None,
) -> JudgingFiles:
    """What judges, for these agreed files and checks."""
    roots = {inside, "", *(f"{inside}{folder}/" for folder in _ROOT_FOLDERS if f"{inside}{folder}" in folders)}
    named: set[str] = set()
    named_folders: set[str] = set()
    named_modules: set[str] = set()
    read_if_there: set[str] = set()
    scripts: set[str] = set()
    for file in (file for files in commands for file in files):
        if file.if_there:
            read_if_there |= set(_in_repository(inside, file, roots))
            continue
        if file.loaded:
            found = set(_loaded_files(inside, file, roots, agreed))
            named |= found
            named_modules |= {_module_stem(name) for name in found}
            named_folders |= set(_loaded_folders(inside, file, folders))
            continue
        for name in _in_repository(inside, file, roots):
            named.add(name)
            if file.script:
                scripts.add(name)
                named_modules.add(_module_stem(name))
            if name in agreed and file.module:
                named_modules.add(name.removesuffix(".py"))
            if name in agreed and file.whole_folder:
                folder = name.rpartition("/")[0]
                named_folders.add(folder)
                roots.add(f"{folder}/" if folder else "")
    # The project's own folder has everything in it; what lies there is in the area only if its name was agreed to.
    named_folders -= {inside.rstrip("/"), ""}
    return JudgingFiles(
        inside,
        frozenset(named),
        frozenset(named_folders),
        frozenset(named_modules),
        frozenset(read_if_there),
        frozenset(scripts),
        frozenset(collected),
        tuple(test_patterns),
        frozenset(roots),
        frozenset(installed),
        agreed.keys(),
        folders,
        built or BuiltFiles(),
    )


def _in_repository(inside: str, file: NamedFile, roots: Iterable[str]) -> Iterator[str]:
    if file.module:
        yield from module_files(file.name, roots)
        return
    name = os.path.normpath(f"{inside}{file.name}")
    if not name.startswith(".."):
        yield name


def _loaded_files(inside: str, file: NamedFile, roots: Collection[str], agreed: Collection[str]) -> Iterator[str]:
    """The agreed files that are loaded by this name: from the folder of the settings, the project, an import root."""
    for folder in {f"{file.beside}/" if file.beside else "", inside, *roots}:
        for path in possible_files(file.name):
            name = os.path.normpath(f"{folder}{path}")
            if name in agreed:
                yield name


def _loaded_folders(inside: str, file: NamedFile, folders: Collection[str]) -> Iterator[str]:
    """The same for a folder, such as one with rules of a linter."""
    if "/" in file.name:
        for folder in (f"{file.beside}/" if file.beside else "", inside):
            name = os.path.normpath(f"{folder}{file.name}")
            if name in folders:
                yield name


def _module_stem(name: str) -> str:
    folder, slash, last = name.rpartition("/")
    stem = f"{folder}{slash}{last.partition('.')[0]}"
    return stem.removesuffix("/__init__").removesuffix("/index")


def area_of(
    inside: str,
    job_folder: str,
    work: Iterable[str],
    outputs: Iterable[str],
    may_change: Iterable[str] = (),
    checked: Iterable[str] = (),
) -> WorkArea:
    """The work area of a job, from the paths in its plan; ``job_folder`` is relative to the project."""

    def place(path: str) -> str:
        return in_repository(inside, job_folder, path)

    return WorkArea(
        inside,
        tuple(map(place, work)),
        tuple(map(place, outputs)),
        tuple(map(place, checked)),
        tuple(map(place, may_change)),
    )


def in_repository(inside: str, job_folder: str, path: str) -> str:
    """A path of a plan as a name in the repository: `//` is the repository, `/` the project, else the job's folder."""
    if path.startswith("//"):
        name = path.lstrip("/")
    elif path.startswith("/"):
        name = f"{inside}{path.lstrip('/')}"
    else:
        name = f"{inside}{job_folder}/{path}"
    return str(PurePosixPath(name))


def is_dependency_file(name: str) -> bool:
    """Whether a file is a manifest, in which the dependencies are work."""
    return name.rpartition("/")[2].casefold() in DEPENDENCY_FILES
