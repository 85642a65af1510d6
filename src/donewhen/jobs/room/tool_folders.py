"""The folders in the home folder that checks need: installed tools, packages, and stores of dependencies.

Everything else in the home folder is out of reach of checks, so this says what stays, and never what goes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from donewhen.foundation.files import read_whole

# Where version managers, compilers and package managers keep what they have installed. Settings and credentials lie
# beside most of them, and stay out of reach.
_STORES = (
    *(".pyenv", ".rbenv", ".nodenv", ".jenv", ".asdf", ".volta", ".nvm", ".fnm", ".sdkman", ".rustup", ".bun", ".deno"),
    *(".cargo/bin", ".cargo/registry", ".cargo/git", "go/bin", "go/pkg", ".m2/repository", ".m2/wrapper"),
    *(".gradle/wrapper", ".gradle/caches", ".ivy2/cache", ".nuget/packages", ".dotnet", ".gem", ".local/share/gem"),
    *(".local/bin", ".local/share/mise", ".local/share/uv", ".local/share/pipx", ".local/share/pnpm", ".local/pipx"),
    *(
        ".linuxbrew",
        "miniconda3",
        "anaconda3",
        "miniforge3",
        ".conda/envs",
        ".conda/pkgs",
        ".ghcup",
        ".opam",
        ".juliaup",
    ),
)
_USED_WITH: Mapping[str, tuple[str, ...]] = {
    "Cargo.toml": (".cargo/registry", ".cargo/git"),
    "go.mod": ("go/pkg",),
    "pom.xml": (".m2/repository", ".m2/wrapper"),
    "build.gradle": (".gradle/wrapper", ".gradle/caches"),
    "build.gradle.kts": (".gradle/wrapper", ".gradle/caches"),
    "build.sbt": (".ivy2/cache",),
    "Gemfile": (".gem", ".local/share/gem"),
    "packages.lock.json": (".nuget/packages",),
}
"""The stores that a project with such a file takes its dependencies from."""
_TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm", "/run")  # noqa: S108 - new and empty for each command
_VARIABLES: Mapping[str, tuple[str, ...]] = {
    "VIRTUAL_ENV": ("",),
    "CONDA_PREFIX": ("",),
    "PYENV_ROOT": ("",),
    "RUSTUP_HOME": ("",),
    "JAVA_HOME": ("",),
    "NVM_DIR": ("",),
    "CARGO_HOME": ("bin", "registry", "git"),
    "GOPATH": ("bin", "pkg"),
}
"""Variables that name such folders, and what of them may be in reach; empty for everything."""


def tool_folders(variables: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    """The folders that stay in reach although what lies around them does not, none of them inside of another."""
    covered = covered_folders(home)
    found = {str(path) for path in _candidates(variables, home) if _is_tool_folder(path, home, covered)}
    kept: list[str] = []
    for name in sorted(found):
        if not any(name.startswith(f"{parent}/") for parent in kept):
            kept.append(name)
    return tuple(map(Path, kept))


def program_folders(program: Path, project: Path) -> tuple[Path, ...]:
    """The folders of a program, its virtual environment and its interpreter; not those of the project."""
    parts = (installation_around(Path(os.path.realpath(program)).parent), *_environment_of(program))
    return tuple(_without_others(parts, (*covered_folders(_home()), project), inside=(project,)))


def readable_tools(variables: Mapping[str, str], project: Path) -> tuple[Path, ...]:
    """The folders anywhere on the machine with the tools that are found by name. Not those in the project, or in the
    folders that ``tool_folders`` is about."""
    covered = (*covered_folders(_home()), project)
    return tuple(_without_others(_candidates(variables, Path("/")), covered, inside=covered))


def _without_others(folders: Iterable[Path], covered: Sequence[Path], inside: Sequence[Path]) -> Iterator[Path]:
    """The folders that have no covered folder in them, and don't lie in one of ``inside``."""
    closed = [Path(os.path.realpath(path)) for path in covered]
    excluded = [Path(os.path.realpath(path)) for path in inside]
    for folder in dict.fromkeys(folders):
        real = Path(os.path.realpath(folder))
        holds = any(path.is_relative_to(real) for path in closed)
        if not holds and real.is_dir() and not any(real.is_relative_to(path) for path in excluded):
            yield folder


def _home() -> Path:
    return Path(os.path.expanduser("~"))  # noqa: PTH111


def used_stores(folders: Iterable[Path], names: Iterable[str]) -> tuple[Path, ...]:
    """Which of these folders a project with files of these names takes its dependencies from."""
    manifests = {name.rpartition("/")[2] for name in names} & _USED_WITH.keys()
    stores = {store for manifest in manifests for store in _USED_WITH[manifest]}
    # A variable can put them elsewhere: `CARGO_HOME/registry`, `GOPATH/pkg`.
    endings = tuple(f"/{store.partition('/')[2] or store}" for store in stores)
    return tuple(folder for folder in folders if f"/{folder}".endswith(endings))


def covered_folders(home: Path) -> tuple[Path, ...]:
    """The folders of which a command that is kept apart sees nothing, or new ones."""
    folders = (home, *_TEMPORARY)
    return tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders if str(folder) != "/"))


def _candidates(variables: Mapping[str, str], home: Path) -> Iterator[Path]:
    yield from (home / name for name in _STORES)
    for name, parts in _VARIABLES.items():
        if value := variables.get(name):
            yield from (Path(os.path.normpath(Path(value) / part)) for part in parts)
    for name in variables.get("PATH", "").split(os.pathsep):
        if os.path.isabs(name):  # noqa: PTH117
            folder = Path(os.path.normpath(name))
            yield installation_around(folder)
            yield from _linked_tools(folder)


def _environment_of(program: Path) -> Iterator[Path]:
    """The virtual environment of a program, and the installation of the interpreter that it was made with."""
    environment = program.parent.parent
    with suppress(OSError):
        for line in read_whole(environment / "pyvenv.cfg").decode("utf-8", "replace").splitlines():
            name, _, value = line.partition("=")
            if name.strip() == "home":
                yield from (environment, installation_around(Path(os.path.normpath(value.strip()))))


def _linked_tools(folder: Path) -> Iterable[Path]:
    """Where the programs of a folder are really installed."""
    with suppress(OSError):
        status = folder.stat()
        return _linked_tools_then(folder, status.st_dev, status.st_ino, status.st_ctime_ns)
    return ()


@lru_cache(maxsize=256)
def _linked_tools_then(folder: Path, _device: int, _inode: int, _changed: int) -> frozenset[Path]:
    """The same, of a folder in which nothing has been added or removed since. System folders have hundreds of links,
    and each command of a job asks for them."""
    with os.scandir(folder) as entries:
        return frozenset(
            installation_around(Path(os.path.realpath(entry.path)).parent) for entry in entries if entry.is_symlink()
        )


def installation_around(folder: Path) -> Path:
    """The folder of which a folder with programs is a part."""
    return folder.parent if folder.name == "bin" and (folder.parent / "lib").is_dir() else folder


def _is_tool_folder(path: Path, home: Path, covered: Sequence[Path]) -> bool:
    """Whether it lies where commands see nothing otherwise, and is not a folder with more in it than tools."""
    inner = os.path.relpath(path, home)
    if inner in (".", ".local", ".config", ".cache", ".local/share") or path in covered:
        return False
    return path.is_dir() and any(path.is_relative_to(folder) for folder in covered)
