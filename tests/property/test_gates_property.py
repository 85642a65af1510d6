"""Whatever the facts are: the gates answer alike each time, pass only what may pass, and worse facts never help."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from donewhen.jobs.board.validity import DependencyFact, DependencyState
from donewhen.jobs.board.views import ViewFact
from donewhen.jobs.contract.agreement import Agreement, AgreementState
from donewhen.jobs.evidence.file_checks import FileState
from donewhen.jobs.evidence.requirements import VERIFICATION, requirements_of
from donewhen.jobs.gates.evaluation import evaluate
from donewhen.jobs.gates.evidence_status import EvidenceStatus, State
from donewhen.jobs.gates.facts import Facts, FileFact
from donewhen.jobs.gates.score import score_of
from donewhen.jobs.gates.suites import SuiteFact
from donewhen.jobs.issues.mirror_status import MirrorFact
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.lessons.lesson_use import LessonFact
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.job import TRUTH_CHECKS, Job, Project, read_job, read_project
from donewhen.jobs.plan.templates import job_plan, project_plan
from donewhen.jobs.record.history import History
from donewhen.jobs.record.projection import Mismatch
from donewhen_kit import examples

QUICK = settings(
    max_examples=examples(150),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
)
WHERE = "jobs/WI-20260214-001-parser/plan.md"
NOW = "2026-02-14T10:00:00Z"
STARTED = Entry(1, "", "started", NOW, Actor("bot"), {}, "sha256:1")
CRITERIA = (
    ("The log is parsed.\n  check: run sh check.sh", "It reads well."),
    ("It reads well.", "TBD"),
    ("TBD",),
)


@cache
def plain_job(criteria: tuple[str, ...], commands: tuple[str, ...]) -> Job:
    raw = job_plan("WI-20260214-001", "Parser", NOW, criteria=criteria, commands=commands)
    return read_job(parse_document(raw, WHERE), Path("/project", WHERE), WHERE)


@cache
def plain_project() -> Project:
    path = Path("/project/jobs/plan.md")
    return read_project(
        parse_document(project_plan("PJ-20260214-001", "Demo", NOW), "jobs/plan.md"), path, "jobs/plan.md"
    )


def mostly(good: object, *others: object) -> st.SearchStrategy[object]:
    """Good more often than not, because one bad fact among twenty is enough to close a gate."""
    return st.sampled_from([good] * 30 + [*others])


agreements = st.builds(
    Agreement,
    mostly("agreed", *(argument for argument in get_args(AgreementState) if argument != "agreed")),
    st.just({}),
    st.none(),
)
files = st.builds(
    FileFact,
    st.sampled_from(["a.md", "b.md"]),
    mostly("good", *(argument for argument in get_args(FileState) if argument != "good")),
    mostly(True, False),
)
dependencies = st.builds(
    DependencyFact,
    st.just("WI-20260214-002"),
    mostly("done", *(argument for argument in get_args(DependencyState) if argument != "done")),
    st.just(("WI-20260214-002",)),
)
few_names = mostly((), ("t::a",), ("t::a", "t::b", "t::c", "t::d"))
suites = st.builds(SuiteFact, st.just("pytest"), few_names, few_names, st.integers(0, 4), st.integers(0, 4))
histories = st.builds(
    History,
    mostly("in_progress", "planned", "blocked", "cancelled"),
    st.sampled_from([0, 0, 0, 1, 2, 3, 4, 9]),
    mostly(STARTED, None),
    st.none(),
    st.booleans(),
    st.sampled_from([False, False, False, True]),
    mostly((), (50,), (50, 50), (50, 40, 60), (90,) * 9),
    st.none(),
    answer=st.none(),
)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    job = plain_job(draw(mostly(*CRITERIA)), draw(st.sampled_from([(), ("sh a.sh", "sh b.sh")])))
    return replace(
        job,
        reward_target=draw(st.sampled_from([0, 60, 80, 90])),
        max_iterations=draw(st.sampled_from([0, 2, 3])),
        truth_mode=draw(mostly("strict", "off")),  # type: ignore[arg-type]
        truth_checks=tuple(draw(st.sets(st.sampled_from(TRUTH_CHECKS)))),
        read_only=draw(st.booleans()),
        execution_log_required=draw(st.booleans()),
        lesson_capture_required=draw(st.booleans()),
        exemptions=draw(mostly({}, {"execution_log_exemption_reason": "x", "lesson_capture_exemption_reason": "x"})),  # type: ignore[arg-type]
        criteria=() if draw(mostly(False, True)) else job.criteria,
    )


@st.composite
def all_facts(draw: st.DrawFn) -> Facts:
    job = draw(jobs())
    states = mostly("passed", *(argument for argument in get_args(State) if argument != "passed"))
    return Facts(
        job=job,
        project=plain_project(),
        where=WHERE,
        agreement=draw(agreements),
        project_agreement=draw(agreements),
        history=draw(histories),
        evidence=tuple(EvidenceStatus(requirement, draw(states)) for requirement in requirements_of(job)),  # type: ignore[arg-type]
        outputs=tuple(draw(st.lists(files, max_size=2))),
        evidence_files=tuple(draw(st.lists(files, max_size=2))),
        dependencies=tuple(draw(st.lists(dependencies, max_size=2))),
        upstream_changed=draw(mostly((), ("x.md",))),  # type: ignore[arg-type]
        suites=tuple(draw(st.lists(suites, max_size=1))),
        tampered=draw(mostly((), (Mismatch("status", "done", "planned"),))),  # type: ignore[arg-type]
        chain_breaks=draw(mostly((), ("line 3",))),  # type: ignore[arg-type]
        runs=draw(st.integers(0, 2)),
        views=ViewFact(draw(st.booleans()), draw(st.booleans())),
        lessons=draw(
            st.sampled_from([LessonFact(0, 0), LessonFact(1, 1), LessonFact(2, 1), LessonFact(1, 0, ("LL-1",))])
        ),
        mirror=MirrorFact(draw(st.booleans()), draw(st.booleans()), "told"),
        progress_lines=draw(st.integers(0, 1)),
        sections=draw(st.sampled_from([{}, {"verification": "Compare the counts."}])),
    )


def best() -> Facts:
    job = plain_job(CRITERIA[0], ())
    return Facts(
        job=job,
        project=plain_project(),
        where=WHERE,
        agreement=Agreement("agreed", {}, None),
        project_agreement=Agreement("agreed", {}, None),
        history=History("in_progress", 0, STARTED, None, False, False, (), None),
        evidence=tuple(EvidenceStatus(requirement, "passed") for requirement in requirements_of(job)),
        outputs=(FileFact("a.md", "good"),),
        evidence_files=(FileFact("b.md", "good"),),
        dependencies=(DependencyFact("WI-20260214-002", "done", ("WI-20260214-002",)),),
        upstream_changed=(),
        suites=(SuiteFact("pytest", (), (), 1, 1),),
        tampered=(),
        chain_breaks=(),
        runs=1,
        views=ViewFact(tracker=True, dashboard=True),
        lessons=LessonFact(1, 0, ("LL-1",)),
        mirror=MirrorFact(enabled=True, current=True),
        progress_lines=1,
        sections={},
    )


def may_pass(facts: Facts) -> bool:
    """The conditions of the specification, said once more and apart from the gates."""
    job, history = facts.job, facts.history
    agreed = facts.agreement.state == facts.project_agreement.state == "agreed"
    freed = history.auto_blocked and history.decided_since_block
    within = freed or (history.iteration <= job.max_iterations and not history.auto_blocked)
    upstream = all(dependency.state == "done" for dependency in facts.dependencies) and not facts.upstream_changed
    there = all(output.state == "good" for output in (*facts.outputs, *facts.evidence_files))
    touched = job.read_only or not facts.outputs or any(output.changed for output in facts.outputs)
    return agreed and within and history.status != "cancelled" and upstream and there and touched and is_true(facts)


def is_true(facts: Facts) -> bool:
    job, checks = facts.job, facts.job.truth_checks
    whole = not facts.tampered and not facts.chain_breaks
    if job.truth_mode == "off":
        return whole
    commands = {standing.state for standing in facts.evidence if standing.requirement.name == VERIFICATION}
    criteria = {standing.state for standing in facts.evidence if standing.requirement.name != VERIFICATION}
    asked = any(criterion.text != "TBD" for criterion in job.criteria) and criteria <= {"passed"}
    suites = not any(suite.lost or suite.skipped for suite in facts.suites)
    run = commands <= {"passed"} or not {"required_command_logged", "verification_consistency"} & {*checks}
    fresh = "freshness" not in checks or "stale" not in commands
    logged = bool(facts.runs or job.exemptions or not job.execution_log_required)
    learned = bool(facts.lessons.kept or job.exemptions or not job.lesson_capture_required)
    return (
        whole
        and asked
        and suites
        and run
        and fresh
        and (logged or "work_item_execution_logged" not in checks)
        and (learned or "linked_lesson_captured" not in checks)
    )


def every(files: tuple[FileFact, ...], **changes: object) -> tuple[FileFact, ...]:
    return tuple(file._replace(**changes) for file in files)  # type: ignore[arg-type]


def stood(facts: Facts, state: State) -> Facts:
    return facts._replace(evidence=tuple(standing._replace(state=state) for standing in facts.evidence))


WORSE: dict[str, Callable[[Facts], Facts]] = {
    "the job's agreement is voided": lambda f: f._replace(agreement=Agreement("voided", {}, None)),
    "the project is not agreed": lambda f: f._replace(project_agreement=Agreement("proposed", {}, None)),
    "one more iteration": lambda f: f._replace(history=f.history._replace(iteration=f.history.iteration + 1)),
    "out of budget": lambda f: f._replace(history=f.history._replace(auto_blocked=True, decided_since_block=False)),
    "a try that got no further": lambda f: f._replace(history=f.history._replace(scores=(*f.history.scores, 0))),
    "cancelled": lambda f: f._replace(history=f.history._replace(status="cancelled")),
    "not started": lambda f: f._replace(history=f.history._replace(started=None)),
    "outputs missing": lambda f: f._replace(outputs=every(f.outputs, state="missing")),
    "outputs empty": lambda f: f._replace(outputs=every(f.outputs, state="empty")),
    "outputs unchanged": lambda f: f._replace(outputs=every(f.outputs, changed=False)),
    "evidence missing": lambda f: f._replace(evidence_files=every(f.evidence_files, state="missing")),
    "a dependency is open": lambda f: f._replace(dependencies=(*f.dependencies, DependencyFact("X", "open", ("X",)))),
    "upstream changed": lambda f: f._replace(upstream_changed=(*f.upstream_changed, "y.md")),
    "nothing shown": lambda f: stood(f, "missing"),
    "all failed": lambda f: stood(f, "failed"),
    "a test is lost": lambda f: f._replace(suites=(*f.suites, SuiteFact("pytest", ("t::z",), (), 1, 0))),
    "a test is skipped": lambda f: f._replace(suites=(*f.suites, SuiteFact("pytest", (), ("t::z",), 1, 1))),
    "tampered": lambda f: f._replace(tampered=(*f.tampered, Mismatch("status", "done", "planned"))),
    "ledger broken": lambda f: f._replace(chain_breaks=(*f.chain_breaks, "line 9")),
    "nothing run": lambda f: f._replace(runs=0),
    "views stale": lambda f: f._replace(views=ViewFact(tracker=False, dashboard=False)),
    "no lesson": lambda f: f._replace(lessons=LessonFact(1, 0)),
    "mirror not linked": lambda f: f._replace(mirror=MirrorFact(enabled=True, current=False)),
    "no progress": lambda f: f._replace(progress_lines=0),
    "no words on verification": lambda f: f._replace(sections={}),
    "no criteria": lambda f: f._replace(job=replace(f.job, criteria=())),
    "a higher target": lambda f: f._replace(job=replace(f.job, reward_target=f.job.reward_target + 1)),
    "a smaller budget": lambda f: f._replace(job=replace(f.job, max_iterations=max(0, f.job.max_iterations - 1))),
}
"""Ways to make one thing worse that leave everything else as it is."""

HARD = [
    "the job's agreement is voided",
    "the project is not agreed",
    "out of budget",
    "cancelled",
    "a dependency is open",
    "upstream changed",
    "tampered",
    "ledger broken",
]
"""What closes a gate of its own, whatever the job has agreed to leave out."""


@QUICK
@given(all_facts())
def test_the_same_facts_get_the_same_answer(facts: Facts) -> None:
    assert evaluate(facts) == evaluate(facts)


@QUICK
@example(best())
@example(best()._replace(history=History("blocked", 9, STARTED, None, True, True, (), None)))
@given(all_facts())
def test_all_gates_open_exactly_when_every_condition_holds(facts: Facts) -> None:
    found = evaluate(facts)
    assert not found.broken
    assert found.passed == (may_pass(facts) and found.score.total >= facts.job.reward_target)


@QUICK
@given(all_facts(), st.sampled_from(sorted(WORSE)))
def test_a_worse_fact_never_opens_a_gate_nor_raises_the_score(facts: Facts, how: str) -> None:
    before, after = evaluate(facts), evaluate(WORSE[how](facts))
    assert [gate.gate for gate in after.gates if gate.passed and gate.gate in _closed(before)] == []
    assert after.score.total <= before.score.total
    assert before.passed or not after.passed


@QUICK
@given(all_facts())
def test_the_score_is_within_its_bounds_and_so_is_every_part(facts: Facts) -> None:
    score = score_of(facts)
    assert 0 <= score.total <= 100
    assert all(0 <= component.got <= component.possible for component in score.components)
    assert sum(component.possible for component in score.components) == 100
    assert all(0 < penalty.points <= 10 for penalty in score.penalties)


@QUICK
@given(all_facts(), st.sampled_from(HARD))
def test_no_score_makes_up_for_a_closed_gate(facts: Facts, how: str) -> None:
    easy = facts._replace(job=replace(facts.job, reward_target=0))
    assert not evaluate(WORSE[how](easy)).passed


@pytest.mark.parametrize("how", HARD)
def test_even_the_best_job_is_held_back_by_one_hard_fact(how: str) -> None:
    assert evaluate(best()).passed
    assert not evaluate(WORSE[how](best())).passed


@QUICK
@given(all_facts())
def test_a_closed_gate_always_says_what_to_do_and_an_open_one_never_does(facts: Facts) -> None:
    for gate in evaluate(facts).gates:
        assert (gate.next is None) == gate.passed
        assert all(reason.message.endswith(".") for reason in gate.reasons)


@QUICK
@given(all_facts(), st.sampled_from(["the job's agreement is voided", "out of budget", "a dependency is open"]))
def test_a_gate_does_not_hear_what_concerns_another(facts: Facts, how: str) -> None:
    # A spent budget costs points as well.
    own = {
        "the job's agreement is voided": {"agreement"},
        "out of budget": {"budget", "reward"},
        "a dependency is open": {"dependency"},
    }
    before, after = evaluate(facts), evaluate(WORSE[how](facts))
    assert [gate for gate in before.gates if gate.gate not in own[how]] == [
        gate for gate in after.gates if gate.gate not in own[how]
    ]


def _closed(evaluation: object) -> set[str]:
    return {gate.gate for gate in evaluation.gates if not gate.passed}  # type: ignore[attr-defined]
