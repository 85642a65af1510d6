"""How evidence is faked, each trick played for real next to its innocent twin."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from donewhen.config.agent_runtimes import AGENT_VARIABLES
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.gates.evidence_status import sign_off
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from lean_python import lean_python

Donewhen = Callable[..., subprocess.CompletedProcess[str]]
Git = Callable[..., str]

CHECK = f"{sys.executable} check.py"
PYTEST = f"{lean_python()} -m pytest -q -p no:cacheprovider"
FAILS = "raise SystemExit(1)\n"
PASSES = "print('good')\n"


class Shop:
    """A project in git with a sealed job, and somebody who wants it to look done."""

    def __init__(self, root: Path, donewhen: Donewhen, git: Git) -> None:
        self.root = root
        self._donewhen = donewhen
        self._git = git
        self.workspace = create_project(root, "Shop")
        self.write("check.py", PASSES)
        self.write(".gitignore", "__pycache__/\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "begin")

    def job(self, *criteria: str, outputs: tuple[str, ...] = ("/result.txt",), edit: tuple[str, str] = ("", "")) -> Job:
        """A job with these criteria that a person has agreed to, after an edit of its plan."""
        made = add_job(self.workspace, "Job", criteria=criteria, outputs=outputs)
        made.path.write_text(made.path.read_text().replace(*edit, 1))
        for proposal in agreement_proposals(self.workspace, [self.workspace.job(made.id)]):
            agree(self.workspace, proposal, Approval(person_at_terminal()))
        self.git("add", "-A")
        self.git("commit", "-qm", "job")
        return self.workspace.job(made.id)

    def git(self, *arguments: str) -> str:
        return self._git(self.root, *arguments)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def ask(self, *arguments: str, **environment: str) -> tuple[int, list[str]]:
        """What a command finds: its exit status, and the codes of its findings."""
        quiet = {name: value for name, value in os.environ.items() if name not in {*AGENT_VARIABLES, "CI"}}
        words = list(arguments)
        words.insert(words.index("--") if "--" in words else len(words), "--json")
        done = self._donewhen(words, self.root, quiet | environment)
        return done.returncode, [one["code"] for one in json.loads(done.stdout)["findings"]]


@pytest.fixture
def shop(repository: Path, donewhen: Donewhen, git: Git) -> Shop:
    return Shop(repository, donewhen, git)


GOOD = (0, [])
FAILED = (1, ["evidence_failed"])
STALE = (1, ["evidence_stale"])


# A file that only looks like a result


FILES: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "one newline": ("/result.txt", lambda path: path.write_text("\n")),
    "white space": ("/result.txt", lambda path: path.write_text(" \t\r\n \f")),
    "a byte order mark": ("/result.txt", lambda path: path.write_bytes(b"\xef\xbb\xbf\n")),
    "a folder": ("/result.txt", lambda path: path.mkdir()),
    "a link": ("/result.txt", lambda path: path.symlink_to("check.py")),
    "a link to nowhere": ("/result.txt", lambda path: path.symlink_to("nowhere")),
    "a pipe": ("/result.txt", lambda path: os.mkfifo(path)),
    "nothing": ("/result.txt", lambda path: None),
    "a file of the machine": ("/etc/hostname", lambda path: None),
    "other words": ("/result.txt matches /^ALL GOOD$/", lambda path: path.write_text("NOT ALL GOOD\n")),
    "only a header": ("/result.txt rows >= 3", lambda path: path.write_text("\n\none\n\n\n")),
}


@pytest.mark.parametrize(("check", "make"), FILES.values(), ids=list(FILES))
def test_a_file_that_is_none_or_says_nothing_is_no_result(shop: Shop, check: str, make: Callable[[Path], Any]) -> None:
    job = shop.job(f"The result is there\n  check: file {check}")
    make(shop.root / "result.txt")
    assert shop.ask("run", job.id) == FAILED
    assert shop.ask("why", job.id) == FAILED


@pytest.mark.parametrize("path", ["../../check.py", "/../result.txt", "out/../../x", "/out/hosts"])
def test_a_path_that_leads_out_is_refused(shop: Shop, path: str) -> None:
    (shop.root / "out").symlink_to("/etc")
    job = shop.job(f"The result is there\n  check: file {path}")
    assert shop.ask("run", job.id) == (2, ["config"])


def test_the_twin_that_is_a_result_passes_until_it_changes(shop: Shop) -> None:
    job = shop.job("It says so\n  check: file /result.txt matches /^ALL GOOD$/", "Rows\n  check: file /t.csv rows >= 2")
    shop.write("result.txt", "Report\nALL GOOD\n")
    shop.write("t.csv", 'name,text\na,"two\nlines"\nb,c\n')
    assert shop.ask("run", job.id) == GOOD
    assert shop.ask("why", job.id) == GOOD
    shop.write("result.txt", "Report\nALL GOOD!\n")
    assert shop.ask("why", job.id) == STALE


# Words instead of runs


def test_a_forged_log_a_report_and_planted_evidence_show_nothing(shop: Shop, donewhen: Donewhen) -> None:
    job = shop.job(
        f"It works\n  check: run {CHECK}", edit=("verification_evidence: []", "verification_evidence: [v.md]")
    )
    shop.write("check.py", FAILS)
    row = {"work_item_id": job.id, "command": CHECK, "exit_code": 0, "stdout": "12 passed", "phase": "verify"}
    shop.write("jobs/logs/execution.jsonl", json.dumps(row) + "\n")
    shop.write(f"jobs/{job.folder.name}/logs/execution.jsonl", json.dumps(row) + "\n")
    shop.write(f"jobs/{job.folder.name}/v.md", "All 12 tests pass. No blocking issue remains.\n")
    shop.write(".donewhen/evidence/ab/" + "ab" * 32, json.dumps({"exit_code": 0, "job": job.id}))
    assert shop.ask("why", job.id) == (1, ["not_shown"])
    told = json.loads(donewhen(["why", job.id, "--json"], shop.root).stdout)
    assert told["data"]["asserted"] == ["v.md"]
    assert shop.ask("run", job.id) == FAILED


@pytest.mark.parametrize(
    "command",
    [f"{CHECK} -k one_test", f"sh -c '{CHECK} || true'", f"{CHECK} --collect-only", "true", f"env {CHECK}"],
    ids=["one test", "or true", "collect only", "true", "wrapped"],
)
def test_a_command_that_is_nearly_the_agreed_one_is_another_one(shop: Shop, command: str) -> None:
    job = shop.job(f"It works\n  check: run {CHECK}")
    shop.ask("run", job.id, "--", *shlex.split(command))
    assert shop.ask("why", job.id) == (1, ["not_shown"])
    assert shop.ask("run", job.id, "--criterion", "AC-1", "--", *shlex.split(command)) == (2, ["usage"])


def test_the_twin_that_runs_the_agreed_command_by_hand_counts(shop: Shop) -> None:
    job = shop.job(f"It works\n  check: run {sys.executable}   'check.py'")
    assert shop.ask("run", job.id, "--", *shlex.split(CHECK)) == GOOD
    assert shop.ask("why", job.id) == GOOD


@pytest.mark.parametrize("command", [f"{CHECK} || true", f"{CHECK} | tail", f"{CHECK}; true", f"$(echo {CHECK})"])
def test_a_command_for_a_shell_is_refused_where_it_stands(shop: Shop, command: str) -> None:
    job = shop.job("It works", edit=("truth_required_commands: []", f"truth_required_commands: ['{command}']"))
    assert shop.ask("run", job.id) == (2, ["config"])


# Other programs under the same names


def program(path: Path, text: str = "#!/bin/sh\nexit 0\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path.parent


@pytest.mark.parametrize("place", ["temporary", "project", "relative", "current"])
def test_a_program_of_a_well_known_name_that_was_left_lying_about_is_not_found(
    shop: Shop, tmp_path: Path, place: str
) -> None:
    job = shop.job("It works\n  check: run false")
    folder = program({"temporary": tmp_path / "bin" / "false"}.get(place, shop.root / "bin" / "false"))
    program(shop.root / "false")
    first = {"relative": "bin", "current": ""}.get(place, str(folder))
    assert shop.ask("run", job.id, PATH=f"{first}:{os.environ['PATH']}") == FAILED


def test_a_program_in_what_looks_like_an_environment_convinces_nobody_else(shop: Shop) -> None:
    job = shop.job("It works\n  check: run false")
    folder = program(shop.root / "env" / "bin" / "false")
    shop.write("env/pyvenv.cfg", "home = /usr/bin\n")
    shop.ask("run", job.id, PATH=f"{folder}:{os.environ['PATH']}")
    assert shop.ask("why", job.id) in (STALE, FAILED)


def test_a_program_that_was_exchanged_makes_what_it_showed_stale(shop: Shop) -> None:
    job = shop.job("It works\n  check: run tools/verify")
    program(shop.root / "tools" / "verify")
    assert shop.ask("run", job.id) == GOOD
    program(shop.root / "tools" / "verify", "#!/bin/sh\nexit  0\n")
    assert shop.ask("why", job.id) == STALE
    program(shop.root / "tools" / "verify", "#!/bin/bash\nexit 0\n")
    assert shop.ask("why", job.id) == STALE
    program(shop.root / "tools" / "verify")
    assert shop.ask("why", job.id) == GOOD


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PYTHONSTARTUP", "PYTHONINSPECT", "BASH_ENV", "GIT_DIR", "PYTEST_ADDOPTS", "NODE_OPTIONS"]
)
def test_a_variable_that_changes_what_programs_are_does_not_reach_them(shop: Shop, name: str) -> None:
    shop.write("check.py", f"import os\nraise SystemExit({name!r} in os.environ)\n")
    job = shop.job(f"It works\n  check: run {CHECK}")
    assert shop.ask("run", job.id, **{name: ""}) == GOOD


def test_a_module_that_is_put_in_front_of_every_program_is_left_out(shop: Shop, tmp_path: Path) -> None:
    shop.write("check.py", FAILS)
    job = shop.job(f"It works\n  check: run {CHECK}")
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys\nif not any('donewhen' in word for word in sys.orig_argv):\n    os._exit(0)\n"
    )
    assert shop.ask("run", job.id, PYTHONPATH=str(tmp_path)) == FAILED


def test_a_home_that_was_furnished_for_the_occasion_is_left_out(shop: Shop, tmp_path: Path) -> None:
    python = os.path.realpath(sys.executable)
    job = shop.job(f"It works\n  check: run {python} -c 'raise SystemExit(1)'")
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    modules = tmp_path / "home" / ".local" / "lib" / version / "site-packages"
    modules.mkdir(parents=True)
    (modules / "usercustomize.py").write_text("import os\nos._exit(0)\n")
    shop.ask("run", job.id, HOME=str(tmp_path / "home"))
    assert shop.ask("why", job.id) in (FAILED, STALE)


def test_what_was_shown_with_another_environment_is_stale(shop: Shop) -> None:
    shop.write("check.py", "import os\nraise SystemExit('CI' not in os.environ)\n")
    job = shop.job(f"It works\n  check: run {CHECK}")
    assert shop.ask("run", job.id, CI="true") == GOOD
    assert shop.ask("why", job.id) == STALE


def test_the_twin_with_a_terminal_of_another_kind_is_fresh(shop: Shop) -> None:
    job = shop.job(f"It works\n  check: run {CHECK}")
    assert shop.ask("run", job.id, TERM="dumb", NO_COLOR="1") == GOOD
    assert shop.ask("why", job.id, TERM="xterm-256color", SSH_TTY="/dev/pts/1") == GOOD


# Evidence from before the last edit


EDITS: dict[str, Callable[[Shop], Any]] = {
    "an edit": lambda shop: shop.write("check.py", FAILS),
    "an edit with an old date": lambda shop: os.utime(shop.write("check.py", FAILS), (0, 0)),
    "an edit that git was told to overlook": lambda shop: (
        shop.git("update-index", "--assume-unchanged", "check.py"), shop.write("check.py", FAILS)),
    "an edit that was skipped": lambda shop: (
        shop.git("update-index", "--skip-worktree", "check.py"), shop.write("check.py", FAILS)),
    "an edit of what git forgot": lambda shop: (
        shop.git("rm", "-q", "--cached", "check.py"), shop.write("check.py", FAILS)),
    "an edit and a commit": lambda shop: (shop.write("check.py", FAILS), shop.git("commit", "-qam", "x")),
    "a deletion": lambda shop: (shop.root / "check.py").unlink(),
    "a link": lambda shop: ((shop.root / "check.py").unlink(), (shop.root / "check.py").symlink_to("/dev/null")),
    "an edit of what git does not know yet": lambda shop: shop.write("new.py", "raise ValueError\n"),
}  # fmt: skip


@pytest.mark.parametrize("edit", EDITS.values(), ids=list(EDITS))
def test_what_was_shown_before_the_last_edit_is_stale(shop: Shop, edit: Callable[[Shop], Any]) -> None:
    job = shop.job(f"It works\n  check: run {CHECK}", outputs=("/new.py",))
    shop.write("new.py", "the_new_code = True\n")
    assert shop.ask("run", job.id) == GOOD
    edit(shop)
    assert shop.ask("why", job.id) == STALE


def test_the_twin_that_touches_reverts_or_moves_files_about_is_fresh(
    shop: Shop, donewhen: Donewhen, git: Git, tmp_path: Path
) -> None:
    job = shop.job(f"It works\n  check: run {CHECK}")
    assert shop.ask("run", job.id) == GOOD
    for when in (0, 2**31):
        os.utime(shop.root / "check.py", (when, when))
        assert shop.ask("why", job.id) == GOOD
    shop.write("check.py", FAILS)
    shop.git("checkout", "-q", "check.py")
    assert shop.ask("why", job.id) == GOOD
    shop.ask("status")
    shop.git("add", "-A")
    shop.git("commit", "-qm", "evidence")
    git(tmp_path, "clone", "-q", str(shop.root), "clone")
    assert donewhen(["why", job.id], tmp_path / "clone").returncode == 0


def test_a_command_that_changes_its_own_inputs_shows_nothing_that_lasts(shop: Shop) -> None:
    shop.write("check.py", "open('check.py', 'a').write('# once more\\n')\n")
    job = shop.job(f"It works\n  check: run {CHECK}")
    shop.ask("run", job.id)
    assert shop.ask("why", job.id) == STALE


def test_an_upstream_output_that_was_rewritten_makes_the_downstream_stale(shop: Shop) -> None:
    upstream = shop.job("There is data\n  check: file /data.csv", outputs=("/data.csv",))
    listed = ("depends_on: []", f"depends_on:\n  - {upstream.id}\ninputs:\n  - /check.py")
    downstream = shop.job(f"It works\n  check: run {CHECK}", edit=listed)
    data = shop.write("data.csv", "a\n1\n")
    assert shop.ask("run", downstream.id) == GOOD
    os.utime(data, (0, 0))
    shop.write("unrelated.txt", "nothing\n")
    assert shop.ask("why", downstream.id) == GOOD
    data.write_text("a\n2\n")
    assert shop.ask("why", downstream.id) == STALE


def test_what_a_person_signed_off_is_stale_when_what_a_link_leads_to_changes(shop: Shop) -> None:
    job = shop.job("It looks right")
    shop.write("real.txt", "fine\n")
    (shop.root / "result.txt").symlink_to("real.txt")
    sign_off(shop.workspace, job, "AC-1", "I saw it.", Approval(person_at_terminal()))
    shop.write("real.txt", "not fine\n")
    assert shop.ask("why", job.id)[0] == 1


# Results that nobody made


def project_with_tests(shop: Shop, body: str) -> Job:
    shop.write("pytest.ini", "[pytest]\n")
    shop.write("test_it.py", f"def test_it():\n    {body}\n")
    return shop.job(f"It works\n  check: run {PYTEST}")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pytest.py", "print('1 passed')\n"),
        ("conftest.py", "import os\nos._exit(0)\n"),
        ("conftest.py", "def pytest_collection_modifyitems(items):\n    items.clear()\n"),
        ("junit.xml", '<testsuite><testcase classname="test_it" name="test_it"/></testsuite>'),
    ],
    ids=["a module of the same name", "an early exit", "nothing collected", "a planted report"],
)
def test_a_suite_without_a_report_of_its_own_has_not_passed(shop: Shop, name: str, text: str) -> None:
    job = project_with_tests(shop, "assert False")
    shop.write(name, text)
    assert shop.ask("run", job.id) == FAILED


def test_a_report_that_was_asked_for_and_not_written_is_no_pass(shop: Shop) -> None:
    job = shop.job(f"It works\n  check: run {CHECK} --junitxml={{junit}}")
    assert shop.ask("run", job.id) == FAILED


def test_the_twin_whose_tests_ran_has_passed(shop: Shop, donewhen: Donewhen) -> None:
    job = project_with_tests(shop, "assert True")
    done = donewhen(["run", job.id], shop.root)
    assert done.returncode == 0
    assert "passed: 1, failed: 0, skipped: 0" in done.stdout


def test_a_child_that_was_left_behind_is_gone_when_the_run_is(shop: Shop, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    shop.write(
        "check.py",
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])\n"
        f"open({str(pid)!r}, 'w').write(str(child.pid))\n",
    )
    job = shop.job(f"It works\n  check: run {CHECK}")
    assert shop.ask("run", job.id) == GOOD
    give_up = time.monotonic() + 30
    while running(int(pid.read_text())) and time.monotonic() < give_up:
        time.sleep(0.02)
    assert not running(int(pid.read_text()))


def running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize(("change", "code"), [(b"12 passed\n", "evidence_changed"), (None, "evidence_missing")])
def test_evidence_that_was_rewritten_or_removed_is_missed(shop: Shop, change: bytes | None, code: str) -> None:
    job = shop.job(f"It works\n  check: run {CHECK}")
    shop.ask("run", job.id)
    assert shop.ask("audit") == GOOD
    name = shop.workspace.ledger.read(job.id).entries[-1].data["output"].partition(":")[2]
    path = shop.root / ".donewhen" / "evidence" / name[:2] / name
    assert path.read_bytes() == b"good\n"
    path.unlink()
    if change is not None:
        path.write_bytes(change)
    assert shop.ask("audit") == (1, [code])
