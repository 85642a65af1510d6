"""Files that are not committed and that checks need: built by agreed commands, or agreed to be there."""

from __future__ import annotations

from pathlib import Path

import pytest

from donewhen.jobs.contract.agreeing import agreement_proposals
from room.checkout_kit import Checkout, outcome, room_of

pytestmark = pytest.mark.scenes

MAKEFILE = """\
gen: generated/code.txt
\techo left over > left-over.txt
\techo left over > generated.log
generated/code.txt: src/schema.txt
\tmkdir -p generated
\ttr a-z A-Z < src/schema.txt > generated/code.txt
"""
IGNORED = "/generated/\n*.log\n/dist/\n/data/\n"
GENERATED = {"prepare": '["make gen"]', "present": '["/generated/**"]'}


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    found = Checkout(tmp_path / "shop")
    found.write(".gitignore", IGNORED)
    found.write("Makefile", MAKEFILE)
    found.write("src/schema.txt", "schema\n")
    return found


def test_generated_code_is_built_in_the_room_and_nothing_else_of_the_build_is_kept(checkout: Checkout) -> None:
    job = checkout.add(
        "grep -qx SCHEMA generated/code.txt; test ! -e left-over.txt; test ! -e generated.log", **GENERATED
    )
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])
    assert not (checkout.root / "generated").exists()


def test_generated_code_follows_the_work(checkout: Checkout) -> None:
    checkout.write("generated/code.txt", "SCHEMA\n")
    job = checkout.add("grep -qx NEW generated/code.txt", **GENERATED)
    checkout.agree(job)
    # The agent did not build it again, and the room does.
    checkout.write("src/schema.txt", "new\n")
    assert outcome(checkout, job) == (True, "", [])


def test_generated_code_that_an_agent_built_again_changes_nothing(checkout: Checkout) -> None:
    checkout.write("generated/code.txt", "SCHEMA\n")
    job = checkout.add("grep -qx NEW generated/code.txt", **GENERATED)
    checkout.agree(job)
    checkout.write("src/schema.txt", "new\n")
    checkout.write("generated/code.txt", "NEW\n")
    assert outcome(checkout, job) == (True, "", ["generated/code.txt"])


def test_generated_code_that_an_agent_wrote_by_hand_is_built_over(checkout: Checkout) -> None:
    job = checkout.add("grep -qx CHEATED generated/code.txt", **GENERATED)
    checkout.agree(job)
    checkout.write("generated/code.txt", "CHEATED\n")
    done, _, outside = outcome(checkout, job)
    assert (done, outside) == (False, ["generated/code.txt"])


def test_what_one_command_wrote_is_not_in_the_room_of_the_next(checkout: Checkout) -> None:
    checkout.write(
        "twice.sh", "test ! -e seen.txt && test ! -e generated/seen.txt\ntouch seen.txt generated/seen.txt\n"
    )
    job = checkout.add("sh twice.sh", **GENERATED)
    text = job.path.read_text().replace("check: run sh check.sh", "check: run sh check.sh", 1)
    second = "\n- [ ] AC-2 Again.\n  check: run sh twice.sh"
    assert "check: run sh check.sh" in text
    job.path.write_text(text.replace("  check: run sh check.sh", f"  check: run sh check.sh{second}", 1))
    checkout.commit()
    job = checkout.workspace.job(job.id)
    assert len(job.criteria) == 2
    checkout.agree(job)
    assert outcome(checkout, job) == (True, "", [])


def test_a_command_that_can_not_build_is_a_refusal_with_its_output(checkout: Checkout) -> None:
    job = checkout.add("true", prepare='["make nothing"]', present='["/generated/**"]')
    checkout.agree(job)
    assert not checkout.finish(job).done
    run = checkout.last_run(job)
    assert not run.passed
    assert run.told == "the prepare command `make nothing` failed with exit status 2"
    assert run.hindrance == ""
    assert run.exit_code == 2


def test_a_program_that_is_not_there_can_not_build(checkout: Checkout) -> None:
    job = checkout.add("true", prepare='["no-such-program"]', present='["/generated/**"]')
    checkout.agree(job)
    assert not checkout.finish(job).done
    assert checkout.last_run(job).told == "the prepare command `no-such-program` can't be run"
    assert checkout.last_run(job).hindrance == "program_missing"


@pytest.mark.parametrize(
    ("field", "before", "after"),
    [
        ("prepare", '["make gen"]', '["make other"]'),
        ("present", '["/generated/**"]', '["/generated/**", "/data/**"]'),
    ],
)
def test_other_preparation_needs_a_new_agreement(checkout: Checkout, field: str, before: str, after: str) -> None:
    job = checkout.add("true", **GENERATED)
    checkout.agree(job)
    job.path.write_text(job.path.read_text().replace(f"{field}: {before}", f"{field}: {after}"))
    job = checkout.workspace.job(job.id)
    states = {found.chain: found.agreement.state for found in agreement_proposals(checkout.workspace, [job])}
    assert states[job.id] == "voided"


PRESENT = {"present": '["/data/*.csv"]'}


def test_an_ignored_file_that_was_agreed_to_be_there_is_in_the_room(checkout: Checkout) -> None:
    checkout.write("data/a.csv", "1\n")
    checkout.write("data/a.txt", "1\n")
    job = checkout.add("grep -qx 1 data/a.csv; test ! -e data/a.txt", **PRESENT)
    agreed = checkout.agree(job)
    assert agreed.tree is not None
    assert [*agreed.tree.present] == ["data/a.csv"]
    assert outcome(checkout, job) == (True, "", [])


def test_a_present_file_that_changed_is_not_in_the_room_and_is_named(checkout: Checkout) -> None:
    checkout.write("data/a.csv", "1\n")
    job = checkout.add("grep -qx 2 data/a.csv", **PRESENT)
    checkout.agree(job)
    checkout.write("data/a.csv", "2\n")
    assert outcome(checkout, job) == (False, "outside_work_area", ["data/a.csv"])
    assert "missing here or changed since: data/a.csv" in (checkout.last_run(job).told or "")


def test_a_present_file_that_is_not_here_is_named(checkout: Checkout) -> None:
    checkout.write("data/a.csv", "1\n")
    job = checkout.add("grep -qx 1 data/a.csv", **PRESENT)
    checkout.agree(job)
    (checkout.root / "data" / "a.csv").unlink()
    assert outcome(checkout, job) == (False, "", [])
    assert "missing here or changed since: data/a.csv" in (checkout.last_run(job).told or "")


def test_an_agreed_output_is_in_the_room_although_it_is_ignored(checkout: Checkout) -> None:
    job = checkout.add("test -f dist/shop-1.whl; test ! -e dist/notes.log", outputs=("/src/done.txt", "/dist/*.whl"))
    checkout.agree(job)
    checkout.write("dist/shop-1.whl", "The package of the shop, as it was built.\n")
    checkout.write("dist/notes.log", "notes")
    assert outcome(checkout, job) == (True, "", [])
    assert room_of(checkout, job).runs == 1
