"""The cost of a survey of all jobs: without an index by their number, with an index by the number of changes."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.board.survey import survey_jobs
from donewhen.jobs.contract.terms import job_terms, terms_hash
from donewhen.jobs.ledger.entries import first_link
from donewhen.jobs.ledger.terms_content import plain_terms
from donewhen.jobs.plan.creating import create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.templates import job_plan
from donewhen.jobs.plan.workspace import Workspace

SIZES = (100, 1_000, 10_000)
CHANGED = (10, 100)
_NOW = "2026-02-14T12:00:00Z"


class Costs(NamedTuple):
    """CPU seconds of a survey."""

    jobs: int
    cold: float
    warm: float
    changed: dict[int, float]


def jobs_benchmark(sizes: Sequence[int] = SIZES) -> None:
    """Print the table."""
    print("CPU time of a survey of all jobs (half of them agreed): cold = index deleted, warm = nothing changed")
    print(f"  {'jobs':>7}   {'cold':>7}   {'per job':>9}   {'warm':>7}   {'cold/warm':>9}   per changed file (10, 100)")
    first: Costs | None = None
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            costs = _measured(generated(Path(folder), size), 5 if size <= 1_000 else 3)
        first = first or costs
        per_file = "   ".join(
            f"{1e6 * max(0.0, seconds - costs.warm) / count:6.0f} µs" for count, seconds in costs.changed.items()
        )
        print(
            f"  {size:7}   {costs.cold / first.cold:5.1f} ×   {1e6 * costs.cold / size:6.0f} µs   "
            f"{costs.warm / first.warm:5.1f} ×   {costs.cold / costs.warm:7.1f} ×   {per_file}"
        )
    if first is not None:
        print(f"  (1 × is {1000 * first.cold:.1f} ms cold and {1000 * first.warm:.1f} ms warm)")
    print()


def generated(folder: Path, count: int) -> Workspace:
    """Create a project with ``count`` jobs; every other job is agreed and has a ledger."""
    workspace = create_project(folder, "Benchmark")
    ledger = workspace.folder / "ledger"
    ledger.mkdir()
    for number in range(1, count + 1):
        identifier = f"WI-20260214-{number:03d}"
        path = workspace.root / "jobs" / f"{identifier}-job" / "plan.md"
        path.parent.mkdir()
        plan = job_plan(
            identifier,
            f"Job {number}",
            _NOW,
            depends_on=[f"WI-20260214-{number - 1:03d}"] if number > 1 else [],
            commands=["python -m pytest -q"],
            criteria=["It works", "It is quick", "There is a report\n  check: file outputs/primary.md"],
        )
        path.write_bytes(plan)
        if number % 2:
            terms = job_terms(workspace.job_at(path))
            fields: dict[str, Value] = {"agreement_status": "agreed", "agreed_at": _NOW, "agreed_by": "me (person)"}
            path.write_bytes(rewrite_fields(workspace.read(path), fields))
            _write_chain(ledger / f"{identifier}.jsonl", plain_terms(terms), terms_hash(terms), fields)
    return workspace


def _write_chain(path: Path, terms: dict[str, object], name: str, fields: dict[str, Value]) -> None:
    """Write the ledger of an agreed job, without syncing it to disk each time."""
    content: dict[str, object] = {
        "seq": 1,
        "prev": first_link(path.stem),
        "type": "agreed",
        "at": _NOW,
        "by": {"name": "me", "kind": "person"},
        "data": {
            "how": "agreed",
            "terms": terms,
            "hash": name,
            "writes": {field: [None, value] for field, value in fields.items()},
        },
    }
    path.write_bytes(canonical_json({**content, "hash": digest(canonical_json(content))}) + b"\n")


def _measured(workspace: Workspace, rounds: int) -> Costs:
    survey = survey_jobs(workspace)
    assert survey.problems == (), survey.problems[:2]
    assert {job.agreement for job in survey.jobs} == {"agreed", "proposed"}
    assert not any(job.tampered for job in survey.jobs)
    size = len(survey.jobs)

    def look() -> object:
        return survey_jobs(workspace)

    cold = _cpu(look, partial(_forget, workspace), rounds)
    warm = _cpu(look, lambda: None, rounds)
    changed = {count: _cpu(look, partial(_change, workspace, count), rounds) for count in CHANGED if count <= size}
    return Costs(size, cold, warm, changed)


def _forget(workspace: Workspace) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{workspace.folder / 'index.sqlite'}{suffix}").unlink(missing_ok=True)


def _change(workspace: Workspace, count: int) -> None:
    places = list(workspace.places())
    for place in places[:: len(places) // count][:count]:
        with place.path.open("a") as file:
            file.write(f"\nChanged at {time.monotonic_ns()}.\n")


def _cpu(function: Callable[[], object], before: Callable[[], None], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        before()
        started = time.process_time()
        function()
        times.append(time.process_time() - started)
    return statistics.median(times)


if __name__ == "__main__":
    jobs_benchmark()
