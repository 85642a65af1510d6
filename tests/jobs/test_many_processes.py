"""Many processes at once, all of them real: ids differ, nothing is lost, no file is ever half of anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.templates import job_plan
from donewhen.jobs.plan.workspace import Workspace

WRITERS = 8
JOBS = int(os.environ.get("DONEWHEN_SOAK_JOBS", "4"))
ADDED = int(os.environ.get("DONEWHEN_SOAK_ADDED", "4"))
LONG = "DONEWHEN_SOAK_JOBS" in os.environ
ME = Approval(Actor("me", "person"))

pytestmark = pytest.mark.timeout(3600 if LONG else 600)

BEGIN = """
import json, random, sys
from pathlib import Path
from donewhen.foundation.errors import DonewhenError
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import parse_check
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.evidence.commands import record_file_check
from donewhen.jobs.plan.workspace import find_workspace
root, me, count = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
approval = Approval(Actor(f"writer {me}", "person"))
print("ready", flush=True)
sys.stdin.readline()
def tell(*what):
    print(json.dumps(what), flush=True)
"""


def at_once(root: Path, script: str, count: int, writers: int = WRITERS) -> list[list[list[object]]]:
    """Run a script in many processes that begin together; what each of them told."""
    argv = [sys.executable, "-c", BEGIN + script, str(root)]
    processes = [
        subprocess.Popen(
            [*argv, str(number), str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for number in range(writers)
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    ends = [process.communicate() for process in processes]
    errors = [_without_notices(error) for _, error in ends]
    assert [(error, item.returncode) for error, item in zip(errors, processes, strict=True)] == [("", 0)] * writers
    return [[json.loads(line) for line in out.splitlines()] for out, _ in ends]


def many_jobs(folder: Path, count: int) -> tuple[Workspace, list[Job]]:
    """A project whose jobs are agreed."""
    made = create_project(folder, "Shop")
    for number in range(1, count + 1):
        identifier = f"WI-20260214-{number:03d}"
        place = made.root / "jobs" / f"{identifier}-job"
        place.mkdir()
        criteria = ["It works", "There is a file\n  check: file outputs/primary.md"]
        (place / "plan.md").write_bytes(job_plan(identifier, "Job", made.now(), criteria=criteria))
    jobs = [made.job_at(item.path) for item in made.places()]
    for proposal in agreement_proposals(made, jobs):
        agree(made, proposal, ME)
    return made, [made.job_at(item.path) for item in made.places()]


def in_order(workspace: Workspace) -> bool:
    """Every plan is valid, every chain holds, every projection fits, and nothing half-done lies about."""
    found = [
        (finding.code, finding.where)
        for finding in audit_workspace(workspace).findings
        if finding.code != "anchor_absent"
    ]
    assert found == []
    assert survey_jobs(workspace).problems == ()
    assert list(workspace.root.rglob(".donewhen-*")) == []
    return True


ADD = """
workspace = find_workspace(root)
for number in range(count):
    tell(add_job(workspace, f"Job {number} of {me}", criteria=["It works"]).id)
"""


def test_eight_processes_that_add_jobs_at_once_get_an_id_each(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Shop")
    lines = [line for said in at_once(tmp_path, ADD, ADDED) for (line,) in said]
    assert len(lines) == len(set(lines)) == WRITERS * ADDED
    assert sorted(place.id for place in made.places()) == sorted(map(str, lines))
    assert sorted(int(str(line).rpartition("-")[2]) for line in lines) == list(range(1, WRITERS * ADDED + 1))
    wanted = {f"Job {number} of {me}" for number in range(ADDED) for me in range(WRITERS)}
    assert {made.job_at(place.path).title for place in made.places()} == wanted
    assert in_order(made)


ADD_TO_WORKSTREAMS = """
workspace = find_workspace(root)
for number in range(count):
    tell(add_job(workspace, "Shared", workstream="Shared").id)
    tell(add_job(workspace, "Own", workstream=f"Own {me}").id)
"""


def test_workstreams_that_are_made_at_once_are_made_once(tmp_path: Path) -> None:
    made = create_project(tmp_path, "Shop", form="big")
    count = max(1, ADDED // 2)
    lines = [line for said in at_once(made.root, ADD_TO_WORKSTREAMS, count) for (line,) in said]
    assert len(set(lines)) == len(lines) == 2 * WRITERS * count
    streams = {item.name.partition("-")[2].split("-", 2)[2]: item for item in made.workstream_folders()}
    assert sorted(streams) == ["own-" + str(number) for number in range(WRITERS)] + ["shared"]
    assert sorted(map(str, lines)) == sorted(place.id for place in made.places())
    assert in_order(made)


def test_projects_that_are_made_at_once_have_an_id_each(tmp_path: Path) -> None:
    script = "tell(create_project(root, f'Project {me}', form='big').project().id)"
    lines = [line for said in at_once(tmp_path, script, 1) for (line,) in said]
    assert len(set(lines)) == WRITERS
    assert len(list(tmp_path.glob("PJ-*/plan.md"))) == WRITERS
    assert list(tmp_path.rglob(".donewhen-*")) == []


def test_of_many_that_begin_one_small_project_one_succeeds(tmp_path: Path) -> None:
    script = """
try:
    tell(create_project(root, f"Project {me}").project().title)
except DonewhenError as error:
    tell(error.code)
"""
    counts = Counter(str(line) for said in at_once(tmp_path, script, 1) for (line,) in said)
    assert counts.pop("usage") == WRITERS - 1
    assert dict(counts) == {Workspace(tmp_path, "small").project().title: 1}


REWRITE = """
workspace = find_workspace(root)
places = list(workspace.places())
random.Random(me).shuffle(places)
for _ in range(count):
    for place in places:
        with workspace.locked(place.path):
            document = workspace.read(place.path)
            total = document.fields.get("total", 0) + 1
            mine = document.fields.get(f"writer_{me}", 0) + 1
            workspace.write(document, place.path, {f"writer_{me}": mine, "total": total, "note": "x" * (total % 50)})
            entry = workspace.ledger.append(place.id, "evaluated", {"total": total, "by": me}, approval.by)
        tell(place.id, total, entry.hash)
"""


def test_eight_writers_that_rewrite_every_job_lose_nothing(tmp_path: Path) -> None:
    made, jobs = many_jobs(tmp_path, JOBS)
    passes = 1 if LONG else 3
    before = {job.id: job.document for job in jobs}
    lines = [line for said in at_once(tmp_path, REWRITE, passes) for line in said]
    assert len(lines) == WRITERS * passes * JOBS
    for job in jobs:
        document = made.read(job.path)
        assert document.fields["total"] == WRITERS * passes
        assert [document.fields[f"writer_{number}"] for number in range(WRITERS)] == [passes] * WRITERS
        assert {field: document.fields[field] for field in before[job.id].fields} == dict(before[job.id].fields)
        assert document.body == before[job.id].body
        chain = made.ledger.read(job.id)
        assert chain.breaks == ()
        assert [item.data["total"] for item in chain.entries[1:]] == list(range(1, WRITERS * passes + 1))
        reported = {number: entry for name, number, entry in lines if name == job.id}
        assert reported == {item.data["total"]: item.hash for item in chain.entries[1:]}
    assert in_order(made)


WORK = """
workspace = find_workspace(root)
for _ in range(count):
    for place in workspace.places():
        job = workspace.job_at(place.path)
        if me % 4 < 2:
            what = "file outputs/primary.md"
            seen = record_file_check(workspace, job, parse_check(what, "test"), what, approval.by, criterion="AC-2")
            tell(job.id, seen.entry.hash)
        elif me % 4 == 2:
            tell(job.id, decide(workspace, job, Decision("target", "other", 80 + me), approval).entry.hash)
        else:
            tell(job.id, decide(workspace, job, Decision("stakes", "more", "high"), approval).entry.hash)
"""


def test_lookers_and_deciders_that_run_together_wipe_no_job(tmp_path: Path) -> None:
    made, jobs = many_jobs(tmp_path, 30 if LONG else 6)
    lines = [(str(name), entry) for said in at_once(tmp_path, WORK, 1, writers=4) for name, entry in said]
    assert len(lines) == 4 * len(jobs)
    for job in jobs:
        hashes = {item.hash for item in made.ledger.read(job.id).entries}
        assert {entry for name, entry in lines if name == job.id} <= hashes
        now = made.job(job.id)
        assert now.stakes == "high"
        assert [criterion.text for criterion in now.criteria] == ["It works", "There is a file"]
    assert [item.agreement for item in survey_jobs(made).jobs] == ["agreed"] * len(jobs)
    assert in_order(made)


PROJECT_WRITERS = """
workspace = find_workspace(root)
for number in range(count):
    if me % 2:
        tell("stream", add_job(workspace, "Job", workstream=f"Stream {me} {number}").folder.parent.parent.name)
    else:
        (proposal,) = agreement_proposals(workspace, [])
        tell("agreed", agree(workspace, proposal, approval, notes=f"{me} {number}").hash)
"""


@pytest.mark.parametrize("turn", range(5))
def test_the_project_file_survives_eight_writers(tmp_path: Path, turn: int) -> None:
    made = create_project(tmp_path, f"Shop {turn}", form="big")
    count = 10 if LONG else 2
    lines = [line for said in at_once(made.root, PROJECT_WRITERS, count) for line in said]
    project = made.project()
    assert (project.title, project.agreement_status) == (f"Shop {turn}", "agreed")
    streams = [str(name)[:15] for kind, name in lines if kind == "stream"]
    assert [folder.name[:15] for folder in made.workstream_folders()] == sorted(streams)
    chain = made.ledger.read(project.id)
    assert {entry for kind, entry in lines if kind == "agreed"} == {item.hash for item in chain.entries}
    assert in_order_apart_from_unsealed(made)


def in_order_apart_from_unsealed(workspace: Workspace) -> bool:
    found = {finding.code for finding in audit_workspace(workspace).findings} - {"anchor_absent", "unsealed"}
    assert found == set()
    return list(workspace.root.rglob(".donewhen-*")) == []


def test_whoever_looks_meanwhile_never_sees_half_a_file(tmp_path: Path) -> None:
    made, jobs = many_jobs(tmp_path, 3)
    script = BEGIN + REWRITE
    argv = [sys.executable, "-c", script, str(tmp_path), "0", "40"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
        looks = 0
        while writer.poll() is None and looks < 1000:
            found = survey_jobs(made)
            assert (len(found.jobs), found.problems) == (3, ())
            assert {job.agreement for job in found.jobs} == {"agreed"}
            looks += 1
            writer.stdout.readline()
        writer.stdout.read()
    assert (looks > 0, writer.returncode) == (True, 0)
    assert [made.job(job.id).document.fields["total"] for job in jobs] == [40] * 3


def _without_notices(text: str) -> str:
    """What a process wrote to stderr, except that it waited for a lock: on a busy machine, some wait for long."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("Waiting for the lock "))
