"""Which files judge the work, and so are the base's: tests, what agreed commands name, and what their programs read."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import NamedTuple

from donewhen.config.loader import PROJECT_FILE
from donewhen.foundation.errors import ConfigError
from donewhen.jobs.contract.inputs import locate_path
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.base_branch import Base

# What a program reads that is named by itself, and can't do without.
_READ_BY: dict[str, tuple[str, ...]] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "gmake": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "nox": ("noxfile.py",),
    "tox": ("tox.ini",),
    **dict.fromkeys(("npm", "npx", "yarn", "pnpm", "bun"), ("package.json",)),
}
# What tells a program how severe to be. Nobody has asked for a new one.
_SET_BY: dict[str, tuple[str, ...]] = {
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
# What was installed is no work, and declares plug-ins.
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
# Python looks into the project first, so a module there with one of these names would be part of the test framework.
_SHADOWED = sys.stdlib_module_names | {"pluggy", "iniconfig", "packaging", "pygments", "exceptiongroup", "tomli"}


class JudgingFiles(NamedTuple):
    """What judges the jobs that are looked at."""

    base: Base
    named: frozenset[str]
    """Files that agreed commands and checks name; a new one is what was asked for."""
    read: frozenset[str]
    patterns: tuple[str, ...]
    is_work: Callable[[str], bool]
    """Whether a file was agreed to be a result, so that it is work, and judges nothing."""

    def judges(self, name: str) -> bool:
        """Whether a file is the base's, changed or new."""
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
        """Whether a file judges by its own name, and not by its folder's, where data for the tests may stand."""
        own = [pattern for pattern in self.patterns if not pattern.endswith("/")]
        return name in self.read or self._shadows(name) or any(matches(self.base, name, one) for one in own)

    def _shadows(self, name: str) -> bool:
        inner = name.removeprefix(self.base.inside)
        first, _, rest = inner.partition("/")
        module = first if rest else first.partition(".")[0]
        is_code = bool(rest) or first.endswith((".py", ".so", ".pyc"))
        return name not in self.base.files and is_code and name.startswith(self.base.inside) and module in _SHADOWED


def judging_files_of(
    base: Base, contract: Workspace, jobs: Collection[Job], open_jobs: Collection[Job]
) -> JudgingFiles:
    """What judges these jobs. What the ``open_jobs`` among them put out is work."""
    named: set[str] = set()
    read: set[str] = set()
    folders: set[str] = set()
    for job in jobs:
        for requirement in requirements_of(job):
            argv = requirement.check.argv
            words = [path for word in argv for path in _paths(word)]
            named |= {_normal(base, one) for one in words}
            programs = {PurePosixPath(word).name for word in argv} | {one for word in argv for one in word.split()}
            for above in ("", *(f"{one}/" for one in words)):
                named |= {_normal(base, f"{above}{file}") for program in programs for file in _READ_BY.get(program, ())}
                read |= {_normal(base, f"{above}{file}") for program in programs for file in _SET_BY.get(program, ())}
            folders |= set(_environments(argv))
            if (module := _module(argv)) is not None:
                read |= {_normal(base, f"{module}.py"), _normal(base, f"{module}/__main__.py")}
            if requirement.check.schema is not None:
                with suppress(ConfigError):
                    named.add(in_repository(base, contract, job, requirement.check.schema))
    installed = (*_INSTALLED, *sorted(folders))
    # A program that belongs to an environment is named, too, and a new one was asked for by nobody.
    named = {one for one in named if not any(matches(base, one, pattern) for pattern in installed)}
    patterns = (*contract.settings().verify.from_base, *_FRAMEWORKS, *installed)
    results = _agreed_results(base, contract, open_jobs)
    return JudgingFiles(base, _inside(named), _inside(read), patterns, results)


def matches(base: Base, name: str, pattern: str) -> bool:
    """A pattern names a file or, with a slash at its end, a folder; anywhere, or with one in front, at its place."""
    if pattern.startswith("/"):
        inner = name.removeprefix(base.inside) if name.startswith(base.inside) else ""
        return inner.startswith(pattern[1:]) if pattern.endswith("/") else fnmatchcase(inner, pattern[1:])
    parts = name.split("/")
    if pattern.endswith("/"):
        return any(fnmatchcase(part, pattern[:-1]) for part in parts[:-1])
    return fnmatchcase(parts[-1], pattern)


def _agreed_results(base: Base, tree: Workspace, jobs: Collection[Job]) -> Callable[[str], bool]:
    patterns: list[list[str]] = []
    for job in jobs:
        for output in job.outputs:
            with suppress(ConfigError):
                patterns.append(in_repository(base, tree, job, output).split("/"))
    return lambda name: any(_is_in(name.split("/"), pattern) for pattern in patterns)


def _is_in(name: list[str], pattern: list[str]) -> bool:
    """Whether a file is what an output names, or in it. A star does not reach into a folder; two of them do."""
    if not pattern:
        return True
    if pattern[0] == "**":
        return any(_is_in(name[skipped:], pattern[1:]) for skipped in range(len(name)))
    return bool(name) and (name[0] == pattern[0] or fnmatchcase(name[0], pattern[0])) and _is_in(name[1:], pattern[1:])


def _paths(word: str) -> Iterator[str]:
    """What in a word of a command may be a file: the word, a test's file, the value of an option, a shell's words."""
    for part in {word, *re.split(r"[\s;&|()<>\"']+", word)}:
        for one in (part, part.partition("=")[2]):
            path = one.partition("::")[0]
            if path and not path.startswith(("-", "/")):
                yield path


def _environments(argv: tuple[str, ...]) -> Iterator[str]:
    """The folder of an environment whose program is called by its path, as `env/bin/python` is."""
    parts = PurePosixPath(argv[0]).parts if argv else ()
    if len(parts) > 2 and parts[-2] == "bin" and parts[0] not in ("/", ".."):
        yield f"/{'/'.join(parts[:-2])}/"


def _module(argv: tuple[str, ...]) -> str | None:
    """The module that Python runs; in the project, where the project has it."""
    if len(argv) > 2 and PurePosixPath(argv[0]).name.startswith("python") and "-m" in argv[1:-1]:
        return argv[argv.index("-m", 1) + 1].replace(".", "/")
    return None


def _inside(names: Collection[str]) -> frozenset[str]:
    return frozenset(name for name in names if not name.startswith((".git/", "..", "/")))


def _normal(base: Base, name: str) -> str:
    return os.path.normpath(f"{base.inside}{name}")


def in_repository(base: Base, tree: Workspace, job: Job, path: str) -> str:
    """A path of a plan file as a name in the repository."""
    return f"{base.inside}{tree.where(locate_path(tree, job, path, 'outputs'))}"
