"""Files that move while a check runs: the verdict is about the bytes that were read, and they must still be there."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest
from room_kit import BAD, GOOD, HOLLOW, LAZY, PRICE, PYTHON, RUN_CHECK, RUN_TESTS, SHOP, Bench

from donewhen.jobs.room.blobs import ChangedContentError

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


@pytest.mark.parametrize("moves", [PRICE, "check.py", "src/shop/new.py", "README.md"])
def test_a_file_that_changes_while_the_check_runs_is_judged_again(tmp_path: Path, moves: str) -> None:
    """The check itself says when it runs, and changes the file in the checkout: the work writes there, too."""
    tells = "import pathlib\npathlib.Path('{}').write_text('x = 1\\n')\n"
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.write(PRICE, f"{tells.format(bench.root / moves)}{GOOD}")
    answer = bench.complete(job)
    if moves == PRICE:
        assert not answer.done
    elif moves == "check.py":
        # Judged again, with another file outside: a note.
        assert not answer.done or answer.outside == {"check.py"}
    else:
        # A new file is noticed when the verdict is made; once it is there, nothing changes any more.
        assert answer.done or bench.complete(job).done


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
