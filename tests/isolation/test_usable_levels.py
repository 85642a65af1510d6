"""Which levels work: found out by trying, forbidden for real, and explained."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from donewhen.isolation import bubblewrap as bubblewrap_module
from donewhen.isolation import explaining
from donewhen.isolation.explaining import Forbidden, forbidden_namespaces
from donewhen.isolation.levels import is_weaker, network_at
from donewhen.isolation.usable import usable_levels, why_unusable
from isolation.forbidding import LANDLOCK_CALLS, refusing, without_namespaces
from isolation.isolation_kit import need

_ASK = "from donewhen.isolation.usable import usable_levels; print(dict(usable_levels(%r)))"


def levels_below(*words: str, network: str = "own", **variables: str) -> dict[str, str]:
    """What works for a process that is started by these words."""
    argv = [*words, sys.executable, "-c", _ASK % network]
    done = subprocess.run(argv, env={**os.environ, **variables}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found: dict[str, str] = eval(done.stdout)  # noqa: S307 - what is printed above
    return found


def test_what_works_here_is_said_without_a_reason() -> None:
    assert [*usable_levels()] == ["namespaces", "landlock", "copy"]
    assert why_unusable("copy") == ""


def test_namespaces_that_are_switched_off_count_as_missing() -> None:
    found = levels_below(*without_namespaces())
    assert "max_user_namespaces is 0" in found["namespaces"]
    assert found["landlock"] == why_unusable("landlock")
    assert found["copy"] == ""


def test_inside_a_sandbox_that_forbids_namespaces_they_count_as_missing() -> None:
    need("namespaces")
    program = bubblewrap_module.bubblewrap()
    if not program.can_forbid_namespaces:
        pytest.skip("LOUD: this bubblewrap can't forbid nested namespaces; that is NOT tested")
    sandbox = ["--unshare-user", "--disable-userns", "--dev-bind", "/", "/", "--"]
    found = levels_below(program.path, *sandbox)
    assert found["namespaces"].startswith("bubblewrap is installed, but ")
    assert found["copy"] == ""


def test_inside_a_sandbox_that_allows_them_namespaces_work() -> None:
    need("namespaces")
    found = levels_below(bubblewrap_module.bubblewrap().path, "--unshare-user", "--dev-bind", "/", "/", "--")
    assert found["namespaces"] == ""


@pytest.mark.parametrize(("error", "reason"), [(1, "forbids Landlock"), (38, "no Landlock"), (95, "switched off")])
def test_landlock_that_is_refused_counts_as_missing(error: int, reason: str) -> None:
    need("landlock")
    found = levels_below(*refusing(LANDLOCK_CALLS, error))
    assert reason in found["landlock"]
    assert found["namespaces"] == why_unusable("namespaces")


def test_landlock_that_is_refused_only_in_the_end_counts_as_missing() -> None:
    need("landlock")
    found = levels_below(*refusing((446,), 1))
    assert "Landlock can't keep the command apart" in found["landlock"]


def test_namespaces_without_a_network_of_their_own_are_asked_for_separately() -> None:
    need("namespaces")
    assert levels_below(network="host") == dict(usable_levels("host"))


def test_a_program_of_that_name_in_path_is_not_used(tmp_path: Path) -> None:
    fake = tmp_path / "bwrap"
    fake.write_text('#!/bin/sh\ntouch "$(dirname "$0")/used"\nexit 0\n')
    fake.chmod(0o755)
    found = levels_below(PATH=f"{tmp_path}:{os.environ['PATH']}", HOME=str(tmp_path), BWRAP=str(fake))
    assert found == dict(usable_levels())
    assert not (tmp_path / "used").exists()


def test_a_library_that_is_preloaded_is_not_loaded_into_bubblewrap() -> None:
    # The loader of each program says on standard error that there is no such file.
    found = levels_below(LD_PRELOAD="/nowhere/library.so", LD_LIBRARY_PATH="/nowhere", TMPDIR="/nowhere")
    assert found == dict(usable_levels())


@pytest.mark.parametrize("spoil", ["writable", "folder", "missing", "link"])
def test_a_program_that_others_can_replace_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoil: str
) -> None:
    # As it is called everywhere, in a folder that belongs to whoever runs the tests.
    program = tmp_path / "bwrap"
    if spoil == "folder":
        program.mkdir()
    elif spoil != "missing":
        program.write_text("#!/bin/sh\nexit 0\n")
        program.chmod(0o777)
    if spoil == "link":
        (tmp_path / "link").symlink_to(program)
        program = tmp_path / "link"
    monkeypatch.setattr(bubblewrap_module, "_PLACES", (str(program),))
    bubblewrap_module.bubblewrap.cache_clear()
    why_unusable.cache_clear()
    try:
        why = why_unusable("namespaces")
    finally:
        monkeypatch.undo()
        bubblewrap_module.bubblewrap.cache_clear()
        why_unusable.cache_clear()
    assert ("not installed" if spoil == "missing" else "others than root can change it") in why
    assert "install" in why


@pytest.mark.parametrize(
    ("forbidden", "says"),
    [
        (Forbidden(max_namespaces=0, app_armor=1), "user.max_user_namespaces is 0"),
        (Forbidden(max_namespaces=9, debian_switch=0), "kernel.unprivileged_userns_clone=1"),
        (Forbidden(max_namespaces=9, app_armor=1), "AppArmor profile"),
        (Forbidden(app_armor=1, container=True), "a container, or a sandbox"),
        (Forbidden(filtered=True), "a container, or a sandbox"),
        (Forbidden(app_armor=0), "can't be made here"),
    ],
)
def test_each_way_to_forbid_namespaces_has_its_reason(forbidden: Forbidden, says: str) -> None:
    sentence = forbidden_namespaces("setting up uid map: Permission denied.", forbidden)
    assert says in sentence
    assert sentence.endswith("(setting up uid map: Permission denied)")


@pytest.mark.parametrize(
    ("release", "says"),
    [
        ('ID=ubuntu\nID_LIKE="debian"\n', "sudo apt install bubblewrap"),
        ("ID=fedora\n", "sudo dnf install bubblewrap"),
        ("ID=arch\n", "sudo pacman -S bubblewrap"),
        ("ID=unheard-of\n", "apt install bubblewrap (Debian, Ubuntu)"),
    ],
)
def test_how_to_install_it_is_said_for_each_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, release: str, says: str
) -> None:
    (tmp_path / "os-release").write_text(release)
    monkeypatch.setattr(explaining, "_RELEASE", tmp_path / "os-release")
    assert says in explaining.install_advice()


def test_only_namespaces_have_a_network_of_their_own() -> None:
    assert [network_at(level, "own") for level in ("namespaces", "landlock", "copy", "")] == ["own"] + ["host"] * 3
    assert network_at("namespaces", "host") == "host"


def test_an_unknown_level_is_the_weakest() -> None:
    assert is_weaker("", "copy")
    assert is_weaker("landlock", "namespaces")
    assert not is_weaker("namespaces", "namespaces")
