"""Programs, version managers, toolchains and stores of packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from donewhen.environments.listing import Listing, listing_bytes, read_listing
from environments.environment_kit import listing_of, package, sentences


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = Path(os.path.realpath(tmp_path)) / "home"
    (home / "shop").mkdir(parents=True)
    return home


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def write(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def now(home: Path, *programs: Path, words: tuple[str, ...] = (), **more: object) -> Listing:
    path = (str(home / ".local" / "bin"), str(home.parent / "usr" / "bin"))
    given = {"programs": programs, "words": frozenset(words), "path": path, **more}
    return listing_of(home / "shop", home=home, **given)


def test_a_program_with_another_content_is_named(home: Path) -> None:
    path = program(home.parent / "usr" / "bin" / "tool")
    before = now(home, path)
    assert now(home, path) == before
    program(path, "#!/bin/sh\nexit 0\n")
    assert sentences(before, now(home, path)) == [f"the program {path} has another content"]


def test_the_interpreter_of_a_script_is_a_program_too(home: Path) -> None:
    inner = program(home.parent / "usr" / "bin" / "interpreter", "binary")
    for first in (f"#!{inner}", "#!/usr/bin/env -S interpreter -x", f'#!/bin/sh\n\'\'\'exec\' "{inner}" "$0" "$@"'):
        path = program(home / "tools" / "tool", f"{first}\n")
        before = now(home, path)
        inner.write_text("other")
        assert any(str(inner) in sentence for sentence in sentences(before, now(home, path))), first
        inner.write_text("binary")


def test_a_program_that_is_found_before_the_accepted_one_is_named(home: Path) -> None:
    program(home.parent / "usr" / "bin" / "diff")
    before = now(home, words=("diff", "exit"))
    program(home / ".local" / "bin" / "diff")
    found = sentences(before, now(home, words=("diff", "exit")))
    assert any("instead of" in sentence for sentence in found)


def test_a_new_program_that_hides_none_is_no_difference(home: Path) -> None:
    program(home.parent / "usr" / "bin" / "cc")
    program(home / ".local" / "bin" / "black")
    before = now(home)
    program(home / ".local" / "bin" / "ruff")
    assert sentences(before, now(home)) == []
    program(home / ".local" / "bin" / "black", "#!/bin/sh\nexit 1\n")
    assert sentences(before, now(home)) == ["the program ~/.local/bin/black has another content"]
    program(home / ".local" / "bin" / "cc")
    assert len(sentences(before, now(home))) == 2


def test_a_program_that_is_gone_is_named(home: Path) -> None:
    path = program(home.parent / "usr" / "bin" / "jq", "binary")
    before = now(home, words=("jq",))
    path.unlink()
    assert sentences(before, now(home, words=("jq",))) == [f"the program {path} is gone"]


def test_behind_a_shim_is_the_version_that_the_project_names(home: Path) -> None:
    manager = home / ".pyenv"
    for version in ("3.11.7", "3.12.1"):
        prefix = manager / "versions" / version
        program(prefix / "bin" / "python3.11", "binary").with_name("python").symlink_to("python3.11")
        write(prefix / "lib" / "python3.11" / "os.py")
        write(prefix / "include" / "python3.11" / "patchlevel.h", f'#define PY_VERSION "{version}"\n')
    shim = program(manager / "shims" / "python")
    write(manager / "libexec" / "pyenv-exec", "real")
    write(manager / "version", "3.12.1\n")
    found = now(home, shim)
    assert [interpreter.version for interpreter in found.interpreters.values()] == ["3.12.1"]
    write(manager / "libexec" / "pyenv-exec", "other")
    assert "~/.pyenv" in sentences(found, now(home, shim))[0]
    write(home / "shop" / ".python-version", "3.11\n")
    assert {interpreter.version for interpreter in now(home, shim).interpreters.values()} == {"3.11.7", "3.12.1"}


def test_an_installation_is_listed_as_a_whole(home: Path) -> None:
    tool = program(home / "go" / "sdk" / "bin" / "go", "binary")
    write(home / "go" / "sdk" / "lib" / "time.zip")
    compiler = write(home / "go" / "sdk" / "pkg" / "tool" / "compile")
    before = now(home, tool)
    compiler.write_text("other")
    assert sentences(before, now(home, tool)) == ["changed files of the installation ~/go/sdk: pkg/tool"]


def test_toolchains_of_rustup_are_those_that_its_settings_name(home: Path) -> None:
    cargo = program(home / ".cargo" / "bin" / "cargo", "proxy")
    program(home / ".cargo" / "bin" / "rustup", "proxy")
    write(home / ".rustup" / "settings.toml", 'default_toolchain = "stable-x86_64"\n')
    library = write(home / ".rustup" / "toolchains" / "stable-x86_64" / "lib" / "libstd.so")
    write(home / ".rustup" / "toolchains" / "nightly-x86_64" / "lib" / "libstd.so")
    before = now(home, cargo)
    assert [*before.tools] == ["~/.rustup/toolchains/stable-x86_64"]
    library.write_text("other")
    assert sentences(before, now(home, cargo))


def test_a_program_of_node_is_listed_with_its_package(home: Path) -> None:
    place = package(home.parent / "usr" / "lib" / "node_modules", "npm")
    program(home.parent / "usr" / "bin" / "npm").unlink()
    (home.parent / "usr" / "bin" / "npm").symlink_to(program(place / "cli.js", "#!/bin/sh\n"))
    before = now(home, started=frozenset({"npm"}))
    write(place / "lib" / "run.js", "other")
    assert "npm" in sentences(before, now(home, started=frozenset({"npm"})))[0]


CRATES = "registry/src/index.crates.io-1/serde-1.0.1/src/lib.rs"


@pytest.mark.parametrize(
    ("file", "locked", "note"),
    [
        (CRATES, "serde-1.0.1", "registry/index/x/.cache/se/rd/serde"),
        ("pkg/mod/golang.org/x/!text@v0.3.0/a.go", "golang.org/x/Text@v0.3.0", "pkg/mod/cache/lock"),
        ("repository/org/a/1.0/a-1.0.jar", "", "repository/org/a/1.0/_remote.repositories"),
    ],
)
def test_stores_are_listed_by_content_and_other_packages_are_left_out(
    home: Path, file: str, locked: str, note: str
) -> None:
    store = home / "store"
    path = write(store / file)
    folder = store / file.partition("/")[0]
    given = {"stores": (folder,), "locked": frozenset({locked} - {""})}
    before = now(home, **given)  # type: ignore[arg-type]
    write(store / note, "x")
    write(store / file.replace("1.0", "1.7").replace("0.3.0", "0.3.1"), "another version, for another project")
    assert sentences(before, now(home, **given)) == []  # type: ignore[arg-type]
    path.write_text("other")
    assert "changed files of packages" in sentences(before, now(home, **given))[0]  # type: ignore[arg-type]


def test_a_stored_listing_is_read_and_a_damaged_one_is_none(home: Path) -> None:
    found = now(home, program(home / ".local" / "bin" / "x"), words=("sh",))
    assert read_listing(listing_bytes(found)) == found
    assert listing_bytes(found) == listing_bytes(now(home, home / ".local" / "bin" / "x", words=("sh",)))
    assert read_listing(b"{") is None
    assert read_listing(b'{"version": 2}') is None
    assert read_listing(b'{"programs": []}') is None
