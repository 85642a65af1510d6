"""Upstream changes: fetched by the gate from the sealed address; offline the answer is provisional until CI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from room_kit import BAD, GOOD, PRICE, RUN_CHECK, SHOP, Bench

from donewhen.cli._output import Output
from donewhen.cli._terms import show_files
from donewhen.jobs.contract.agreeing import agreement_proposals
from donewhen.jobs.gates.job_view import view_job
from donewhen.jobs.ledger.entry_content import Completed
from donewhen.jobs.lifecycle.agreed_now import agreed_now
from donewhen.jobs.lifecycle.agreeing import full_proposals

pytestmark = pytest.mark.scenes

OTHER = f"The other\n  check: run {RUN_CHECK.rpartition('check: run ')[2].partition(' ')[0]} other.py"
FILES = SHOP | {
    "src/other/__init__.py": "N = 0\n",
    "other.py": "import sys\nsys.path.insert(0, 'src')\nimport other\nsys.exit(other.N != 1)\n",
}


def with_server(tmp_path: Path) -> tuple[Bench, Path]:
    server = tmp_path / "server.git"
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", server], check=True)
    bench = Bench(tmp_path / "shop", FILES)
    bench.git("remote", "add", "origin", str(server))
    bench.git("push", "-q", "-u", "origin", "main")
    return bench, server


def merged_upstream(tmp_path: Path, server: Path, name: str, text: str) -> None:
    """Somebody else merges a change on the server."""
    other = tmp_path / "other"
    subprocess.run(["git", "clone", "-q", server, other], check=True)
    (other / name).write_text(text)
    for arguments in (
        ("add", "-A"),
        ("-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "-m", "X"),
        ("push", "-q"),
    ):
        subprocess.run(["git", *arguments], cwd=other, check=True)


def pull(bench: Bench) -> None:
    bench.git("add", "-A")
    bench.git("commit", "-q", "--allow-empty", "-m", "Record")
    bench.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")


def test_offline_the_promise_is_provisional_and_online_it_is_not(tmp_path: Path) -> None:
    bench, server = with_server(tmp_path)
    job = bench.job(RUN_CHECK)
    bench.git("push", "-q", "origin", "main")
    stricter = SHOP["check.py"].replace("[1, 2]", "[1, 1, 1]")
    merged_upstream(tmp_path, server, "check.py", stricter)
    pull(bench)
    bench.work()
    server.rename(tmp_path / "elsewhere.git")
    answer = bench.complete(job)
    assert answer.done
    assert answer.rooms[0].provisional
    completed = bench.workspace.ledger.read(job.id).entries[-1].read_as(Completed)
    assert completed.room is not None and completed.room.provisional
    assert completed.room.commit == bench.git("rev-parse", "origin/main").strip()
    shown = view_job(bench.workspace, bench.workspace.job(job.id))
    assert any("provisional until CI" in note for note in shown.notes)


def test_the_work_of_a_done_job_is_kept_after_upstream_was_merged(tmp_path: Path) -> None:
    bench, server = with_server(tmp_path)
    first = bench.job(OTHER, title="Other", outputs=["/src/other/__init__.py"], work=["/src/other/**"])
    needs = f"{RUN_CHECK}\n- AC-2: And the other\n  {OTHER.rpartition(chr(10))[2].strip()}"
    second = bench.job(needs, work=["/src/shop/**"])
    bench.git("push", "-q", "origin", "main")
    bench.write("src/other/__init__.py", "N = 1\n")
    assert bench.complete(first).done
    merged_upstream(tmp_path, server, "LICENSE", "Free\n")
    pull(bench)
    bench.write(PRICE, GOOD)
    answer = bench.complete(second)
    assert answer.done
    assert answer.outside == set()
    # Without the work of the second job, the kept work of the first one earns it nothing.
    bench.write(PRICE, f"# Lazy.\n{BAD}")
    assert not bench.complete(second).done


def test_who_agrees_sees_what_the_server_does_not_have(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bench, _ = with_server(tmp_path)
    job = bench.job(RUN_CHECK, agreed=False)
    bench.git("push", "-q", "origin", "main")
    assert not [name for name in agreed_now(bench.workspace, job).ahead if not name.startswith("jobs/")]
    bench.write("check.py", "# Everything is fine.\n")
    bench.write("README.md", "More.\n")
    bench.write("setup.cfg", "[metadata]\n")
    bench.remove("tests/test_price.py")
    bench.commit("Not pushed")
    ahead = [name for name in agreed_now(bench.workspace, job).ahead if not name.startswith("jobs/")]
    assert ahead == ["check.py", "setup.cfg", "tests/test_price.py", "README.md"]
    capsys.readouterr()
    proposals = agreement_proposals(bench.workspace, [bench.workspace.job(job.id)])
    for found in full_proposals(bench.workspace, proposals, baselines=False):
        show_files(Output(color=False), found)
    line = next(line for line in capsys.readouterr().out.splitlines() if "the branch on the server" in line)
    places = [line.index(name) for name in ahead]
    assert places == sorted(places), line
