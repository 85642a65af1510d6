"""``donewhen doctor`` proves that an installed hook fires, and asks Codex whether it would let it."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

import donewhen
from donewhen_kit import run_main
from sentences import assert_sentences, lines_with

SOURCE = Path(donewhen.__file__).parent.parent
BESIDE = Path(sys.prefix) / "codex" / "node_modules" / ".bin" / "codex"
CODEX = BESIDE if BESIDE.exists() else Path(shutil.which("codex") or BESIDE)
HANG_GUARD = 110.0

needs_codex = pytest.mark.skipif(
    not CODEX.exists(),
    reason="LOUD: the Codex CLI is not installed, so doctor is NOT tested with it (make test does it)",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / "donewhen.toml").write_text('[stop]\nfiles = ["report.md"]\n')
    (tmp_path / "home").mkdir()
    return folder


def donewhen_run(project: Path, *arguments: str, **env: str) -> subprocess.CompletedProcess[str]:
    own = {"HOME": str(project.parent / "home"), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
    return run_main(arguments, project, own | env)


def install(project: Path, *options: str, **env: str) -> None:
    done = donewhen_run(project, "hooks", "install", *options, **env)
    assert done.returncode == 0, done.stderr


def diagnoses(project: Path, **env: str) -> dict[str, dict[str, Any]]:
    done = donewhen_run(project, "doctor", "--json", **env)
    data = json.loads(done.stdout)
    found = {one["name"]: one for one in data["data"]["diagnoses"]}
    broken = [one for one in found.values() if one["health"] == "broken"]
    assert done.returncode == (1 if broken else 0)
    assert len(data["findings"]) == len(broken)
    return found


# The canary


def test_without_hooks_the_doctor_says_how_to_get_some(project: Path) -> None:
    found = diagnoses(project)
    assert found["hooks"]["health"] == "note"
    assert_sentences(found["hooks"]["detail"])


def test_a_canary_flies_through_every_installed_hook_and_leaves_no_trace(project: Path) -> None:
    install(project, "--claude", "--codex")
    install(project, "--claude", "--codex", "--user")
    before = sorted(project.rglob("*"))
    found = diagnoses(project)
    for name in ("claude project", "claude user", "codex project", "codex user"):
        assert found[name]["health"] == "ok", found[name]
        assert_sentences(found[name]["detail"])
    assert sorted(project.rglob("*")) == before


def test_a_mistake_in_the_settings_is_reported_and_does_not_keep_the_doctor_from_trying_the_hooks(
    project: Path,
) -> None:
    install(project, "--claude")
    (project / "donewhen.toml").write_text("[stop\n")
    found = diagnoses(project)
    assert found["settings"]["health"] == "broken"
    assert "line 1" in found["settings"]["detail"]
    assert found["claude project"]["health"] == "ok"


def test_from_a_subfolder_the_projects_hooks_are_tried(project: Path) -> None:
    install(project, "--claude")
    below = project / "src"
    below.mkdir()
    own = {"HOME": str(project.parent / "home"), "PATH": "/usr/bin:/bin"}
    done = run_main(["doctor"], below, own)
    assert_sentences(lines_with(done.stdout, "claude project"))


def test_an_environment_inside_the_project_is_tried_like_claude_would(project: Path) -> None:
    folder = project / ".venv"
    venv.create(folder, symlinks=True, with_pip=False)
    (library,) = (folder / "lib").glob("python*/site-packages")
    (library / "donewhen.pth").write_text("\n".join([str(SOURCE), *site.getsitepackages()]))
    (folder / "bin" / "donewhen").write_text('#!/bin/sh\nexec "$(dirname "$0")/python" -m donewhen "$@"\n')
    (folder / "bin" / "donewhen").chmod(0o755)
    ran = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "donewhen", "hooks", "install", "--claude"],
        cwd=project,
        env={"HOME": str(project.parent / "home"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=HANG_GUARD,
    )
    assert ran.returncode == 0, ran.stderr
    assert "CLAUDE_PROJECT_DIR" in (project / ".claude" / "settings.json").read_text()
    assert diagnoses(project)["claude project"]["health"] == "ok"
    shutil.rmtree(folder)
    assert diagnoses(project)["claude project"]["health"] == "broken"


BROKEN_LINES = {
    "the program is gone": "/no/such/bin/donewhen hook stop --runtime claude",
    "the program is gone, in our own words": (
        "/no/such/bin/donewhen hook stop --runtime claude || { grep -q x && exit 0; echo sorry >&2; exit 2; }"
    ),
    "it answers nothing": "true donewhen hook stop --runtime claude",
    "it always answers the same": 'echo \'{"decision": "block", "reason": ""}\' # donewhen hook stop --runtime claude',
    "it talks before it answers": "echo starting; {program} hook stop --runtime claude",
    "it fails after it answered": "{program} hook stop --runtime claude; exit 1",
    "an event that is not known": "{program} hook stopp --runtime claude",
    "another runtime": "{program} hook stop --runtime cursor",
}


BROKEN_PAIRS = list(zip(list(BROKEN_LINES)[::2], list(BROKEN_LINES)[1::2], strict=True))


def hook_file(path: Path, line: str) -> None:
    program = str(Path(sys.executable).parent / "donewhen")
    hook = {"type": "command", "command": line.replace("{program}", program), "timeout": 1800}
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook]}]}}))


@pytest.mark.parametrize("names", BROKEN_PAIRS, ids=" and ".join)
def test_a_hook_that_does_not_fire_is_reported_with_the_next_command(project: Path, names: tuple[str, str]) -> None:
    hook_file(project / ".claude" / "settings.json", BROKEN_LINES[names[0]])
    hook_file(project.parent / "home" / ".claude" / "settings.json", BROKEN_LINES[names[1]])
    found = diagnoses(project)
    for name in ("claude project", "claude user"):
        assert found[name]["health"] == "broken"
        assert_sentences(found[name]["detail"])
        assert_sentences(found[name]["next"])


def test_installing_again_heals_a_hook_that_does_not_fire(project: Path) -> None:
    hook_file(project / ".claude" / "settings.json", BROKEN_LINES["the program is gone"])
    install(project, "--claude")
    assert diagnoses(project)["claude project"]["health"] == "ok"


def test_a_settings_file_that_is_not_understood_is_reported_and_the_other_hooks_are_still_tried(project: Path) -> None:
    install(project, "--codex")
    (project / ".claude").mkdir()
    (project / ".claude" / "settings.json").write_text("{ not json")
    found = diagnoses(project)
    (broken,) = [one for one in found.values() if one["health"] == "broken"]
    assert_sentences(broken["detail"])
    assert found["codex project"]["health"] == "ok"


# The settings


def test_a_check_that_may_take_longer_than_its_hook_is_reported(project: Path) -> None:
    (project / "donewhen.toml").write_text('[stop]\nfiles = ["a"]\ncheck_timeout = 1800\n')
    found = diagnoses(project)["settings"]
    assert found["health"] == "broken"
    assert_sentences(found["detail"])
    assert found["next"] == f"Lower check_timeout in {project / 'donewhen.toml'}."
    (project / "donewhen.toml").write_text('[stop]\nfiles = ["a"]\ncheck_timeout = 1799\n')
    assert diagnoses(project)["settings"]["health"] == "ok"


@pytest.mark.parametrize("table", ["subagent_stop", "task_completed"])
def test_it_is_reported_for_every_kind_of_stop(project: Path, table: str) -> None:
    (project / "donewhen.toml").write_text(f'[stop]\nfiles = ["a"]\n[{table}]\nfiles = ["a"]\ncheck_timeout = 1800\n')
    assert diagnoses(project)["settings"]["health"] == "broken"


def test_a_hook_whose_timeout_was_lowered_by_hand_below_the_checks_is_reported(project: Path) -> None:
    # What counts is the timeout in the runtime's file, not the one that install would write today.
    install(project, "--claude")
    path = project / ".claude" / "settings.json"
    path.write_text(path.read_text().replace('"timeout": 1800', '"timeout": 60'))
    found = diagnoses(project)
    assert any(one["health"] == "broken" and "timeout" in one["detail"] for one in found.values())


def test_a_project_without_checks_is_noted(project: Path) -> None:
    (project / "donewhen.toml").unlink()
    found = diagnoses(project)["settings"]
    assert found["health"] == "note"
    assert str(project) in found["detail"]
    assert_sentences(found["detail"])


# Codex's trust


def test_without_codex_its_trust_cannot_be_proved_and_that_is_said(project: Path) -> None:
    if shutil.which("codex", path="/usr/bin:/bin"):
        pytest.skip("Codex is installed for everybody on this machine")
    install(project, "--codex", "--claude")
    diagnosed = diagnoses(project)
    found = diagnosed["codex project trust"]
    assert found["health"] == "note"
    assert_sentences(found["detail"])
    assert_sentences(found["next"])
    assert [name for name in diagnosed if "trust" in name] == ["codex project trust"]


@pytest.mark.parametrize(
    "program",
    ["#!/bin/sh\nexit 1\n", '#!/bin/sh\necho nonsense\necho \'{"id": 2, "error": {}}\'\n'],
    ids=["fails", "does not know the question"],
)
def test_a_codex_that_does_not_answer_hides_nothing_else(project: Path, tmp_path: Path, program: str) -> None:
    install(project, "--claude", "--codex")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "codex").write_text(program)
    (folder / "codex").chmod(0o755)
    found = diagnoses(project, PATH=f"{folder}:/usr/bin:/bin")
    assert_sentences(one["detail"] for name, one in found.items() if "codex" in name and one["health"] != "ok")
    assert found["claude project"]["health"] == "ok"
    assert found["codex project"]["health"] == "ok"


def codex_environment(project: Path, *, trusted_project: bool = True) -> dict[str, str]:
    """A Codex that talks to nobody, with a home of its own."""
    home = project.parent / "codex-home"
    home.mkdir(exist_ok=True)
    node = shutil.which("node")
    if node is None:
        pytest.skip("the real Codex needs node")
    text = (
        "check_for_update_on_startup = false\n[features]\nplugins = false\napps = false\n[analytics]\nenabled = false\n"
    )
    if trusted_project:
        text += f'[projects."{project.resolve()}"]\ntrust_level = "trusted"\n'
    (home / "config.toml").write_text(text)
    return {"CODEX_HOME": str(home), "PATH": f"{CODEX.parent}:{Path(node).parent}:/usr/bin:/bin"}


def trust(project: Path, env: dict[str, str], hooks: Path, *, enabled: bool = True, group: int = 0) -> None:
    """What Codex itself writes when a person trusts the hook for Stop."""
    hook = json.loads(hooks.read_bytes())["hooks"]["Stop"][group]["hooks"][0]
    handler = {"type": "command", "command": hook["command"], "timeout": hook["timeout"], "async": False}
    identity = {"event_name": "stop", "hooks": [handler]}
    text = json.dumps(identity, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    key = f"{os.path.realpath(hooks.parent)}/{hooks.name}:stop:{group}:0"
    with Path(env["CODEX_HOME"], "config.toml").open("a") as file:
        file.write(f'[hooks.state.{json.dumps(key)}]\ntrusted_hash = "sha256:{digest}"\n')
        if not enabled:
            file.write("enabled = false\n")


@needs_codex
def test_the_real_codex_says_of_a_persons_new_hook_that_it_is_untrusted_and_then_trusted(project: Path) -> None:
    env = codex_environment(project)
    install(project, "--codex", "--user", **env)
    found = diagnoses(project, **env)["codex user trust"]
    assert found["health"] == "broken"
    assert_sentences(found["detail"])
    assert_sentences(found["next"])
    trust(project, env, Path(env["CODEX_HOME"], "hooks.json"))
    found = diagnoses(project, **env)["codex user trust"]
    assert found["health"] == "ok"
    assert_sentences(found["detail"])


@needs_codex
def test_the_real_codex_says_of_a_projects_hook_that_the_project_is_not_trusted(project: Path) -> None:
    env = codex_environment(project, trusted_project=False)
    install(project, "--codex", **env)
    found = diagnoses(project, **env)["codex project trust"]
    assert found["health"] == "broken"
    assert_sentences(found["detail"])


@needs_codex
def test_the_real_codex_trusts_a_projects_hook_once_both_are_trusted(project: Path) -> None:
    env = codex_environment(project)
    install(project, "--codex", **env)
    assert_sentences(diagnoses(project, **env)["codex project trust"]["detail"])
    trust(project, env, project / ".codex" / "hooks.json")
    assert diagnoses(project, **env)["codex project trust"]["health"] == "ok"


@needs_codex
def test_the_real_codex_says_when_a_trusted_hook_was_changed_or_switched_off(project: Path) -> None:
    env = codex_environment(project)
    install(project, "--codex", "--user", **env)
    path = Path(env["CODEX_HOME"], "hooks.json")
    trust(project, env, path)
    path.write_text(path.read_text().replace('"timeout": 1800', '"timeout": 1799'))
    assert_sentences(diagnoses(project, **env)["codex user trust"]["detail"])
    env = codex_environment(project)
    trust(project, env, path, enabled=False)
    assert_sentences(diagnoses(project, **env)["codex user trust"]["detail"])


@needs_codex
def test_the_real_codex_still_trusts_a_foreign_hook_after_ours_came_and_went(project: Path) -> None:
    env = codex_environment(project)
    path = Path(env["CODEX_HOME"], "hooks.json")
    install(project, "--codex", "--user", **env)
    data = json.loads(path.read_bytes())
    mine = {"hooks": [{"type": "command", "command": "mine", "timeout": 7}]}
    data["hooks"]["Stop"].append(mine)
    path.write_text(json.dumps(data))
    trust(project, env, path, group=1)
    done = donewhen_run(project, "hooks", "uninstall", "--codex", "--user", **env)
    assert done.returncode == 0, done.stderr
    asked = donewhen_run(project, "doctor", **env)
    assert "codex user" not in asked.stdout
    code = (
        "import json; from pathlib import Path; from donewhen.adapters.codex.app_server import listed_hooks;"
        "print(json.dumps(listed_hooks(Path.cwd())))"
    )
    own = {"HOME": str(project.parent / "home"), "LANG": "C.UTF-8"} | env
    listed = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=own, capture_output=True, text=True, timeout=HANG_GUARD
    )
    (hook,) = json.loads(listed.stdout)
    assert (hook["command"], hook["trustStatus"]) == ("mine", "trusted")
