"""Which test files can reach changed modules, by what they import: pure, from the text of the files.

Names in quotes that are names of modules count, too, such as those that are patched or loaded by name.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping

_FROM = re.compile(r"^[ \t]*from[ \t]+([.\w]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]*)", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*import[ \t]+([^\n#]+)", re.MULTILINE)
_QUOTED = re.compile(r"""["']([A-Za-z_]\w*(?:\.\w+)*)["']""")
_WORD = re.compile(r"\w+")


def reaching_tests(sources: Mapping[str, str], changed: Collection[str], tests: Collection[str]) -> tuple[str, ...]:
    """The test files whose imports lead to a changed file, in some steps. ``sources`` are all Python files by path."""
    modules = _modules(sources)
    conftests = [name for name in sources if posixpath.basename(name) == "conftest.py"]
    loaded_by: dict[str, set[str]] = {}
    for name, text in sources.items():
        own = {conftest for conftest in conftests if _is_below(name, conftest)} - {name}
        for target in {*_imported(name, text, modules), *own}:
            loaded_by.setdefault(target, set()).add(name)
    reached, waiting = set(changed), list(changed)
    while waiting:
        for name in loaded_by.get(waiting.pop(), ()):
            if name not in reached:
                reached.add(name)
                waiting.append(name)
    return tuple(sorted(name for name in tests if name in reached))


def _modules(sources: Collection[str]) -> dict[str, set[str]]:
    """The files by each dotted name under which they may be imported, whatever folder the search begins in."""
    modules: dict[str, set[str]] = {}
    for name in sources:
        parts = name.removesuffix(".py").split("/")
        if parts[-1] == "__init__":
            parts.pop()
        for start in range(len(parts)):
            modules.setdefault(".".join(parts[start:]), set()).add(name)
    return modules


def _imported(name: str, text: str, modules: Mapping[str, Collection[str]]) -> Iterator[str]:
    for dotted in _dotted_names(name, text):
        parts = dotted.split(".")
        # Packages are loaded before what is in them.
        for end in range(1, len(parts) + 1):
            yield from (
                modules.get(".".join(parts[:end]), ())
                if end > 1 or len(parts) == 1
                else _packages(modules.get(parts[0], ()))
            )


def _packages(names: Collection[str]) -> Iterator[str]:
    return (name for name in names if name.endswith("/__init__.py") or name.count("/") == 0)


def _dotted_names(name: str, text: str) -> Iterator[str]:
    for match in _FROM.finditer(text):
        module, names = match.groups()
        base = _absolute(name, module) if module.startswith(".") else module
        if base:
            yield base
        yield from (f"{base}.{word}".strip(".") for word in _WORD.findall(names))
    for match in _IMPORT.finditer(text):
        yield from (part.split()[0] for part in match.group(1).split(",") if part.split())
    yield from (match.group(1) for match in _QUOTED.finditer(text))


def _absolute(name: str, module: str) -> str:
    """The dotted name of a relative import, from the top of all files."""
    dots = len(module) - len(module.lstrip("."))
    folder = posixpath.dirname(name).split("/") if "/" in name else []
    folder = folder[: len(folder) - (dots - 1)] if dots > 1 else folder
    return ".".join([*folder, *filter(None, module.lstrip(".").split("."))])


def _is_below(name: str, conftest: str) -> bool:
    folder = posixpath.dirname(conftest)
    return not folder or name.startswith(f"{folder}/")
