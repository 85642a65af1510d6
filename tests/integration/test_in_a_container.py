"""The whole story as an ordinary user in a container, where user namespaces are forbidden."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from donewhen_kit import quiet_environment
from forbidden_isolation import in_container, landlock_denied

if TYPE_CHECKING:
    from conftest import Played

_TEST = "import shop\n\n\ndef test_prices_add_up():\n    assert shop.total([1, 2]) == 3\n"


class Container:
    """A project in a sandbox of its own; commands see nothing else that they could write to."""

    def __init__(self, place: Path, as_person: Callable[..., Played]) -> None:
        self.place, self.project, home, temporary = place, place / "shop", place / "home", place / "tmp"
        for folder in (self.project, home, temporary):
            folder.mkdir()
        self.environment = quiet_environment(HOME=str(home), TMPDIR=str(temporary))
        self.environment.pop("XDG_STATE_HOME", None)
        self.as_person = as_person

    def run(self, *argv: str, denied: Sequence[str] = (), **options: object) -> subprocess.CompletedProcess[str]:
        words = in_container(self.place, options=denied)
        return subprocess.run(
            [*words, *argv],
            cwd=self.project,
            env=self.environment,
            capture_output=True,
            text=True,
            **options,  # type: ignore[call-overload]
        )

    def agent(self, *arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
        return self.run(sys.executable, "-m", "donewhen", *arguments, **options)  # type: ignore[arg-type]

    def person(self, *arguments: str) -> str:
        words = in_container(self.place)
        played = self.as_person(list(arguments), self.project, env=self.environment, words=words)
        assert played.status == 0, played.screen
        return played.screen

    def git(self, *arguments: str) -> None:
        done = self.run("git", "-c", "user.name=ada", "-c", "user.email=ada@localhost", *arguments)
        assert done.returncode == 0, done.stderr


@pytest.fixture
def container(tmp_path: Path, as_person: Callable[..., Played]) -> Container:
    made = Container(tmp_path, as_person)
    made.git("init", "-q", "-b", "main")
    (made.project / "tests").mkdir()
    (made.project / "tests" / "test_shop.py").write_text(_TEST)
    (made.project / "shop.py").write_text("def total(prices):\n    return 0\n")
    (made.project / "pyproject.toml").write_text('[tool.pytest.ini_options]\npythonpath = ["."]\n')
    assert made.agent("init", "--title", "Shop").returncode == 0
    added = made.agent("add", "Add up", "--criterion", "Tests pass :: run python -m pytest -q", "--output", "/shop.py")
    assert added.returncode == 0, added.stderr
    made.git("add", "--all")
    made.git("commit", "-q", "-m", "A shop")
    made.person("agree")
    made.git("add", "--all")
    made.git("commit", "-q", "-m", "Agreed")
    return made


def test_in_a_container_checks_are_kept_apart_by_landlock_and_the_story_is_the_same(container: Container) -> None:
    made = container
    assert made.agent("start", "001").returncode == 0
    test = made.project / "tests" / "test_shop.py"
    test.write_text("def test_prices_add_up():\n    assert True\n")
    (made.project / "shop.py").write_text("def total(prices):\n    return 0  # done\n")
    refused = made.agent("complete", "001", "--json")
    assert refused.returncode == 1
    assert "tests_changed" in refused.stdout

    test.write_text(_TEST)
    (made.project / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    done = made.agent("complete", "001", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    (chain,) = (made.project / ".donewhen" / "ledger").glob("WI-*.jsonl")
    rows = [json.loads(line) for line in chain.read_text().splitlines()]
    runs = [row["data"]["room"] for row in rows if row["type"] == "ran" and "room" in row["data"]]
    assert {run["isolation"] for run in runs} == {"landlock"}

    made.git("switch", "-q", "-c", "work")
    made.git("add", "--all")
    made.git("commit", "-q", "-m", "Prices add up")
    verified = made.agent("verify", "--base", "main", "--json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert "isolation_weak" in verified.stdout


def test_an_agent_that_takes_isolation_away_from_its_checks_waits_for_a_person(container: Container) -> None:
    made = container
    assert made.agent("start", "001").returncode == 0
    (made.project / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    with landlock_denied() as (denied, options):
        done = made.agent("complete", "001", "--json", denied=denied, **options)
    assert done.returncode == 1, done.stdout
    assert "environment_changed" in done.stdout
    assert "landlock" in done.stdout
    # The honest twin: the same work where checks are kept apart as agreed.
    assert made.agent("complete", "001").returncode == 0
