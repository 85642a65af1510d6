"""Which files a test runner collects without being given their names."""

from __future__ import annotations

import configparser
import posixpath
import shlex
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from types import MappingProxyType

from donewhen.test_reports.test_runners import TestRunner

_NO_SETTINGS: Mapping[str, str] = MappingProxyType({})
# Text files with doctests are collected, too.
_PYTEST_TEXTS = ("test*.txt",)
_PYTEST = ("test_*.py", "*_test.py")
_UNITTEST = ("test*.py",)
_NODE = tuple(
    f"{name}.{kind}{language}"
    for kind in ("", "c", "m")
    for language in ("js", "ts")
    for name in ("*.test", "*-test", "*_test", "test-*", "test", "test/*")
)
# In the order in which pytest looks at the files of a folder.
PYTEST_SETTINGS = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"),
)


def collected_patterns(
    runner: TestRunner, words: Sequence[str], settings: Mapping[str, str] = _NO_SETTINGS
) -> tuple[str, ...]:
    """Patterns (see ``is_collected``) of the files from which a runner collects tests.

    Files that the command names are among them, and those of every known runner if the runner is not known.
    ``settings`` are the agreed texts of pytest's settings files by their paths.
    """
    arguments = words[runner.arguments :]
    if runner.kind == "none":
        return ()
    if runner.kind == "node":
        return _unique([*_NODE, *_named_files(arguments)])
    if runner.kind == "unittest":
        return _unique([*_unittest_patterns(arguments), *_named_files(arguments), *_named_modules(arguments)])
    examples = _values(arguments, ("--doctest-glob", "--doctest-glob"))
    patterns = [*_pytest_patterns(arguments, settings), *examples, *_PYTEST_TEXTS]
    if runner.kind == "pytest":
        return _unique([*patterns, *_named_files(arguments)])
    return _unique([*patterns, *_UNITTEST, *_NODE, "*_test.go", "*.spec.?s", "*.spec.??s"])


def is_collected(path: str, patterns: Iterable[str]) -> bool:
    """Whether a path (with slashes) matches one of the patterns.

    A pattern without a slash is for the file's name, another one for the end of its path; ``*`` matches slashes.
    """
    name = posixpath.basename(path)
    return any(
        fnmatchcase(f"/{path}", f"*/{pattern}") if "/" in pattern else fnmatchcase(name, pattern)
        for pattern in patterns
    )


def _unique(patterns: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(pattern for pattern in patterns if pattern))


def _named_files(arguments: Sequence[str]) -> Iterator[str]:
    for word in arguments:
        path = posixpath.normpath(word.partition("::")[0])
        if not word.startswith("-") and posixpath.splitext(path)[1] and not path.startswith(".."):
            yield path.removeprefix("/")


def _named_modules(arguments: Sequence[str]) -> Iterator[str]:
    """The files of ``package.module.Class.test``, whichever of these parts are modules."""
    for word in arguments:
        parts = word.split(".")
        if all(part.isidentifier() for part in parts):
            yield from (f"{'/'.join(parts[:end])}.py" for end in range(1, len(parts) + 1))
            yield from (f"{'/'.join(parts[:end])}/__init__.py" for end in range(1, len(parts) + 1))


def _unittest_patterns(arguments: Sequence[str]) -> tuple[str, ...]:
    """The pattern of ``discover [-p PATTERN] [START [PATTERN [TOP]]]``."""
    if "discover" not in arguments[:1]:
        return _UNITTEST
    positional: list[str] = []
    pattern: str | None = None
    words = iter(arguments[1:])
    for word in words:
        option, equals, value = word.partition("=")
        if option in ("-p", "--pattern"):
            pattern = value if equals else next(words, "")
        elif option in ("-s", "--start-directory", "-t", "--top-level-directory", "-k", "--durations"):
            if not equals:
                next(words, "")
        elif word.startswith("-p"):
            pattern = word[2:]
        elif not word.startswith("-"):
            positional.append(word)
    if pattern is None and len(positional) > 1:
        pattern = positional[1]
    return _UNITTEST if pattern is None else (pattern,)


def _pytest_patterns(arguments: Sequence[str], settings: Mapping[str, str]) -> tuple[str, ...]:
    overridden = [
        value.partition("=")[2]
        for value in _values(arguments, ("-o", "--override-ini"))
        if value.partition("=")[0].strip() == "python_files"
    ]
    if overridden:
        return _split(overridden[-1])
    chosen = [posixpath.normpath(name) for name in _values(arguments, ("-c", "--config-file"))]
    if chosen and chosen[-1] in settings:
        found = _python_files(chosen[-1], settings[chosen[-1]])
        return found or _PYTEST
    patterns: list[str] = []
    for folder in sorted({posixpath.dirname(path) for path in settings}):
        # The first file with pytest's settings counts, even if it does not say which files have tests.
        for name in PYTEST_SETTINGS:
            path = posixpath.join(folder, name)
            if path in settings and (found := _python_files(path, settings[path])) is not None:
                patterns += found or _PYTEST
                break
    return tuple(patterns) or _PYTEST


def _values(arguments: Sequence[str], options: tuple[str, str]) -> Iterator[str]:
    """The values of an option in all its forms: ``-o V``, ``-oV``, ``--override-ini V``, ``--override-ini=V``."""
    short, long = options
    for word, following in zip(arguments, (*arguments, "")[1:], strict=True):
        if word in options:
            yield following
        elif word.startswith(f"{long}="):
            yield word.partition("=")[2]
        elif word.startswith(short) and not word.startswith("--"):
            yield word[len(short) :]


def _python_files(path: str, text: str) -> tuple[str, ...] | None:
    """The setting ``python_files``; empty without it, and None in a file without settings for pytest."""
    name = posixpath.basename(path)
    try:
        if name.endswith(".toml"):
            return _toml_setting(name, tomllib.loads(text))
        parser = configparser.ConfigParser(interpolation=None, strict=False, allow_no_value=True)
        parser.read_string(text)
    except (ValueError, RecursionError, configparser.Error):
        return None
    section = "tool:pytest" if name == "setup.cfg" else "pytest"
    if not parser.has_section(section):
        return () if name in ("pytest.ini", ".pytest.ini") else None
    return _split(parser.get(section, "python_files", fallback="") or "")


def _toml_setting(name: str, data: Mapping[str, object]) -> tuple[str, ...] | None:
    table: object = data.get("pytest") if name != "pyproject.toml" else data.get("tool")
    if name == "pyproject.toml":
        table = table.get("pytest") if isinstance(table, dict) else None
        if isinstance(table, dict) and isinstance(table.get("ini_options"), dict):
            table = table["ini_options"]
    if not isinstance(table, dict):
        return None if name == "pyproject.toml" else ()
    value = table.get("python_files", "")
    if isinstance(value, list):
        return tuple(str(part) for part in value)
    return _split(str(value))


def _split(value: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(value))
    except ValueError:
        return tuple(value.split())
