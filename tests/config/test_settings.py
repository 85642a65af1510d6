"""The project's settings: where they are found, what they may say, and how a mistake is told."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

import pytest

from donewhen.config import CONFIG_FILE, PROJECT_FILE, GuardSettings, Settings, TestSettings, find_root, load
from donewhen.config.loader import _TABLES
from donewhen.foundation.errors import ConfigError, ExitCode
from sentences import assert_sentences


def own(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / CONFIG_FILE
    path.write_text(text, encoding="utf-8")
    return path


def shared(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / PROJECT_FILE
    path.write_text(text, encoding="utf-8")
    return path


def refusal(folder: Path) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        load(folder)
    return caught.value


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that nothing above it can have settings for."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return folder


# Where they are found


def test_without_a_file_everything_is_a_default_and_nothing_guards_a_stop(project: Path) -> None:
    settings = load(project)
    assert settings == Settings(root=project)
    assert settings.source is None
    assert settings.given == frozenset()
    for guard in (settings.stop, settings.subagent_stop, settings.task_completed):
        assert guard == GuardSettings()
        assert guard.has_checks is False


def test_a_file_of_our_own_is_read(project: Path) -> None:
    path = own(project, '[stop]\nfiles = ["a.md", "b.md"]\nmax_stalled = 2\n')
    settings = load(project)
    assert settings.stop == GuardSettings(files=("a.md", "b.md"), max_stalled=2)
    assert settings.subagent_stop == GuardSettings()
    assert settings.root == project
    assert settings.source == path
    assert settings.given == {"stop.files", "stop.max_stalled"}


def test_a_table_in_the_projects_file_is_read(project: Path) -> None:
    path = shared(project, '[project]\nname = "x"\n[tool.donewhen.subagent_stop]\ncommands = ["make test"]\n')
    settings = load(project)
    assert settings.subagent_stop == GuardSettings(commands=("make test",))
    assert settings.stop.has_checks is False
    assert settings.source == path
    assert settings.given == {"subagent_stop.commands"}


def test_every_setting_can_be_given_and_is_known_as_given(project: Path) -> None:
    own(
        project,
        """
        [stop]
        files = ["a"]
        commands = ["b"]
        pass_env = ["C"]
        command_timeout = 1
        check_timeout = 2.5
        max_stalled = 3
        max_attempts = 4
        jobs = true
        [stop.tests]
        run = "pytest --junit-xml={junit}"
        baseline = "base.json"
        timeout = 5
        pass_env = ["D"]
        [task_completed.tests]
        run = "t {junit}"
        """,
    )
    settings = load(project)
    tests = TestSettings(run="pytest --junit-xml={junit}", baseline="base.json", timeout=5.0, pass_env=("D",))
    assert settings.stop == GuardSettings(("a",), ("b",), tests, ("C",), 1.0, 2.5, 3, 4, True)
    assert isinstance(settings.stop.command_timeout, float)
    assert settings.task_completed == GuardSettings(tests=TestSettings(run="t {junit}"))
    assert settings.task_completed.has_checks is True
    assert settings.given == {
        *(f"stop.{name}" for name in ("files", "commands", "pass_env", "command_timeout", "check_timeout")),
        *("stop.max_stalled", "stop.max_attempts", "stop.jobs"),
        *(f"stop.tests.{name}" for name in ("run", "baseline", "timeout", "pass_env")),
        "task_completed.tests.run",
    }


def _lists(table: type[Any], prefix: str = "") -> Iterator[tuple[str, Field[Any]]]:
    for setting in fields(table):
        kind = _TABLES.get(str(setting.type))
        if kind is not None:
            yield from _lists(kind, f"{prefix}{setting.name}.")
        elif str(setting.type).startswith("tuple"):
            yield f"{prefix}{setting.name}", setting


def test_a_list_adds_to_its_default_and_never_replaces_it(project: Path) -> None:
    # Only one list has a default that could be replaced; another one needs the same metadata.
    assert [name for name, setting in _lists(Settings) if setting.default] == ["verify.from_base"]
    default = Settings().verify.from_base
    for text, more in (("[]", ()), ('["/tools/", "tests/", "/tools/"]', ("/tools/",))):
        own(project, f"[verify]\nfrom_base = {text}\n")
        assert load(project).verify.from_base == (*default, *more)


@pytest.mark.parametrize("write", [own, shared])
def test_settings_are_found_upwards_and_belong_to_their_folder(tmp_path: Path, write: object) -> None:
    table = "stop" if write is own else "tool.donewhen.stop"
    path = write(tmp_path, f'[{table}]\nfiles = ["a"]\n')  # type: ignore[operator]
    below = tmp_path / "src" / "deep"
    below.mkdir(parents=True)
    assert load(below).source == path
    assert load(below).root == tmp_path
    assert find_root(below) == tmp_path


def test_the_nearest_settings_win_as_a_whole(tmp_path: Path) -> None:
    own(tmp_path, '[stop]\nfiles = ["outer"]\nmax_stalled = 9\n')
    inner = own(tmp_path / "inner", '[subagent_stop]\nfiles = ["inner"]\n')
    settings = load(tmp_path / "inner")
    assert settings.source == inner
    assert settings.stop == GuardSettings()


def test_a_projects_file_without_our_table_is_passed_over_on_the_way_up(tmp_path: Path) -> None:
    path = own(tmp_path, '[stop]\nfiles = ["a"]\n')
    package = tmp_path / "package"
    shared(package, '[project]\nname = "x"\ndependencies = ["donewhen"]\n[tool.other]\nx = 1\n')
    assert load(package).source == path


@pytest.mark.parametrize("text", ['tool = "donewhen"\n', 'tool = ["donewhen"]\n', "# donewhen\n"])
def test_a_projects_file_that_only_mentions_us_says_nothing(project: Path, text: str) -> None:
    shared(project, text)
    assert load(project) == Settings(root=project)


def test_a_broken_projects_file_that_does_not_mention_us_is_none_of_our_business(project: Path) -> None:
    shared(project, "[project\n")
    assert load(project) == Settings(root=project)


@pytest.mark.parametrize("kind", ["folder", "worktree file"])
def test_the_search_ends_at_the_repository(tmp_path: Path, kind: str) -> None:
    own(tmp_path, "this is [ not toml")
    repository = tmp_path / "repository"
    below = repository / "src"
    below.mkdir(parents=True)
    if kind == "folder":
        (repository / ".git").mkdir()
    else:
        (repository / ".git").write_text("gitdir: elsewhere\n")
    assert load(below) == Settings(root=repository)


def test_settings_that_stand_beside_the_repositorys_own_folder_are_found(project: Path) -> None:
    path = own(project, '[stop]\nfiles = ["a"]\n')
    (project / "src").mkdir()
    assert load(project / "src").source == path


def test_a_linked_settings_file_belongs_to_the_folder_of_the_link(project: Path, tmp_path: Path) -> None:
    target = own(tmp_path / "elsewhere", '[stop]\nfiles = ["a"]\n')
    (project / CONFIG_FILE).symlink_to(target)
    settings = load(project)
    assert settings.stop.files == ("a",)
    assert settings.root == project


def test_work_in_a_linked_folder_has_the_settings_of_the_real_one(project: Path, tmp_path: Path) -> None:
    path = own(project, '[stop]\nfiles = ["a"]\n')
    link = tmp_path / "link"
    link.symlink_to(project)
    assert load(link).source == path
    assert load(link).root == project


def test_an_empty_settings_file_ends_the_search_and_guards_nothing(tmp_path: Path) -> None:
    own(tmp_path, '[stop]\nfiles = ["outer"]\n')
    inner = own(tmp_path / "inner", "")
    settings = load(tmp_path / "inner")
    assert settings.source == inner
    assert settings.stop.has_checks is False


@pytest.mark.parametrize(
    "text",
    [
        '[tool.donewhen.stop]\nfiles = ["a"]\n',
        'tool.donewhen.stop.files = ["a"]\n',
        '[tool]\ndonewhen = {stop = {files = ["a"]}}\n',
        '[ tool . "donewhen" . stop ]\nfiles = ["a"]\n',
        "# see [tool.donewhen] in the project above\n",
        'description = "[tool.donewhen]"\n',
        '[project]\ndependencies = ["donewhen"]\n',
        "",
    ],
)
def test_the_folder_that_the_settings_belong_to_is_the_one_they_are_read_from(project: Path, text: str) -> None:
    own(project, '[stop]\nfiles = ["outer"]\n')
    package = project / "package"
    shared(package, text)
    assert find_root(package) == load(package).root


@pytest.mark.parametrize("text", ["[stop\n", "[stopp]\n", "[stop]\nfiles = 1\n"])
def test_a_mistake_in_the_settings_does_not_hide_which_folder_they_belong_to(project: Path, text: str) -> None:
    own(project, text)
    (project / "src").mkdir()
    assert find_root(project / "src") == project


def test_without_settings_the_folder_is_the_repository_or_the_one_that_was_asked_for(project: Path) -> None:
    (project / "src").mkdir()
    assert find_root(project / "src") == project
    assert find_root(project) == load(project).root == project


# Mistakes


@pytest.mark.parametrize("text", ['[stop]\nfiles = ["a"]\n', ""], ids=["with settings", "empty"])
def test_settings_in_both_files_of_a_folder_are_an_error(project: Path, text: str) -> None:
    path = own(project, text)
    shared(project, '[tool.donewhen.stop]\nfiles = ["b"]\n')
    error = refusal(project)
    assert error.where == str(path)
    assert_sentences(error.message)
    assert_sentences(error.next_step)
    assert error.exit_code is ExitCode.USAGE


def test_our_own_file_beside_a_projects_file_without_our_table_is_fine(project: Path) -> None:
    path = own(project, '[stop]\nfiles = ["a"]\n')
    shared(project, '[project]\nname = "donewhen"\n')
    assert load(project).source == path


UNKNOWN = {
    "at the top": ('[stopp]\nfiles = ["a"]\n', "stopp"),
    "at the top, nothing like it": ("zzz = 1\n", "zzz"),
    "in a guard": ('[stop]\nfile = ["a"]\n', "stop.file"),
    "in another guard": ("[subagent_stop]\nmax_stalls = 1\n", "subagent_stop.max_stalls"),
    "in the tests": ('[stop.tests]\nrunn = "x"\n', "stop.tests.runn"),
    "a dashed name": ("[stop]\nmax-stalled = 1\n", "stop.max-stalled"),
    "not for people": ('[stop]\nfiles = ["a"]\n[root]\n', "root"),
    "a list": ('[[stops]]\nfiles = ["a"]\n', "stops"),
}


@pytest.mark.parametrize(("text", "name"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_setting_is_an_error_with_a_suggestion(project: Path, text: str, name: str) -> None:
    path = own(project, text)
    error = refusal(project)
    assert error.message.startswith(f"{name} ")
    assert_sentences(error.message)
    assert error.where == str(path)


@pytest.mark.parametrize(("text", "name"), UNKNOWN.values(), ids=UNKNOWN)
def test_in_the_projects_file_the_setting_is_named_in_full(project: Path, text: str, name: str) -> None:
    nested = re.sub(r"^(\[\[?)", r"\1tool.donewhen.", text, flags=re.MULTILINE)
    path = shared(project, nested if nested != text else f"[tool.donewhen]\n{text}")
    error = refusal(project)
    assert error.message.startswith(f"tool.donewhen.{name} ")
    assert_sentences(error.message)
    assert error.where == str(path)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ('[stop]\nfiles = "a.md"\n', "stop.files"),
        ("[stop]\nfiles = true\n", "stop.files"),
        ('[stop]\nfiles = ["a", ""]\n', "stop.files"),
        ('[stop]\nfiles = [" \\t"]\n', "stop.files"),
        ('[stop]\nfiles = ["a", 1]\n', "stop.files"),
        ('[stop]\nfiles = [["a"]]\n', "stop.files"),
        ("[stop.files]\na = 1\n", "stop.files"),
        ('[stop]\ncommands = "make test"\n', "stop.commands"),
        ("[stop]\npass_env = [1]\n", "stop.pass_env"),
        ("[stop]\nmax_stalled = true\n", "stop.max_stalled"),
        ("[stop]\nmax_stalled = 5.0\n", "stop.max_stalled"),
        ("[stop]\nmax_stalled = 0\n", "stop.max_stalled"),
        ("[stop]\nmax_stalled = -5\n", "stop.max_stalled"),
        ('[stop]\nmax_attempts = "5"\n', "stop.max_attempts"),
        ("[stop]\nmax_attempts = inf\n", "stop.max_attempts"),
        ("[stop]\ncommand_timeout = true\n", "stop.command_timeout"),
        ("[stop]\ncommand_timeout = inf\n", "stop.command_timeout"),
        ("[stop]\ncommand_timeout = nan\n", "stop.command_timeout"),
        ("[stop]\ncheck_timeout = 0\n", "stop.check_timeout"),
        ("[stop]\ncheck_timeout = -0.1\n", "stop.check_timeout"),
        ('[stop]\ncheck_timeout = "5m"\n', "stop.check_timeout"),
        ("[stop]\ncheck_timeout = 2026-01-01\n", "stop.check_timeout"),
        ('[stop]\ntests = "pytest"\n', "stop.tests"),
        ("[stop]\ntests = []\n", "stop.tests"),
        ("stop = 1\n", "stop"),
        ("[[stop]]\nfiles = ['a']\n", "stop"),
        ('[stop.tests]\nrun = ""\n', "stop.tests.run"),
        ('[stop.tests]\nrun = " "\n', "stop.tests.run"),
        ('[stop.tests]\nrun = ["pytest"]\n', "stop.tests.run"),
        ('[stop.tests]\nrun = "x"\nbaseline = ""\n', "stop.tests.baseline"),
        ('[stop.tests]\nrun = "x"\nbaseline = false\n', "stop.tests.baseline"),
        ('[stop.tests]\nrun = "x"\ntimeout = -inf\n', "stop.tests.timeout"),
        ('[stop.tests]\nbaseline = "b.json"\n', "stop.tests.run"),
        ("[stop.tests]\n", "stop.tests.run"),
    ],
)
def test_a_value_of_the_wrong_kind_is_an_error_that_names_the_setting(project: Path, text: str, name: str) -> None:
    path = own(project, text)
    error = refusal(project)
    assert error.message.startswith(f"{name} ")
    assert error.where == str(path)
    assert_sentences(error.message)


@pytest.mark.parametrize("value", ["1", '"stop"', "[]", "false"])
def test_our_table_in_the_projects_file_must_be_a_table(project: Path, value: str) -> None:
    shared(project, f"[tool]\ndonewhen = {value}\n")
    assert_sentences(refusal(project).message)


@pytest.mark.parametrize(
    "text",
    [
        f"[stop]\ncommand_timeout = 1{'0' * 400}\n",
        f"[stop]\nmax_stalled = 1{'0' * 5000}\n",
        f"[stop]\nfiles = {'[' * 20_000}\n",
    ],
    ids=["too large for a timeout", "more digits than Python reads", "nested too deeply"],
)
def test_a_value_that_is_too_much_for_python_is_a_mistake_in_the_file_too(project: Path, text: str) -> None:
    path = own(project, text)
    assert refusal(project).where == str(path)


@pytest.mark.parametrize("write", [own, shared])
def test_broken_toml_is_an_error_with_its_line(project: Path, write: object) -> None:
    path = write(project, '# donewhen\n[stop]\nfiles = ["a"\nmax = 1\n')  # type: ignore[operator]
    error = refusal(project)
    assert error.where == str(path)
    assert_sentences(error.message)
    assert "line 4" in error.message


def test_a_key_that_is_given_twice_is_an_error(project: Path) -> None:
    own(project, '[stop]\nfiles = ["a"]\nfiles = ["b"]\n')
    assert "line 3" in refusal(project).message


def test_a_file_in_another_encoding_is_an_error(project: Path) -> None:
    path = project / CONFIG_FILE
    path.write_bytes(b'[stop]\nfiles = ["caf\xe9.md"]\n')
    error = refusal(project)
    assert error.where == str(path)
    assert "utf-8" in error.message


@pytest.mark.parametrize("name", [CONFIG_FILE, PROJECT_FILE])
def test_a_folder_in_the_files_place_is_an_error(project: Path, name: str) -> None:
    (project / name).mkdir()
    error = refusal(project)
    assert error.where == str(project / name)
    assert_sentences(error.message)


def test_a_link_that_leads_in_a_circle_is_an_error(project: Path) -> None:
    (project / CONFIG_FILE).symlink_to(project / CONFIG_FILE)
    assert_sentences(refusal(project).message)


def test_a_link_that_leads_nowhere_is_an_error_and_not_a_project_without_settings(project: Path) -> None:
    (project / CONFIG_FILE).symlink_to(project / "moved.toml")
    assert refusal(project).where == str(project / CONFIG_FILE)


def test_a_file_that_may_not_be_read_is_an_error(project: Path) -> None:
    path = own(project, '[stop]\nfiles = ["a"]\n')
    path.chmod(0)
    code = "import sys; from pathlib import Path; from donewhen.config import load; load(Path(sys.argv[1]))"
    done = subprocess.run(
        [*without_privileges(), sys.executable, "-c", code, str(project)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "ConfigError" in last
    assert str(path) in last
    assert_sentences(last)


def without_privileges() -> list[str]:
    """How to run something that permissions apply to, even when the tests run as root."""
    if os.geteuid() != 0:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("runs as root, and setpriv is not here to drop its privileges")
    return [setpriv, "--bounding-set=-all", "--inh-caps=-all"]
