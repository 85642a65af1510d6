"""New files that a program would find instead of a library's: rules about names alone, for languages that look through
the project's own folders first."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import PurePosixPath

_C_HEADERS = frozenset(
    (
        *("assert", "complex", "ctype", "errno", "fenv", "float", "inttypes", "iso646", "limits", "locale", "math"),
        *("setjmp", "signal", "stdalign", "stdarg", "stdatomic", "stdbool", "stddef", "stdint", "stdio", "stdlib"),
        *("stdnoreturn", "string", "strings", "tgmath", "threads", "time", "uchar", "wchar", "wctype", "unistd"),
        *("fcntl", "pthread", "memory", "malloc", "check", "unity", "cmocka", "cunit", "munit", "greatest", "doctest"),
    )
)
_CPP_HEADERS = frozenset(
    (
        *("algorithm", "array", "bitset", "cassert", "cmath", "cstdio", "cstdlib", "cstring", "deque", "exception"),
        *("fstream", "functional", "iomanip", "ios", "iostream", "istream", "iterator", "limits", "list", "map"),
        *("memory", "numeric", "optional", "ostream", "queue", "set", "sstream", "stdexcept", "string", "string_view"),
        *("tuple", "type_traits", "typeinfo", "unordered_map", "unordered_set", "utility", "variant", "vector"),
    )
)
_FRAMEWORKS = re.compile(
    r"(?:^|/)(?:"
    r"node_modules/"
    r"|org/(?:junit|testng|assertj|hamcrest|mockito|scalatest|spockframework|opentest4j)/"
    r"|junit/framework/|(?:java|kotlin)/kotlin/test/|io/kotest/|PHPUnit/"
    r"|(?:gtest|gmock|catch2|criterion|boost/test)/(?:.*\.(?:h|hh|hpp|hxx|ipp|inl)|[^.]+)\Z"
    r"|minitest(?:/|\.rb\Z)|rspec(?:/|\.rb\Z)|test/unit(?:/|\.rb\Z)|test-unit(?:/|\.rb\Z)"
    r"|(?:luaunit|busted)(?:/.*)?\.lua\Z"
    r")"
)
# Packages of Perl begin with a capital letter, so `lib/Shop/Config.pm` is none of its own modules.
_FRAMEWORKS_OF_PERL = re.compile(
    r"(?:[^A-Z/][^/]*/)*(?:"
    r"Test/(?:\w+/)*\w+\.pm|TAP/.+\.pm|App/Prove(?:/.+)?\.pm"
    # Pragmas of Perl, and what they are made of.
    r"|(?:strict|warnings|utf8|base|parent|lib|constant|feature|overload|vars|Carp|Exporter|Config)\.pm"
    r")"
)
FRAMEWORKS_OF_PYTHON = frozenset(
    {
        "pytest",
        "_pytest",
        "pluggy",
        "iniconfig",
        "packaging",
        "pygments",
        "unittest2",
        "nose",
        "sitecustomize",
        "usercustomize",
    }
)


def is_shadowing(name: str) -> bool:
    """Whether a new file has the place of one of a test framework or of a standard library, but of Python's."""
    path = PurePosixPath(name)
    if path.suffix in (".h", ".hpp", ".hh", ".hxx"):
        return path.stem in _C_HEADERS or _FRAMEWORKS.search(name) is not None
    if path.suffix == ".pm":
        return _FRAMEWORKS_OF_PERL.fullmatch(name) is not None
    return path.name in _CPP_HEADERS or _FRAMEWORKS.search(name) is not None


def is_library_of_python(module: str, installed: Collection[str]) -> bool:
    """Whether a top-level module is one of the standard library, of an installed package or of a test framework."""
    return module in sys.stdlib_module_names or module in installed or module in FRAMEWORKS_OF_PYTHON


def shadows_library(
    name: str,
    agreed_names: Collection[str],
    agreed_folders: Collection[str],
    test_folders: Collection[str],
    installed: Collection[str],
) -> bool:
    """Whether a new Python file would be imported instead of a library's, if a folder above it is searched first.

    Any agreed folder that is not inside of a package may be: the one of a script, or one that settings name; also the
    folder of a test.
    """
    parts = name.split("/")
    in_package = False
    for depth, part in enumerate(parts):
        folder = "/".join(parts[:depth])
        if folder and folder not in agreed_folders:
            return False
        in_package = in_package or (f"{folder}/__init__.py" if folder else "__init__.py") in agreed_names
        is_searched = not in_package or folder in test_folders
        is_there = f"{folder}/{part}".lstrip("/") in (agreed_names if depth == len(parts) - 1 else agreed_folders)
        if is_searched and not is_there and is_library_of_python(part.partition(".")[0], installed):
            return True
    return False
