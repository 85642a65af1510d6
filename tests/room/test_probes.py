"""Tests that have passed are probed in the room: mutants, single tests, another order, and without the work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from room_kit import GOOD, PYTHON, RUN_TESTS, Bench

from donewhen.jobs.evidence.commands import evidence_store, newest_run
from donewhen.jobs.evidence.probe_record import ProbeRecord
from donewhen.jobs.evidence.probes import probes_of
from donewhen.jobs.evidence.probing import Probing
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.ledger.entry_content import CommandRun, ProbeRun
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.plan.job import Job

pytestmark = pytest.mark.probes

TESTS_OF_SHOP = "from shop import total\n\n\ndef test_total():\n    assert total([1, 2]) == 3\n"
CLAMP = """\
def clamp(value, low, high):
    if value < low:
        return low
    if value > high:
        return high
    return value
"""
WEAK = "from clamp import clamp\n\n\ndef test_inside():\n    assert clamp(3, 2, 5) == 3\n"
GOOD_TESTS = """\
from clamp import clamp


def test_below():
    assert clamp(1, 2, 5) == 2


def test_above():
    assert clamp(9, 2, 5) == 5


def test_inside():
    assert clamp(3, 2, 5) == 3
"""


def probed(bench: Bench, job: Job, seconds: float = 12.0) -> ProbeRecord:
    """Complete a job, and return what the probes of its first command have shown."""
    bench.write("donewhen.toml", f"[strength]\ntime = {seconds}\n")
    job = bench.workspace.job(job.id)
    runs = collect_evidence(bench.workspace, job, unproved_actor(), probing=Probing())
    assert all(run.entry.read_as(CommandRun).settled for _, run in runs)
    entries = bench.workspace.ledger.read(job.id).entries
    run = newest_run(entries, requirements_of(job)[0].evidence)
    assert run is not None and run.read_as(CommandRun).passed
    record = probes_of(evidence_store(bench.workspace), entries, run.read_as(CommandRun))
    assert record is not None
    return record


def clamp_bench(tmp_path: Path, tests: str, **more: str) -> tuple[Bench, Job]:
    files = {"clamp.py": "def clamp(value, low, high):\n    return None\n", "test_clamp.py": tests, **more}
    bench = Bench(tmp_path / "clamp", {**files, ".gitignore": "__pycache__/\n"})
    job = bench.job(RUN_TESTS, outputs=("/clamp.py",))
    bench.write("clamp.py", CLAMP)
    return bench, job


def test_survivors_of_weak_tests_are_shown_and_good_tests_notice_them(tmp_path: Path) -> None:
    weak = probed(*clamp_bench(tmp_path / "weak", WEAK))
    good = probed(*clamp_bench(tmp_path / "good", GOOD_TESTS))
    assert weak.mutants.tried and good.mutants.tried, (weak, good)
    assert weak.mutants.survived > good.mutants.survived
    survivors = [str(survivor) for survivor in weak.mutants.survivors]
    assert "clamp.py:2  value < low → value <= low" in survivors
    assert weak.red_before.outcome == good.red_before.outcome == "yes"
    assert weak.code.doubt is not None and good.code.doubt is not None
    assert weak.code.doubt > good.code.doubt


def test_tests_that_need_others_are_found_and_confirmed(tmp_path: Path) -> None:
    tests = """\
from clamp import clamp

SEEN = []


def test_first():
    SEEN.append(clamp(1, 2, 5))
    assert SEEN


def test_second():
    assert SEEN == [2]


def test_third():
    assert clamp(9, 2, 5) == 5
"""
    record = probed(*clamp_bench(tmp_path, tests))
    assert record.alone.only_in_company == ("test_clamp.py::test_second",)
    assert record.other_order.failing == ("test_clamp.py::test_second",)
    assert record.alone.tried == 3


def test_new_tests_are_red_before_or_could_not_run_or_prove_nothing(tmp_path: Path) -> None:
    def with_new(folder: str, test: str) -> ProbeRecord:
        bench, job = clamp_bench(tmp_path / folder, WEAK)
        bench.write("test_more.py", test)
        return probed(bench, job)

    red = with_new("red", "from clamp import clamp\n\n\ndef test_more():\n    assert clamp(9, 2, 5) == 5\n").red_before
    assert (red.outcome, red.undoing_noticed) == ("yes", "yes")
    assert any("test_more" in test for test in red.red)


def test_green_new_tests_and_no_new_tests_are_weaker(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop", {"shop.py": GOOD, "test_shop.py": TESTS_OF_SHOP, ".gitignore": "__pycache__/\n"})
    job = bench.job(RUN_TESTS, outputs=("/shop.py",))
    bench.write("shop.py", f"{GOOD}\n\ndef cheapest(prices):\n    return min(prices)\n")
    nothing = probed(bench, job).red_before
    assert (nothing.outcome, nothing.undoing_noticed) == ("nothing_new", "no")
    bench.write("test_green.py", "def test_green():\n    assert True\n")
    green = probed(bench, job).red_before
    assert (green.outcome, green.undoing_noticed) == ("no", "no")
    assert any("test_green" in test for test in green.green)
    bench.write(
        "test_unloaded.py", "from shop import cheapest\n\n\ndef test_cheapest():\n    assert cheapest([2, 1]) == 1\n"
    )
    unloaded = probed(bench, job).red_before
    assert (unloaded.outcome, unloaded.undoing_noticed) == ("could_not_run", "yes")
    assert unloaded.could_not_run == ("test_unloaded.py",)


def test_the_room_and_the_checkout_are_as_they_were(tmp_path: Path) -> None:
    bench, job = clamp_bench(tmp_path, GOOD_TESTS)
    probed(bench, job)
    assert (bench.root / "clamp.py").read_text() == CLAMP


def test_completing_probes_for_as_long_as_the_suite_takes(tmp_path: Path) -> None:
    bench, job = clamp_bench(tmp_path, GOOD_TESTS)
    shown: list[str] = []
    assert complete(bench.workspace, job.id, unproved_actor(), probing=Probing(shown.append)).done
    assert number_of_probes(bench, job) == 1
    assert shown and "probing the tests" in shown[0]


def test_what_was_probed_is_not_probed_again_until_something_changes(tmp_path: Path) -> None:
    bench, job = clamp_bench(tmp_path, WEAK)
    probed(bench, job)
    count = number_of_probes(bench, job)
    probed(bench, job)
    assert number_of_probes(bench, job) == count == 1
    bench.write("clamp.py", f"# again\n{CLAMP}")
    probed(bench, job)
    assert number_of_probes(bench, job) == 2


def test_nothing_is_probed_without_a_wish_or_when_it_is_off_or_a_check_fails(tmp_path: Path) -> None:
    bench, job = clamp_bench(tmp_path, WEAK)
    collect_evidence(bench.workspace, bench.workspace.job(job.id), unproved_actor())
    bench.write("donewhen.toml", '[strength]\ntime = "off"\n')
    job = bench.workspace.job(job.id)
    collect_evidence(bench.workspace, job, unproved_actor(), again=True, probing=Probing())
    bench.write("donewhen.toml", "[strength]\ntime = 20\n")
    bench.write("clamp.py", "def clamp(value, low, high):\n    return 0\n")
    collect_evidence(bench.workspace, bench.workspace.job(job.id), unproved_actor(), probing=Probing())
    assert number_of_probes(bench, job) == 0


def test_the_stop_hook_and_guards_probe_nothing(tmp_path: Path) -> None:
    bench, job = clamp_bench(tmp_path, WEAK)
    collect_evidence(bench.workspace, job, unproved_actor())
    bench.write("donewhen.toml", "[stop]\njobs = true\n")
    runs = len(bench.workspace.ledger.read(job.id).entries)
    event = json.dumps({"session_id": "s", "cwd": str(bench.root), "hook_event_name": "Stop"})
    for words in (["hook", "stop", "--runtime", "claude"], ["check"]):
        argv = [sys.executable, "-m", "donewhen", *words]
        done = subprocess.run(argv, cwd=bench.root, input=event, capture_output=True, text=True)
        assert job.id in done.stdout + done.stderr, done
    new = bench.workspace.ledger.read(job.id).entries[runs:]
    assert not [entry for entry in new if isinstance(entry.content, CommandRun | ProbeRun)]


def test_time_runs_out_and_what_was_left_out_is_counted(tmp_path: Path) -> None:
    bench, job = clamp_bench(tmp_path, WEAK)
    record = probed(bench, job, seconds=0.1)
    assert record.mutants.tried == 0
    assert record.mutants.left_out == record.mutants.possible > 0
    assert record.mutants.why and record.alone.why and record.other_order.why


def test_a_script_is_run_on_each_mutant(tmp_path: Path) -> None:
    script = "from clamp import clamp\n\nassert clamp(1, 2, 5) == 2\n"
    files = {
        "clamp.py": "def clamp(value, low, high):\n    return 0\n",
        "check.py": script,
        ".gitignore": "__pycache__/\n",
    }
    bench = Bench(tmp_path / "script", files)
    job = bench.job(f"The check passes\n  check: run {PYTHON} check.py", outputs=("/clamp.py",))
    bench.write("clamp.py", CLAMP)
    record = probed(bench, job)
    assert record.mutants.tried > record.mutants.survived > 0
    assert record.red_before.outcome == "yes"
    assert record.alone.why == record.other_order.why != ""
    assert record.code.doubt is None


def test_other_languages_are_data_and_tests_are_still_run_alone(tmp_path: Path) -> None:
    test = "from pathlib import Path\n\n\ndef test_text():\n    assert 'b' in Path('words.txt').read_text()\n"
    bench = Bench(tmp_path / "words", {"words.txt": "a\n", "test_words.py": test, ".gitignore": "__pycache__/\n"})
    job = bench.job(RUN_TESTS, outputs=("/words.txt",))
    bench.write("words.txt", "a b\n")
    record = probed(bench, job)
    assert record.mutants.why == "there are no mutants for this language (.txt)"
    assert record.red_before.outcome == "yes"


def test_mutants_in_a_project_with_its_own_pytest_options(tmp_path: Path) -> None:
    options = "[pytest]\naddopts = -ra --strict-markers -W error\ntestpaths = .\n"
    bench, job = clamp_bench(tmp_path, GOOD_TESTS, **{"pytest.ini": options})
    record = probed(bench, job)
    assert record.mutants.tried
    assert record.mutants.survived < record.mutants.tried


def test_files_that_no_test_loads_are_named(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path / "two",
        {"a.py": "A = 1\n", "b.py": "B = 1\n", "test_a.py": "import a\n\n\ndef test_a():\n    assert a.A\n"},
    )
    job = bench.job(RUN_TESTS, outputs=("/b.py",))
    bench.write("b.py", "def double(number):\n    return 2 * number\n")
    record = probed(bench, job)
    assert record.mutants.not_loaded == ("b.py",)
    assert record.mutants.tried == 0


def number_of_probes(bench: Bench, job: Job) -> int:
    return sum(isinstance(entry.content, ProbeRun) for entry in bench.workspace.ledger.read(job.id).entries)
