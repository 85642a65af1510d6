"""The agent widens its own exemption: what it types into the plan after the agreement exempts nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from room_kit import BAD, FORGES, HOLLOW, LAZY, PRICE, PYTHON, RUN_CHECK, RUN_TESTS, SHOP, Bench, wrote

from donewhen.jobs.evidence.commands import run_as_evidence
from donewhen.jobs.ledger.approval import unproved_actor
from donewhen.jobs.lifecycle.completion import complete

pytestmark = pytest.mark.scenes

FAKES = {"conftest.py": FORGES, "tests/test_price.py": HOLLOW, "check.py": "\n"}
WIDER: dict[str, dict[str, list[str]]] = {
    "outputs": {"outputs": [f"/{PRICE}", "/conftest.py", "/tests/test_price.py", "/check.py"]},
    "outputs as a pattern": {"outputs": [f"/{PRICE}", "/**"]},
    "work": {"work": ["/**"]},
    "work of the repository": {"work": ["//**"]},
    "work with a case": {"work": ["/src/shop/**", "/TESTS/**", "/Check.py"]},
    "tests_may_change": {"tests_may_change": ["/tests/**", "/conftest.py"]},
    "present": {"present": ["/conftest.py", "/check.py", "/tests/**"]},
    "prepare": {"prepare": ["cp src/shop/fake.py check.py"]},
    "inputs": {"inputs": ["/src/shop/__init__.py"]},
    "verification": {"verification_evidence": ["/check.py", "/tests/test_price.py"]},
}


STRICTER = ("outputs", "outputs as a pattern", "verification")


def test_fields_that_are_typed_later_exempt_nothing(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    for name, fields in sorted(WIDER.items(), key=lambda item: item[0] in STRICTER):
        if name == STRICTER[0]:
            # So far nothing is left of the tricks.
            honest = bench.root / PRICE
            honest.write_text(f"# {name}\n{BAD}")
            assert bench.complete(job).codes == {"criterion_failed"}
        bench.write(PRICE, LAZY)
        wrote(FAKES)(bench)
        bench.write("src/shop/fake.py", "\n")
        bench.fields(job, **fields)
        answer = bench.complete(job)
        assert not answer.done, name
        assert answer.codes & {"agreement_voided", "outside_work_area", "tests_changed"}, (name, answer)
        bench.undo()
        if name in STRICTER:
            # More outputs are agreed to at once, as promises of the agent; taking them back would not be.
            continue
        bench.fields(job, **{field: [*getattr(job, field)] for field in fields})


@pytest.mark.parametrize(
    ("name", "fake"),
    [("tests/test_price.py", HOLLOW), ("check.py", "\n"), ("conftest.py", FORGES), ("src/shop/conftest.py", FORGES)],
)
def test_a_file_check_that_is_added_later_exempts_nothing(tmp_path: Path, name: str, fake: str) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job()
    bench.plan(job, "- AC-2:", f"- AC-3: It is there\n  check: file /{name}\n- AC-2:")
    bench.write(PRICE, LAZY)
    bench.write(name, fake)
    if name != "check.py":
        bench.write("check.py", "\n")
    answer = bench.complete(job)
    assert not answer.done
    for room in answer.rooms:
        assert name in (*room.outside, *room.tests)


def test_a_file_check_of_a_test_that_was_agreed_to_does_not_make_it_work(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_TESTS, "There is a test\n  check: file /tests/test_price.py matches /total/")
    bench.refuses(job, {"hollowed": wrote({"tests/test_price.py": HOLLOW})})


def test_a_file_check_of_a_file_outside_of_the_area_still_sees_it(tmp_path: Path) -> None:
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK, "There are notes\n  check: file /NOTES.md matches /Sum/", outputs=[f"/{PRICE}"])
    bench.work()
    bench.write("NOTES.md", "Sum of prices\n")
    assert bench.complete(job).done


def test_evidence_of_other_bytes_is_not_used_again(tmp_path: Path) -> None:
    """`donewhen run` with good work, and then bad work with narrowed inputs."""
    bench = Bench(tmp_path / "shop")
    job = bench.job(RUN_CHECK)
    bench.work()
    run = run_as_evidence(bench.workspace, bench.workspace.job(job.id), (PYTHON, "check.py"), unproved_actor())
    assert run.passed
    bench.write(PRICE, LAZY)
    bench.fields(job, inputs=["/src/shop/__init__.py"])
    assert not bench.complete(job).done
    bench.fields(job, inputs=[])
    assert not bench.complete(job).done


def test_criteria_of_the_project_are_asked_in_its_room(tmp_path: Path) -> None:
    """Its promise needs them, and they don't believe an edited check either."""
    bench = Bench(tmp_path / "shop", SHOP | {"all.py": SHOP["check.py"]})
    project = bench.workspace.project_file
    text = project.read_text()
    line = f"- AC-1: All of it passes\n  check: run {PYTHON} all.py\n"
    head, mark, rest = text.partition("## Acceptance Criteria\n")
    assert mark
    project.write_text(f"{head}{mark}\n{line}{rest}")
    bench.commit()
    job = bench.job(f"It is there\n  check: file /{PRICE}")
    bench.write(PRICE, LAZY)
    bench.write("all.py", "\n")
    result = complete(bench.workspace, job.id, unproved_actor())
    assert result.done
    assert not any(promise.text.startswith("PJ") for promise in result.cascade)
    assert result.unmet
