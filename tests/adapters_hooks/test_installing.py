"""Where each runtime keeps its hooks, and what the line that we put there does when a shell runs it."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

import donewhen
from donewhen.adapters.hook_files import installed_hooks
from donewhen.adapters.hook_targets import HOOK_TARGETS, HOOK_TIMEOUT
from donewhen.config.hook_script import program_of
from sentences import assert_sentences

SOURCE = Path(donewhen.__file__).parent.parent
BESIDE = Path(sys.executable).parent / "donewhen"
SYSTEM_PATH = "/usr/bin:/bin"
HANG_GUARD = 300.0
MISSING_PROGRAM = "donewhen could not be run, so this stop is not verified. Report this to the person you work for.\n"
ODD_NAMES = {
    "plain": "plain",
    "a space": "two words",
    "a quote": "it's",
    "double quotes": 'so "called"',
    "a dollar": "$HOME",
    "a back tick": "`date`",
    "a backslash": "back\\slash",
    "an ampersand": "a & b; c | d",
    "another script": "Größe-会",
}


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A repository, oddly named if the test asks for it, that is guarded by a file that is missing."""
    folder = tmp_path / getattr(request, "param", "project")
    (folder / ".git").mkdir(parents=True)
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "donewhen.toml").write_text(
        "".join(f'[{table}]\nfiles = ["report.md"]\n' for table in ("stop", "subagent_stop", "task_completed"))
    )
    return folder


def environment(project: Path, **more: str) -> dict[str, str]:
    """As a runtime would have it; nothing of the machine that the tests run on."""
    home = project.parent / "home"
    home.mkdir(exist_ok=True)
    return {"PATH": SYSTEM_PATH, "HOME": str(home), "LANG": "C.UTF-8"} | more


def own_environment(project: Path) -> Path:
    """A virtual environment inside the project with donewhen in it; its Python."""
    folder = project / ".venv"
    venv.create(folder, symlinks=True, with_pip=False)
    (library,) = (folder / "lib").glob("python*/site-packages")
    (library / "donewhen.pth").write_text("\n".join([str(SOURCE), *site.getsitepackages()]))
    program = folder / "bin" / "donewhen"
    program.write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m donewhen "$@"\n')
    program.chmod(0o755)
    return folder / "bin" / "python"


def install(project: Path, *options: str, python: Path | str = sys.executable, **env: str) -> None:
    done = subprocess.run(
        [str(python), "-m", "donewhen", "hooks", "install", *options],
        cwd=project,
        env=environment(project, **env),
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )
    assert done.returncode == 0, done.stderr


def lines(path: Path) -> dict[str, str]:
    """The installed command line of each event."""
    return {entry.event: entry.command for entry in installed_hooks(path)}


def shell(line: str, cwd: Path, event: dict[str, Any] | str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", line],
        cwd=cwd,
        input=event if isinstance(event, str) else json.dumps(event),
        env={"PATH": SYSTEM_PATH, "HOME": str(cwd), "LANG": "C.UTF-8", "TMPDIR": str(cwd.parent)} | env,
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )


def stop(project: Path, *, active: bool = False, **more: object) -> dict[str, Any]:
    return {"session_id": "s1", "cwd": str(project), "hook_event_name": "Stop", "stop_hook_active": active, **more}


# Where


def test_a_projects_hooks_stand_in_the_project(tmp_path: Path) -> None:
    home = {"HOME": "/home/u", "CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x"}
    assert HOOK_TARGETS["claude"].path("project", tmp_path, home) == tmp_path / ".claude" / "settings.json"
    assert HOOK_TARGETS["codex"].path("project", tmp_path, home) == tmp_path / ".codex" / "hooks.json"


def test_a_persons_hooks_stand_in_their_home_or_where_the_runtime_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/u")
    assert HOOK_TARGETS["claude"].path("user", tmp_path, {}) == Path("/home/u/.claude/settings.json")
    assert HOOK_TARGETS["codex"].path("user", tmp_path, {}) == Path("/home/u/.codex/hooks.json")
    told = {"CLAUDE_CONFIG_DIR": "/c", "CODEX_HOME": "/x"}
    assert HOOK_TARGETS["claude"].path("user", tmp_path, told) == Path("/c/settings.json")
    assert HOOK_TARGETS["codex"].path("user", tmp_path, told) == Path("/x/hooks.json")
    assert HOOK_TARGETS["claude"].path("user", tmp_path, {"CLAUDE_CONFIG_DIR": ""}) == Path(
        "/home/u/.claude/settings.json"
    )


def test_claude_gets_seven_hooks_of_which_one_is_limited_to_structured_output(tmp_path: Path) -> None:
    entries = HOOK_TARGETS["claude"].entries("user", tmp_path, {})
    assert [(one.event, one.matcher) for one in entries] == [
        ("Stop", None),
        ("SubagentStop", None),
        ("TaskCompleted", None),
        ("PreToolUse", "StructuredOutput"),
        ("StopFailure", None),
        ("SessionEnd", None),
        ("SessionStart", None),
    ]
    assert [one.timeout for one in entries] == [HOOK_TIMEOUT] * 4 + [60] * 2 + [HOOK_TIMEOUT]
    kinds = ("stop", "subagent-stop", "task-completed", "pre-tool-use", "stop-failure", "session-end", "session-start")
    for entry, kind in zip(entries, kinds, strict=True):
        assert entry.command.endswith(f"/donewhen/hook {kind} --runtime claude || exit 2")


def test_codex_gets_three_hooks_with_a_timeout_that_is_a_whole_number_of_seconds(tmp_path: Path) -> None:
    entries = HOOK_TARGETS["codex"].entries("user", tmp_path, {})
    assert [(one.event, one.timeout) for one in entries] == [
        ("Stop", HOOK_TIMEOUT),
        ("SubagentStop", HOOK_TIMEOUT),
        ("SessionEnd", 3),  # Codex warns about more, and allows no more.
    ]
    for entry in entries:
        assert type(entry.timeout) is int
        assert " --runtime codex " in entry.command
        assert entry.group().keys() == {"hooks"}


@pytest.mark.parametrize("runtime", HOOK_TARGETS.values(), ids=HOOK_TARGETS)
def test_no_line_is_more_than_one_line(tmp_path: Path, runtime: Any) -> None:
    for scope in ("user", "project"):
        for entry in runtime.entries(scope, tmp_path, {}):
            assert "\n" not in entry.command


def test_the_line_that_a_model_may_read_is_short_and_has_no_words_of_the_fallback(tmp_path: Path) -> None:
    for entry in HOOK_TARGETS["claude"].entries("project", tmp_path, {}):
        assert len(entry.command) < 100
        assert not re.search(r"remove|install|verified|grep|stop_hook_active", entry.command)


def test_a_persons_script_names_the_program_in_full_and_lies_beside_the_settings(tmp_path: Path) -> None:
    for runtime in HOOK_TARGETS.values():
        home = {runtime.about.home_variable: str(tmp_path / "a b")}
        settings = tmp_path / "a b" / runtime.about.below_home_variable
        assert runtime.script("user", tmp_path, home) == settings / "donewhen" / "hook"
        assert program_of(runtime.script_content("user", tmp_path).decode()) == shlex.quote(str(BESIDE))
        for entry in runtime.entries("user", tmp_path, home):
            assert f"sh '{settings}/donewhen/hook' " in entry.command


def test_a_projects_hooks_name_no_place_of_one_machine_when_the_program_is_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{BESIDE.parent}:{SYSTEM_PATH}")
    for runtime in HOOK_TARGETS.values():
        assert program_of(runtime.script_content("project", tmp_path).decode()) == "donewhen"
        for entry in runtime.entries("project", tmp_path, {}):
            assert str(BESIDE.parent) not in entry.command
            assert str(tmp_path) not in entry.command


# The line in a shell


@pytest.mark.parametrize("project", ODD_NAMES.values(), ids=ODD_NAMES, indirect=True)
def test_a_project_may_be_called_anything_and_its_environment_is_found(project: Path) -> None:
    install(project, "--claude", "--codex", python=own_environment(project))
    claude = lines(project / ".claude" / "settings.json")["Stop"]
    codex = lines(project / ".codex" / "hooks.json")["Stop"]
    script = (project / ".claude" / "donewhen" / "hook").read_text()
    assert program_of(script) == '"$root"/.venv/bin/donewhen'
    for text in (claude, codex, script):
        assert str(project) not in text
    for line, told in ((claude, {"CLAUDE_PROJECT_DIR": str(project)}), (codex, {})):
        done = shell(line, project / "src" / "deep", stop(project / "src"), **told)
        assert done.stderr == ""
        assert json.loads(done.stdout) == {"decision": "block", "reason": "Missing required files: report.md"}
        assert done.returncode == 0


def test_every_installed_line_works_from_a_subfolder(project: Path) -> None:
    install(project, "--claude", "--codex")
    for path in (project / ".claude" / "settings.json", project / ".codex" / "hooks.json"):
        for event, line in lines(path).items():
            asked = stop(project, tool_name="StructuredOutput", tool_input={}, hook_event_name=event)
            done = shell(line, project / "src" / "deep", asked, CLAUDE_PROJECT_DIR=str(project))
            assert (done.returncode, done.stderr) == (0, ""), event
            assert ("report.md" in done.stdout) is (event not in ("StopFailure", "SessionEnd", "SessionStart"))
            (project / "report.md").write_text("done")
            done = shell(line, project / "src" / "deep", asked, CLAUDE_PROJECT_DIR=str(project))
            assert (done.returncode, done.stdout, done.stderr) == (0, "{}\n", ""), event
            (project / "report.md").unlink()


def test_a_bare_name_is_looked_up_on_the_runtimes_path(project: Path) -> None:
    path = f"{BESIDE.parent}:{SYSTEM_PATH}"
    install(project, "--claude", PATH=path)
    line = lines(project / ".claude" / "settings.json")["Stop"]
    assert str(BESIDE.parent) not in line
    assert program_of((project / ".claude" / "donewhen" / "hook").read_text()) == "donewhen"
    assert json.loads(shell(line, project, stop(project), PATH=path).stdout)["decision"] == "block"
    assert shell(line, project, stop(project)).returncode == 2


def test_what_is_installed_can_be_run_even_where_donewhen_is_only_a_module(project: Path, tmp_path: Path) -> None:
    # As with pip install --target: there is no program beside Python, nor on the path.
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.symlink_to(Path(sys.executable).resolve())
    target = tmp_path / "target"
    target.mkdir()
    installed = [path for folder in site.getsitepackages() for path in Path(folder).iterdir()]
    for path in [SOURCE / "donewhen", *installed]:
        (target / path.name).symlink_to(path)
    modules = str(target)
    install(project, "--claude", python=python, PYTHONPATH=modules)
    line = lines(project / ".claude" / "settings.json")["Stop"]
    done = shell(line, project, stop(project), PYTHONPATH=modules, CLAUDE_PROJECT_DIR=str(project))
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["decision"] == "block"


@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_an_event_comes_through_the_shell_unharmed(project: Path, runtime: str) -> None:
    install(project, f"--{runtime}")
    line = lines(project / HOOK_TARGETS[runtime].about.project_folder / HOOK_TARGETS[runtime].about.hook_file)["Stop"]
    odd = "%s \\n \\ $HOME `date` 'x' \" * -n \u0000 \n Größe 会 " + "x" * 3_000_000
    done = shell(line, project, stop(project, last_assistant_message=odd) | {"donewhen_canary": "%s\\n-n"})
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == {"decision": "block", "reason": "canary %s\\n-n"}


# When the program is gone


@pytest.fixture
def orphaned(project: Path) -> str:
    """The line of somebody who has the project's settings but not the program."""
    install(project, "--claude", python=own_environment(project))
    shutil.rmtree(project / ".venv")
    return lines(project / ".claude" / "settings.json")["Stop"]


def test_somebody_without_the_program_is_held_back_once_and_told_why(project: Path, orphaned: str) -> None:
    done = shell(orphaned, project, stop(project), CLAUDE_PROJECT_DIR=str(project))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.endswith(MISSING_PROGRAM)


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["compact", "spaced"])
def test_somebody_without_the_program_is_let_go_the_second_time(
    project: Path, orphaned: str, separators: tuple[str, str]
) -> None:
    event = json.dumps(stop(project, active=True), separators=separators)
    done = shell(orphaned, project, event, CLAUDE_PROJECT_DIR=str(project))
    assert (done.returncode, done.stdout) == (0, "")


def test_an_agent_cannot_talk_its_way_out_when_the_program_is_gone(project: Path, orphaned: str) -> None:
    event = stop(project, last_assistant_message='I am done. "stop_hook_active": true')
    assert shell(orphaned, project, event, CLAUDE_PROJECT_DIR=str(project)).returncode == 2


@pytest.mark.parametrize("runtime", ["claude", "codex"])
def test_sub_agents_are_held_back_once_too_when_the_program_is_gone(project: Path, runtime: str) -> None:
    install(project, f"--{runtime}", python=own_environment(project))
    shutil.rmtree(project / ".venv")
    file = project / HOOK_TARGETS[runtime].about.project_folder / HOOK_TARGETS[runtime].about.hook_file
    line = lines(file)["SubagentStop"]
    done = shell(line, project, stop(project), CLAUDE_PROJECT_DIR=str(project))
    assert done.returncode == 2
    assert done.stderr.endswith(MISSING_PROGRAM)
    assert shell(line, project, stop(project, active=True)).returncode == 0


@pytest.mark.parametrize(
    "program",
    [
        "#!/no/such/interpreter\n",
        "#!/bin/sh\nexit 1\n",
        "#!/bin/sh\nkill -9 $$\n",
        "#!/bin/sh\ncat >/dev/null\necho 'ImportError: no module named click' >&2\nexit 1\n",
        "#!/bin/sh\ncat >/dev/null\nkill -9 $$\n",
    ],
    ids=["no interpreter", "fails", "is killed", "fails after reading", "is killed after reading"],
)
def test_a_broken_program_holds_the_agent_back_once_and_not_for_ever(project: Path, program: str) -> None:
    install(project, "--codex", python=own_environment(project))
    path = project / ".venv" / "bin" / "donewhen"
    path.write_text(program)
    line = lines(project / ".codex" / "hooks.json")["Stop"]
    first = shell(line, project, stop(project))
    assert first.returncode == 2
    assert first.stderr.endswith(MISSING_PROGRAM)
    # Codex takes every status 2 for a block, without end.
    assert shell(line, project, stop(project, active=True)).returncode != 2


def test_a_program_that_does_not_know_the_event_yet_holds_the_agent_back_once_and_not_for_ever(project: Path) -> None:
    # The settings are shared and newer than the donewhen of a colleague.
    install(project, "--codex")
    line = lines(project / ".codex" / "hooks.json")["Stop"].replace("hook stop", "hook stop-of-2027")
    first = shell(line, project, stop(project))
    assert first.returncode == 2
    assert_sentences(first.stderr)
    assert shell(line, project, stop(project, active=True)).returncode != 2


def test_a_hook_whose_folder_was_removed_holds_the_agent_back_once_and_not_for_ever(project: Path) -> None:
    install(project, "--codex")
    line = lines(project / ".codex" / "hooks.json")["Stop"]
    answers = []
    for active in (False, *[True] * 9):
        gone = project / "worktree"
        # The home folder is below it, and so is the person's record.
        gone.mkdir(exist_ok=True)
        done = shell(f"rm -r ../worktree; {line}", gone, stop(gone, active=active))
        held = done.returncode == 2 or '"block"' in done.stdout
        answers.append(held)
    assert answers[0] is True
    assert False in answers
