"""The checks of jobs are kept apart, at each level that is left to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from donewhen_kit import quiet_environment, run_main
from isolation.forbidding import LANDLOCK_CALLS, refusing, without_namespaces
from isolation.isolation_kit import need
from room.checkout_kit import Checkout, outcome

pytestmark = pytest.mark.scenes

_LOOK_UP = (
    f"""{sys.executable} -c 'import socket; socket.create_connection(("files.donewhen.invalid", 80))' || exit 3"""
)
_FINISH = """
import sys
from pathlib import Path
from donewhen.jobs.lifecycle.completion import complete
from room.checkout_kit import AGENT, Checkout, room_of
checkout = Checkout(Path(sys.argv[1]))
job = checkout.add(Path(sys.argv[2]).read_text())
checkout.agree(job)
done = checkout.finish(job).done
run = checkout.last_run(job)
print(done, room_of(checkout, job).isolation, room_of(checkout, job).network, run.exit_code)
"""


def words_for(level: str) -> list[str]:
    """Words before a command that leave it this level and weaker ones."""
    need("namespaces" if level == "namespaces" else "landlock" if level == "landlock" else "copy")
    if level == "namespaces":
        return []
    return [*without_namespaces(), *(refusing(LANDLOCK_CALLS, 38) if level == "copy" else [])]


def finished(tmp_path: Path, level: str, script: str) -> str:
    """Agree to a job with this check and complete it, where no stronger level works."""
    (tmp_path / "script").write_text(script)
    environment = quiet_environment(PYTHONPATH=str(Path(__file__).parent.parent), CANARY="a variable of the caller")
    argv = [*words_for(level), sys.executable, "-c", _FINISH, str(tmp_path / "shop"), str(tmp_path / "script")]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(("level", "network"), [("namespaces", "own"), ("landlock", "host"), ("copy", "host")])
def test_the_level_and_the_network_that_a_check_really_had_are_recorded(
    tmp_path: Path, level: str, network: str
) -> None:
    assert finished(tmp_path, level, 'test "$(cat src/done.txt | wc -l)" = 1') == f"True {level} {network} 0\n"


@pytest.mark.parametrize("level", ["namespaces", "landlock"])
def test_a_check_can_read_neither_the_checkout_nor_the_ledger_nor_what_lies_in_the_home_folder(
    tmp_path: Path, level: str
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop/.gitignore").write_text("ignored.txt\n")
    (tmp_path / "shop/ignored.txt").write_text("in the checkout")
    (tmp_path / "secret").write_text("of a person")
    script = f"""
for file in {tmp_path}/shop/ignored.txt {tmp_path}/secret {tmp_path}/shop/.donewhen/*; do
  if cat $file > /dev/null 2>&1; then exit 9; fi
done
env | grep CANARY && exit 8
exit 0
"""
    assert finished(tmp_path, level, script).startswith(f"True {level} ")


def test_a_copy_is_only_a_copy(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("of a person")
    assert finished(tmp_path, "copy", f"cat {tmp_path}/secret").startswith("True copy ")


def test_a_check_that_fails_for_want_of_network_says_so(tmp_path: Path) -> None:
    need("namespaces")
    checkout = Checkout(tmp_path / "shop")
    job = checkout.add(_LOOK_UP)
    checkout.agree(job)
    assert outcome(checkout, job) == (False, "", [])
    told = checkout.last_run(job).told
    assert told is not None
    assert "`network: host`" in told


def test_a_check_that_fails_otherwise_does_not_blame_the_network(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "shop")
    job = checkout.add("echo 'the network is fine'; exit 3")
    checkout.agree(job)
    assert outcome(checkout, job) == (False, "", [])
    assert checkout.last_run(job).told is None


def test_with_the_machine_s_network_a_failure_is_a_failure(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "shop")
    job = checkout.add(_LOOK_UP, network="host")
    checkout.agree(job)
    assert outcome(checkout, job) == (False, "", [])
    assert checkout.last_run(job).told is None


def test_a_check_that_only_mentions_the_network_passes(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path / "shop")
    job = checkout.add("echo 'Network is unreachable'")
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_doctor_names_the_level_that_works(tmp_path: Path) -> None:
    need("namespaces")
    assert "isolation     namespaces: " in run_main(["doctor"], tmp_path).stdout


@pytest.mark.parametrize(("level", "missing"), [("landlock", ["namespaces"]), ("copy", ["namespaces", "landlock"])])
def test_doctor_says_why_better_levels_don_t_work(tmp_path: Path, level: str, missing: list[str]) -> None:
    argv = [*words_for(level), sys.executable, "-m", "donewhen", "doctor"]
    done = subprocess.run(argv, cwd=tmp_path, env={**os.environ}, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    lines = done.stdout.splitlines()
    at = next(number for number, line in enumerate(lines) if " isolation " in line)
    assert lines[at].startswith(f"· isolation     {level}: ")
    assert [f"to use {name}," in lines[at + 1] for name in ("namespaces", "landlock")] == [
        name in missing for name in ("namespaces", "landlock")
    ]
