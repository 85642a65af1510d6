"""The cost of a long history: each command on a job whose chain has many entries, compared with one that has few."""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from donewhen.foundation.canonical import canonical_json, digest
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.evidence.commands import record_file_check
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.criteria import parse_check
from donewhen.jobs.plan.workspace import Workspace

SIZES = (1_000, 10_000)
COMMANDS = (("status",), ("why", "JOB"), ("ask", "JOB", "--question", "Which?"), ("audit",), ("complete", "JOB"))
_PERSON = Approval(Actor("me", "person"))
_BOT = Actor("bot")


def chains_benchmark(sizes: Sequence[int] = SIZES) -> None:
    """Print the table."""
    print("CPU time of a command on a job with a long chain, compared with the shortest")
    print(f"  {'entries':>8}   " + "   ".join(f"{command[0]:>8}" for command in COMMANDS))
    first: list[float] = []
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            workspace, job = with_long_chain(Path(folder), size)
            costs = [_cpu(workspace, [job if word == "JOB" else word for word in command]) for command in COMMANDS]
        first = first or costs
        print(f"  {size:8}   " + "   ".join(f"{cost / one:6.1f} ×" for cost, one in zip(costs, first, strict=True)))
    print(f"  (1 × is {', '.join(f'{1000 * cost:.0f} ms' for cost in first)})\n")


def with_long_chain(folder: Path, count: int) -> tuple[Workspace, str]:
    """Create a project with a started job whose chain has ``count`` entries: checks that ran, and a refusal in ten."""
    workspace = create_project(folder, "Benchmark")
    criteria = ["There is a report\n  check: file outputs/primary.md", "It matches\n  check: file outputs/x.md"]
    job = add_job(workspace, "Long", criteria=criteria)
    for proposal in agreement_proposals(workspace, [job]):
        agree(workspace, proposal, _PERSON)
    start_job(workspace, job.id, _BOT)
    check = parse_check("file outputs/primary.md", "x")
    record_file_check(workspace, job, check, "file outputs/primary.md", _BOT)
    complete(workspace, job.id, _BOT)
    extend_chain(workspace, job.id, count)
    return workspace, job.id


def extend_chain(workspace: Workspace, name: str, count: int) -> None:
    """Append valid entries quickly, without syncing each to disk, until the chain has ``count`` of them."""
    chain = workspace.ledger.read(name)
    ran = next(entry for entry in reversed(chain.entries) if entry.type == "ran")
    refused = next(entry for entry in reversed(chain.entries) if entry.type == "refused")
    bodies = [
        {**entry.as_dict(), "data": {field: value for field, value in entry.data.items() if field != "writes"}}
        for entry in (*[ran] * 9, refused)
    ]
    # The last writes of a chain say whether the plan is up to date, so the last entry is repeated with its own.
    last = chain.entries[-1].as_dict()
    previous, lines = chain.head, []
    for number in range(len(chain.entries) + 1, count + 1):
        body = last if number == count else bodies[number % 10]
        content = {**body, "seq": number, "prev": previous}
        del content["hash"]
        previous = digest(canonical_json(content))
        lines.append(canonical_json({**content, "hash": previous}) + b"\n")
    with (workspace.folder / "ledger" / f"{name}.jsonl").open("ab") as file:
        file.writelines(lines)


def _cpu(workspace: Workspace, arguments: Sequence[str]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    argv = [sys.executable, "-m", "donewhen", *arguments]
    subprocess.run(argv, cwd=workspace.root, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
