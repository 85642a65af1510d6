"""Tests are hollowed, deleted, skipped or edited where git does not see it: the agreed ones judge."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest
from room_kit import BAD, FORGES, GOOD, HOLLOW, LAZY, PRICE, RUN_TESTS, TESTS, Bench, wrote

from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.start import start_job

pytestmark = pytest.mark.scenes

MOCKED = TESTS.replace(
    "from shop.price import total", "from unittest.mock import Mock\n\ntotal = Mock(side_effect=sum)"
)
TRIED = TESTS.replace(
    "    assert total([1, 2]) == 3",
    "    try:\n        assert total([1, 2]) == 3\n    except AssertionError:\n        pass",
)


def test_hollowed_tests_wait_for_a_person_and_never_pass(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    changes = {
        "assert True": {"tests/test_price.py": HOLLOW},
        "the subject mocked": {"tests/test_price.py": MOCKED},
        "caught, and moved": {"tests/test_price.py": None, "tests/unit/test_price.py": TRIED},
    }
    answers = bench.refuses(job, {name: wrote(change) for name, change in changes.items()})
    assert answers["assert True"].tests == {"tests/test_price.py"}
    assert "tests_changed" in answers["assert True"].codes


def test_good_work_with_lost_tests_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    skipped = TESTS.replace("def test_empty", "import pytest\n\n\n@pytest.mark.skip\ndef test_empty")
    changes = {
        "deleted": TESTS.partition("def test_empty")[0],
        "skipped": skipped,
        "the whole file skipped": f"import pytest\npytest.skip('later', allow_module_level=True)\n{TESTS}",
    }
    bench.write(PRICE, GOOD)
    for name, text in changes.items():
        bench.write("tests/test_price.py", text)
        answer = bench.complete(job)
        assert not answer.done, name
        assert any(room.lost or room.skipped for room in answer.rooms), name
    bench.remove("tests/test_price.py")
    assert not bench.complete(job).done
    bench.write("tests/test_price.py", TESTS)
    assert bench.complete(job).done


def test_work_that_skips_the_agreed_tests_is_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    skips = "import pytest\n\npytest.skip('not today', allow_module_level=True)\n"
    bench.write(
        PRICE,
        f"import sys\n\nif 'pytest' in sys.modules:\n    {skips.splitlines()[2]}\n{BAD}".replace(
            "pytest.skip", "__import__('pytest').skip"
        ),
    )
    answer = bench.complete(job)
    assert not answer.done


GIT_TRICKS = (
    "skip-worktree",
    "assume-unchanged",
    "exclude",
    "excludes-file",
    "attributes",
    "worktree",
    "replace",
    "graft",
    "index",
    "ignorecase",
    "sparse",
    "fsmonitor",
    "amended",
    "branch",
    "detached",
)


def _play(bench: Bench, trick: str) -> None:
    place = bench.root / ".git"
    hollow, test = HOLLOW, "tests/test_price.py"
    match trick:
        case "skip-worktree" | "assume-unchanged":
            bench.git("update-index", f"--{trick}", test)
            bench.write(test, hollow)
        case "exclude":
            (place / "info/exclude").write_text("conftest.py\ntests/\n")
            bench.write("tests/conftest.py", FORGES)
            bench.write("conftest.py", FORGES)
        case "excludes-file":
            listed = bench.root.parent / "excluded"
            listed.write_text("conftest.py\ntests/\nsrc/\n")
            bench.git("config", "core.excludesFile", str(listed))
            bench.write(test, hollow)
            bench.write("conftest.py", FORGES)
        case "attributes":
            bench.write(".gitattributes", "* filter=hollow -text\n")
            (place / "info/attributes").write_text("* filter=hollow\n")
            script = bench.root / ".git/hollow.sh"
            script.write_text(f"cat >/dev/null\ncat <<'E'\n{hollow}E\n")
            for kind in ("smudge", "clean"):
                bench.git("config", f"filter.hollow.{kind}", f"sh {script}")
        case "worktree":
            other = bench.root.parent / "other"
            (other / "tests").mkdir(parents=True)
            (other / test).write_text(hollow)
            bench.git("config", "core.worktree", str(other))
        case "replace":
            blob = bench.git("rev-parse", f"HEAD:{test}").strip()
            bench.write(test, hollow)
            bench.git("replace", blob, bench.git("hash-object", "-w", test).strip())
        case "graft":
            commit = bench.git("rev-parse", "HEAD").strip()
            bench.write(test, hollow)
            bench.git("add", "-A")
            bench.git("commit", "-q", "-m", "Hollow")
            (place / "info/grafts").write_text(f"{commit} {bench.git('rev-parse', 'HEAD').strip()}\n")
            bench.git("replace", "-f", commit, "HEAD")
        case "index":
            bench.write(test, hollow)
            bench.git("add", test)
            bench.git("rm", "-q", "--cached", "check.py")
        case "ignorecase":
            bench.git("config", "core.ignorecase", "true")
            bench.write("tests/Test_Price.py", hollow)
            bench.write(test, hollow)
        case "sparse":
            bench.git("sparse-checkout", "set", "--no-cone", "/*", "!/tests")
            bench.write(test, hollow)
        case "fsmonitor":
            bench.git("config", "core.fsmonitor", "true; exit 0")
            bench.git("config", "core.hooksPath", str(bench.root / "src"))
            bench.git("config", "core.checkStat", "minimal")
            bench.git("config", "core.trustctime", "false")
            bench.write(test, hollow)
        case "amended":
            bench.write(test, hollow)
            bench.git("add", "-A")
            bench.git("commit", "-q", "--amend", "-m", "Plan")
        case "branch":
            bench.git("checkout", "-q", "--orphan", "new")
            bench.write(test, hollow)
            bench.commit()
        case "detached":
            bench.write(test, hollow)
            bench.commit()
            bench.git("checkout", "-q", "--detach")
            bench.git("branch", "-q", "-D", "main")
            bench.git("reflog", "expire", "--expire=now", "--all")


@pytest.mark.parametrize("trick", GIT_TRICKS)
def test_nothing_of_the_repository_hides_an_edited_test(tmp_path: Path, trick: str) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    bench.write(PRICE, LAZY)
    _play(bench, trick)
    answer = bench.complete(job)
    assert not answer.done
    if trick in ("skip-worktree", "exclude", "replace"):
        # Nor does it get into the way of honest work.
        bench.undo()
        bench.write(PRICE, GOOD)
        assert bench.complete(job).done


def test_a_damaged_object_is_an_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    blob = bench.git("rev-parse", "HEAD:tests/test_price.py").strip()
    path = bench.root / ".git/objects" / blob[:2] / blob[2:]
    content = HOLLOW.encode()
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob %d\0" % len(content) + content))
    bench.write("tests/test_price.py", HOLLOW)
    bench.write(PRICE, LAZY)
    with pytest.raises(DonewhenError, match=r"can't be (read|laid out)|damaged"):
        bench.complete(job)


def test_a_tree_object_with_other_entries_is_an_error(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    tree = bench.git("rev-parse", "HEAD:tests").strip()
    bench.write("tests/test_price.py", HOLLOW)
    bench.git("add", "-A")
    other = bench.git("rev-parse", f"{bench.git('write-tree').strip()}:tests").strip()
    objects = bench.root / ".git/objects"
    path, source = (objects / name[:2] / name[2:] for name in (tree, other))
    path.chmod(0o644)
    path.write_bytes(source.read_bytes())
    bench.write(PRICE, LAZY)
    with pytest.raises(DonewhenError, match=r"damaged|can't be read"):
        bench.complete(job)


def test_the_window_before_the_seal_is_closed(tmp_path: Path) -> None:
    """What is agreed is the commit, whatever the tree has become before the job is started."""
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, agreed=False)
    bench.agree(job)
    bench.write("tests/test_price.py", HOLLOW)
    bench.commit("Hollow, before the start")
    assert start_job(bench.workspace, job.id, unproved_actor()).started
    bench.write(PRICE, LAZY)
    answer = bench.complete(bench.workspace.job(job.id))
    assert not answer.done
    assert "tests_changed" in answer.codes


def test_tests_that_a_person_allowed_to_change_may_change(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, tests_may_change=["/tests/test_price.py"])
    bench.write(PRICE, "def total(prices):\n    return float(sum(prices))\n")
    bench.write("tests/test_price.py", TESTS.replace("== 3", "== 3.0"))
    assert bench.complete(job).done


def test_a_new_test_needs_nobody(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS)
    bench.work()
    bench.write("tests/test_more.py", TESTS.replace("[1, 2]) == 3", "[4, 5]) == 9"))
    answer = bench.complete(job)
    assert answer.done
    assert answer.tests == {"tests/test_more.py"}
