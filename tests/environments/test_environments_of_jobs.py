"""What is around the checks of real jobs: a cheat waits for a person and costs no iteration, honest work completes."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from donewhen.isolation.confinement import ConfinementError
from donewhen.isolation.usable import why_unusable
from donewhen.jobs.evidence.bytecode import read_compiled, write_compiled
from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.evidence.environment import environment_now
from donewhen.jobs.evidence.room_session import room_session
from donewhen.jobs.evidence.store import evidence_store
from donewhen.jobs.ledger.approval import Approval, person_at_terminal, unproved_actor
from donewhen.jobs.lifecycle.accepting import accept_environment, environment_differences
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.plan.job import Job
from donewhen.jobs.room.basis import agreed_basis
from donewhen.jobs.room.reading import read_rooms
from donewhen.jobs.room.surroundings import surroundings_in
from environments.environment_kit import Venv, package, same_times, wheel
from lean_python import lean_python
from room.room_kit import BAD, GOOD, PRICE, Bench

pytestmark = pytest.mark.scenes

CHANGED = "environment_changed"
TAG = f"{sys.implementation.cache_tag}.pyc"
SEALED = {"OPENAI_BASE_URL", "PIP_INDEX_URL", "npm_config_registry", "NODE_OPTIONS", "UV_INDEX", "LD_PRELOAD_X"}
OPEN = "Nothing has been written yet.\n"
DONE = "".join(f"Line {number} of a text that is finished now.\n" for number in range(9))
TESTS = "from shop.price import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
INI = "[pytest]\npythonpath = src\naddopts = -p no:cacheprovider\n"
FORGES = "import pytest\n\n\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport(item, call):\n"
FORGES += "    report = (yield).get_result()\n    report.outcome = 'passed'\n    report.longrepr = None\n"

LOOKS = """
import os, sys, tempfile
from pathlib import Path
# Compiled modules, and the code that watches the run, are the gate's; a checkout may lie below a temporary folder.
own = {Path.cwd(), Path(sys.pycache_prefix), Path(sys.modules["sitecustomize"].__file__).parent}
own |= {Path(CHECKOUT), Path(sys.prefix), Path(sys.base_prefix)}
for folder in (os.path.expanduser("~"), tempfile.gettempdir()):
    found = [path for path in Path(folder).rglob("*") if path.is_file() and not own & {*path.parents}]
    assert not found, found
assert sys.flags.no_user_site
assert not os.environ.keys() & SEALED
assert "elsewhere" not in os.environ.get("PYTHONPATH", "")
assert "finished" in open("done.txt").read()
"""


class Project:
    """A project with a virtual environment inside, in which its tests run, and an agreed job."""

    def __init__(self, tmp_path: Path) -> None:
        self.root = Path(os.path.realpath(tmp_path)) / "shop"
        self.wheels = self.root.parent / "wheels"
        self.root.mkdir()
        self.venv = Venv(self.root / ".venv")
        self.venv.copy_from_here("pytest", "pluggy", "iniconfig", "packaging", "pygments")
        self.bench = Bench(
            self.root,
            {
                "src/shop/__init__.py": "",
                PRICE: BAD,
                "tests/test_price.py": TESTS,
                "pytest.ini": INI,
                "requirements.txt": "pytest\n",
                ".gitignore": "__pycache__/\n.venv/\n",
            },
        )
        self.job: Job = self.bench.job(
            "The tests pass\n  check: run .venv/bin/python -m pytest -q tests",
            outputs=(f"/{PRICE}",),
            work=("/src/**", "/requirements.txt"),
        )

    def complete(self) -> tuple[bool, set[str], int, str]:
        """Whether the job is done, the reasons, the iterations that it has cost, and what they say."""
        before = self.bench.workspace.job(self.job.id).iteration
        result = complete(self.bench.workspace, self.job.id, unproved_actor())
        reasons = () if result.evaluation is None else result.evaluation.reasons
        codes = {str(reason.code) for reason in reasons} - {"score_too_low"}
        after = self.bench.workspace.job(self.job.id).iteration
        return result.done, codes, after - before, " ".join(reason.message for reason in reasons)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def appended(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


CHEATS: dict[str, Callable[[Project], object]] = {
    "a .pth file that patches": lambda project: write(
        project.venv.site / "x.pth", "import builtins; builtins.patched = True\n"
    ),
    "an edited pytest": lambda project: appended(
        project.venv.site / "_pytest" / "assertion" / "__init__.py",
        "\ndef pytest_runtest_makereport(item, call):\n    call.excinfo = None\n",
    ),
    "a declared plug-in": lambda project: (
        project.venv.unpack(
            wheel(project.wheels, "quick", files={"quick.py": FORGES}, points="[pytest11]\nquick = quick\n")
        ),
        write(project.root / "requirements.txt", "pytest\nquick==1.0\n"),
    ),
}


@pytest.mark.parametrize("cheat", CHEATS)
def test_a_cheat_in_the_environment_waits_for_a_person_and_costs_no_iteration(project: Project, cheat: str) -> None:
    # Work that passes by itself: what is refused is the environment.
    write(project.root / PRICE, GOOD)
    CHEATS[cheat](project)
    done, codes, cost, text = project.complete()
    assert (done, codes, cost) == (False, {CHANGED}, 0)
    assert "donewhen agree" in text or ".venv" in text


def test_honest_work_completes_with_a_declared_dependency_and_compiled_modules(project: Project) -> None:
    wheel(project.wheels, "requests", "2.1", requires=("idna",))
    # A plug-in for something that is not installed.
    wheel(project.wheels, "idna", "3.0", points="[babel.extractors]\nidna = idna\n")
    project.venv.install("requests", wheels=project.wheels)
    write(project.root / "requirements.txt", "pytest\nrequests==2.1\n")
    write(project.root / PRICE, f"import requests\n\n\n{GOOD}")
    assert project.complete()[:3] == (True, set(), 0)


def test_a_person_accepts_what_differs_and_then_it_completes(project: Project) -> None:
    write(project.root / PRICE, GOOD)
    project.venv.unpack(wheel(project.wheels, "quick", files={"quick.py": ""}, points="[pytest11]\nquick = quick\n"))
    assert project.complete()[:3] == (False, {CHANGED}, 0)
    found = environment_differences(project.bench.workspace, project.job)
    assert found is not None
    assert [line for line in found.differs if "quick" in line and "pytest11" in line]
    record = accept_environment(
        project.bench.workspace, project.job, found.places, "fine", Approval(person_at_terminal())
    )
    assert record.counts
    assert project.complete()[:2] == (True, set())
    after = environment_differences(project.bench.workspace, project.job)
    assert after is not None
    assert after.differs == ()


@pytest.mark.parametrize("option", ["", "-I ", "-W error -BEs "])
def test_compiled_modules_of_the_environment_are_not_read(tmp_path: Path, option: str) -> None:
    """Also where the command says that variables don't count."""
    import importlib.util
    import py_compile

    root = Path(os.path.realpath(tmp_path)) / "shop"
    root.mkdir()
    venv = Venv(root / ".venv")
    judge = "import sys\nsys.exit('finished' not in open('done.txt').read())\n"
    venv.unpack(wheel(root.parent / "w", "judge", files={"judge.py": judge}))
    bench = Bench(root, {"done.txt": OPEN, ".gitignore": ".venv/\n"})
    check = f"It is done\n  check: run .venv/bin/python {option}-m judge"
    job = bench.job(check, outputs=("/done.txt",), work=("/done.txt",))
    poison = root.parent / "poison.py"
    poison.write_text("import sys\nsys.exit(0)\n")
    cached = importlib.util.cache_from_source(str(venv.site / "judge.py"))
    mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
    py_compile.compile(str(poison), cfile=cached, dfile=str(venv.site / "judge.py"), invalidation_mode=mode)
    bench.write("done.txt", OPEN + OPEN)
    assert not bench.complete(job).done
    bench.write("done.txt", DONE)
    assert bench.complete(job).done


def test_a_check_finds_a_new_home_and_no_variables_of_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why_unusable("namespaces") and why_unusable("landlock"):
        pytest.skip("LOUD: nothing keeps checks apart here")
    root = Path(os.path.realpath(tmp_path)) / "shop"
    home = Path(os.path.realpath(tmp_path)) / "home"
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    write(home / ".local" / "lib" / name / "site-packages" / "usercustomize.py", "raise SystemExit(0)\n")
    write(home / ".npmrc", "script-shell=/bin/true\n")
    monkeypatch.setenv("HOME", str(home))
    for variable in (*SEALED, "PYTHONPATH"):
        monkeypatch.setenv(variable, "elsewhere")
    check = f"SEALED = {SEALED}\nCHECKOUT = {str(Path(__file__).resolve().parents[2])!r}\n{LOOKS}"
    bench = Bench(root, {"done.txt": OPEN, "check.py": check})
    check = f"It is done\n  check: run {lean_python()} check.py"
    job = bench.job(check, outputs=("/done.txt",), work=("/done.txt",))
    bench.write("done.txt", DONE)
    run = run_as_evidence(bench.workspace, job, [lean_python(), "check.py"], unproved_actor())
    assert run.passed, run.output


def test_a_variable_that_judges_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = Path(os.path.realpath(tmp_path)) / "shop"
    settings = '[jobs]\npass_env = ["MODEL_BASE_URL", "MODEL_API_KEY"]\n'
    monkeypatch.setenv("MODEL_BASE_URL", "https://models.example")
    monkeypatch.setenv("MODEL_API_KEY", "one")
    bench = Bench(root, {"done.txt": OPEN, "donewhen.toml": settings})
    check = "It is done\n  check: run grep -q finished done.txt"
    job = bench.job(check, outputs=("/done.txt",), work=("/done.txt",))
    bench.write("done.txt", DONE)
    monkeypatch.setenv("MODEL_BASE_URL", "http://localhost:1")
    answer = bench.complete(job)
    assert (answer.done, answer.codes) == (False, {CHANGED})
    monkeypatch.setenv("MODEL_BASE_URL", "https://models.example")
    # A rotated secret is no other environment.
    monkeypatch.setenv("MODEL_API_KEY", "two")
    assert bench.complete(job).done


def test_an_empty_cache_costs_nothing_since_compiled_modules_come_with_the_agreement(project: Project) -> None:
    sealed = agreed_basis(project.bench.workspace, project.job)
    assert sealed is not None
    (name,) = sealed.compiled
    store = evidence_store(project.bench.workspace)
    modules = read_compiled(store, name)
    assert [module for module in modules if module.endswith("/_pytest/runner." + TAG)]
    assert not [module for module in modules if "/src/shop/" in module or "/tests/" in module]
    # The flags of a module that Python takes only if the hash of its source is right.
    assert {content[4:8] for content in modules.values()} == {b"\x03\0\0\0"}
    found: list[set[str]] = []
    with room_session(project.bench.workspace, project.job) as session:
        assert session is not None
        around = replace(
            surroundings_in(project.bench.workspace, sealed),
            on_bytecode=lambda cache: found.append({str(path.relative_to(cache)) for path in cache.rglob("*.pyc")}),
        )
        assert session.run_agreed([".venv/bin/python", "-c", "import _pytest.runner"], around, 60).passed
    assert found == [{*modules}]


def test_a_compiled_module_of_another_source_is_not_used(project: Project) -> None:
    runner = project.venv.site / "_pytest" / "runner.py"
    runner.write_text("raise SystemExit(7)\n")
    with room_session(project.bench.workspace, project.job) as session:
        assert session is not None
        around = surroundings_in(project.bench.workspace, session.reading.basis)
        run = session.run_agreed([".venv/bin/python", "-c", "import _pytest.runner"], around, 60)
    assert run.result.exit_code == 7


def test_damaged_compiled_modules_are_none(project: Project) -> None:
    store = evidence_store(project.bench.workspace)
    assert read_compiled(store, store.put(b"x")) == {}
    assert read_compiled(store, f"sha256:{'0' * 64}") == {}
    with pytest.raises(ConfinementError):
        write_compiled(project.root, {"../x.pyc": b""})


def test_a_package_that_is_changed_while_a_check_runs_and_changed_back_is_noticed(project: Project) -> None:
    with read_rooms(project.bench.workspace, project.job) as reading:
        assert reading is not None
        around = surroundings_in(project.bench.workspace, reading.basis)
        found = environment_now(project.bench.workspace, reading, around)
        assert found.is_still_true
        path = project.venv.site / "pluggy" / "_hooks.py"
        before, text = path.stat(), path.read_text()
        path.write_text(text + "#")
        path.write_text(text)
        same_times(path, before)
        assert not found.is_still_true
        again = environment_now(project.bench.workspace, reading, around)
        assert again.places == found.places
        # A module that is there for a moment changes the folder.
        (project.venv.site / "numpy.py").touch()
        (project.venv.site / "numpy.py").unlink()
        assert not again.is_still_true


def test_an_environment_that_no_check_uses_is_none_of_their_business(project: Project) -> None:
    write(project.root / PRICE, GOOD)
    Venv(project.root / "scratch")
    assert project.complete()[:2] == (True, set())


def test_packages_of_node_are_compared_too(tmp_path: Path) -> None:
    need_node()
    root = Path(os.path.realpath(tmp_path)) / "shop"
    judge = package(root / "node_modules", "judge", code="module.exports = (text) => text.includes('finished')\n")
    check = "process.exit(require('judge')(require('fs').readFileSync('done.txt', 'utf8')) ? 0 : 1)\n"
    manifest = '{"dependencies": {"judge": "1.0.0"}}'
    files = {"done.txt": OPEN, "check.js": check, "package.json": manifest, ".gitignore": "node_modules/\n"}
    bench = Bench(root, files)
    job = bench.job("It is done\n  check: run node check.js", outputs=("/done.txt",), work=("/done.txt",))
    bench.write("done.txt", DONE)
    text = (judge / "index.js").read_text()
    (judge / "index.js").write_text("module.exports = () => true\n")
    answer = bench.complete(job)
    assert (answer.done, answer.codes) == (False, {CHANGED})
    (judge / "index.js").write_text(text)
    (root / "node_modules" / ".cache").mkdir()
    assert bench.complete(job).done


def need_node() -> None:
    if shutil.which("node") is None:
        pytest.skip("LOUD: there is no node")
