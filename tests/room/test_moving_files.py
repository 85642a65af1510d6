"""Files that move while a check runs: the verdict is about the bytes that were read, and they must still be there."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from room_kit import BAD, GOOD, HOLLOW, LAZY, PRICE, PYTHON, RUN_CHECK, RUN_TESTS, SHOP, TESTS, Bench

from donewhen.jobs.evidence import conditions
from donewhen.jobs.evidence import room_session as room_session_module
from donewhen.jobs.evidence.room_session import RoomSession
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.room.blobs import ChangedContentError
from donewhen.jobs.room.confining import usable_level
from donewhen.jobs.room.reading import RoomReading, read_rooms

pytestmark = pytest.mark.scenes

REWRITES = """\
import os, pathlib

for name, text in {}.items():
    path = pathlib.Path(name)
    os.chmod(path.parent, 0o755)
    {}
    path.write_text(text)


{}"""
LEAVES_STATE = """\
import pathlib, sys

path = pathlib.Path("src/shop/state.txt")
seen = path.exists()
path.write_text("1")
sys.exit(seen)
"""
LEAVES_FILES = """\
import pathlib

for name in ("sitecustomize.py", "src/json.py", "conftest.py", "check.pyc"):
    pathlib.Path(name).write_text("import os; os._exit(0)")
pathlib.Path("src/shop").chmod(0o500)


"""
COMPARES_HASHES = """\
import hashlib, pathlib, sys

found = hashlib.sha256(pathlib.Path("src/shop/big.bin").read_bytes()).hexdigest()
sys.exit(found != pathlib.Path("src/shop/sum.txt").read_text())
"""


def test_a_good_file_that_is_there_only_while_it_is_looked_at_earns_nothing(tmp_path: Path) -> None:
    slow = f"import time\ntime.sleep(0.2)\n{SHOP['check.py']}"
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": slow})
    job = bench.job(RUN_CHECK)
    ended = threading.Event()

    def swap() -> None:
        path = bench.root / PRICE
        while not ended.is_set():
            path.write_text(GOOD)
            time.sleep(0.05)
            path.write_text(LAZY)
            time.sleep(0.05)

    helper = threading.Thread(target=swap)
    bench.write(PRICE, LAZY)
    helper.start()
    try:
        answer = bench.complete(job)
    except ChangedContentError:
        return
    finally:
        ended.set()
        helper.join()
    if answer.done:
        # By chance it was good at both moments: then it is the good bytes that were promised.
        promised = bench.workspace.ledger.read(job.id).entries
        work = next(entry.content.work for entry in reversed(promised) if entry.type == "completed")  # type: ignore[attr-defined]
        bench.write(PRICE, GOOD)
        assert work[PRICE] == bench.git("hash-object", PRICE).strip()


@pytest.mark.parametrize(("read", "then"), [(GOOD, LAZY), (LAZY, GOOD)])
def test_outputs_and_work_are_recorded_from_one_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read: str, then: str
) -> None:
    bench = Bench(tmp_path / "shop", SHOP)
    job = bench.job(RUN_CHECK)

    @contextmanager
    def exchanged(*arguments: Any, **options: Any) -> Iterator[RoomReading | None]:
        bench.write(PRICE, read)
        with read_rooms(*arguments, **options) as reading:
            bench.write(PRICE, then)
            yield reading

    bench.work()
    for module in (conditions, room_session_module):
        monkeypatch.setattr(module, "read_rooms", exchanged)
    with pytest.raises(ChangedContentError):
        bench.complete(job)
    monkeypatch.undo()
    assert not any(entry.type == "completed" for entry in bench.workspace.ledger.read(job.id).entries)
    bench.work()
    assert bench.complete(job).done


def writing_meanwhile(monkeypatch: pytest.MonkeyPatch, write: Callable[[int], object]) -> list[int]:
    """Have somebody write in the checkout while a check runs; returns the numbers of the runs."""
    run, runs = RoomSession.run_first, []

    def run_and_write(session: RoomSession, *arguments: Any) -> ReportedRun:
        runs.append(len(runs))
        write(runs[-1])
        return run(session, *arguments)

    monkeypatch.setattr(RoomSession, "run_first", run_and_write)
    return runs


@pytest.mark.parametrize("moves", [PRICE, "check.py"])
def test_a_file_that_changes_while_the_check_runs_is_judged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moves: str
) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.work()
    runs = writing_meanwhile(monkeypatch, lambda number: bench.write(moves, LAZY))
    answer = bench.complete(job)
    assert len(runs) == 2
    # The second time, the bytes that are there are judged.
    assert answer.done is (moves != PRICE)


def test_what_the_work_writes_to_the_checkout_is_not_there(tmp_path: Path) -> None:
    """Where commands are kept apart, the path of the checkout is that of the room, or it is out of reach."""
    tells = "import pathlib\n\ntry:\n    pathlib.Path('{}').write_text('x = 1')\nexcept OSError:\n    pass\n"
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    if usable_level(None, "own") == "copy":
        pytest.skip("commands are not kept apart here")
    content = f"{tells.format(bench.root / 'src/shop/new.py')}{GOOD}"
    bench.write(PRICE, content)
    # The check passes; a person is asked about work that writes when it is imported.
    assert bench.complete(job).codes == {"signs_found"}
    assert (bench.root / PRICE).read_text() == content
    assert not (bench.root / "src/shop/new.py").exists()


@pytest.mark.parametrize("appears", ["src/shop/new.py", "conftest.py", "tests/test_new.py", "notes.txt"])
def test_a_file_that_appears_while_the_check_runs_costs_no_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, appears: str
) -> None:
    """An editor or a build writes it in the checkout, once."""
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.work()
    runs = writing_meanwhile(monkeypatch, lambda _: bench.write(appears, "import sys\n"))
    assert bench.complete(job).done
    assert runs
    assert bench.workspace.job(job.id).iteration == 0


def test_files_that_never_rest_earn_nothing_and_cost_no_iteration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.work()
    writing_meanwhile(monkeypatch, lambda number: bench.write(f"src/shop/new{number}.py", "x = 1\n"))
    answer = bench.complete(job)
    assert not answer.done
    assert answer.codes == {"criterion_stale"}
    assert bench.workspace.job(job.id).iteration == 0
    monkeypatch.undo()
    assert bench.complete(job).done


def test_the_work_that_rewrites_agreed_files_in_the_room_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, RUN_CHECK)
    rewrites = REWRITES
    changes = {"tests/test_price.py": HOLLOW, "check.py": "\n"}
    for how in ("path.chmod(0o644)", "path.unlink()", "path.rename(path.with_suffix('.old'))"):
        bench.write(PRICE, rewrites.format(changes, how, BAD))
        for _ in range(2):
            answer = bench.complete(job)
            assert not answer.done, how
    bench.work()
    answer = bench.complete(job)
    assert answer.done


SWAPS = """\
import atexit, os, pathlib, shutil

text = {hollow!r}
{swap}


def total(prices):
    return 0
"""
SWAP = {
    "writes and writes back": """
path = pathlib.Path("tests/test_price.py")
old = path.read_text()
os.chmod(path, 0o644)
path.write_text(text)
atexit.register(lambda: (path.write_text(old), os.chmod(path, 0o444)))
""",
    "moves a file and moves it back": """
path = pathlib.Path("tests/test_price.py")
path.rename("tests/old.txt")
path.write_text(text)
atexit.register(lambda: os.replace("tests/old.txt", path))
""",
    "moves the folder and moves it back": """
os.rename("tests", "old")
os.mkdir("tests")
pathlib.Path("tests/test_price.py").write_text(text)
atexit.register(lambda: (shutil.rmtree("tests"), os.rename("old", "tests"), os.mkdir("tests/x"), os.rmdir("tests/x")))
""",
}


@pytest.mark.parametrize("swap", SWAP.values(), ids=SWAP)
def test_the_work_that_swaps_agreed_files_only_while_it_runs_is_refused(tmp_path: Path, swap: str) -> None:
    """The agreed `conftest.py` imports the work before the tests are read; at the end everything is as it was."""
    files = SHOP | {"conftest.py": "import sys\n\nsys.path.insert(0, 'src')\nimport shop.price\n"}
    bench = Bench(tmp_path / "shop", files)
    job = bench.job(RUN_TESTS)
    bench.write(PRICE, SWAPS.format(hollow=HOLLOW, swap=swap))
    answer = bench.complete(job)
    assert not answer.done
    assert any("have to stay as they were agreed" in why for why in answer.why)
    assert (bench.root / "tests/test_price.py").read_text() == TESTS
    bench.work()
    assert bench.complete(job).done


def test_files_that_a_check_makes_and_folders_that_it_moves_in_the_room_are_nobody_s_concern(tmp_path: Path) -> None:
    check = "import os, pathlib\n\nos.makedirs('tests/made')\npathlib.Path('tests/made/x').write_text('1')\n"
    check += "os.rename('tests/made', 'tests/moved')\npathlib.Path('tests/y.log').write_text('1')\n"
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": f"{check}{SHOP['check.py']}"})
    job = bench.job(RUN_CHECK)
    bench.work()
    assert bench.complete(job).done


def test_what_one_command_wrote_is_not_there_for_the_next(tmp_path: Path) -> None:
    check = LEAVES_STATE
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": check, "again.py": check})
    job = bench.job(f"One\n  check: run {PYTHON} check.py", f"Two\n  check: run {PYTHON} again.py")
    bench.work()
    assert bench.complete(job).done


def test_what_the_work_leaves_in_the_room_for_next_time_is_gone(tmp_path: Path) -> None:
    leaves = LEAVES_FILES
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, RUN_CHECK)
    for text in (f"{leaves}{BAD}", LAZY):
        bench.write(PRICE, text)
        assert not bench.complete(job).done
    bench.work()
    assert bench.complete(job).done


def test_work_that_reads_the_checkout_finds_it_but_the_room_decides(tmp_path: Path) -> None:
    """What it imports from there by an absolute path is no part of what is judged."""
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.write(
        PRICE,
        "import os, sys\nsys.path[:0] = [os.path.join(sys.path[0], '..', 'more'), 'more']\n"
        "from summing import total as total\n",
    )
    bench.write("more/summing.py", GOOD)
    answer = bench.complete(job)
    assert not answer.done
    assert "outside_work_area" in answer.codes


def test_an_empty_or_huge_or_odd_file_is_laid_out_byte_for_byte(tmp_path: Path) -> None:
    check = COMPARES_HASHES
    bench = Bench(tmp_path / "shop", SHOP | {"check.py": check})
    job = bench.job(RUN_CHECK, outputs=["/src/shop/big.bin"])
    import hashlib

    content = os.urandom(1 << 20) * 70 + b"\r\n\x00"
    bench.write("src/shop/big.bin", content)
    bench.write("src/shop/sum.txt", hashlib.sha256(content).hexdigest())
    bench.write("src/shop/empty.txt", b"")
    bench.write("src/shop/odd\nname \u00e9\u202e.txt", b"\xff\xfe")
    (bench.root / os.fsdecode(b"src/shop/latin-\xe9.txt")).write_bytes(b"x")
    assert bench.complete(job).done
