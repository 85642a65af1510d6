"""Which files judge the work and come from the base: tests, files named by agreed commands, and program settings."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from donewhen.config.loader import PROJECT_FILE
from donewhen.foundation.errors import ConfigError
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.base_branch import Base
from donewhen.jobs.verifying.work_outputs import in_repository, outputs_of

# Files that a program reads by default and requires.
_REQUIRED_FILES: dict[str, tuple[str, ...]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun"), ("package.json",)),
}
# Configuration that sets how strict a program is. A new file of this kind is never required.
_CONFIG_FILES: dict[str, tuple[str, ...]] = {
    "tox": (PROJECT_FILE, "setup.cfg"),
    "ruff": ("ruff.toml", ".ruff.toml", PROJECT_FILE),
    "mypy": ("mypy.ini", ".mypy.ini", PROJECT_FILE, "setup.cfg"),
    "pyright": ("pyrightconfig.json", PROJECT_FILE),
    "flake8": (".flake8", "setup.cfg", "tox.ini"),
    "pylint": (".pylintrc", "pylintrc", ".pylintrc.toml", "pylintrc.toml", PROJECT_FILE, "setup.cfg", "tox.ini"),
    "black": (PROJECT_FILE,),
    "coverage": (".coveragerc", ".coveragerc.toml", PROJECT_FILE, "setup.cfg", "tox.ini"),
    "lint-imports": (".importlinter", PROJECT_FILE, "setup.cfg"),
    "tsc": ("tsconfig.json",),
    "cargo": (".cargo/config.toml", ".cargo/config", "clippy.toml", ".clippy.toml"),
}
# Installed packages are not part of the work, and can declare plug-ins.
_INSTALLED = (".venv/", "venv/", "node_modules/", "*.egg-info/", "*.dist-info/")
_FRAMEWORKS = (
    *("pytest.toml", ".pytest.toml"),
    *(
        "jest.config.*",
        "vitest.config.*",
        "playwright.config.*",
        ".mocharc.*",
        "karma.conf.*",
        "phpunit.xml*",
        ".rspec",
    ),
)
# Python searches the project first, so a module with one of these names would become part of the test framework.
_SHADOWED_MODULES = sys.stdlib_module_names | {
    "pluggy",
    "iniconfig",
    "packaging",
    "pygments",
    "exceptiongroup",
    "tomli",
}


class JudgingFiles(NamedTuple):
    """The files that judge the verified jobs."""

    base: Base
    named: frozenset[str]
    """Files that agreed commands and checks name; the branch may add them."""
    read: frozenset[str]
    patterns: tuple[str, ...]
    is_work: Callable[[str], bool]
    """Whether a file is an agreed output, so that it is work and judges nothing."""

    def judges(self, name: str) -> bool:
        """Whether a file must come from the base, be it changed or new."""
        if self.is_work(name):
            return False
        return (
            name in self.read
            or self._shadows(name)
            or any(matches(self.base, name, pattern) for pattern in self.patterns)
        )

    def judges_on_base(self, name: str) -> bool:
        return self.judges(name) or (name in self.named and not self.is_work(name))

    def steers(self, name: str) -> bool:
        """Whether a file judges by its own name, not only by its folder, which may hold test data."""
        file_patterns = [pattern for pattern in self.patterns if not pattern.endswith("/")]
        return (
            name in self.read
            or self._shadows(name)
            or any(matches(self.base, name, pattern) for pattern in file_patterns)
        )

    def _shadows(self, name: str) -> bool:
        inner = name.removeprefix(self.base.inside)
        first, _, rest = inner.partition("/")
        module = first if rest else first.partition(".")[0]
        is_code = bool(rest) or first.endswith((".py", ".so", ".pyc"))
        return (
            name not in self.base.files
            and is_code
            and name.startswith(self.base.inside)
            and module in _SHADOWED_MODULES
        )


def judging_files_of(
    base: Base, contract: Workspace, jobs: Collection[Job], open_jobs: Collection[Job]
) -> JudgingFiles:
    """Return the files that judge these jobs. Outputs of ``open_jobs`` are work."""
    checks = [(job, requirement.check) for job in jobs for requirement in requirements_of(job)]
    schemas: set[str] = set()
    for job, check in checks:
        if check.schema is not None:
            with suppress(ConfigError):
                schemas.add(in_repository(base, contract, job, check.schema))
    patterns = contract.settings().verify.from_base
    outputs = outputs_of(base, contract, open_jobs)
    return files_that_judge(base, [check.argv for _, check in checks], patterns, schemas, outputs.has)


def files_that_judge(
    base: Base,
    commands: Iterable[tuple[str, ...]],
    patterns: tuple[str, ...],
    others: Collection[str] = (),
    is_work: Callable[[str], bool] = lambda _: False,
) -> JudgingFiles:
    """Return the files that these commands name or read, that match the patterns, and ``others``."""
    named: set[str] = {*others}
    read: set[str] = set()
    folders: set[str] = set()
    for argv in commands:
        paths = [path for word in argv for path in _paths_in(word)]
        named |= {_in_base(base, path) for path in paths}
        programs = {PurePosixPath(word).name for word in argv} | {part for word in argv for part in word.split()}
        for folder in ("", *(f"{path}/" for path in paths)):
            named |= {
                _in_base(base, f"{folder}{file}") for program in programs for file in _REQUIRED_FILES.get(program, ())
            }
            read |= {
                _in_base(base, f"{folder}{file}") for program in programs for file in _CONFIG_FILES.get(program, ())
            }
        folders |= set(_environment_folders(argv))
        if (module := _python_module(argv)) is not None:
            read |= {_in_base(base, f"{module}.py"), _in_base(base, f"{module}/__main__.py")}
    installed = (*_INSTALLED, *sorted(folders))
    # Programs of an environment are named by commands, too, but the branch must not add them.
    named = {name for name in named if not any(matches(base, name, pattern) for pattern in installed)}
    every = (*patterns, *_FRAMEWORKS, *installed)
    return JudgingFiles(base, _repository_names(named), _repository_names(read), every, is_work)


def matches(base: Base, name: str, pattern: str) -> bool:
    """Match a pattern: a file or, with a trailing slash, a folder; anywhere, or from the project with a leading one."""
    if pattern.startswith("/"):
        inner = name.removeprefix(base.inside) if name.startswith(base.inside) else ""
        return inner.startswith(pattern[1:]) if pattern.endswith("/") else fnmatchcase(inner, pattern[1:])
    parts = name.split("/")
    if pattern.endswith("/"):
        return any(fnmatchcase(part, pattern[:-1]) for part in parts[:-1])
    return fnmatchcase(parts[-1], pattern)


def _paths_in(word: str) -> Iterator[str]:
    """Yield the possible paths in a word of a command: the word, a test's file, an option's value, words of a shell."""
    for part in {word, *re.split(r"[\s;&|()<>\"']+", word)}:
        for value in (part, part.partition("=")[2]):
            path = value.partition("::")[0]
            if path and not path.startswith(("-", "/")):
                yield path


def _environment_folders(argv: tuple[str, ...]) -> Iterator[str]:
    """Yield the folder of an environment whose program is called by path, such as `env/bin/python`."""
    parts = PurePosixPath(argv[0]).parts if argv else ()
    if len(parts) > 2 and parts[-2] == "bin" and parts[0] not in ("/", ".."):
        yield f"/{'/'.join(parts[:-2])}/"


def _python_module(argv: tuple[str, ...]) -> str | None:
    """The module that ``python -m`` runs, as a path."""
    if len(argv) > 2 and PurePosixPath(argv[0]).name.startswith("python") and "-m" in argv[1:-1]:
        return argv[argv.index("-m", 1) + 1].replace(".", "/")
    return None


def _repository_names(names: Collection[str]) -> frozenset[str]:
    return frozenset(name for name in names if not name.startswith((".git/", "..", "/")))


def _in_base(base: Base, name: str) -> str:
    return os.path.normpath(f"{base.inside}{name}")
