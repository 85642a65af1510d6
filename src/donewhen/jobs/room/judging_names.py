"""Which files of a tree judge the work instead of being work: settings of tools, tests, and what a check names.

These are rules about names alone. They hold inside the work area, and so come last: nothing outside of it is work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

# Settings and build files that tools find by their names. Hidden files and folders are settings, too (see below).
_SETTINGS = frozenset(
    (
        *("conftest.py", "sitecustomize.py", "usercustomize.py", "noxfile.py", "setup.py", "setup.cfg", "tox.ini"),
        *("pyproject.toml", "pytest.ini", "pytest.toml", "mypy.ini", "ruff.toml", "pylintrc", "pylintrc.toml"),
        *("pyrightconfig.json", "manifest.in", "tasks.py", "dodo.py", "fabfile.py", "pixi.toml", "uv.toml", "pdm.toml"),
        *(
            "makefile",
            "gnumakefile",
            "justfile",
            "taskfile.yml",
            "taskfile.yaml",
            "cmakelists.txt",
            "cmakepresets.json",
        ),
        *("meson.build", "sconstruct", "sconscript", "build", "build.bazel", "workspace", "module.bazel", "earthfile"),
        *(
            "package.json",
            "bunfig.toml",
            "deno.json",
            "deno.jsonc",
            "lerna.json",
            "nx.json",
            "turbo.json",
            "project.json",
        ),
        *("pnpm-workspace.yaml", "jsconfig.json", "karma.conf.js", "gruntfile.js", "gulpfile.js", "wallaby.js"),
        *("cargo.toml", "build.rs", "clippy.toml", "rustfmt.toml", "rust-toolchain", "rust-toolchain.toml"),
        *("go.mod", "go.work", "pom.xml", "gradle.properties", "build.sbt", "gemfile", "rakefile", "composer.json"),
        *("mix.exs", "rebar.config", "dune", "dune-project", "stack.yaml", "phpunit.xml", "phpunit.xml.dist"),
        *("dockerfile", "containerfile", "procfile", "entry_points.txt", "pkg-info"),
    )
)
_SETTINGS_PATTERNS = (
    *("*.config.js", "*.config.cjs", "*.config.mjs", "*.config.ts", "*.config.cts", "*.config.mts", "*.config.json"),
    *("tsconfig*.json", "*.gradle", "*.gradle.kts", "*.cabal", "*.mk", "*.cmake", "*.pth", "*.egg-link", "*.csproj"),
    *("*.props", "*.targets", "*.sln", "*.bazel", "*.bzl"),
)
_METADATA_FOLDERS = ("*.egg-info", "*.dist-info", "*.egg")
DEPENDENCY_FILES = frozenset(
    {"pyproject.toml", "package.json", "cargo.toml", "composer.json", "setup.cfg", "go.mod", "gemfile", "pom.xml"}
)
"""Manifests, in which the dependencies are work and everything else is settings."""

TEST_PATTERNS = (
    *("tests/", "test/", "__tests__/", "__snapshots__/", "__mocks__/", "__fixtures__/", "testdata/"),
    *("test_*.py", "*_test.py", "*_tests.py", "tests.py", "test.py", "*.test.*", "*.spec.*"),
    *("*_test.go", "*Test.java", "*Tests.java", "*Test.kt", "*IT.java", "*_spec.rb", "*_test.rb", "*.snap", "*.ambr"),
    *("*.feature", "*_test.rs", "*_test.exs", "*Test.php", "*Tests.cs"),
)
"""Files that are tests, or belong to tests; with a slash at the end, everything in such a folder."""

# Programs that only read the files that they are given: those are what is checked, not what checks.
_READERS = frozenset(
    (
        *(
            "grep",
            "egrep",
            "fgrep",
            "rg",
            "test",
            "[",
            "cat",
            "ls",
            "wc",
            "head",
            "tail",
            "stat",
            "file",
            "cut",
            "sort",
        ),
        *(
            "ruff",
            "mypy",
            "pyright",
            "flake8",
            "pylint",
            "black",
            "isort",
            "bandit",
            "pyflakes",
            "pycodestyle",
            "vulture",
        ),
        *(
            "py_compile",
            "compileall",
            "pydocstyle",
            "codespell",
            "doc8",
            "rstcheck",
            "yamllint",
            "markdownlint",
            "vale",
        ),
        *(
            "eslint",
            "prettier",
            "tsc",
            "stylelint",
            "htmlhint",
            "xmllint",
            "jsonlint",
            "shellcheck",
            "hadolint",
            "gofmt",
        ),
        *(
            "rustfmt",
            "clang-format",
            "cppcheck",
            "json.tool",
            "ast",
            "sha256sum",
            "md5sum",
            "lychee",
            "gcc",
            "cc",
            "rustc",
        ),
    )
)
_RUNNERS = frozenset(
    {"bash", "sh", "dash", "zsh", "node", "deno", "bun", "ruby", "perl", "php", "Rscript", "lua", "julia"}
)
_TEST_RUNNERS = frozenset(
    {"pytest", "py.test", "unittest", "nose2", "jest", "vitest", "mocha", "rspec", "phpunit", "ava"}
)


_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
_RECIPE_FILES = {
    **dict.fromkeys(("make", "gmake"), _MAKEFILES),
    **dict.fromkeys(("npm", "yarn", "pnpm", "bun"), ("package.json",)),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
}
"""Programs that run what a file says, which they find by its name."""


class NamedFile(NamedTuple):
    """A file that a check names."""

    name: str
    """Relative to the project."""
    whole_folder: bool
    """Whether the files beside it judge, too: a script imports them, a schema refers to them."""
    module: bool = False
    """Whether it is a module that ``python -m`` runs, as a path without its ending."""


def is_settings(name: str) -> bool:
    """Whether a file is the settings of a tool, by its name: also any hidden file, and what lies in a hidden folder."""
    parts = name.casefold().split("/")
    if any(part.startswith(".") for part in parts):
        return True
    if any(fnmatchcase(part, pattern) for part in parts for pattern in _METADATA_FOLDERS):
        return True
    return parts[-1] in _SETTINGS or any(fnmatchcase(parts[-1], pattern) for pattern in _SETTINGS_PATTERNS)


def is_test(name: str, patterns: Sequence[str] = TEST_PATTERNS) -> bool:
    """Whether a file is a test or belongs to tests, by its name."""
    *folders, last = name.split("/")
    return any(
        any(fnmatchcase(folder, pattern[:-1]) for folder in folders)
        if pattern.endswith("/")
        else fnmatchcase(last, pattern)
        for pattern in patterns
    )


def named_files(argv: Sequence[str]) -> Iterator[NamedFile]:
    """The files that a command names and that judge the work, as paths relative to the project; they may not exist."""
    words = list(_without_launcher(argv))
    if not words:
        return
    program = PurePosixPath(words[0]).name
    if "/" in words[0] and not words[0].startswith("/"):
        yield NamedFile(_plain(words[0]), whole_folder=True)
    rest = words[1:]
    module = _module(words)
    if module is not None:
        program, rest = module, words[words.index("-m") + 2 :]
        yield NamedFile(module.replace(".", "/"), whole_folder=False, module=True)
    yield from (NamedFile(name, whole_folder=False) for name in _RECIPE_FILES.get(program, ()))
    reads = program in _READERS or "--doctest-modules" in rest
    for position, word in enumerate(rest):
        settings = position > 0 and rest[position - 1].startswith("-")
        for path in _paths_in(word):
            if reads and not settings and not (word.startswith("-") and "=" in word):
                continue
            yield NamedFile(_plain(path), whole_folder=program not in _TEST_RUNNERS)


def executed_files(argv: Sequence[str]) -> Iterator[NamedFile]:
    """The files that a command runs: its program, the script of an interpreter, the module of ``python -m``."""
    words = list(_without_launcher(argv))
    if not words:
        return
    program = PurePosixPath(words[0]).name
    if "/" in words[0] and not words[0].startswith("/"):
        yield NamedFile(_plain(words[0]), whole_folder=True)
    if (module := _module(words)) is not None:
        yield NamedFile(module.replace(".", "/"), whole_folder=False, module=True)
    elif program in _RUNNERS or program.startswith(("python", "pypy")):
        script = next((word for word in words[1:] if not word.startswith("-")), None)
        if script is not None and not script.startswith(("/", "~")):
            yield NamedFile(_plain(script), whole_folder=True)
    elif program in _RECIPE_FILES:
        yield from (NamedFile(name, whole_folder=False) for name in _RECIPE_FILES[program])


def _without_launcher(argv: Sequence[str]) -> Iterator[str]:
    """The command without `env`, its options and variables, and without `uv run` and the like."""
    words = list(argv)
    while words:
        name = PurePosixPath(words[0]).name
        if name == "env":
            words = words[1:]
            while words and (words[0].startswith("-") or "=" in words[0]):
                words = words[1:]
        elif name in ("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi") and words[1:2] == ["run"]:
            words = words[2:]
            while words and words[0].startswith("-"):
                words = words[1:]
        elif name in ("npx", "bunx", "time", "nice", "timeout"):
            words = words[2:] if name == "timeout" else words[1:]
        else:
            break
    yield from words


def _module(words: Sequence[str]) -> str | None:
    """The module that ``python -m`` runs."""
    if PurePosixPath(words[0]).name.startswith(("python", "pypy")) and "-m" in words[1:-1]:
        return words[words.index("-m", 1) + 1]
    return None


def _paths_in(word: str) -> Iterator[str]:
    """The possible paths in a word: the word itself, a test's file, an option's value, the words of a shell line."""
    found: dict[str, None] = {}
    for part in (word, *re.split(r"[\s;&|()<>\"',:]+", word)):
        for value in (part, part.partition("=")[2]):
            path = value.partition("::")[0]
            if (
                path
                and not path.startswith(("-", "/", "~"))
                and path not in (".", "..")
                and ".." not in path.split("/")
            ):
                found[path] = None
    yield from found


def _plain(path: str) -> str:
    return str(PurePosixPath(path))


def module_files(module: str, roots: Iterable[str]) -> Iterator[str]:
    """The files that a module's path can mean below import roots."""
    for root in roots:
        for ending in (".py", "/__main__.py"):
            yield f"{root}{module}{ending}"
