"""Is a job that was done still done? Only what it was built on decides, all the way up."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.jobs.conftest import Ticking

from donewhen.jobs.board.validity import Validity, ValidityChecker
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval, Policy
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.lifecycle.completion import complete, valid_completion
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
ANYBODY = Policy()
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"
DONE = {"writes": {"status": ["in_progress", "done"]}}
Git = Callable[..., str]


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


@pytest.fixture
def memory() -> Iterator[Path]:
    """A folder that is quick to fill."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture
def shallow_stack() -> Iterator[None]:
    """Room for fewer calls than the line has jobs, as a line of thousands would find it."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 140)
    yield
    sys.setrecursionlimit(before)


def made(shop: Workspace, title: str, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    return job


def put_out(job: Job, text: str = "yes\n") -> None:
    (job.folder / "outputs" / "primary.md").write_text(text)


def finished(shop: Workspace, job: Job) -> Entry:
    assert start_job(shop, job.id, BOT).started
    put_out(job)
    result = complete(shop, job.id, BOT)
    assert result.done
    return result.entry


def a_line(shop: Workspace, *titles: str) -> list[Job]:
    jobs: list[Job] = []
    for title in titles:
        jobs.append(made(shop, title, depends_on=[jobs[-1].id] if jobs else []))
        finished(shop, jobs[-1])
    return jobs


def typed(shop: Workspace, job: Job, **fields: Value) -> None:
    job.path.write_bytes(rewrite_fields(shop.read(job.path), fields))


def of(shop: Workspace, job: Job) -> Validity:
    return ValidityChecker(shop, ANYBODY).of(job.id)


# Where a job stands


def test_a_job_is_open_until_it_is_completed_and_again_when_it_is_started(shop: Workspace) -> None:
    job = made(shop, "A")
    assert of(shop, job) == Validity("open")
    finished(shop, job)
    assert of(shop, job) == Validity("done")
    start_job(shop, job.id, BOT)
    assert of(shop, job) == Validity("open")


def test_what_a_file_says_of_itself_decides_nothing(shop: Workspace) -> None:
    a, b = made(shop, "A"), made(shop, "B")
    typed(shop, a, status="done")
    assert of(shop, a).state == "open"
    finished(shop, b)
    typed(shop, b, status="planned")
    assert of(shop, b).state == "done"


def test_a_change_upstream_is_seen_at_every_distance_with_the_way_to_it(shop: Workspace) -> None:
    a, b, c, d = a_line(shop, "A", "B", "C", "D")
    assert [of(shop, job).state for job in (a, b, c, d)] == ["done"] * 4
    put_out(a, "yes, secretly\n")
    name = shop.where(a.folder / "outputs" / "primary.md")
    why = f"{name} changed after it was done"
    assert of(shop, a) == Validity("invalid", (), f"its output {why}", own_output=True)
    assert of(shop, b) == Validity("invalid", (), why)
    assert of(shop, c) == Validity("invalid", (b.id,), why)
    assert of(shop, d) == Validity("invalid", (c.id, b.id), why)
    put_out(a)
    assert of(shop, d) == Validity("done")


def test_an_output_that_is_gone_or_new_upstream_counts_as_changed(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    (a.folder / "outputs" / "primary.md").unlink()
    assert of(shop, b).state == "invalid"
    put_out(a)
    typed(shop, a, outputs=["outputs/primary.md", "outputs/more.md"])
    text = of(shop, b).why
    assert shop.where(a.folder / "outputs" / "more.md") in text
    assert_sentences(text)


@pytest.mark.parametrize("after", ["open", "cancelled"])
def test_a_job_does_not_stand_on_one_that_is_not_done_any_more(shop: Workspace, after: str) -> None:
    a, b = a_line(shop, "A", "B")
    if after == "open":
        start_job(shop, a.id, BOT)
    else:
        decide(shop, shop.job(a.id), Decision("cancel", "no"), ADA)
    assert of(shop, b) == Validity("invalid", (a.id,), f"{a.id} is {after}")


def test_a_job_does_not_stand_on_one_that_is_gone(shop: Workspace) -> None:
    job = made(shop, "A")
    typed(shop, job, depends_on=["WI-20200101-001"])
    shop.ledger.append(job.id, "completed", {"upstream": {}, "declared": {}, **DONE}, BOT)
    assert of(shop, job) == Validity("invalid", ("WI-20200101-001",), "WI-20200101-001 is missing")


def test_cancelled_is_cancelled_whatever_happened_before(shop: Workspace) -> None:
    job = made(shop, "A")
    finished(shop, job)
    decide(shop, shop.job(job.id), Decision("cancel", "no"), ADA)
    assert of(shop, job) == Validity("cancelled")


def test_a_job_that_does_not_exist_is_missing(shop: Workspace) -> None:
    assert ValidityChecker(shop, ANYBODY).of("WI-20200101-001") == Validity("missing")


def test_a_plan_that_can_not_be_read_is_not_done_and_stops_nobody(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    a.path.write_text("---\nnot: [closed\n")
    assert of(shop, a).state not in ("done", "cancelled")
    assert of(shop, b).state == "invalid"


# Dependencies


def test_dependencies_are_told_with_the_chain_that_leads_to_the_fault(shop: Workspace) -> None:
    a, b, c = a_line(shop, "A", "B", "C")
    d = made(shop, "D", depends_on=[c.id, a.id])
    put_out(a, "yes, secretly\n")
    found = ValidityChecker(shop, ANYBODY).dependencies_of(d)
    assert [(item.id, item.state, item.chain) for item in found] == [
        (c.id, "invalid", (c.id, b.id)),
        (a.id, "invalid", (a.id,)),
    ]


def circle(shop: Workspace, *titles: str) -> list[Job]:
    """Jobs that were done in a line, after which somebody has bent the line into a circle."""
    jobs = a_line(shop, *titles)
    typed(shop, jobs[0], depends_on=[jobs[-1].id])
    head = shop.ledger.read(jobs[0].id).entries[-1]
    name = shop.where(jobs[-1].folder / "outputs" / "primary.md")
    upstream = {name: next(iter(head.data["outputs"].values()))}
    shop.ledger.append(jobs[0].id, "completed", {**head.data, "upstream": upstream, **DONE}, BOT)
    return [shop.job(job.id) for job in jobs]


def test_a_circle_is_named_and_ends(shop: Workspace) -> None:
    a, b, c = circle(shop, "A", "B", "C")
    found = ValidityChecker(shop, ANYBODY).dependencies_of(a)
    assert [(item.id, item.state) for item in found] == [(c.id, "cycle")]
    assert found[0].why == f"{a.id} → {c.id} → {b.id} → {a.id}"
    assert {of(shop, job).state for job in (a, b, c)} == {"cycle"}


def test_a_job_that_depends_on_itself_is_a_circle_of_one(shop: Workspace) -> None:
    job = made(shop, "A")
    typed(shop, job, depends_on=[job.id])
    found = ValidityChecker(shop, ANYBODY).dependencies_of(shop.job(job.id))
    assert [(item.id, item.state, item.why) for item in found] == [(job.id, "cycle", f"{job.id} → {job.id}")]


def test_a_circle_further_up_is_not_done_either(shop: Workspace) -> None:
    _, b, _ = circle(shop, "A", "B", "C")
    below = made(shop, "Below", depends_on=[b.id])
    assert ValidityChecker(shop, ANYBODY).dependencies_of(below)[0].state == "cycle"


def test_answers_do_not_depend_on_what_was_asked_before(shop: Workspace) -> None:
    a, b = a_line(shop, "A", "B")
    asked = ValidityChecker(shop, ANYBODY)
    assert [dependency.state for dependency in asked.dependencies_of(shop.job(b.id))] == ["done"]
    assert [asked.of(job.id).state for job in (a, b)] == ["done", "done"]


def test_each_job_is_looked_at_once(shop: Workspace) -> None:
    a, b, c = a_line(shop, "A", "B", "C")
    asked = ValidityChecker(shop, ANYBODY)
    assert asked.of(c.id).state == "done"
    put_out(a, "yes, secretly\n")
    assert [asked.of(job.id).state for job in (a, b, c)] == ["done"] * 3


def test_a_long_line_of_done_jobs_is_followed_to_its_end(memory: Path, shallow_stack: None) -> None:
    shop = create_project(memory, "Long")
    names = [f"WI-20260214-{number:03d}" for number in range(1, 151)]
    for above, name in zip([None, *names], names, strict=False):
        folder = shop.root / "jobs" / f"{name}-job"
        folder.mkdir()
        depends = json.dumps([above] if above else [])
        (folder / "plan.md").write_text(f"---\nwork_item_id: {name}\ndepends_on: {depends}\noutputs: []\n---\n")
        shop.ledger.append(name, "completed", {"upstream": {}, "declared": {}, **DONE}, BOT)
    assert ValidityChecker(shop, ANYBODY).of(names[-1]) == Validity("done")
    (shop.folder / "ledger" / f"{names[0]}.jsonl").unlink()
    found = ValidityChecker(shop, ANYBODY).of(names[-1])
    assert (found.state, len(found.chain), found.chain[-1]) == ("invalid", 149, names[0])


# What counts as a change


def declared(shop: Workspace) -> Job:
    (shop.root / "data.csv").write_text("a,b\n")
    (shop.root / "other.csv").write_text("a,b\n")
    job = made(shop, "A", inputs=["/data.csv"])
    finished(shop, job)
    return job


def test_a_declared_input_that_changes_undoes_a_job(shop: Workspace) -> None:
    job = declared(shop)
    (shop.root / "data.csv").write_text("a,b,c\n")
    assert of(shop, job) == Validity("invalid", (), "data.csv changed after it was done")
    assert valid_completion(shop, shop.job(job.id)) is None
    assert not complete(shop, job.id, BOT).repeated


def test_nothing_else_undoes_a_job_that_is_done(shop: Workspace) -> None:
    job = declared(shop)
    (shop.root / "other.csv").write_text("other\n")
    (shop.root / "new.py").write_text("new\n")
    (job.folder / "notes" / "later.md").write_text("a thought\n")
    os.utime(shop.root / "data.csv", (1, 1))
    assert of(shop, job) == Validity("done")
    assert complete(shop, job.id, BOT).repeated


def test_an_output_that_is_gone_or_changed_undoes_a_job_until_it_is_back(shop: Workspace) -> None:
    job, other = declared(shop), made(shop, "Beside")
    finished(shop, other)
    output = job.folder / "outputs" / "primary.md"
    name, before = shop.where(output), output.read_bytes()
    output.unlink()
    assert of(shop, job) == Validity("invalid", (), f"its output {name} is gone", own_output=True)
    assert of(shop, other) == Validity("done")
    output.write_text("another text\n")
    assert of(shop, job) == Validity("invalid", (), f"its output {name} changed after it was done", own_output=True)
    assert valid_completion(shop, shop.job(job.id)) is None
    output.write_bytes(before)
    os.utime(output, (1, 1))
    assert of(shop, job) == Validity("done")


def test_an_output_that_a_later_job_has_made_of_it_undoes_nothing(shop: Workspace) -> None:
    shop = Workspace(shop.root, shop.form, Ticking())
    shared = shop.root / "shared.txt"
    first, second = (made(shop, title, outputs=["/shared.txt"]) for title in ("First", "Second"))
    shared.write_text("one\n")
    finished(shop, first)
    shared.write_text("two\n")
    assert of(shop, first).own_output
    finished(shop, second)
    assert of(shop, first) == of(shop, second) == Validity("done")
    shared.write_text("three\n")
    assert of(shop, first).own_output and of(shop, second).own_output


def test_an_entry_that_does_not_say_what_it_was_built_on_is_not_believed(shop: Workspace) -> None:
    (shop.root / "data.csv").write_text("a,b\n")
    job = made(shop, "A", inputs=["/data.csv"])
    shop.ledger.append(job.id, "completed", {"declared": {}, "upstream": {}, **DONE}, BOT)
    assert of(shop, job).state == "invalid"


def test_a_fresh_clone_at_another_place_stays_done(repository: Path, git: Git, tmp_path: Path) -> None:
    shop = create_project(repository, "Shop")
    (repository / "data.csv").write_text("a,b\n")
    above = made(shop, "A", inputs=["/data.csv"])
    finished(shop, above)
    below = made(shop, "B", depends_on=[above.id])
    entry = finished(shop, below)
    git(repository, "add", "--all")
    git(repository, "commit", "-qm", "done")
    git(tmp_path, "clone", "-q", str(repository), "elsewhere")
    clone = find_workspace(tmp_path / "elsewhere")
    assert clone.root != shop.root
    again = complete(clone, below.id, BOT)
    assert (again.repeated, again.entry) == (True, entry)
    assert git(tmp_path / "elsewhere", "status", "--porcelain") == ""
