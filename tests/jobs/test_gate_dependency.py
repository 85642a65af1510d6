"""The gate that asks whether what a job builds on is done, and whether what it puts out is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from donewhen.jobs.board.validity import DependencyFact, DependencyState
from donewhen.jobs.evidence.file_checks import FileState
from donewhen.jobs.gates.dependency_gate import dependency_gate, dependency_reasons
from donewhen.jobs.gates.facts import Facts, FileFact
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import Job
from sentences import assert_sentences

MakeFacts = Callable[..., Facts]
MakeJob = Callable[..., Job]
WHERE = "jobs/WI-20260214-001-parser/plan.md"
OTHER = "WI-20260214-002"


def on(state: DependencyState, *through: str, why: str = "") -> tuple[DependencyFact, ...]:
    return (DependencyFact(OTHER, state, (OTHER, *through), why),)


def reasons_of(facts: Facts) -> list[tuple[GateCode, str]]:
    return [(reason.code, reason.message) for reason in dependency_gate(facts).reasons]


def test_the_gate_is_open_when_all_is_done_and_there(make_facts: MakeFacts) -> None:
    found = dependency_gate(make_facts(dependencies=on("done")))
    assert (found.gate, found.passed, found.next) == ("dependency", True, None)


@pytest.mark.parametrize(
    ("state", "code", "words"),
    [
        ("open", GateCode.DEPENDENCY_OPEN, "is not done"),
        ("cancelled", GateCode.DEPENDENCY_OPEN, "is cancelled"),
        ("invalid", GateCode.DEPENDENCY_INVALID, "is invalid"),
        ("missing", GateCode.DEPENDENCY_MISSING, "does not exist"),
        ("cycle", GateCode.DEPENDENCY_CYCLE, "depends on itself"),
    ],
)
def test_a_dependency_that_is_not_done_closes_the_gate(
    make_facts: MakeFacts, state: DependencyState, code: GateCode, words: str
) -> None:
    facts = make_facts(dependencies=on(state))
    assert reasons_of(facts) == [(code, f"{OTHER} {words}.")]
    assert dependency_gate(facts).next == "donewhen ready"
    assert dependency_gate(facts).reasons[0].where == WHERE


def test_a_dependency_that_fails_further_up_shows_the_chain_and_why(make_facts: MakeFacts) -> None:
    facts = make_facts(dependencies=on("invalid", "WI-20260214-003", "WI-20260214-004", why="a.md changed"))
    assert reasons_of(facts) == [
        (
            GateCode.DEPENDENCY_INVALID,
            f"{OTHER} is invalid (through {OTHER} → WI-20260214-003 → WI-20260214-004): a.md changed.",
        )
    ]


def test_a_chain_of_two_is_a_chain(make_facts: MakeFacts) -> None:
    ((_, message),) = reasons_of(make_facts(dependencies=on("invalid", "WI-20260214-003")))
    assert message == f"{OTHER} is invalid (through {OTHER} → WI-20260214-003)."


def test_one_dependency_that_is_open_is_not_made_up_for_by_others_that_are_done(make_facts: MakeFacts) -> None:
    good = DependencyFact("WI-20260214-009", "done", ("WI-20260214-009",))
    facts = make_facts(dependencies=(good, *on("open"), good))
    found = reasons_of(facts)
    assert [item[0] for item in found] == [GateCode.DEPENDENCY_OPEN]
    assert_sentences([item[1] for item in found])


def test_what_changed_upstream_asks_for_a_new_start(make_facts: MakeFacts) -> None:
    facts = make_facts(upstream_changed=("jobs/a/outputs/x.md", "jobs/a/outputs/y.md"))
    found = reasons_of(facts)
    assert [item[0] for item in found] == [GateCode.UPSTREAM_CHANGED, GateCode.UPSTREAM_CHANGED]
    assert_sentences([item[1] for item in found])
    assert dependency_gate(facts).next == "donewhen start WI-20260214-001"


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("missing", "is missing"),
        ("empty", "is empty"),
        ("not_a_file", "is not a regular file"),
        ("outside", "is outside of the project"),
    ],
)
def test_an_output_or_evidence_file_that_is_not_good_closes_the_gate(
    make_facts: MakeFacts, make_job: MakeJob, state: FileState, words: str
) -> None:
    job = make_job(outputs=["a.md", "b.md"], verification_evidence=["proof.md"])
    lines = [job.document.line_of(field) for field in ("outputs", "verification_evidence")]
    good = FileFact("a.md", "good")
    facts = make_facts(job, outputs=(good, FileFact("b.md", state)))
    assert reasons_of(facts) == [(GateCode.OUTPUT_MISSING, f"b.md {words}.")]
    assert dependency_gate(facts).reasons[0].where == f"{WHERE}:{lines[0]}"
    assert dependency_gate(facts).next == "donewhen why WI-20260214-001"
    facts = make_facts(job, evidence_files=(FileFact("proof.md", state),))
    assert reasons_of(facts) == [(GateCode.EVIDENCE_FILE_MISSING, f"proof.md {words}.")]
    assert dependency_gate(facts).reasons[0].where == f"{WHERE}:{lines[1]}"
    assert dependency_gate(facts).next == "donewhen why WI-20260214-001"


def test_a_default_that_the_plan_does_not_spell_out_is_shown_without_a_line(
    make_facts: MakeFacts, make_job: MakeJob
) -> None:
    job = replace(make_job(), document=parse_document(b"---\nwork_item_id: WI-20260214-001\n---\n", WHERE))
    facts = make_facts(job, evidence_files=(FileFact("artifacts/verification.md", "missing"),))
    assert dependency_gate(facts).reasons[0].where == WHERE


def test_outputs_that_nobody_has_touched_close_the_gate(make_facts: MakeFacts) -> None:
    facts = make_facts(outputs=(FileFact("a.md", "good", changed=False), FileFact("b.md", "good", changed=False)))
    found = reasons_of(facts)
    assert [item[0] for item in found] == [GateCode.OUTPUT_UNCHANGED]
    assert_sentences([item[1] for item in found])
    assert dependency_gate(facts).next == "donewhen why WI-20260214-001"


def test_one_output_that_changed_is_enough(make_facts: MakeFacts) -> None:
    facts = make_facts(outputs=(FileFact("a.md", "good", changed=False), FileFact("b.md", "good")))
    assert dependency_gate(facts).passed


def test_a_job_that_was_agreed_as_read_only_need_not_change_its_outputs(
    make_facts: MakeFacts, make_job: MakeJob
) -> None:
    outputs = (FileFact("a.md", "good", changed=False),)
    assert dependency_gate(make_facts(make_job(read_only=True), outputs=outputs)).passed


def test_a_job_without_outputs_has_none_to_change(make_facts: MakeFacts, make_job: MakeJob) -> None:
    assert dependency_gate(make_facts(make_job(outputs=[]))).passed


def test_everything_that_is_missing_is_told_at_once_and_others_come_first(make_facts: MakeFacts) -> None:
    facts = make_facts(
        dependencies=on("open"),
        upstream_changed=("x.md",),
        outputs=(FileFact("a.md", "missing", changed=False),),
        evidence_files=(FileFact("proof.md", "empty"),),
    )
    assert [code for code, _ in reasons_of(facts)] == [
        GateCode.DEPENDENCY_OPEN,
        GateCode.UPSTREAM_CHANGED,
        GateCode.OUTPUT_MISSING,
        GateCode.EVIDENCE_FILE_MISSING,
        GateCode.OUTPUT_UNCHANGED,
    ]
    assert dependency_gate(facts).next == "donewhen ready"


def test_starting_asks_only_about_other_jobs(make_facts: MakeFacts) -> None:
    facts = make_facts(
        dependencies=on("open"), upstream_changed=("x.md",), outputs=(FileFact("a.md", "missing", changed=False),)
    )
    assert [reason.code for reason in dependency_reasons(facts)] == [GateCode.DEPENDENCY_OPEN]
