"""What can be done next and in which order, and what is wrong with a plan as a whole."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from donewhen.jobs.board.survey import JobRecord, survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.planning import ReadyPlan, check_plan, dependency_cycles, find_ready_jobs
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"


def job_record(name: str, *depends_on: str, status: str = "planned", hours: float = 1.0) -> JobRecord:
    return JobRecord(name, name, status, "normal", depends_on, 0, 3, hours, "agreed", (), Path(name), 1)


# What can be done next


def test_without_jobs_there_is_nothing_to_do() -> None:
    assert find_ready_jobs([]) == ReadyPlan((), (), (), 0.0)


def test_what_depends_on_nothing_open_can_start_and_the_rest_follows_in_waves() -> None:
    jobs = [job_record("d", "b", "c"), job_record("b", "a"), job_record("c", "a"), job_record("a"), job_record("e")]
    found = find_ready_jobs(jobs)
    assert found.now == ("a", "e")
    assert found.waves == (("a", "e"), ("b", "c"), ("d",))


def test_what_is_done_is_out_of_the_way() -> None:
    found = find_ready_jobs([job_record("a", status="done"), job_record("b", "a"), job_record("c", "b")])
    assert (found.now, found.waves) == (("b",), (("b",), ("c",)))


@pytest.mark.parametrize("status", ["in_progress", "blocked"])
def test_what_was_begun_is_in_the_first_wave_but_does_not_start_again(status: str) -> None:
    found = find_ready_jobs([job_record("a", status=status), job_record("b", "a"), job_record("c")])
    assert (found.now, found.waves) == (("c",), (("a", "c"), ("b",)))


def test_what_depends_on_a_cancelled_or_unknown_job_waits_for_ever() -> None:
    found = find_ready_jobs(
        [job_record("a", status="cancelled"), job_record("b", "a"), job_record("c", "nobody"), job_record("d", "b")]
    )
    assert found == ReadyPlan((), (), (), 0.0)


def test_the_critical_path_is_the_longest_in_hours_not_in_jobs() -> None:
    jobs = [
        job_record("a"),
        job_record("b", "a"),
        job_record("c", "b"),
        job_record("long", hours=8.0),
        job_record("end", "c", "long", hours=0.5),
    ]
    found = find_ready_jobs(jobs)
    assert (found.critical_path, found.hours) == (("long", "end"), 8.5)
    shorter = [*jobs[:3], job_record("long", hours=2.0), jobs[4]]
    assert find_ready_jobs(shorter).critical_path == ("a", "b", "c", "end")
    assert find_ready_jobs(shorter).hours == 3.5


def test_done_jobs_do_not_count_for_the_critical_path() -> None:
    found = find_ready_jobs(
        [job_record("a", status="done", hours=99.0), job_record("b", "a", hours=2.0), job_record("c", hours=1.0)]
    )
    assert (found.critical_path, found.hours) == (("b",), 2.0)


def test_jobs_in_a_circle_never_get_their_turn_and_hold_nobody_else_up() -> None:
    found = find_ready_jobs([job_record("a", "b"), job_record("b", "a"), job_record("c"), job_record("d", "a")])
    assert (found.now, found.waves) == (("c",), (("c",),))


def line_of(count: int) -> list[JobRecord]:
    names = [f"WI-20260214-{number:03d}" for number in range(1, count + 1)]
    return [job_record(name, *([names[place - 1]] if place else [])) for place, name in enumerate(names)]


def test_five_thousand_jobs_in_a_line_are_five_thousand_waves() -> None:
    jobs = line_of(5000)
    found = find_ready_jobs(jobs)
    assert found.now == (jobs[0].id,)
    assert len(found.waves) == len(found.critical_path) == 5000
    assert found.critical_path[-1] == jobs[-1].id
    assert found.hours == 5000.0


# Circles


def same(found: Sequence[tuple[str, ...]]) -> set[frozenset[str]]:
    return {frozenset(item) for item in found}


def test_a_plan_that_goes_forward_has_no_circles() -> None:
    assert (
        dependency_cycles(
            [job_record("a"), job_record("b", "a"), job_record("c", "a", "b"), job_record("d", "b", "c", "nobody")]
        )
        == ()
    )
    assert dependency_cycles([]) == ()


def test_a_circle_is_found_once_and_in_order() -> None:
    assert dependency_cycles([job_record("a", "c"), job_record("b", "a"), job_record("c", "b")]) == (("a", "c", "b"),)


def test_a_job_that_depends_on_itself_is_a_circle() -> None:
    assert dependency_cycles([job_record("a"), job_record("b", "b")]) == (("b",),)


def test_every_circle_is_found() -> None:
    jobs = [
        job_record("a", "b"),
        job_record("b", "a"),
        job_record("c", "d"),
        job_record("d", "e"),
        job_record("e", "c"),
        job_record("f", "a", "c"),
        job_record("g", "g"),
    ]
    assert same(dependency_cycles(jobs)) == {frozenset("ab"), frozenset("cde"), frozenset("g")}
    assert len(dependency_cycles(jobs)) == 3


def test_two_circles_that_share_a_job_are_both_found() -> None:
    jobs = [job_record("a", "b", "c"), job_record("b", "a"), job_record("c", "a")]
    assert same(dependency_cycles(jobs)) == {frozenset("ab"), frozenset("ac")}


def test_a_job_outside_of_the_circle_that_leads_to_it_is_no_part_of_it() -> None:
    assert same(
        dependency_cycles([job_record("in", "a"), job_record("a", "b"), job_record("b", "a", "out"), job_record("out")])
    ) == {frozenset("ab")}


def test_five_thousand_jobs_in_one_circle_are_one_circle() -> None:
    jobs = line_of(5000)
    assert dependency_cycles(jobs) == ()
    assert dependency_cycles(list(reversed(jobs))) == ()
    closed = [jobs[0]._replace(depends_on=(jobs[-1].id,)), *jobs[1:]]
    found = dependency_cycles(closed)
    assert [len(circle) for circle in found] == [5000]


# The plan as a whole


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


def made(shop: Workspace, title: str, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    return job


def put_out(job: Job, text: str = "yes\n") -> None:
    (job.folder / "outputs" / "primary.md").write_text(text)


def finished(shop: Workspace, job: Job) -> None:
    assert start_job(shop, job.id, BOT).started
    put_out(job)
    assert complete(shop, job.id, BOT).done


def typed(shop: Workspace, job: Job, **fields: Value) -> None:
    job.path.write_bytes(rewrite_fields(shop.read(job.path), fields))


def problems(shop: Workspace) -> list[tuple[str, str]]:
    return [(str(problem.code), problem.message) for problem in check_plan(shop, survey_jobs(shop), Policy())]


def found(shop: Workspace) -> list[str]:
    return [code for code, _ in problems(shop)]


def test_a_sound_plan_has_nothing_wrong_with_it(shop: Workspace) -> None:
    a = made(shop, "A")
    finished(shop, a)
    b = made(shop, "B", depends_on=[a.id])
    finished(shop, b)
    made(shop, "C", depends_on=[b.id])
    assert problems(shop) == []


def test_a_dependency_that_does_not_exist_is_named(shop: Workspace) -> None:
    a = made(shop, "A")
    typed(shop, a, depends_on=["WI-20200101-007"])
    found = problems(shop)
    assert [item[0] for item in found] == ["dependency_dangling"]
    assert_sentences([item[1] for item in found])


def test_a_circle_is_shown_whole(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    typed(shop, a, depends_on=[b.id])
    typed(shop, b, depends_on=[a.id])
    message = f"Circular dependency: {a.id} → {b.id} → {a.id}."
    assert problems(shop) == [("dependency_circle", message)]
    place = check_plan(shop, survey_jobs(shop), Policy())[0].where
    assert place == shop.where(a.path)


def test_an_id_that_two_jobs_have_is_found(shop: Workspace) -> None:
    a = made(shop, "A")
    shutil.copytree(a.folder, a.folder.with_name(f"{a.id}-copy"))
    assert found(shop) == ["duplicate_id"]


def test_done_before_what_it_depends_on_is_found(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    finished(shop, b)
    typed(shop, b, depends_on=[a.id])
    message = dict(problems(shop))
    assert b.id in message["done_too_early"]
    assert a.id in message["done_too_early"]
    assert_sentences(message["done_too_early"])
    finished(shop, a)
    assert "done_too_early" not in found(shop)


@pytest.mark.parametrize("after", ["in_progress", "cancelled"])
def test_a_job_under_which_the_ground_was_taken_away_is_found(shop: Workspace, after: str) -> None:
    a = made(shop, "A")
    finished(shop, a)
    b = made(shop, "B", depends_on=[a.id])
    finished(shop, b)
    if after == "cancelled":
        decide(shop, shop.job(a.id), Decision("cancel", "no"), ADA)
    else:
        start_job(shop, a.id, BOT)
    message = dict(problems(shop))
    assert message["done_too_early"].endswith(f"is {after}.")
    assert f"({b.id} → {a.id})" in message["done_invalid"]


def test_a_done_job_on_changed_ground_is_shown_with_the_chain(shop: Workspace) -> None:
    jobs: list[Job] = []
    for title in "ABC":
        jobs.append(made(shop, title, depends_on=[jobs[-1].id] if jobs else []))
        finished(shop, jobs[-1])
    a, b, c = jobs
    put_out(a, "yes, secretly\n")
    lines = [message for code, message in problems(shop) if code == "done_invalid"]
    assert [code for code, _ in problems(shop)] == ["output_changed", "done_invalid", "done_invalid"]
    assert f"({b.id})" in lines[0]
    assert f"({c.id} → {b.id})" in lines[1]
    assert all(shop.where(a.folder / "outputs" / "primary.md") in line for line in lines)


@pytest.mark.parametrize(
    ("field", "value"),
    [("status", "done"), ("reward_last_score", 100), ("truth_last_status", "pass"), ("iteration", 2)],
    ids=["status", "score", "truth", "iteration"],
)
def test_a_field_that_was_typed_is_found(shop: Workspace, field: str, value: Value) -> None:
    a = made(shop, "A")
    typed(shop, a, **{field: value})
    assert [message.split()[1] for code, message in problems(shop) if code == "tampered"] == [field]


def test_a_job_that_says_done_without_any_record_is_found(shop: Workspace) -> None:
    job = add_job(shop, "Old", criteria=[SAYS_YES])
    typed(shop, job, status="done")
    assert sorted(found(shop)) == ["done_below_target", "done_untrue", "unsealed"]
    typed(shop, job, truth_last_status="pass", reward_last_score=100)
    assert found(shop) == ["unsealed"]


def test_a_broken_file_is_one_finding_and_hides_no_other(shop: Workspace) -> None:
    a, b, c = made(shop, "A"), made(shop, "B"), made(shop, "C")
    a.path.write_text("---\nnot: [closed\n")
    typed(shop, b, depends_on=["WI-20200101-007"])
    typed(shop, c, status="doing")
    assert sorted(found(shop)) == ["dependency_dangling", "document", "field"]


def test_a_done_job_whose_dependency_can_not_be_read_stops_no_check(shop: Workspace) -> None:
    a = made(shop, "A")
    finished(shop, a)
    b = made(shop, "B", depends_on=[a.id])
    finished(shop, b)
    a.path.write_text("---\nnot: [closed\n")
    assert "document" in found(shop)


def test_a_broken_chain_is_found(shop: Workspace) -> None:
    a = made(shop, "A")
    path = shop.folder / "ledger" / f"{a.id}.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"ada"', b'"bob"'))
    assert "chain_broken" in found(shop)


def test_everything_is_told_at_once(shop: Workspace) -> None:
    a, b, c = made(shop, "A"), made(shop, "B"), made(shop, "C")
    finished(shop, a)
    typed(shop, a, reward_last_score=3)
    typed(shop, b, depends_on=[c.id, "WI-20200101-007"])
    typed(shop, c, depends_on=[b.id])
    assert sorted(found(shop)) == ["dependency_circle", "dependency_dangling", "done_below_target", "tampered"]
