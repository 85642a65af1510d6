"""Variables that load code into donewhen itself, in real processes; each beside its twin with plain variables."""

from __future__ import annotations

import json
import os
import pty
import shutil
import site
import subprocess
import sys
from pathlib import Path

import pytest
from gate_kit import Shop

import donewhen
from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.plan.job import Job

pytestmark = pytest.mark.scenes

PROGRAM = [str(Path(sys.executable).parent / "donewhen")]
MODULE = [sys.executable, "-m", "donewhen"]
ISOLATED = [sys.executable, "-I", "-m", "donewhen"]
SCRIPTS = Path(donewhen.__file__).parents[2] / "scripts"
STARTS = {"program": PROGRAM, "module": MODULE, "isolated": ISOLATED}
SOURCE = Path(donewhen.__file__).parent
LIMIT = 300.0

# Every command succeeds, whatever it is.
LIES = """
import os, subprocess
_start = subprocess.Popen.__init__
def _lie(self, argv, *rest, **more):
    if any("check" in str(word) for word in argv):
        argv = ["true"]
    return _start(self, argv, *rest, **more)
subprocess.Popen.__init__ = _lie
"""
# A library that answers for the command before Python's first line.
PRELOADED = """
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void first(void) {
    FILE *file = fopen("/proc/self/cmdline", "r");
    char words[4096] = {0};
    size_t size = file ? fread(words, 1, sizeof words - 1, file) : 0;
    for (size_t i = 0; i < size; i++) if (!words[i]) words[i] = ' ';
    if (strstr(words, "donewhen=isolated")) { puts("PRELOADED"); fflush(stdout); }
}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "shop")


def start(argv: list[str], cwd: Path, stdin: str | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=cwd, env=plain() | variables, input=stdin or "", capture_output=True, text=True, timeout=LIMIT
    )


def plain() -> dict[str, str]:
    hidden = {*AGENT_VARIABLES, "CI", "GITHUB_ACTIONS"}
    return {name: value for name, value in os.environ.items() if name not in hidden} | {"NO_COLOR": "1"}


def lying_modules(folder: Path, name: str) -> dict[str, str]:
    """Variables with which an interpreter that is not isolated lets every command succeed."""
    folder.mkdir()
    match name:
        case "sitecustomize":
            (folder / "sitecustomize.py").write_text(LIES)
            return {"PYTHONPATH": str(folder)}
        case "module of the standard library":
            text = Path(subprocess.__file__).read_text()
            (folder / "subprocess.py").write_text(
                text
                + LIES.replace("import os, subprocess", "import sys").replace(
                    "subprocess.Popen", "sys.modules[__name__].Popen"
                )
            )
            return {"PYTHONPATH": str(folder)}
        case "usercustomize":
            version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
            modules = folder / "lib" / version / "site-packages"
            modules.mkdir(parents=True)
            (modules / "usercustomize.py").write_text(LIES)
            return {"PYTHONUSERBASE": str(folder), "PYTHONNOUSERSITE": ""}
    raise AssertionError(name)


def refused_job(shop: Shop) -> Job:
    return shop.job()


@pytest.mark.parametrize("how", STARTS)
@pytest.mark.parametrize("trick", ["sitecustomize", "module of the standard library", "usercustomize"])
def test_code_that_variables_load_earns_no_promise(shop: Shop, tmp_path: Path, how: str, trick: str) -> None:
    job = refused_job(shop)
    shop.write("result.txt", "bad\n")
    done = start([*STARTS[how], "complete", job.id], shop.root, **lying_modules(tmp_path / "lies", trick))
    assert (done.returncode, "<promise>" in done.stdout) == (1, False), done.stdout + done.stderr
    assert "[criterion_failed]" in done.stdout


@pytest.mark.parametrize("how", STARTS)
def test_honest_work_is_promised_with_variables_that_a_person_has_set_for_their_own_code(
    shop: Shop, tmp_path: Path, how: str
) -> None:
    job = refused_job(shop)
    shop.work()
    (tmp_path / "mine").mkdir()
    variables = {"PYTHONPATH": str(tmp_path / "mine"), "PYTHONUTF8": "1", "GIT_PAGER": "cat", "MY_OWN": "x"}
    done = start([*STARTS[how], "complete", job.id], shop.root, **variables)
    assert (done.returncode, "<promise>" in done.stdout) == (0, True), done.stdout + done.stderr


def test_the_lies_would_have_worked_in_a_process_that_is_not_isolated(shop: Shop, tmp_path: Path) -> None:
    job = refused_job(shop)
    shop.write("result.txt", "bad\n")
    program = f"from donewhen.cli import main; raise SystemExit(main(['complete', {job.id!r}]))"
    done = start([sys.executable, "-c", program], shop.root, **lying_modules(tmp_path / "lies", "sitecustomize"))
    assert "<promise>" in done.stdout


@pytest.mark.parametrize("how", STARTS)
def test_code_that_variables_load_releases_no_agent(tmp_path: Path, how: str) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "donewhen.toml").write_text("[stop]\ncommands = ['false check']\n")
    argv = [*STARTS[how], "hook", "stop", "--runtime", "claude"]
    event = json.dumps({"session_id": "s", "cwd": str(project), "hook_event_name": "Stop", "stop_hook_active": False})
    lies = lying_modules(tmp_path / "lies", "sitecustomize")
    assert json.loads(start(argv, project, event, **lies).stdout)["decision"] == "block"
    (project / "donewhen.toml").write_text("[stop]\ncommands = ['true check']\n")
    done = start(argv, project, event, PYTHONPATH=str(project))
    assert (done.stderr, json.loads(done.stdout)) == ("", {})


@pytest.mark.parametrize("name", ["reward_eval.py", "truth_eval.py", "plan_check.py", "job_complete.py"])
def test_the_four_scripts_are_isolated_too(shop: Shop, tmp_path: Path, name: str) -> None:
    lies = tmp_path / "lies"
    lies.mkdir()
    mark = tmp_path / "mark"
    (lies / "donewhen_probe.py").write_text("")
    (lies / "click.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit(0)\n")
    done = start([sys.executable, str(SCRIPTS / name), "--help"], shop.root, PYTHONPATH=str(lies))
    assert (done.returncode, mark.exists()) == (0, False)
    assert "Usage: donewhen" in done.stdout


@pytest.mark.skipif(shutil.which("gcc") is None or not sys.platform.startswith("linux"), reason="needs gcc and Linux")
@pytest.mark.parametrize("how", STARTS)
def test_a_preloaded_library_is_gone_before_anything_is_decided(tmp_path: Path, how: str) -> None:
    (tmp_path / "first.c").write_text(PRELOADED)
    library = tmp_path / "first.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "first.c"], check=True)
    assert "PRELOADED" in start(["sh", "-c", "true donewhen=isolated"], tmp_path, LD_PRELOAD=str(library)).stdout
    done = start([*STARTS[how], "--version"], tmp_path, LD_PRELOAD=str(library))
    assert (done.returncode, done.stdout) == (0, f"donewhen {donewhen.__version__}\n")


@pytest.mark.parametrize("how", STARTS)
def test_the_process_has_the_named_variables_and_commands_get_the_others_by_name(shop: Shop, how: str) -> None:
    shop.write("donewhen.toml", '[jobs]\npass_env = ["ODD_NAME_OF_MINE"]\n')
    shop.write("check.py", "import os\nraise SystemExit(os.environ.get('ODD_NAME_OF_MINE') != 'x=1')\n")
    job = refused_job(shop)
    shop.work()
    refused = start([*STARTS[how], "complete", job.id], shop.root)
    assert refused.returncode == 1
    done = start([*STARTS[how], "complete", job.id], shop.root, ODD_NAME_OF_MINE="x=1")
    assert (done.returncode, "<promise>" in done.stdout) == (0, True), done.stdout + done.stderr


@pytest.mark.parametrize("name", AGENT_VARIABLES)
def test_an_agent_is_still_recognised_by_its_variable(shop: Shop, name: str) -> None:
    job = shop.job(agreed=False)
    done = start([*PROGRAM, "agree", job.id], shop.root, **{name: "1"})
    assert f"{name} shows that an agent is running" in done.stdout + done.stderr


# What has to stay


def test_a_program_that_uses_the_library_is_not_replaced(tmp_path: Path) -> None:
    code = "import os; os.environ['MINE'] = '1'\nfrom donewhen.cli import main\n"
    code += "status = main(['--version'])\nprint(status, os.environ['MINE'], 'still here')"
    assert start([sys.executable, "-c", code], tmp_path).stdout.endswith("0 1 still here\n")


def test_a_line_that_starts_isolated_is_not_started_again(tmp_path: Path) -> None:
    code = (
        "import os, sys\n"
        "def never(*_): raise SystemExit('started again')\n"
        "os.execve = never\nsys.argv[1:] = ['--version']\n"
        "from donewhen.cli import main\nmain()\n"
        "print(sorted(name for name in os.environ if name == 'ODD_NAME'))"
    )
    done = start([sys.executable, "-I", "-c", code], tmp_path, ODD_NAME="1")
    assert done.stdout == f"donewhen {donewhen.__version__}\n[]\n"
    again = start([sys.executable, "-c", code], tmp_path)
    assert again.stderr == "started again\n"


def test_process_id_and_exit_status_stay(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "parent.py").write_text("import os\nopen('parent', 'w').write(str(os.getppid()))\nraise SystemExit(1)\n")
    (project / "donewhen.toml").write_text(f"[stop]\ncommands = ['{sys.executable} parent.py']\n")
    process = subprocess.Popen([*PROGRAM, "check"], cwd=project, env=plain(), stdout=subprocess.DEVNULL)
    assert process.wait(LIMIT) == 1
    assert (project / "parent").read_text() == str(process.pid)


def test_a_terminal_stays_a_terminal(shop: Shop) -> None:
    """Whoever agrees is asked only at a terminal, and otherwise counts as an agent."""
    job = shop.job(agreed=False)
    leader, follower = pty.openpty()
    try:
        argv = [*PROGRAM, "agree", job.id]
        process = subprocess.Popen(
            argv, cwd=shop.root, env=plain(), stdin=follower, stdout=follower, stderr=follower, start_new_session=True
        )
        os.write(leader, b"no\n" * 3)
        process.wait(LIMIT)
        assert b"nobody is at a terminal" not in os.read(leader, 1 << 16)
    finally:
        os.close(leader)
        os.close(follower)


@pytest.mark.parametrize("folder", ["gone", "with modules of well-known names"])
def test_the_current_folder_decides_nothing(tmp_path: Path, folder: str) -> None:
    place = tmp_path / "place"
    place.mkdir()
    for name in ("click", "contextlib", "msgspec", "json"):
        (place / f"{name}.py").write_text("raise SystemExit('taken over')\n")
    before = "rm -r ../place; " if folder == "gone" else ""
    done = start(["sh", "-c", f"{before}exec {PROGRAM[0]} --version"], place)
    assert (done.returncode, done.stdout) == (0, f"donewhen {donewhen.__version__}\n")


def test_an_installation_in_the_user_site_is_found(tmp_path: Path) -> None:
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    modules = tmp_path / ".local" / "lib" / version / "site-packages"
    modules.mkdir(parents=True)
    for folder in site.getsitepackages():
        for path in Path(folder).iterdir():
            (modules / path.name).symlink_to(path)
    (modules / "donewhen").symlink_to(SOURCE)
    python = os.path.realpath(sys.executable)
    variables = {"HOME": str(tmp_path), "PYTHONUSERBASE": str(tmp_path / ".local")}
    done = start([python, "-m", "donewhen", "explain", "not_started"], tmp_path, **variables)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_start_that_fails_says_so_and_holds_an_agent_back_once(tmp_path: Path) -> None:
    code = "import sys; sys.executable = {!r}; sys.argv[1:] = {!r}\nfrom donewhen.cli import main\nsys.exit(main())"
    for executable in ("", "/nowhere/python"):
        done = start([sys.executable, "-c", code.format(executable, ["--version"])], tmp_path)
        assert (done.returncode, done.stdout) == (3, "")
        assert "isolated" in done.stderr
        words = ["hook", "stop", "--runtime", "claude"]
        for active, status in ((False, 2), (True, 1)):
            event = json.dumps({"stop_hook_active": active})
            held = start([sys.executable, "-c", code.format(executable, words)], tmp_path, event)
            assert (held.returncode, held.stdout) == (status, "")
