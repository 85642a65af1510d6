"""Recognises Python tests that were renamed or moved, and otherwise left as they were.

A test is the same if its code, the code around it in its class, and everything that it uses in its own module are the
same. Names of tests, test classes and modules, docstrings, comments and formatting don't count. When in doubt, a test
is another one: then a person is asked.
"""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cache
from typing import NamedTuple

from donewhen.test_reports.test_code import code_of_test
from donewhen.test_reports.test_modules import TestModule, read_module

# The path of a file with code for tests.
_TEST_CODE = re.compile(r"(^|[/_])tests?[/_.]|(^|/)(testing|conftest)\b")


def renamed_tests(
    lost: Iterable[str], new: Iterable[str], agreed_sources: Mapping[str, str], new_sources: Mapping[str, str]
) -> dict[str, str]:
    """The new id of each lost test that was only renamed or moved.

    An id has the form ``package.module.Class::test[parameters]``. The paths of the sources are relative to the folder
    in which the runner makes its ids, or to one above it.
    """
    agreed, changed = _Sources(agreed_sources), _Sources(new_sources)
    before = [test for name in sorted(set(lost)) if (test := agreed.test(name)) is not None]
    after = [test for name in sorted(set(new)) if (test := changed.test(name)) is not None] if before else []
    imports = _Imports({test.module.path: test.module for test in before}.values(), agreed, changed)
    candidates: dict[Hashable, list[_Test]] = defaultdict(list)
    for test in after:
        if imports.known(test):
            candidates[test.code].append(test)
    originals: dict[Hashable, list[_Test]] = defaultdict(list)
    for test in before:
        if test.code in candidates:
            originals[test.code].append(test)
    found: dict[str, str] = {}
    for code, tests in originals.items():
        found |= _pairs(tests, candidates[code], imports)
    return dict(sorted(found.items()))


class _Test(NamedTuple):
    """A test with everything that makes it the test it is."""

    id: str
    module: TestModule
    used: frozenset[str]
    code: Hashable

    @property
    def function(self) -> str:
        return self.id.partition("::")[2].partition("[")[0]

    @property
    def owner(self) -> str:
        """The class, or the module of a test without class."""
        return self.id.partition("::")[0].rpartition(".")[2]


class _Imports:
    """Judges what runs when the module of a test is imported."""

    def __init__(self, modules: Iterable[TestModule], agreed: _Sources, changed: _Sources) -> None:
        self._agreed, self._changed = agreed, changed
        self._known = frozenset(code for module in modules for code in _imported_code(module))
        self._kept: dict[tuple[str, str], bool] = {}

    def known(self, test: _Test) -> bool:
        """Whether nothing runs that did not run in the agreed modules, except what the test itself uses."""
        module, earlier = test.module, self._agreed.module(test.module.path)
        known = self._known if earlier is None else self._known.union(_imported_code(earlier))
        calls = (part for name, parts in module.calls.items() if name not in test.used for part in parts)
        return known.issuperset(part.digest for part in [*module.effects, *calls]) and all(
            (agreed := self._agreed.module(helper.path)) is not None and agreed.code.digest == helper.code.digest
            for helper in self._changed.helpers(module)
        )

    def kept(self, old: TestModule, new: TestModule) -> bool:
        """Whether everything that ran in the old module also runs in the new one."""
        key = old.path, new.path
        if key not in self._kept:
            effects = {part.digest for part in new.effects}
            self._kept[key] = effects.issuperset(part.digest for part in old.effects)
        return self._kept[key]


def _imported_code(module: TestModule) -> Iterable[str]:
    return (part.digest for parts in [module.effects, *module.calls.values()] for part in parts)


def _pairs(old: list[_Test], new: list[_Test], imports: _Imports) -> dict[str, str]:
    """Pair tests of the same code, each with one other; first those with more in common."""
    found: dict[str, str] = {}
    for in_common in (
        lambda test: (test.function, test.owner),
        lambda test: test.function,
        lambda test: test.owner,
        lambda test: None,
    ):
        waiting: dict[Hashable, deque[_Test]] = defaultdict(deque)
        taken = set(found.values())
        for test in new:
            if test.id not in taken:
                waiting[in_common(test)].append(test)
        for test in old:
            others = waiting.get(in_common(test), ())
            if test.id not in found:
                match = next((other for other in others if imports.kept(test.module, other.module)), None)
                if match is not None:
                    found[test.id] = match.id
                    waiting[in_common(test)].remove(match)
    return found


class _Sources:
    """The tests in source files."""

    def __init__(self, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self.module = cache(self._module)
        self._surroundings = cache(self._read_surroundings)
        self._helpers: dict[str, list[TestModule]] = {}
        self._by_last_part: dict[str, list[tuple[list[str], str]]] = defaultdict(list)
        for path in sources:
            if path.endswith(".py"):
                parts = " ".join(path.removesuffix(".py").replace("/", ".").split()).split(".")
                self._by_last_part[parts[-1]].append((parts, path))

    def test(self, test_id: str) -> _Test | None:
        """The test with this id; None if it is not found for certain."""
        group, _, name = test_id.partition("::")
        function, bracket, parameters = name.partition("[")
        parts = group.split(".")
        places = [(path, tuple(parts[end:])) for end in range(1, len(parts) + 1) for path in self._paths(parts[:end])]
        # With two files for one id, it is not clear which of them ran.
        if len({path for path, _ in places}) != 1:
            return None
        path, classes = places[0]
        module = self.module(path)
        found = None if module is None else code_of_test(module, classes, function)
        if module is None or found is None:
            return None
        code, used = found
        return _Test(test_id, module, used, (code, bracket + parameters, self._surroundings(module.package)))

    def helpers(self, module: TestModule) -> list[TestModule]:
        """The test code that a module imports, directly or indirectly, as far as it is among the sources."""
        if module.path not in self._helpers:
            found: dict[str, TestModule] = {}
            waiting = [module]
            while waiting:
                for name in waiting.pop().imported:
                    parts = name.strip(".").split(".")
                    for path in [*self._paths(parts), *self._paths([*parts, "__init__"])]:
                        helper = self.module(path) if _TEST_CODE.search(path) and path != module.path else None
                        if helper is not None and path not in found:
                            found[path] = helper
                            waiting.append(helper)
            self._helpers[module.path] = list(found.values())
        return self._helpers[module.path]

    def _paths(self, parts: Sequence[str]) -> list[str]:
        """The files that can be this module; either path can lack the first folders of the other."""
        found: list[str] = []
        for known, path in self._by_last_part.get(parts[-1], ()):
            length = min(len(known), len(parts))
            if known[-length:] == list(parts[-length:]):
                found.append(path)
        return found

    def _module(self, path: str) -> TestModule | None:
        text = self._sources.get(path)
        return None if text is None else read_module(path, text)

    def _read_surroundings(self, folder: str) -> Hashable:
        """The code of the packages and ``conftest.py`` files around a module."""
        found: list[Hashable] = []
        while True:
            for name in ("conftest.py", "__init__.py"):
                path = posixpath.join(folder, name)
                module = self.module(path)
                if module is not None and (module.bindings or module.effects):
                    found.append((name, module.code.digest))
                elif module is None and path in self._sources:
                    found.append((name, path, self._sources[path]))
            if not folder or folder == "/":
                return tuple(found)
            folder = posixpath.dirname(folder)
