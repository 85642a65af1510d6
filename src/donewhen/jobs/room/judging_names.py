"""Which files of a tree judge the work instead of being work: settings of tools, tests, and what a check names.

These are rules about names alone. They hold inside the work area, and so come last: nothing outside of it is work.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from pathlib import PurePosixPath
from typing import NamedTuple

from donewhen.jobs.room.loaded_files import loaded_by_options

# Settings and build files that tools find by their names. Hidden files and folders are settings, too (see below).
_SETTINGS = frozenset(
    (
        *("conftest.py", "sitecustomize.py", "usercustomize.py", "noxfile.py", "setup.py", "setup.cfg", "tox.ini"),
        *("pyproject.toml", "pytest.ini", "pytest.toml", "mypy.ini", "ruff.toml", "pylintrc", "pylintrc.toml"),
        *("pyrightconfig.json", "manifest.in", "pixi.toml", "uv.toml", "pdm.toml"),
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
        *("mkdocs.yml", "mkdocs.yaml", "biome.json", "biome.jsonc", "dprint.json", "tslint.json", "angular.json"),
        *("nest-cli.json", "api-extractor.json", "testem.js", "ember-cli-build.js", "webpack.mix.js", "codecov.yml"),
        *("checkstyle.xml", "pmd.xml", "detekt.yml", "buf.yaml", "buf.gen.yaml", "phpstan.neon", "phpstan.neon.dist"),
        *("psalm.xml", "behave.ini", "spec_helper.rb", "rails_helper.rb", "test_helper.rb", "test_helper.exs"),
        *("poetry.toml", "hatch.toml", "deny.toml", "nextest.toml", "tarpaulin.toml"),
        *("magefile.go", "directory.build.rsp"),
    )
)
_SETTINGS_PATTERNS = (
    *("tsconfig*.json", "*.gradle", "*.gradle.kts", "*.cabal", "*.mk", "*.cmake", "*.pth", "*.egg-link", "*.csproj"),
    *("*.props", "*.targets", "*.sln", "*.bazel", "*.bzl", "*.runsettings"),
    # Runners of tests load them because they are there.
    *(
        "setuptests.*",
        "setup-tests.*",
        "setup_tests.*",
        "testsetup.*",
        "test-setup.*",
        "globalsetup.*",
        "global-setup.*",
    ),
    *("globalteardown.*", "global-teardown.*", "jest.setup.*", "jest-setup.*", "vitest.setup.*", "vitest-setup.*"),
    *("*.setup.js", "*.setup.ts", "*.setup.cjs", "*.setup.mjs", "vitest.workspace.*", "*.workspace.ts", "karma.conf.*"),
    *("webpack.*.js", "*.conf.js", "*.conf.ts"),
)
_SETTINGS_FORM = re.compile("|".join(map(translate, _SETTINGS_PATTERNS)))
# `vite.config.ts` is settings, wherever it lies. In a folder of sources, other names are modules of the product: for
# example `src/app/app.config.ts`.
_CONFIG_FORM = re.compile(r"(?P<tool>.+)\.config\.(?:[cm]?[jt]s|json)")
_CONFIGURED = re.compile(
    r"(?:.*[.-])?(?:vite|vitest|jest|webpack|rollup|rolldown|rspack|esbuild|swc|babel|postcss|tailwind|next|nuxt|svelte"
    r"|astro|remix|playwright|cypress|wdio|karma|mocha|ava|jasmine|eslint|prettier|stylelint|commitlint|release|tsup"
    r"|unbuild|metro|vue|quasar|craco|lint-?staged|nyc|c8|stryker|histoire|vitepress|docusaurus|gatsby|snowpack|parcel"
    r"|windi|uno|unocss|panda|orval|codegen|graphql|knip|syncpack|size-limit|cucumber|testcafe|codecept|nightwatch|test)"
)
_SOURCES = re.compile(r"(?:^|/)(?:src|app|apps/[^/]+/(?:src|app)|lib)/")
_DOCUMENTATION = frozenset({"doc", "docs", "documentation", "sphinx"})
_METADATA_FOLDERS = ("*.egg-info", "*.dist-info", "*.egg")
DEPENDENCY_FILES = frozenset(
    {"pyproject.toml", "package.json", "cargo.toml", "composer.json", "setup.cfg", "go.mod", "gemfile", "pom.xml"}
)
"""Manifests, in which the dependencies are work and everything else is settings."""

TEST_PATTERNS = (
    *("tests/", "test/", "__tests__/", "__snapshots__/", "__mocks__/", "__fixtures__/", "testdata/"),
    *("test_*.py", "*_test.py", "*_tests.py", "tests.py", "test.py", "*.test.*", "*.spec.*"),
    *("*_test.go", "*Test.java", "*Tests.java", "*Test.kt", "*IT.java", "*_spec.rb", "*_test.rb", "*.snap", "*.ambr"),
    *("*.feature", "*_test.rs", "*_test.exs", "*Test.php", "*Tests.cs", "*Test.cs", "*Tests.swift", "*Test.swift"),
    *("features/steps/", "step_definitions/", "cypress/", "*.cy.*", "*.e2e.*", "*.e2e-spec.*", "*.bats", "*_test.sh"),
    *("*_test.c", "*_test.cc", "*_test.cpp", "*_test.dart", "*_test.zig", "*_test.clj", "*_test.lua", "*_spec.lua"),
    *("*Spec.scala", "*Test.scala", "*Spec.groovy", "*Spec.hs", "*Spec.kt", "*Tests.kt", "test_*.R", "test-*.R"),
    # What `node --test`, deno, ava and mocha look for; `test-setup.js` is settings.
    *(
        "*[-_]test.[jt]s",
        "*[-_]test.[cm][jt]s",
        "*[-_]test.[jt]sx",
        "test-[!s]*.[jt]s",
        "test-s[!e]*.[jt]s",
        "test-[!s]*.[cm][jt]s",
    ),
    *("test.[jt]s", "test.[cm][jt]s", "*[-_]spec.[jt]s", "*[-_]spec.[cm][jt]s", "*[-_]spec.[jt]sx"),
    *("Test*.java", "*TestCase.java", "Test*.kt", "*Suite.scala", "test_*.rb", "*_SUITE.erl", "*_tests.erl"),
    *("test_*.c", "test_*.cc", "test_*.cpp", "*_unittest.cc", "*_unittest.cpp", "*_unittest.py", "runtests.jl"),
    *("*.t", "*.phpt", "*.robot", "*.hurl", "*.tavern.yaml", "*.tavern.yml", "test_*.ml", "test_*.lua", "test_*.jl"),
    # Folders of helpers that only tests have.
    *("features/support/", "features/environment.py", "integrationTest/", "androidTest/", "testFixtures/", "*Tests/"),
    *(
        "functionalTest/",
        "commonTest/",
        "jvmTest/",
        "jsTest/",
        "*.Test/",
        "integration[-_]test/",
        "integration[-_]tests/",
    ),
    *(
        "unit[-_]tests/",
        "unittests/",
        "functional[-_]tests/",
        "e2e[-_]tests/",
        "acceptance[-_]tests/",
        "system[-_]tests/",
    ),
    *("regression[-_]tests/", "smoke[-_]tests/", "test[-_]utils/", "test[-_]util/", "testutils/", "testutil/"),
    *(
        "test[-_]helpers/",
        "testhelpers/",
        "test[-_]support/",
        "testsupport/",
        "test_driver/",
        "testutils.*",
        "testutil.*",
    ),
    # Data that tests compare with.
    *("test-data/", "test_data/", "goldens/", "golden/", "cassettes/", "__image_snapshots__/", "__cassettes__/"),
    *("*.golden", "*.approved.*", "*.verified.*", "*.snapshot", "*.storyshot"),
)
"""Files that are tests, or belong to tests; with a slash at the end, everything in such a folder."""
# At the top, or at the top of a package of a larger repository: elsewhere, `spec` may be a part of the product. Files
# there that are no code are specifications.
_TEST_CODE = re.compile(
    r"/(?:(?:packages|apps|services|modules|libs|crates|projects)/[^/]+/)?"
    r"(?:(?:specs?|e2e)/(?:.*/)?[^/]+\.(?:rb|py|[cm]?[jt]sx?|coffee|lua|php|ex|exs|go|java|kt|scala|groovy|cr|swift)"
    r"|t/(?:.*/)?[^/]+\.(?:pm|pl|t))",
    re.DOTALL,
)

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
    "nox": ("noxfile.py",),
    "doit": ("dodo.py",),
    **dict.fromkeys(("invoke", "inv"), ("tasks.py",)),
    "fab": ("fabfile.py",),
    "rake": ("Rakefile", "rakefile", "Rakefile.rb"),
    "pre-commit": (".pre-commit-config.yaml",),
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "pixi": ("pixi.toml", "pyproject.toml"),
    **dict.fromkeys(("poe", "hatch", "pdm", "poetry", "rye"), ("pyproject.toml",)),
}
"""Programs that run what a file says, which they find by its name."""
_FOLDER_OPTIONS = frozenset({"-C", "--directory", "--prefix", "--cwd", "--dir"})
"""Options that say in which folder such a program runs."""


class NamedFile(NamedTuple):
    """A file that a check names."""

    name: str
    """Relative to the project."""
    whole_folder: bool
    """Whether the files beside it judge, too: a script imports them, a schema refers to them."""
    module: bool = False
    """Whether it is a module that ``python -m`` runs, as a path without its ending."""
    loaded: bool = False
    """Whether it is what settings or an option have loaded: a path, perhaps without its ending, or a dotted name."""
    beside: str = ""
    """The folder of the settings that say so, relative to the repository."""
    if_there: bool = False
    """Whether it is read as soon as it exists, as what a makefile includes; it may be a pattern."""
    script: bool = False
    """Whether it is an agreed script that a check runs and that is no product code."""


def is_settings(name: str) -> bool:
    """Whether a file is the settings of a tool, by its name: also any hidden file, and what lies in a hidden folder."""
    parts = name.casefold().split("/")
    if any(part.startswith(".") for part in parts):
        return True
    if any(fnmatchcase(part, pattern) for part in parts for pattern in _METADATA_FOLDERS):
        return True
    return parts[-1] in _SETTINGS or _SETTINGS_FORM.match(parts[-1]) is not None or _is_config(name, parts[-1])


def _is_config(name: str, last: str) -> bool:
    found = _CONFIG_FORM.fullmatch(last)
    return found is not None and (not _SOURCES.search(name) or _CONFIGURED.fullmatch(found["tool"]) is not None)


def is_test(name: str, patterns: tuple[str, ...] = TEST_PATTERNS) -> bool:
    """Whether a file is a test or belongs to tests, by its name."""
    plain = f"/{name}"
    return _test_form(patterns).search(plain) is not None or (
        patterns is TEST_PATTERNS and _TEST_CODE.fullmatch(plain) is not None
    )


@lru_cache(maxsize=64)
def _test_form(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """What the names of these files have, behind a slash. Asked for thousands of files, so it is one expression."""
    parts = []
    for pattern in patterns:
        form = translate(pattern.rstrip("/")).removeprefix("(?s:").removesuffix(")\\Z").replace(".*", "[^/]*")
        parts.append(f"/{form}/" if pattern.endswith("/") else f"/{form}\\Z")
    return re.compile("|".join(parts) or "(?!)", re.DOTALL)


def is_build_script(name: str) -> bool:
    """Whether a file is the program that a builder of documentation loads from its folder."""
    *folders, last = name.casefold().split("/")
    return last == "conf.py" and any(folder in _DOCUMENTATION for folder in folders)


@dataclass(frozen=True)
class _Command:
    """A command without what starts it."""

    words: tuple[str, ...]
    program: str
    own: tuple[NamedFile, ...]
    """The program itself and the module of `python -m`, if they are files of the project."""
    module: str | None
    launcher: str = ""
    """The program that starts it, such as the `hatch` of `hatch run check`; empty if it is the command's own."""


def named_files(argv: Sequence[str]) -> Iterator[NamedFile]:
    """The files that a command names and that judge the work, as paths relative to the project; they may not exist."""
    command = _command(argv)
    if command is None:
        return
    yield from command.own
    yield from _recipes(command.launcher, ())
    program, rest = command.program, command.words[1:]
    if command.module is not None:
        program, rest = command.module, command.words[command.words.index("-m") + 2 :]
    yield from _recipes(program, rest)
    yield from (NamedFile(name, whole_folder=False, loaded=True) for name in loaded_by_options(program, rest))
    reads = program in _READERS or "--doctest-modules" in rest
    for position, word in enumerate(rest):
        settings = position > 0 and rest[position - 1].startswith("-")
        for path in _paths_in(word):
            if reads and not settings and not (word.startswith("-") and "=" in word):
                continue
            yield NamedFile(_plain(path), whole_folder=program not in _TEST_RUNNERS)


def executed_files(argv: Sequence[str]) -> Iterator[NamedFile]:
    """The files that a command runs: its program, the script of an interpreter, the module of ``python -m``."""
    command = _command(argv)
    if command is None:
        return
    yield from command.own
    yield from _recipes(command.launcher, ())
    program, words = command.program, command.words
    if command.module is not None:
        rest = words[words.index("-m") + 2 :]
        yield from (
            NamedFile(name, whole_folder=False, loaded=True) for name in loaded_by_options(command.module, rest)
        )
        return
    if program in _RUNNERS or program.startswith(("python", "pypy")):
        script = next((word for word in words[1:] if not word.startswith("-")), None)
        if script is not None and not script.startswith(("/", "~")):
            yield NamedFile(_plain(script), whole_folder=True)
    elif program in _RECIPE_FILES:
        yield from _recipes(program, words[1:])
    yield from (NamedFile(name, whole_folder=False, loaded=True) for name in loaded_by_options(program, words[1:]))


def _recipes(program: str, rest: Sequence[str]) -> Iterator[NamedFile]:
    """What a program runs because of its name: in the project, and in the folder that an option says."""
    names = _RECIPE_FILES.get(program, ())
    folders = [""]
    for position, word in enumerate(rest if names else ()):
        option, equals, value = word.partition("=")
        if option in _FOLDER_OPTIONS:
            folders.append(value if equals else "".join(rest[position + 1 : position + 2]))
        elif word.startswith("-C") and len(word) > 2:
            folders.append(word[2:])
    for folder in folders:
        if not folder.startswith(("/", "~")) and ".." not in folder.split("/"):
            yield from (NamedFile(_plain(f"{folder}/{name}" if folder else name), whole_folder=False) for name in names)


def _command(argv: Sequence[str]) -> _Command | None:
    words = tuple(_without_launcher(argv))
    if not words:
        return None
    own: list[NamedFile] = []
    if "/" in words[0] and not words[0].startswith("/"):
        own.append(NamedFile(_plain(words[0]), whole_folder=True))
    module = _module(words)
    if module is not None:
        own.append(NamedFile(module.replace(".", "/"), whole_folder=False, module=True))
    launcher = PurePosixPath(argv[0]).name if words[0] != argv[0] else ""
    return _Command(words, PurePosixPath(words[0]).name, tuple(own), module, launcher)


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
