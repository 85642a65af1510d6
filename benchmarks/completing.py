"""The cost of completing one job among many, of a stop while one is in progress, and of a check of the whole plan."""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.board.views import rebuild_views
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.inputs import output_manifest, upstream_manifest
from donewhen.jobs.contract.terms import job_terms, terms_hash
from donewhen.jobs.ledger.approval import Approval, Policy, person_at_terminal, unproved_actor
from donewhen.jobs.ledger.entries import first_link
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.lifecycle.agreeing import agree_to
from donewhen.jobs.lifecycle.planning import check_plan
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.templates import job_plan
from donewhen.jobs.plan.workspace import Workspace

ROUNDS = 5
SMALL, LARGE, LINES_A_JOB = 20, 2_000, 3.5
PLANS = (200, 2_000, 10_000)
_NOW = "2026-02-14T12:00:00Z"
_CHAIN = 10
"""Jobs are in groups of ten. The second to the ninth job of a group depend on the job before them."""


class PlanCosts(NamedTuple):
    """CPU seconds of a plan check without an index, and of the operations that it is compared with."""

    jobs: int
    check: float
    fetching: float
    """Reading the bytes of every file that the check uses."""
    reading: float
    """Parsing every plan and verifying every chain once: the minimum work of a check."""


def completing_benchmark() -> None:
    """Print the tables."""
    lines = int(LARGE * LINES_A_JOB)
    print(f"CPU time of the command `donewhen complete JOB`: {LARGE} jobs and {lines} lines of ledger and log,")
    print(f"compared with {SMALL} jobs and {int(SMALL * LINES_A_JOB)} lines (medians of {ROUNDS})")
    kinds = (("inputs declared", ("/src",), False), ("inputs: the tracked tree", (), False), ("in a room", (), True))
    for label, inputs, room in kinds:
        small, large = (_completing(count, inputs, room=room) for count in (SMALL, LARGE))
        print(f"  {label:26} {large / small:5.2f} ×   ({1000 * large:6.0f} ms on {1000 * small:.0f} ms)")
    print()
    _print_stopping()
    print("CPU time of a check of the whole plan without an index, compared with reading the same files once (plans")
    print("parsed, chains verified), and with fetching only their bytes")
    before: PlanCosts | None = None
    for count in PLANS:
        costs = _plan_costs(count)
        grown = "" if before is None else f"{costs.check / before.check:5.1f} × for {count / before.jobs:g} × the jobs"
        print(
            f"  {count:7} jobs   {costs.check / costs.reading:5.2f} × reading   {costs.check / costs.fetching:6.1f} × "
            f"fetching   {1e6 * costs.check / count:6.0f} µs per job   {grown}"
        )
        before = costs
    print()


def populated(folder: Path, count: int, log_lines: int) -> Workspace:
    """Create a project with ``count`` jobs: of every ten, seven are done, one is agreed and two are only planned."""
    workspace = create_project(folder, "Benchmark")
    (workspace.folder / "ledger").mkdir()
    for number in range(1, count + 1):
        place = number % _CHAIN
        identifier = f"WI-20260214-{number:03d}"
        path = workspace.root / "jobs" / f"{identifier}-job" / "plan.md"
        (path.parent / "outputs").mkdir(parents=True)
        plan = job_plan(
            identifier,
            f"Job {number}",
            _NOW,
            depends_on=[f"WI-20260214-{number - 1:03d}"] if place > 1 else [],
            criteria=["It is quick\n  check: run python -m pytest -q", "A report\n  check: file outputs/primary.md"],
        )
        path.write_bytes(plan)
        if 0 < place <= 8:
            _write_history(workspace, path, done=place <= 7)
    log = workspace.base / "logs" / "execution.jsonl"
    log.parent.mkdir()
    row = '{"timestamp": "2026-02-14T12:00:00Z", "label": "x", "command": "pytest -q", "exit_code": 0, "stdout": ""}\n'
    log.write_text(row * log_lines)
    return workspace


def _write_history(workspace: Workspace, path: Path, *, done: bool) -> None:
    """Write the ledger of an agreed or completed job, without syncing it to disk each time."""
    job = workspace.job_at(path)
    terms = job_terms(job)
    agreed: dict[str, Value] = {"agreement_status": "agreed", "agreed_at": _NOW, "agreed_by": "me (person)"}
    history: list[tuple[str, str, dict[str, Any], dict[str, Value]]] = [
        ("agreed", "person", {"how": "agreed", "terms": plain_terms(terms), "hash": terms_hash(terms)}, agreed)
    ]
    if done:
        (path.parent / "outputs" / "primary.md").write_text(f"The result of {job.id}.\n")
        made = {
            "outputs": dict(output_manifest(workspace, job).files),
            "upstream": dict(upstream_manifest(workspace, job).files),
        }
        completed: dict[str, Value] = {"status": "done", "completed_at": _NOW}
        completed |= {"truth_last_status": "pass", "reward_last_score": 100}
        run = {"what": "file", "evidence": "file outputs/primary.md", "key": digest(b"x"), "settled": True}
        history += [
            ("started", "agent", {**made, "outputs": {}}, {"status": "in_progress", "started_at": _NOW}),
            ("ran", "agent", {**run, "passed": True, "told": "20 bytes"}, {}),
            ("completed", "agent", {**made, "declared": {}, "score": 100}, completed),
        ]
    fields: dict[str, Value] = {}
    previous = first_link(job.id)
    with (workspace.folder / "ledger" / f"{job.id}.jsonl").open("wb") as file:
        for number, (kind, who, data, writes) in enumerate(history, 1):
            changed = {name: [fields.get(name, job.document.fields.get(name)), value] for name, value in writes.items()}
            content: dict[str, Any] = {
                "seq": number,
                "prev": previous,
                "type": kind,
                "at": _NOW,
                "by": {"name": "me", "kind": who},
                "data": {**data, "writes": changed} if changed else data,
            }
            previous = digest(canonical_json(content))
            file.write(canonical_json({**content, "hash": previous}) + b"\n")
            fields |= writes
    path.write_bytes(rewrite_fields(job.document, fields))


def _completing(count: int, inputs: tuple[str, ...], *, room: bool) -> float:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
        in_ledgers = count // _CHAIN * (7 * 4 + 1)
        workspace = populated(folder, count - ROUNDS - 1, max(0, int(count * LINES_A_JOB) - in_ledgers))
        (folder / "src").mkdir()
        (folder / "src" / "main.py").write_text("print('good')\n")
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
        identity = ("-c", "user.name=a", "-c", "user.email=a@localhost")
        subprocess.run(["git", *identity, "commit", "-q", "-m", "all"], cwd=folder, check=True)
        ready = [_ready(workspace, number, inputs, room=room) for number in range(ROUNDS + 1)]
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
        rebuild_views(workspace)
        times = [_cpu_of_command(["complete", job], folder) for job in ready]
    return statistics.median(times[1:])


def _print_stopping() -> None:
    print(f"CPU time of `donewhen hook stop` with `jobs = true` and one job in progress: {LARGE} jobs, compared with")
    print(f"{SMALL} jobs (medians of {ROUNDS}); no page is rendered, no index is read")
    small, large = (_stopping(count) for count in (SMALL, LARGE))
    print(f"  {'the stop is refused':26} {large / small:5.2f} ×   ({1000 * large:6.0f} ms on {1000 * small:.0f} ms)")
    print()


def _stopping(count: int) -> float:
    """The cost of a stop hook that refuses, because a job is in progress."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=folder, check=True)
        workspace = populated(folder, count - 1, 0)
        (folder / "src").mkdir()
        (folder / "donewhen.toml").write_text("[stop]\njobs = true\n")
        job = _ready(workspace, 0, ("/src",))
        subprocess.run(["git", "add", "-A"], cwd=folder, check=True)
        rebuild_views(workspace)
        page = folder / "jobs" / "outputs" / "dashboard.html"
        page.write_text("Not a page.")
        index = workspace.folder / "index.sqlite"
        index.unlink(missing_ok=True)
        times = []
        for number in range(ROUNDS + 1):
            event = {"session_id": f"s{number}", "cwd": name, "hook_event_name": "Stop", "stop_hook_active": False}
            cpu, output = _cpu_and_output(["hook", "stop", "--runtime", "claude"], folder, json.dumps(event))
            assert job in output, output
            times.append(cpu)
        assert page.read_text() == "Not a page."
        assert not index.exists()
    return statistics.median(times[1:])


def _ready(workspace: Workspace, number: int, inputs: tuple[str, ...], *, room: bool = False) -> str:
    """Add a job that is agreed and started and has its output, so that it can be completed."""
    criterion = f"It runs\n  check: run {sys.executable} -S -c pass"
    job = add_job(workspace, f"Ready {number}", inputs=inputs, criteria=[criterion])
    if room:
        agree_to(workspace, [job], Approval(person_at_terminal()))
    else:
        for proposal in agreement_proposals(workspace, [job]):
            agree(workspace, proposal, Approval(person_at_terminal()))
    assert start_job(workspace, job.id, unproved_actor()).started
    (job.folder / "outputs" / "primary.md").write_text("The result.\n")
    return job.id


def _cpu_of_command(arguments: list[str], folder: Path) -> float:
    cpu, output = _cpu_and_output(arguments, folder)
    assert "<promise>" in output, output
    return cpu


def _cpu_and_output(arguments: list[str], folder: Path, stdin: str = "") -> tuple[float, str]:
    before = _children()
    done = subprocess.run(
        [sys.executable, "-m", "donewhen", *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"},
        input=stdin,
        capture_output=True,
        text=True,
    )
    return _children() - before, done.stdout + done.stderr


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _plan_costs(count: int) -> PlanCosts:
    rounds = ROUNDS if count <= 2_000 else 3
    with tempfile.TemporaryDirectory() as folder:
        workspace = populated(Path(folder), count, 0)
        files = [place.path for place in workspace.places()]
        files += sorted((workspace.folder / "ledger").iterdir())
        files += sorted(workspace.root.glob("jobs/*/outputs/primary.md"))

        def check() -> object:
            problems = check_plan(workspace, survey_jobs(workspace), Policy())
            assert problems == (), problems[:2]
            return problems

        def fetch() -> int:
            return sum(len(path.read_bytes()) for path in files)

        def read() -> object:
            jobs = [workspace.job_at(place.path) for place in workspace.places()]
            return jobs, [workspace.ledger.read(chain) for chain in workspace.ledger.chains()]

        return PlanCosts(
            count,
            _cpu(check, partial(_forget, workspace), rounds),
            _cpu(fetch, _nothing, rounds),
            _cpu(read, _nothing, rounds),
        )


def _forget(workspace: Workspace) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{workspace.folder / 'index.sqlite'}{suffix}").unlink(missing_ok=True)


def _nothing() -> None:
    pass


def _cpu(function: Callable[[], object], before: Callable[[], None], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        before()
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return statistics.median(times)


if __name__ == "__main__":
    completing_benchmark()
