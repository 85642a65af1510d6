"""The composite action and the hooks for pre-commit: their steps are run as a runner and pre-commit run them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
from verify_kit import HONEST, Shop

from donewhen import __version__
from donewhen.config.agent_runtimes import AGENT_VARIABLES
from sentences import assert_sentences

HERE = Path(__file__).parents[2]
HIDDEN = {*AGENT_VARIABLES, "CI", "PYTHONPATH", "VIRTUAL_ENV", "COVERAGE_PROCESS_START", "COV_CORE_SOURCE"}
PAGES = ("run-jobs-in-ci.md", "check-in-ci.md")


def workflows() -> list[Any]:
    """Every workflow in the pages about CI."""
    texts = [(HERE / "docs" / "howto" / page).read_text() for page in PAGES]
    blocks = [block for text in texts for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    # YAML reads the key `on` as true.
    return [data for block in blocks if (data := yaml.safe_load(block)) and "jobs" in data]


def test_the_action_installs_one_release_and_nothing_of_the_checkout() -> None:
    action = yaml.safe_load((HERE / "action.yml").read_text())
    assert action["inputs"]["version"]["default"] == __version__
    assert action["inputs"]["package"]["default"] == ""
    metadata = tomllib.loads((HERE / "pyproject.toml").read_text())
    extras = set(action["inputs"]["extras"]["default"].split(","))
    assert {"schema", "sign"} <= extras <= metadata["project"]["optional-dependencies"].keys()
    scripts = "\n".join(step["run"] for step in action["runs"]["steps"])
    assert "GITHUB_ACTION_PATH" not in scripts
    # Whatever Python is started is isolated from the folder that it is started in.
    assert re.findall(r"python3?\S* (?!-I )", scripts) == []


def test_the_documented_workflows_run_nothing_of_the_pull_request_but_its_work() -> None:
    found = workflows()
    assert len(found) == len(PAGES)
    for workflow in found:
        assert workflow[True] == {"pull_request": None}
        assert workflow["permissions"] == {"contents": "read"}
        for job in workflow["jobs"].values():
            assert "permissions" not in job
            for step in job["steps"]:
                uses, script = step.get("uses", "x@1"), step.get("run", "")
                assert re.fullmatch(r"[^.@][^@]*@\S+", uses), "an action of a folder is the pull request's"
                assert "${{" not in script, "an expression in a script would let a branch's name run commands"
                for install in re.findall(r"pip install (.*)", script):
                    words = install.replace("-r ", "-r").split()
                    assert all(re.fullmatch(r"[\w=.]+|-r\"\$RUNNER_TEMP/\S+", word) for word in words), install
                    assert "donewhen" not in words, "one release is named"


def test_the_documented_workflow_of_verify_takes_what_decides_from_the_base() -> None:
    (workflow,) = [found for found in workflows() if "donewhen" in found["jobs"]]
    checkout, _, install, verify = workflow["jobs"]["donewhen"]["steps"]
    assert checkout["with"] == {"fetch-depth": 0, "persist-credentials": False}
    assert install["env"] == {"BASE": "${{ github.base_ref }}"}
    assert 'git show "origin/$BASE:requirements.txt"' in install["run"]
    assert verify["uses"].partition("@")[0].endswith("/donewhen")


class Ran(NamedTuple):
    """What became of an action."""

    status: int
    said: str
    outputs: dict[str, str]
    summary: str


class Runner:
    """Runs the steps of a composite action in a checkout, with bash as a runner calls it."""

    def __init__(self, checkout: Path, temp: Path) -> None:
        self.checkout = checkout
        self.temp = temp
        temp.mkdir()

    def run(self, base_ref: str, *, installed: bool = False, **inputs: str) -> Ran:
        """Run the steps; without the first one where donewhen is installed already, which takes most of the time."""
        action = yaml.safe_load((HERE / "action.yml").read_text())
        given = {name: inputs.get(name, value["default"]) for name, value in action["inputs"].items()}
        output, summary = self.temp / "output", self.temp / "summary"
        output.touch()
        summary.touch()
        said = ""
        for step in action["runs"]["steps"][installed:]:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"], "an expression in a script would let a branch's name run commands"
            known = {name: value for name, value in os.environ.items() if name not in HIDDEN}
            env = {
                **known,
                **{name: self._value(text, given, base_ref) for name, text in step.get("env", {}).items()},
                "GITHUB_ACTIONS": "true",
                "GITHUB_WORKSPACE": str(self.checkout),
                "GITHUB_OUTPUT": str(output),
                "GITHUB_STEP_SUMMARY": str(summary),
                "RUNNER_TEMP": str(self.temp),
            }
            script = self.temp / "step.sh"
            script.write_text(step["run"])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
                cwd=self.checkout,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            said += done.stdout
            if done.returncode:
                break
        outputs = dict(line.split("=", 1) for line in output.read_text().splitlines())
        return Ran(done.returncode, said, outputs, summary.read_text())

    def _value(self, text: str, inputs: dict[str, str], base_ref: str) -> str:
        """The few expressions that the action uses."""

        def looked_up(found: re.Match[str]) -> str:
            names = [part.strip() for part in found[1].split("||")]
            values = {"github.base_ref": base_ref, **{f"inputs.{name}": value for name, value in inputs.items()}}
            return next((values[name] for name in names if values[name]), "")

        return re.sub(r"\$\{\{(.*?)\}\}", looked_up, text)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """This tree as a wheel, which stands in for the release on the package index."""
    folder = tmp_path_factory.mktemp("wheel")
    argv = [sys.executable, "-m", "pip", "-q", "wheel", "--no-deps", "--wheel-dir", str(folder), str(HERE)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A repository on a server, with an honest branch and one that cheats."""
    shop = Shop(tmp_path_factory.mktemp("action") / "shop")
    job = shop.job(criteria=("No test fails\n  check: run python3 -m unittest -q check_prices",))
    shop.write(
        "check_prices.py",
        "import unittest\n\nimport prices\n\n\nclass Prices(unittest.TestCase):\n"
        "    def test_negative(self):\n        self.assertRaises(ValueError, prices.total, [-1])\n",
    )
    shop.branch("honest")
    shop.write("prices.py", HONEST)
    assert shop.complete(job).done
    shop.commit()
    shop.git("switch", "-q", "main")
    shop.git("switch", "-q", "-c", "cheating")
    shop.write("prices.py", "def total(prices):\n    return 0\n")
    shop.edit(shop.plan(job), "status: planned", "status: done")
    shop.commit()
    server = shop.folder.parent / "server.git"
    subprocess.run(["git", "clone", "-q", "--bare", str(shop.folder), str(server)], check=True)
    return {"server": server, "temp": shop.folder.parent}


def checked_out(project: dict[str, Any], branch: str, place: Path) -> Path:
    """As actions/checkout leaves it: one commit deep, without the base branch."""
    address = f"file://{project['server']}"
    subprocess.run(["git", "clone", "-q", "--depth=1", "--branch", branch, address, str(place)], check=True)
    return place


@pytest.mark.installs
def test_the_action_is_green_for_honest_work_and_red_with_annotations_for_the_rest(
    project: dict[str, Any], wheel: Path, tmp_path: Path
) -> None:
    honest = Runner(checked_out(project, "honest", tmp_path / "honest"), tmp_path / "runner")
    # What stands in the checkout under the names of our own modules is not what decides.
    for name in ("click", "venv", "pip", "runpy", "ensurepip"):
        (honest.checkout / f"{name}.py").write_text("raise SystemExit('the branch was imported')\n")
    (honest.checkout / "donewhen").mkdir()
    (honest.checkout / "donewhen" / "__init__.py").write_text("raise SystemExit(0)\n")
    done = honest.run("main", package=str(wheel))
    assert done.status == 0, done.said
    assert done.outputs == {"verified": "true"}
    assert "## donewhen: verified" in done.summary
    assert (honest.checkout / "donewhen-verify.xml").is_file()
    assert (honest.checkout / "donewhen-verify.sarif").is_file()

    cheating = Runner(checked_out(project, "cheating", tmp_path / "cheating"), tmp_path / "runner2")
    shutil.copytree(tmp_path / "runner" / "donewhen", tmp_path / "runner2" / "donewhen", symlinks=True)
    done = cheating.run("main", installed=True)
    assert done.status == 1, done.said
    assert done.outputs == {"verified": "false"}
    assert "title=donewhen%3A criterion_failed::" in done.said
    assert "title=donewhen%3A receipt_unfounded::" in done.said
    assert "## donewhen: not verified" in done.summary
    assert (cheating.checkout / "donewhen-verify.xml").is_file()

    # A base that is not there is an error, and it is reported.
    done = cheating.run("", installed=True, base="gone")
    assert done.status == 2, done.said
    assert done.outputs["verified"] == "false"
    assert_sentences(done.summary)

    # Outside of a pull request nobody says what the base is; that is an error, and it is reported.
    done = cheating.run("", installed=True)
    assert done.status == 2, done.said
    assert done.outputs["verified"] == "false"
    assert_sentences(done.summary)


@pytest.mark.parametrize(
    "inputs",
    [
        {"package": "{checkout}/donewhen.whl"},
        {"package": "{temp}/linked.whl"},
        {"package": "donewhen.whl"},
        {"package": "{checkout}"},
        {"package": "https://files.test/donewhen.whl"},
        {"version": "0.1.0 ./vendor"},
        {"version": "*"},
        {"extras": "sign] @ file:///checkout #"},
    ],
)
def test_the_action_refuses_to_install_what_the_pull_request_could_have_made(
    tmp_path: Path, inputs: dict[str, str]
) -> None:
    checkout, temp = tmp_path / "checkout", tmp_path / "temp"
    checkout.mkdir()
    runner = Runner(checkout, temp)
    (checkout / "donewhen.whl").touch()
    (temp / "linked.whl").symlink_to(checkout / "donewhen.whl")
    given = {name: value.format(checkout=checkout, temp=temp) for name, value in inputs.items()}
    done = runner.run("main", **given)
    assert done.status == 2
    assert "::error::donewhen:" in done.said
    assert not (temp / "donewhen").exists()


class Released(NamedTuple):
    """A repository of donewhen as others would use it."""

    folder: Path
    commit: str


def as_released(folder: Path) -> Released:
    """This tree, with whatever is not committed yet, as the last commit of a repository of its own."""
    git = ["git", f"--git-dir={folder / '.git'}"]
    subprocess.run(["git", "clone", "-q", "--no-checkout", "--shared", str(HERE), str(folder)], check=True)
    subprocess.run([*git, f"--work-tree={HERE}", "add", "-A"], cwd=HERE, check=True)
    identity = ["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "commit.gpgsign=false"]
    subprocess.run([*git, *identity, "commit", "-q", "--allow-empty", "-m", "As it is"], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    return Released(folder, commit)


@pytest.mark.installs
def test_the_hooks_run_in_pre_commit(project: dict[str, Any], tmp_path: Path) -> None:
    if shutil.which("pre-commit", path=str(Path(sys.executable).parent)) is None:
        pytest.skip("LOUD: pre-commit is not installed; the hooks for it are NOT tested")
    place = tmp_path / "clone"
    subprocess.run(["git", "clone", "-q", "--branch", "cheating", str(project["server"]), str(place)], check=True)
    known = {name: value for name, value in os.environ.items() if name not in HIDDEN}
    env = known | {"PRE_COMMIT_HOME": str(tmp_path / "home"), "PRE_COMMIT_COLOR": "never"}
    hooks = [item["id"] for item in yaml.safe_load((HERE / ".pre-commit-hooks.yaml").read_text())]
    assert hooks == ["donewhen-audit", "donewhen-plan-check", "donewhen-verify"]
    tool = as_released(tmp_path / "tool")
    used = {"repo": str(tool.folder), "rev": tool.commit, "hooks": [{"id": hook} for hook in hooks]}
    (place / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [used]}))
    subprocess.run(["git", "add", ".pre-commit-config.yaml"], cwd=place, check=True)
    said = {}
    for hook in hooks:
        stage = "pre-push" if hook == "donewhen-verify" else "pre-commit"
        argv = [sys.executable, "-m", "pre_commit", "run", hook, "--verbose", "--hook-stage", stage, "--all-files"]
        done = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True)
        said[hook] = (done.returncode, done.stdout + done.stderr)
    assert said["donewhen-audit"][0] == 1
    assert "tampered" in said["donewhen-audit"][1]
    assert said["donewhen-plan-check"][0] == 1
    assert said["donewhen-verify"][0] == 1
    assert "criterion_failed" in said["donewhen-verify"][1]
