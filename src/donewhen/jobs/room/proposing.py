"""Proposes a work area: the packages, documentation and tests of a project, never the whole of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import place_of
from donewhen.jobs.room.disk_tree import read_names
from donewhen.jobs.room.judging_names import is_settings, is_test

_SOURCES = ("src", "lib", "python")
_CODE_FOLDERS = ("src", "lib", "app", "pkg", "internal", "cmd", "include", "crates", "components", "pages", "public")
_DOCS = ("docs", "doc", "documentation")
_TESTS = ("tests", "test", "__tests__", "spec", "specs", "e2e")
_MAX_MODULES = 12
_MAX_PATTERNS = 40
_PYTHON = ".py"


def project_names(workspace: Workspace) -> tuple[str, ...]:
    """The names of the files of a project, without those that donewhen writes."""
    place = place_of(workspace)
    names = read_names(workspace.root)
    return tuple(name for name in names if not place.is_generated(workspace, f"{place.inside}{name}"))


def propose_work_area(names: Collection[str], named: Collection[str] = ()) -> tuple[str, ...]:
    """The patterns of a work area for a project with these files; ``named`` are files that checks name."""
    return tuple(_proposed(names, frozenset(named)))[:_MAX_PATTERNS]


def _proposed(names: Iterable[str], named: frozenset[str]) -> Iterator[str]:
    listed = sorted(names)
    packages = _packages(listed)
    yield from (f"/{package}/**" for package in packages)
    tops = {name.partition("/")[0] for name in listed if "/" in name}
    imported = {package.partition("/")[0] for package in packages}
    for folder in _CODE_FOLDERS:
        has_python = any(name.startswith(f"{folder}/") and name.endswith(_PYTHON) for name in listed)
        # A folder from which Python imports is never work as a whole: a new module could take the place of another.
        if folder in tops and folder not in imported and not has_python:
            yield f"/{folder}/**"
    yield from (f"/{folder}/**" for folder in (*_DOCS, *_TESTS) if folder in tops and folder not in packages)
    modules = [
        name
        for name in listed
        if "/" not in name
        and name.endswith(_PYTHON)
        and not is_settings(name)
        and not is_test(name)
        and name not in named
    ]
    if len(modules) <= _MAX_MODULES:
        yield from (f"/{name}" for name in modules)


def _packages(names: Iterable[str]) -> list[str]:
    """The top-level packages: folders with Python code below an import root."""
    found: dict[str, None] = {}
    for name in names:
        parts = name.split("/")
        if len(parts) < 2 or not name.endswith(_PYTHON):
            continue
        if parts[0] in _SOURCES and len(parts) > 2:
            folder = f"{parts[0]}/{parts[1]}"
        elif parts[-1] == "__init__.py" and len(parts) == 2:
            folder = parts[0]
        else:
            continue
        if parts[0] not in _TESTS and folder.rpartition("/")[2].isidentifier():
            found[folder] = None
    return [*found]
