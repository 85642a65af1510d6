"""Which programs are named by a path, and what they and environments bring into reach."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from donewhen.environments.linked_places import linked_places, sites_of_environment, sites_of_program
from donewhen.jobs.room.named_programs import programs_named_in
from donewhen.jobs.room.reach import Reach, reach_of

pytestmark = pytest.mark.scenes

SITE = f"lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"


def program(path: Path, text: str = "#!/bin/sh\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def environment(path: Path) -> Path:
    (path / SITE).mkdir(parents=True)
    (path / "pyvenv.cfg").write_text("home = /usr/bin\n")
    program(path / "bin/python")
    return path


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = Path(os.path.realpath(tmp_path)) / "home/src/shop"
    folder.mkdir(parents=True)
    return folder


def named(top: Path, text: str, *words: str) -> list[str]:
    home = top.parent.parent
    found = programs_named_in(words, [text.encode()], top, top, home)
    return [os.path.relpath(path, home) for path in found]


@pytest.mark.parametrize(
    "text",
    [
        "#!{home}/tools/t\n",
        "\t@~/tools/t --fast",
        "T ?= $(HOME)/tools/t",
        "\t$$HOME/tools/t",
        'T="${HOME}/tools/t"',
        "$HOME/tools/t|cat",
        "call(['{home}/tools/t', 'x'])",
        "../../tools/t",
        "$(CURDIR)/../../tools/t",
        "T={home}/tools/../tools/t;",
    ],
)
def test_a_program_that_a_text_names(top: Path, text: str) -> None:
    home = top.parent.parent
    program(home / "tools/t")
    assert named(top, text.replace("{home}", str(home))) == ["tools/t"]


@pytest.mark.parametrize(
    "text", ["~/venv", "PATH=~/venv/bin:$PATH", ". ~/venv/bin/activate", "~/venv/bin/activate.fish"]
)
def test_the_program_of_an_environment_is_its_python(top: Path, text: str) -> None:
    environment(top.parent.parent / "venv")
    assert named(top, text) == ["venv/bin/python"]


def test_a_path_with_spaces_is_a_word_of_a_command(top: Path) -> None:
    path = program(top.parent.parent / "my tools/t")
    assert named(top, "", str(path)) == ["my tools/t"]
    assert named(top, "", f"--tool={path}") == ["my tools/t"]


def test_what_is_no_program_elsewhere_is_not_named(top: Path) -> None:
    home = top.parent.parent
    (home / "tools").mkdir()
    (home / "tools/data").write_text("x")
    program(top / "own")
    program(home / "tools/t")
    os.mkfifo(home / "tools/pipe")
    assert named(top, f"~/tools/data {top}/own ~/tools ~/tools/pipe ~/tools/none src{home}/tools/t a~/tools/t") == []
    assert named(top, "", "~/tools/\0") == []


def test_at_most_so_many_paths_are_looked_at(top: Path) -> None:
    program(top.parent.parent / "tools/t")
    assert named(top, "\n".join(f"/nowhere/{number}" for number in range(3000)) + "\n~/tools/t") == []


def reached(top: Path, *programs: Path, environments: tuple[Path, ...] = ()) -> Reach:
    return reach_of(programs, environments, top, top.parent.parent)


def test_an_environment_comes_as_a_whole_and_a_program_alone_with_its_folder(top: Path) -> None:
    home = top.parent.parent
    venv = environment(home / "venv")
    alone = program(home / "tools/t")
    hidden = program(home / ".secret/t")
    at_home = program(home / "t")
    found = reached(top, venv / "bin/python", alone, hidden, at_home)
    assert {venv, alone, hidden, at_home} <= {*found.tools}
    assert not {home, home / ".secret", home / "tools"} & {*found.tools}
    assert found.others == (home / "tools",)
    assert found.refused == {home: "it contains the project"}


def test_folders_of_path_files_and_finders(top: Path) -> None:
    home = top.parent.parent
    venv = environment(top / ".venv")
    site = venv / SITE
    for name in ("library", "package", "relative", "inner/deeper"):
        (home / name).mkdir(parents=True)
    (home / "module.py").touch()
    (top / "src").mkdir()
    (site / "a.pth").write_text(f"# {home}/inner\n\n{home}/library\n../../../../../../relative\n{top}/src\n/nowhere\n")
    (site / "b.pth").write_text("import os; import _shop_editable_loader\nimport __editable___broken\n")
    (site / "_shop_editable_loader.py").write_text(
        f"MAPPING = {{'p': '{home}/package', 'm': '{home}/module', 'x': ('{home}/inner/deeper', '/nowhere')}}\n"
    )
    (site / "__editable___broken.py").write_text("MAPPING = {")
    (home / "library/.git").mkdir()
    assert sites_of_environment(str(venv)) == [str(site)]
    found = reached(top, environments=(venv,))
    wanted = {home / name for name in ("library", "relative", "package", "module.py", "inner/deeper")}
    assert {*found.others} == wanted
    assert found.hidden == (home / "library/.git",)
    assert found.refused == {}
    assert str(top / "src") in linked_places(str(site))


def test_what_is_too_wide_or_too_large_stays_out_of_reach(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("donewhen.jobs.room.reach._MAX_FILES", 3)
    home = top.parent.parent
    venv = environment(top / ".venv")
    for number in range(4):
        for name in ("large", "fine/.cache", "fine/__pycache__"):
            (home / name).mkdir(parents=True, exist_ok=True)
            (home / name / f"{number}.txt").touch()
    (venv / SITE / "a.pth").write_text(f"{home}\n{top.parent}\n/\n/tmp\n{home}/large\n{home}/fine\n")
    found = reached(top, environments=(venv,))
    assert found.others == (home / "fine",)
    assert found.refused[top.parent] == found.refused[home] == "it contains the project"
    assert found.refused[home / "large"] == "it has more than 3 files"
    other = Path(os.path.realpath(home.parent)) / "elsewhere"
    other.mkdir()
    assert reach_of((), (venv,), other, home).refused[home] == "it contains the home folder or temporary files"


def test_a_folder_in_another_one_is_there_once(top: Path) -> None:
    home = top.parent.parent
    (home / "library/src").mkdir(parents=True)
    venv = environment(top / ".venv")
    (venv / SITE / "a.pth").write_text(f"{home}/library/src\n{home}/library\n")
    assert reached(top, environments=(venv,)).others == (home / "library",)


def test_the_packages_of_an_interpreter_count_where_an_environment_has_them(top: Path) -> None:
    home = top.parent.parent
    python = program(home / "python/bin/python3.11")
    library = home / "python/lib/python3.11"
    (library / "site-packages").mkdir(parents=True)
    (library / "os.py").touch()
    assert sites_of_program(str(python)) == [str(library / "site-packages")]
    venv = environment(home / "venv")
    (venv / "bin/python").unlink()
    (venv / "bin/python").symlink_to(python)
    own = [str(venv / SITE)]
    assert sites_of_program(f"{venv}/bin/python") == own
    (venv / "pyvenv.cfg").write_text("home = x\ninclude-system-site-packages = true\n")
    assert sites_of_program(f"{venv}/bin/python") == [*own, str(library / "site-packages")]
    assert sites_of_program("/bin/sh") == []
