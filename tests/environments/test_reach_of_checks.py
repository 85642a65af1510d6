"""Checks reach programs that agreed files name by a path, and folders that environments name; both are listed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from donewhen.isolation.usable import why_unusable
from donewhen_kit import quiet_environment
from environments.environment_kit import Venv
from isolation.test_checks_of_jobs import words_for
from room.room_kit import GOOD, LAZY, PRICE, SHOP, Answer, Bench

pytestmark = pytest.mark.scenes

CHANGED = "environment_changed"
CHECK = SHOP["check.py"].replace("import sys\n", "import sys\n\nimport rules\n", 1).replace("!= 3", "!= rules.SUM")
"""It needs a module that only the person's environment has."""
AREA = ("/src/shop/**",)


class Machine:
    """A home folder with a virtual environment, and a project beside it."""

    def __init__(self, base: Path) -> None:
        base = Path(os.path.realpath(base))
        self.home = base / "home"
        self.project = self.home / "src" / "shop"
        self.venv = Venv(self.home / "venvs" / "x")
        (self.venv.site / "rules.py").write_text("SUM = 3\n")

    def bench(self, **files: str) -> Bench:
        return Bench(self.project, SHOP | {"check.py": CHECK} | files)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    return made


WAYS: dict[str, tuple[str, dict[str, str]]] = {
    "a recipe": ("make test", {"Makefile": "test:\n\t{venv}/bin/python check.py\n"}),
    "a variable of make": ("make test", {"Makefile": "PY := $(HOME)/venvs/x/bin/python\ntest:\n\t$(PY) check.py\n"}),
    "a folder of make": ("make test", {"Makefile": "VENV = {venv}\ntest:\n\t$(VENV)/bin/python check.py\n"}),
    "a variable of the shell in a recipe": (
        "make test",
        {"Makefile": "test:\n\t$$HOME/venvs/x/bin/python check.py\n"},
    ),
    "a shell script": ("sh run.sh", {"run.sh": "set -e\n~/venvs/x/bin/python check.py\n"}),
    "an environment that is activated": (
        "sh run.sh",
        {"run.sh": '. "$HOME/venvs/x/bin/activate"\npython check.py\n'},
    ),
    "a folder of programs": ("sh run.sh", {"run.sh": "PATH=~/venvs/x/bin:$PATH\nexec python check.py\n"}),
    "a relative path": ("sh run.sh", {"run.sh": "../../venvs/x/bin/python check.py\n"}),
    "a relative first word": ("../../venvs/x/bin/python check.py", {}),
    "words of a command": ("env A=1 sh -c 'exec {venv}/bin/python check.py'", {}),
    "another script": (
        "python3 run.py",
        {"run.py": "import subprocess, sys\nsys.exit(subprocess.call(['{venv}/bin/python', 'check.py']))\n"},
    ),
}


def job_of(machine: Machine, way: str) -> tuple[Bench, str]:
    command, files = WAYS[way]
    filled = {name: text.replace("{venv}", str(machine.venv.folder)) for name, text in files.items()}
    bench = machine.bench(**filled)
    criterion = f"The check passes\n  check: run {command.replace('{venv}', str(machine.venv.folder))}"
    return bench, bench.job(criterion, work=AREA).id


def completed(bench: Bench, job: str) -> Answer:
    return bench.complete(bench.workspace.job(job))


@pytest.mark.parametrize("way", WAYS)
def test_a_program_that_agreed_files_name_by_a_path_runs_and_is_listed(machine: Machine, way: str) -> None:
    bench, job = job_of(machine, way)
    bench.write(PRICE, LAZY)
    assert completed(bench, job).codes == {"criterion_failed"}
    rules = machine.venv.site / "rules.py"
    rules.write_text("SUM = 0\n")
    cheated = completed(bench, job)
    assert (cheated.done, cheated.codes) == (False, {CHANGED})
    rules.write_text("SUM = 3\n")
    bench.work()
    answer = completed(bench, job)
    assert answer.done, answer


def test_a_script_whose_first_line_names_the_interpreter(machine: Machine) -> None:
    bench = machine.bench(**{"tools/check.py": f"#!{machine.venv.python}\n{CHECK}"})
    (bench.root / "tools/check.py").chmod(0o755)
    bench.commit()
    job = bench.job("The check passes\n  check: run ./tools/check.py", work=AREA)
    bench.work()
    assert bench.complete(job).done


def test_scripts_of_npm(machine: Machine) -> None:
    if shutil.which("npm") is None:
        pytest.skip("LOUD: there is no npm")
    manifest = json.dumps({"name": "shop", "scripts": {"test": f"{machine.venv.python} check.py"}})
    bench = machine.bench(**{"package.json": manifest})
    job = bench.job("The check passes\n  check: run npm test", work=AREA)
    bench.write(PRICE, LAZY)
    assert not bench.complete(job).done
    bench.work()
    assert bench.complete(job).done


def test_a_named_interpreter_that_is_swapped_waits_for_a_person(machine: Machine) -> None:
    bench, job = job_of(machine, "a recipe")
    python = machine.venv.python
    python.unlink()
    python.write_text("#!/bin/sh\nexit 0\n")
    python.chmod(0o755)
    bench.write(PRICE, LAZY)
    answer = completed(bench, job)
    assert (answer.done, answer.codes) == (False, {CHANGED})


def test_a_program_alone_comes_with_its_folder_which_is_listed(machine: Machine) -> None:
    tools = machine.home / "tools"
    tools.mkdir()
    (tools / "check").write_text('#!/bin/sh\n. "$(dirname "$0")/limits.sh"\ngrep -q "$WANTED" src/shop/price.py\n')
    (tools / "check").chmod(0o755)
    limits = tools / "limits.sh"
    limits.write_text("WANTED=sum\n")
    bench = machine.bench(Makefile="test:\n\t$$HOME/tools/check\n")
    job = bench.job("The check passes\n  check: run make test", work=AREA)
    bench.write(PRICE, LAZY)
    limits.write_text("WANTED=done\n")
    assert bench.complete(job).codes == {CHANGED}
    limits.write_text("WANTED=sum\n")
    assert bench.complete(job).codes == {"criterion_failed"}
    bench.work()
    assert bench.complete(job).done


def by_path(site: Path, sibling: Path) -> None:
    (site / "rules.pth").write_text(f"{sibling}\n")


def by_finder(site: Path, sibling: Path) -> None:
    (site / "__editable___rules_finder.py").write_text(
        "import sys\nfrom importlib.util import spec_from_file_location\n"
        f"MAPPING: dict[str, str] = {{'rules': '{sibling}/rules'}}\n\n\nclass Finder:\n    @classmethod\n"
        "    def find_spec(cls, name, path=None, target=None):\n        if name in MAPPING:\n"
        "            return spec_from_file_location(name, MAPPING[name] + '.py')\n\n\n"
        "def install():\n    sys.meta_path.append(Finder)\n"
    )
    (site / "__editable__.rules.pth").write_text(
        "import __editable___rules_finder; __editable___rules_finder.install()\n"
    )


def sibling_of(machine: Machine, how: Callable[[Path, Path], None]) -> tuple[Bench, Path]:
    """A library of the person, beside the project, which the project's environment has installed as editable."""
    sibling = machine.home / "src" / "rules"
    sibling.mkdir(parents=True)
    (sibling / "rules.py").write_text("SUM = 3\n")
    (sibling / ".git").mkdir()
    bench = machine.bench()
    environment = Venv(bench.root / ".venv")
    how(environment.site, sibling)
    return bench, sibling


@pytest.mark.parametrize("how", [by_path, by_finder])
def test_a_library_that_is_installed_as_editable_is_in_reach_and_listed(
    machine: Machine, how: Callable[[Path, Path], None]
) -> None:
    bench, sibling = sibling_of(machine, how)
    job = bench.job("The check passes\n  check: run .venv/bin/python check.py", work=AREA)
    bench.write(PRICE, LAZY)
    assert bench.complete(job).codes == {"criterion_failed"}
    (sibling / "rules.py").write_text("SUM = 0\n")
    assert bench.complete(job).codes == {CHANGED}
    (sibling / "rules.py").write_text("SUM = 3\n")
    # A commit there, caches.
    (sibling / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (sibling / "__pycache__").mkdir()
    (sibling / "__pycache__" / "rules.cpython-311.pyc").write_bytes(b"x")
    bench.work()
    answer = bench.complete(job)
    assert answer.done, answer


def test_a_package_of_node_that_is_linked_is_in_reach_and_listed(machine: Machine) -> None:
    if shutil.which("node") is None:
        pytest.skip("LOUD: there is no node")
    sibling = machine.home / "src" / "rules"
    sibling.mkdir(parents=True)
    (sibling / "index.js").write_text("exports.total = text => text.includes('sum')\n")
    check = (
        "const judges = [require('rules'), require('@shop/rules')]\n"
        "const text = require('fs').readFileSync('src/shop/price.py', 'utf8')\n"
        "process.exit(judges.every(judge => judge.total(text)) ? 0 : 1)\n"
    )
    bench = machine.bench(**{"check.js": check, "package.json": "{}"})
    bench.link("node_modules/rules", "../../rules")
    bench.link("node_modules/@shop/rules", str(sibling))
    job = bench.job("The check passes\n  check: run node check.js", work=AREA)
    bench.write(PRICE, LAZY)
    assert bench.complete(job).codes == {"criterion_failed"}
    (sibling / "index.js").write_text("exports.total = () => true\n")
    assert bench.complete(job).codes == {CHANGED}
    (sibling / "index.js").write_text("exports.total = text => text.includes('sum')\n")
    bench.work()
    answer = bench.complete(job)
    assert answer.done, answer


def test_a_path_file_that_widens_the_reach_waits_for_a_person(machine: Machine) -> None:
    bench, sibling = sibling_of(machine, by_path)
    job = bench.job("The check passes\n  check: run .venv/bin/python check.py", work=AREA)
    other = machine.home / "other"
    other.mkdir()
    (other / "rules.py").write_text("SUM = 0\n")
    site = next(bench.root.glob(".venv/lib/python3*/site-packages"))
    (site / "a.pth").write_text(f"{other}\n")
    bench.write(PRICE, LAZY)
    assert bench.complete(job).codes == {CHANGED}
    (site / "a.pth").unlink()
    bench.work()
    assert bench.complete(job).done
    assert sibling.is_dir()


def need_isolation() -> None:
    if why_unusable("namespaces"):
        pytest.skip("LOUD: namespaces do not work here")


def test_a_folder_that_contains_the_project_stays_out_of_reach_and_the_failure_says_why(machine: Machine) -> None:
    need_isolation()
    bench, _ = sibling_of(machine, lambda site, sibling: by_path(site, sibling.parent))
    (machine.home / "src" / "rules.py").write_text("SUM = 3\n")
    shutil.rmtree(machine.home / "src" / "rules")
    job = bench.job("The check passes\n  check: run .venv/bin/python check.py", work=AREA)
    bench.work()
    answer = bench.complete(job)
    assert answer.codes == {"criterion_failed"}
    (why,) = answer.why
    assert "the module rules lies in " in why
    assert "because it contains the project" in why


@pytest.mark.parametrize(
    ("command", "part"),
    [
        ("cat ~/notes.txt", "copy it into the project"),
        ("for name in check; do ~/hidden/$name; done", "name it by its path"),
    ],
)
def test_what_is_out_of_reach_is_named_with_the_next_step(machine: Machine, command: str, part: str) -> None:
    need_isolation()
    (machine.home / "notes.txt").write_text("x\n")
    program = machine.home / "hidden" / "check"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    bench = machine.bench(**{"run.sh": f"{command}\n"})
    job = bench.job("The check passes\n  check: run sh run.sh", work=AREA)
    bench.work()
    answer = bench.complete(job)
    assert answer.codes == {"criterion_failed"}
    (why,) = answer.why
    assert "out of reach of checks" in why
    assert part in why


def test_a_package_of_the_user_is_off_and_the_failure_says_so(machine: Machine) -> None:
    need_isolation()
    site = machine.home / ".local/lib/python3.11/site-packages"
    site.mkdir(parents=True)
    (site / "rules.py").write_text("SUM = 3\n")
    bench = machine.bench(**{"run.sh": f"{sys.executable} check.py\n"})
    job = bench.job("The check passes\n  check: run sh run.sh", work=AREA)
    bench.work()
    (why,) = bench.complete(job).why
    assert "installed for the user alone" in why


def test_what_does_not_exist_at_all_is_not_blamed_on_the_reach(machine: Machine) -> None:
    bench = machine.bench(**{"run.sh": "cat ~/nothing.txt; python3 -c 'import no_such_module'\n"})
    job = bench.job("The check passes\n  check: run sh run.sh", work=AREA)
    bench.work()
    assert bench.complete(job).why == ()


_PLAY = """
import sys
from pathlib import Path
from environments.test_reach_of_checks import PLAYED, play
print(play(Path(sys.argv[1]), sys.argv[2]))
"""
PLAYED: dict[str, Callable[[Machine], tuple[Bench, str]]] = {
    "a program at home": lambda machine: job_of(machine, "a shell script"),
    "a program by its path": lambda machine: job_of(machine, "a recipe"),
    "a relative first word": lambda machine: job_of(machine, "a relative first word"),
    "a library": lambda machine: library(machine),
}


def library(machine: Machine) -> tuple[Bench, str]:
    bench, _ = sibling_of(machine, by_finder)
    return bench, bench.job("The check passes\n  check: run .venv/bin/python check.py", work=AREA).id


def play(base: Path, what: str) -> str:
    bench, job = PLAYED[what](Machine(base))
    bench.write(PRICE, LAZY)
    before = completed(bench, job)
    bench.write(PRICE, GOOD)
    after = completed(bench, job)
    return f"{sorted(before.codes)} {after.done} {after.rooms[0].isolation}"


@pytest.mark.parametrize("level", ["landlock", "copy"])
@pytest.mark.parametrize("what", PLAYED)
def test_the_same_at_weaker_levels(tmp_path: Path, level: str, what: str) -> None:
    base = Path(os.path.realpath(tmp_path))
    (base / "home").mkdir()
    variables = quiet_environment(PYTHONPATH=str(Path(__file__).parent.parent), HOME=str(base / "home"))
    variables["PYTHONPATH"] += f"{os.pathsep}{Path(__file__).parent.parent / 'room'}"
    argv = [*words_for(level), sys.executable, "-c", _PLAY, str(base), what]
    done = subprocess.run(argv, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"['criterion_failed'] True {level}\n"
