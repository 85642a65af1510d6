"""What a branch may bring beside its work: what a key accepted, renamed tests, built files, files agreed as present."""

from __future__ import annotations

from pathlib import Path

import pytest
from verify_kit import Shop
from verify_room_kit import (
    CHECK,
    ON_PATH,
    PYTHON,
    RIGHT,
    RUN_CHECK,
    RUN_TESTS,
    TESTS,
    WRONG,
    RoomShop,
    found_codes,
    note_codes,
)

from donewhen.foundation.git import GitError
from donewhen.jobs.ledger.approval import Approval, person_at_terminal
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.entry_content import Completed
from donewhen.jobs.ledger.signing import create_key_file, open_key
from donewhen.jobs.lifecycle.accepting import AcceptedKind, accept_changes, open_changes
from donewhen.jobs.plan.job import Job
from donewhen.jobs.verifying import verify_branch
from sentences import assert_sentences

pytestmark = pytest.mark.scenes

HELPER = {"src/shop/price.py": f"{ON_PATH}from sums import total\n", "src/sums.py": RIGHT}
OTHER_TESTS = TESTS.replace("== 3", "== 3.0").replace("== 0", "== 0.0")


@pytest.fixture
def shop(tmp_path: Path) -> RoomShop:
    return RoomShop(tmp_path / "shop")


def _accept(shop: RoomShop, job: Job, what: AcceptedKind, approval: Approval) -> None:
    workspace = shop.workspace
    accept_changes(workspace, workspace.job(job.id), open_changes(workspace, workspace.job(job.id), what), "", approval)


def test_changes_outside_that_nothing_needs_are_one_note(shop: RoomShop) -> None:
    job = shop.agreed()
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT, **{f"docs/{page}.md": "More." for page in range(9)}})
    assert found.passed, found.reasons
    assert [note.code for note in found.notes] == ["judging_changed"]
    assert_sentences(found.notes[0].message)


def test_nothing_changed_outside_is_one_run_without_notes(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    seen: list[str] = []
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/shop/price.py", RIGHT)
    shop.commit()
    found = verify_branch(shop.workspace, "main", jobs=[job.id], on_progress=seen.append)
    assert (found.passed, found.notes) == (True, ())
    assert sum("pytest" in text for text in seen) == 2


def test_what_a_key_of_the_base_accepts_counts_and_what_a_person_accepts_on_the_branch_does_not(
    shop: RoomShop, tmp_path: Path
) -> None:
    key = create_key_file(tmp_path / "key", "pass phrase")
    other = create_key_file(tmp_path / "other", "pass phrase")
    assert key != other
    shop.write("donewhen.toml", f'[approval]\nkeys = ["{key}"]\n')
    job = shop.agreed()
    assert "outside_work_area" in found_codes(shop.pull_request(job, HELPER))
    _accept(shop, job, "work", Approval(person_at_terminal()))
    assert "outside_work_area" in found_codes(shop.pushed(job, {}))
    _accept(shop, job, "work", Approval(Actor("other", "key"), *open_key(tmp_path / "other", "pass phrase")))
    assert "outside_work_area" in found_codes(shop.pushed(job, {}))
    shop.git("reset", "-q", "--hard", "HEAD~2")
    _accept(shop, job, "work", Approval(Actor("release", "key"), *open_key(tmp_path / "key", "pass phrase")))
    found = shop.pushed(job, {})
    assert found.passed, found.reasons
    # It is about that content, and no other.
    found = shop.pushed(job, {"src/sums.py": f"# Other.\n{RIGHT}"})
    assert "outside_work_area" in found_codes(found)


def test_what_a_person_accepted_counts_once_it_is_merged_to_the_base(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    weaker = TESTS.replace("== 3", "== 4")
    wrong = "def total(prices):\n    return sum(prices) + len(prices) // 2\n"
    assert "tests_changed" in found_codes(
        shop.pull_request(job, {"src/shop/price.py": wrong, "tests/test_price.py": weaker})
    )
    _accept(shop, job, "tests", Approval(person_at_terminal()))
    shop.commit("Accepted")
    shop.git("switch", "-q", "main")
    shop.git("checkout", "agent", "--", ".donewhen", "jobs")
    shop.commit("Accepted, on main")
    shop.git("switch", "-q", "agent")
    shop.git("rebase", "-q", "main")
    found = shop.looked(job)
    assert found.passed, found.reasons


def test_tests_that_were_agreed_to_change_may_change(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS, fields="tests_may_change:\n  - /tests/test_price.py")
    wrong = "def total(prices):\n    return sum(prices) + len(prices) // 2\n"
    changed = f"{ON_PATH}from shop.price import total\n\n\ndef test_all():\n    assert total([1, 2]) == 4\n"
    found = shop.pull_request(job, {"src/shop/price.py": wrong, "tests/test_price.py": changed})
    assert found.passed, found.reasons


def test_a_new_test_file_that_the_command_names_is_no_reason(shop: RoomShop) -> None:
    job = shop.agreed(f"{RUN_TESTS} tests/test_more.py")
    more = {
        "tests/test_more.py": f"{ON_PATH}from shop.price import total\n\n\ndef test_it():\n    assert total([2]) == 2\n"
    }
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT, **more})
    assert found.passed, found.reasons
    assert "criterion_failed" in found_codes(shop.pull_request(job, {"src/shop/price.py": f"# Lazy.\n{WRONG}", **more}))


def test_data_of_tests_may_go_if_their_ids_are_compared(tmp_path: Path) -> None:
    files = {"tests/data/old.json": "{}"}
    shop = RoomShop(tmp_path / "shop", files)
    job = shop.agreed(RUN_TESTS)
    found = shop.pull_request(
        job, {"src/shop/price.py": RIGHT, "tests/data/old.json": None, "tests/data/new.json": "1"}
    )
    assert found.passed, found.reasons
    shop = RoomShop(tmp_path / "other", files)
    job = shop.agreed(RUN_CHECK)
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT, "tests/data/old.json": None})
    assert found_codes(found) == {"report_tests_lost"}


def test_a_renamed_test_is_the_same_test(shop: RoomShop) -> None:
    job = shop.agreed(RUN_TESTS)
    changes = {"src/shop/price.py": RIGHT, "tests/test_price.py": None, "tests/test_prices.py": TESTS}
    found = shop.pull_request(job, changes)
    assert found.passed, found.reasons
    # With another body it is another test, and the old one is lost.
    found = shop.pushed(job, {"tests/test_prices.py": TESTS.replace("== 3", "!= 4")})
    assert found_codes(found) == {"report_tests_lost"}


def test_jobs_agreed_without_a_work_area_are_named(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "shop")
    job = shop.job(criteria=("There is one\n  check: file /prices.py",))
    shop.branch()
    shop.write("prices.py", "x = 1\n")
    shop.commit()
    found = verify_branch(shop.workspace, "main", jobs=[job.id])
    assert found.passed, found.reasons
    assert [note.code for note in found.notes] == ["no_work_area"]
    assert job.id in found.notes[0].message


def test_a_receipt_of_another_commit_is_reported(shop: RoomShop) -> None:
    job = shop.agreed()
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/shop/price.py", RIGHT)
    done = shop.complete(job)
    assert done.done
    shop.commit()
    found = verify_branch(shop.workspace, "main")
    assert found.passed, found.reasons
    assert note_codes(found) == set()
    completed = shop.workspace.ledger.read(job.id).entries[-1].read_as(Completed)
    assert completed.room is not None and completed.room.commit is not None
    # The base was squashed: the agreed commit is on no branch.
    tree = shop.git("rev-parse", "main^{tree}").strip()
    squashed = shop.git("commit-tree", tree, "-m", "All of it").strip()
    shop.git("update-ref", "refs/heads/main", squashed)
    found = verify_branch(shop.workspace, "main")
    assert "room_not_on_base" in note_codes(found)
    assert found.passed, found.reasons


def test_what_is_built_is_there_for_every_check_and_nothing_else_of_it(tmp_path: Path) -> None:
    build = (
        "import os\nos.makedirs('build', exist_ok=True)\nopen('build/sum.txt', 'w').write('3')\n"
        "open('left.txt', 'w').write('x')\n"
    )
    check = (
        "import os\nif os.path.exists('left.txt') or open('build/sum.txt').read() != '3':\n    raise SystemExit(1)\n"
        f"{CHECK}"
    )
    shop = RoomShop(tmp_path / "shop", {"build.py": build, "check.py": check})
    shop.write(".gitignore", "__pycache__/\nbuild/\n")
    job = shop.agreed(fields=f"prepare:\n  - {PYTHON} build.py\npresent:\n  - /build/sum.txt")
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons
    # The commands are those of the base.
    found = shop.pull_request(job, {"src/shop/price.py": f"# Lazy.\n{WRONG}", "build.py": "import sys\nsys.exit(1)\n"})
    assert "prepare" in {case.name for item in found.jobs for case in item.cases if case.outcome == "failed"}


def test_ignored_files_that_were_agreed_to_be_there_have_the_agreed_content(tmp_path: Path) -> None:
    check = f"if open('secret/limit.txt').read() != '9':\n    raise SystemExit(1)\n{CHECK}"
    shop = RoomShop(tmp_path / "shop", {"check.py": check, "secret/limit.txt": "9"})
    shop.write(".gitignore", "__pycache__/\nsecret/\n")
    job = shop.agreed(fields="present:\n  - /secret/limit.txt")
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons
    shop.write("secret/limit.txt", "10")
    found = shop.looked(job)
    assert not found.passed
    assert any("secret/limit.txt" in note.message for note in found.notes)


def test_an_object_with_another_content_than_its_name_is_an_error(shop: RoomShop) -> None:
    job = shop.agreed()
    shop.pull_request(job, {"src/shop/price.py": RIGHT})
    right = shop.git("rev-parse", "HEAD:src/shop/price.py").strip()
    check = shop.git("rev-parse", "HEAD:check.py").strip()
    objects = shop.folder / ".git" / "objects"
    easy = shop.git("hash-object", "-w", "src/shop/__init__.py").strip()
    target = objects / check[:2] / check[2:]
    target.chmod(0o644)
    target.write_bytes((objects / easy[:2] / easy[2:]).read_bytes())
    assert right != check
    with pytest.raises(GitError):
        shop.looked(job)


def test_two_jobs_of_one_branch_are_judged_together(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "shop", {"src/tax/__init__.py": "", "src/tax/rate.py": "RATE = 0\n"})
    taxed = f"run {PYTHON} -c \"import sys; sys.path.insert(0, 'src'); from tax.rate import RATE; sys.exit(RATE != 2)\""
    first = shop.agreed(title="The rate", check=taxed, outputs=("/src/tax/rate.py",), work=("/src/tax/**",))
    second = shop.agreed()
    shop.git("switch", "-q", "-c", "agent")
    shop.write("src/tax/rate.py", "RATE = 2\n")
    shop.write("src/shop/price.py", RIGHT)
    shop.commit()
    found = verify_branch(shop.workspace, "main", jobs=[first.id, second.id])
    assert found.passed, found.reasons
    assert found.notes == ()


def test_a_project_in_a_folder_of_the_repository(tmp_path: Path) -> None:
    shop = RoomShop(tmp_path / "all", inside="apps/shop")
    (shop.folder / "tools").mkdir()
    (shop.folder / "tools" / "x.py").write_text("")
    job = shop.agreed()
    found = shop.pull_request(job, {"src/shop/price.py": RIGHT})
    assert found.passed, found.reasons
    found = shop.pull_request(job, {"src/shop/price.py": f"# Lazy.\n{WRONG}", "check.py": "# Passes.\n"})
    assert "outside_work_area" in found_codes(found)
