"""Which program a command is: where it is looked for, and what its hash depends on."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from donewhen.foundation.executables import resolve_executable, safe_path
from donewhen.foundation.git import git, worktree_root
from donewhen.foundation.process import CommandNotRunnableError
from sentences import assert_sentences

PLACES = "/tmp", "/var/tmp", "/dev/shm"


def script(path: Path, text: str = "#!/bin/sh\nexit 0\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def virtual_environment(folder: Path) -> Path:
    """A folder that looks like one of a virtual environment; what stands in its bin/ is found by name."""
    (folder / "bin").mkdir(parents=True)
    (folder / "pyvenv.cfg").write_text("home = /usr/bin\n")
    return folder / "bin"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder with the real ``pytest``; tests stand below /tmp, where only a virtual environment is trusted."""
    return script(virtual_environment(tmp_path / "installed") / "pytest").parent


def path_of(*folders: object) -> dict[str, str]:
    return {"PATH": os.pathsep.join(map(str, folders))}


def test_a_program_is_found_by_its_name(project: Path, installed: Path) -> None:
    assert resolve_executable("pytest", project, path_of(installed)).path == installed / "pytest"


def test_a_program_left_in_the_project_is_not_taken_though_it_comes_first(project: Path, installed: Path) -> None:
    fake = script(project / "bin" / "pytest").parent
    script(project / "pytest")
    assert resolve_executable("pytest", project, path_of(fake, project, installed)).path == installed / "pytest"
    with pytest.raises(CommandNotRunnableError) as caught:
        resolve_executable("pytest", project, path_of(fake, project))
    assert caught.value.code == "command_not_found"
    assert "'pytest'" in caught.value.message
    assert_sentences(caught.value.next_step)


@pytest.mark.parametrize("place", PLACES)
def test_a_program_left_in_a_folder_for_temporary_files_is_not_taken(place: str, project: Path) -> None:
    assert safe_path(project, path_of(place, f"{place}/deep/in/it", "/usr/bin")) == "/usr/bin"


def test_the_folder_for_temporary_files_is_the_one_of_this_machine(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/opt/scratch")
    assert safe_path(project, path_of("/opt/scratch/bin", "/opt/scratched/bin")) == "/opt/scratched/bin"


@pytest.mark.parametrize("entry", ["", ".", "bin", "./bin", "../bin"], ids=["empty", "dot", "bin", "./bin", "../bin"])
def test_a_relative_place_is_not_looked_at(
    entry: str, project: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in (project, project / "bin", project.parent / "bin"):
        script(folder / "pytest")
    monkeypatch.chdir(project)
    assert safe_path(project, path_of(entry, installed)) == str(installed)
    assert resolve_executable("pytest", project, path_of(entry, installed)).path == installed / "pytest"
    with pytest.raises(CommandNotRunnableError):
        resolve_executable("pytest", project, path_of(entry))


def test_a_link_to_a_folder_in_the_project_is_seen_through(project: Path, installed: Path, tmp_path: Path) -> None:
    fake = script(project / "tools" / "pytest").parent
    link = virtual_environment(tmp_path / "other") / "link"
    link.symlink_to(fake)
    assert safe_path(project, path_of(link, installed)) == str(installed)


def test_a_project_that_is_reached_by_a_link_is_the_same_project(
    project: Path, installed: Path, tmp_path: Path
) -> None:
    fake = script(project / "bin" / "pytest").parent
    link = tmp_path / "link"
    link.symlink_to(project)
    assert safe_path(link, path_of(fake, link / "bin", installed)) == str(installed)


def test_a_virtual_environment_in_the_project_is_looked_at(project: Path) -> None:
    inside = virtual_environment(project / ".venv")
    script(inside / "pytest")
    assert safe_path(project, path_of(inside, "/usr/bin")) == f"{inside}:/usr/bin"
    assert resolve_executable("pytest", project, path_of(inside)).path == inside / "pytest"


def test_a_folder_beside_the_project_whose_name_begins_like_it_is_not_in_it(project: Path) -> None:
    assert safe_path(Path("/opt/app"), path_of("/opt/app-tools/bin", "/opt/app/bin")) == "/opt/app-tools/bin"


def test_where_no_place_is_left_the_current_folder_is_not_looked_at_instead(project: Path) -> None:
    # To execvp and to shells, an empty PATH is the current folder.
    assert all(os.path.isabs(folder) for folder in safe_path(project, path_of(project, "")).split(os.pathsep))


def test_without_a_path_the_system_s_own_places_are_looked_at(project: Path) -> None:
    assert resolve_executable("sh", project, {}).path.name == "sh"


def test_the_real_path_is_asked_when_none_is_given(
    project: Path, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed))
    assert safe_path(project) == str(installed)
    assert resolve_executable("pytest", project).path == installed / "pytest"


def test_a_program_given_with_a_slash_stands_in_the_project(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script(project / "tools" / "check", "#!/bin/sh\nexit 3\n")
    script(tmp_path / "tools" / "check")
    monkeypatch.chdir(tmp_path)
    assert resolve_executable("tools/check", project, {}).path == project / "tools" / "check"
    assert resolve_executable("./tools/check", project, {}) == resolve_executable("tools/check", project, {})
    assert resolve_executable(str(tmp_path / "tools/check"), project, {}).path == tmp_path / "tools" / "check"


@pytest.mark.parametrize("command", ["./missing", "./plain", "./folder", "missing-program", ""])
def test_what_can_not_be_run_is_not_found(command: str, project: Path) -> None:
    (project / "plain").write_text("text")
    (project / "folder").mkdir()
    with pytest.raises(CommandNotRunnableError):
        resolve_executable(command, project, path_of("/usr/bin", "/bin"))


def test_a_program_is_known_by_what_is_in_it_not_by_its_place(project: Path) -> None:
    one, same, other = (project / name for name in ("one", "same", "other"))
    for path, content in ((one, b"\x7fELF 1"), (same, b"\x7fELF 1"), (other, b"\x7fELF 2")):
        path.write_bytes(content)
        path.chmod(0o755)
    hashes = {name: resolve_executable(f"./{name}", project, {}).hash for name in ("one", "same", "other")}
    assert hashes["one"] == hashes["same"] != hashes["other"]


def test_a_link_to_a_program_keeps_its_own_place_and_has_the_program_s_hash(project: Path) -> None:
    script(project / "real")
    (project / "link").symlink_to("real")
    found = resolve_executable("./link", project, {})
    assert found.path == project / "link"
    assert found.hash == resolve_executable("./real", project, {}).hash


def hash_of(project: Path, text: str, name: str = "tool") -> str:
    script(project / name, text)
    return resolve_executable(f"./{name}", project).hash


def test_a_script_does_not_depend_on_where_its_interpreter_stands(project: Path, tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place).mkdir()
        shutil.copy("/bin/sh", tmp_path / place / "sh")
    one, two = (hash_of(project, f"#!{tmp_path}/{place}/sh\nexit 0\n") for place in ("a", "b"))
    assert one == two


def test_a_script_depends_on_what_its_interpreter_is(project: Path, tmp_path: Path) -> None:
    text = f"#!{tmp_path}/sh\nexit 0\n"
    (tmp_path / "sh").write_bytes(b"\x7fELF 1")
    before = hash_of(project, text)
    (tmp_path / "sh").write_bytes(b"\x7fELF 2")
    assert hash_of(project, text) != before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n", id="text"),
        pytest.param("#!/bin/sh\nexit 0\n", "#!/bin/sh -e\nexit 0\n", id="argument"),
        pytest.param("#!/usr/bin/env sh\nexit 0\n", "#!/usr/bin/env cat\nexit 0\n", id="name"),
        pytest.param("#!/usr/bin/env -S sh\n", "#!/usr/bin/env -S sh -e\n", id="argument after env -S"),
        pytest.param("#!/usr/bin/env -S sh\n", "#!/usr/bin/env -S A=1 sh\n", id="variable after env -S"),
        pytest.param("#!/usr/bin/env sh\n", "#!/usr/bin/env -i sh\n", id="option of env"),
        pytest.param("#!/nowhere/one\n", "#!/nowhere/other\n", id="missing interpreter"),
        pytest.param("#!/usr/bin/env no-such-one\n", "#!/usr/bin/env no-such-other\n", id="missing name"),
        pytest.param("#!\n", "#! \n", id="no interpreter"),
        pytest.param("#!/bin/sh 'a\n", "#!/bin/sh 'b\n", id="open quote"),
        pytest.param("#!/bin\n", "#!/usr\n", id="folder as interpreter"),
        pytest.param("#!/usr/bin/env\n", "#!/usr/bin/env -i\n", id="env alone"),
        pytest.param("#!/bin/sh\0a\n", "#!/bin/sh\0b\n", id="zero byte"),
        pytest.param("#!/bin/sh " + "a" * 9000 + "b\n", "#!/bin/sh " + "a" * 9000 + "c\n", id="long line"),
        pytest.param("#!/bin/sh\n#" + "a" * 9000, "#!/bin/sh\n#" + "a" * 9001, id="without an end"),
    ],
)
def test_two_scripts_that_differ_have_different_hashes(one: str, other: str, project: Path) -> None:
    assert hash_of(project, one) == hash_of(project, one, "elsewhere/tool-2")
    assert hash_of(project, one) != hash_of(project, other)


def test_a_program_that_is_only_called_env_is_not_env(project: Path, tmp_path: Path) -> None:
    fake = script(tmp_path / "env", "#!/bin/sh\nexit 0\n")
    text = f"#!{fake} sh\n"
    before = hash_of(project, text)
    assert before != hash_of(project, "#!/usr/bin/env sh\n")
    script(fake, "#!/bin/sh\nexit 1\n")
    assert hash_of(project, text) != before


def test_env_finds_what_a_command_would_find(project: Path, installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(installed / "tool-of-mine", "\x7f one")
    monkeypatch.setenv("PATH", f"{script(project / 'bin/tool-of-mine', 'fake').parent}:{installed}")
    before = hash_of(project, "#!/usr/bin/env tool-of-mine\n")
    script(project / "bin/tool-of-mine", "another fake")
    assert hash_of(project, "#!/usr/bin/env tool-of-mine\n") == before
    script(installed / "tool-of-mine", "\x7f two")
    assert hash_of(project, "#!/usr/bin/env tool-of-mine\n") != before


def test_scripts_that_interpret_each_other_come_to_an_end(project: Path) -> None:
    one, two = project / "one", project / "two"
    script(one, f"#!{two}\n1\n")
    script(two, f"#!{one}\n2\n")
    before = resolve_executable("./one", project).hash
    assert before == resolve_executable("./one", project).hash != resolve_executable("./two", project).hash
    script(two, f"#!{one}\n3\n")
    assert resolve_executable("./one", project).hash != before


def test_the_interpreter_of_an_interpreter_counts(project: Path, tmp_path: Path) -> None:
    inner = script(tmp_path / "inner", "\x7f one")
    outer = script(tmp_path / "outer", f"#!{inner}\n")
    before = hash_of(project, f"#!{outer}\n")
    script(inner, "\x7f two")
    assert hash_of(project, f"#!{outer}\n") != before


def test_a_virtual_environment_s_pytest_is_the_same_wherever_it_was_made(project: Path, tmp_path: Path) -> None:
    for place in ("here", "there"):
        folder = virtual_environment(tmp_path / place)
        (folder / "python").symlink_to(os.path.realpath(sys.executable))
        script(folder / "pytest", f"#!{folder}/python\nimport pytest\n")
    one, two = (resolve_executable("pytest", project, path_of(tmp_path / place / "bin")) for place in ("here", "there"))
    assert one.hash == two.hash
    assert one.path != two.path


def test_git_is_not_taken_from_the_project(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (repository, repository / "bin"):
        script(place / "git", "#!/bin/sh\ntouch taken\necho /elsewhere\n")
    real = os.environ["PATH"]
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PATH", f"{repository}/bin:.:{real}")
    assert worktree_root(repository) == repository.resolve()
    monkeypatch.setenv("PATH", f"{repository}/bin")
    assert git(repository, "rev-parse", "--show-toplevel") in (None, f"{repository.resolve()}\n".encode())
    assert not (repository / "taken").exists()
