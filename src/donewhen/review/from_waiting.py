"""Review items from jobs that were set aside, or whose iterations are used up."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.board.recorded_state import last_evaluation
from donewhen.jobs.contract.inputs import matching_paths, output_manifest
from donewhen.jobs.evidence.commands import RunKind, newest_run
from donewhen.jobs.evidence.requirements import requirements_of
from donewhen.jobs.judge.job_ticket import shown_texts
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Decided, Evaluated, Ran, Refused, Started
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.lifecycle.answering import ANSWERABLE
from donewhen.jobs.plan.job import BUDGETS, Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.words_of_people import words_of_people
from donewhen.review.items import Kind, ReviewItem

_TRIES = 5


def waiting_items(workspace: Workspace, job: Job, entries: Sequence[Entry], policy: Policy) -> Iterator[ReviewItem]:
    """Yield what a job waits for: an answer, a decision about its budget, programs and packages to accept."""
    history = history_of(job.id, entries, policy)
    waiting = history.waiting
    pause = None if waiting is None else waiting.read_as(Decided)
    if waiting is not None and pause is not None and pause.decision in ANSWERABLE:
        yield _question(job, waiting, pause, earlier_words(job.id, entries, policy))
    if history.auto_blocked and not history.decided_since_block:
        yield _spent_budget(job, history.iteration, entries)
    evaluated = last_evaluation(entries)
    gates = evaluated.read_as(Evaluated).gates if evaluated is not None else None
    if evaluated is not None and GateCode.ENVIRONMENT_CHANGED in (gates or {}).get("truth", ()):
        yield ReviewItem(
            kind="environment_changed",
            title=_title(job),
            question="Look at the differences, and accept them or restore what was there.",
            why="A check passed with other programs or packages than a person has accepted for this machine.",
            since=evaluated.at,
            evidence={},
            job=job.id,
            next=f"donewhen agree {job.id} --env",
        )


def earlier_words(chain: str, entries: Sequence[Entry], policy: Policy) -> Mapping[str, str]:
    """What people have said about a job before, as evidence."""
    said = [
        f"{words.entry.at[:16].replace('T', ' ')}  {words.text}" for words in words_of_people(chain, entries, policy)
    ]
    return shown_texts({"what people said before": "\n".join(said)}) if said else {}


def is_ready_to_look_at(workspace: Workspace, job: Job, entries: Sequence[Entry]) -> bool:
    """Whether a person can look at the work: every other check has passed or waits for a person, too, and there are
    outputs, changed since the job was started.

    This compares what was recorded and not the state of all checks: the reviewer's environment is seldom the agent's.
    """
    started = next((entry.read_as(Started) for entry in reversed(entries) if entry.type == "started"), None)
    last = last_evaluation(entries)
    if last is not None and isinstance(last.content, Refused) and last.content.waits_for_person:
        return True
    for requirement in requirements_of(job):
        if requirement.check.kind in ("run", "file"):
            what: RunKind = "command" if requirement.check.kind == "run" else "file"
            newest = newest_run(entries, requirement.evidence, what)
            if newest is None or not newest.read_as(Ran).passed:
                return False
    if started is None or not job.outputs:
        return started is not None
    try:
        there = all(matching_paths(workspace, job, output, "outputs") for output in job.outputs)
        files = dict(output_manifest(workspace, job).files)
    except DonewhenError:
        return False
    return there and "missing" not in files.values() and files != (started.outputs or {})


def _question(job: Job, waiting: Entry, pause: Decided, before: Mapping[str, str]) -> ReviewItem:
    kind: Kind = "asked" if pause.decision == "ask" else "blocked"
    by = waiting.who if waiting.by.kind == "person" else "An agent"
    why = {"asked": f"{by} asks this and waits for the answer.", "blocked": f"{by} set the job aside with this reason."}
    return ReviewItem(
        kind=kind,
        title=_title(job),
        question=pause.reason,
        why=why[kind],
        since=waiting.at,
        evidence=before,
        job=job.id,
        subject=waiting.hash,
        next=f"donewhen review --kind {kind}",
    )


def _spent_budget(job: Job, iteration: int, entries: Sequence[Entry]) -> ReviewItem:
    refusals = [entry for entry in entries if isinstance(entry.content, Refused)]
    tries = "\n".join(_try_text(entry, job.reward_target) for entry in refusals[-_TRIES:])
    return ReviewItem(
        kind="out_of_budget",
        title=_title(job),
        question=f"{iteration} iterations of the agreed {job.max_iterations} are used up. How does it go on?",
        why="Nothing can complete it before a person decides. For other stakes or another target: donewhen decide.",
        since=refusals[-1].at if refusals else "",
        evidence={"the last attempts": tries} if tries else {},
        job=job.id,
        subject=refusals[-1].hash if refusals else "",
        next=f"donewhen why {job.id}",
        budget=max(job.max_iterations, iteration) + BUDGETS[job.stakes],
    )


def _try_text(entry: Entry, target: int) -> str:
    refused = entry.read_as(Refused)
    codes = ", ".join(dict.fromkeys(code for codes in (refused.gates or {}).values() for code in codes))
    score = "" if refused.score is None else f"score {refused.score}, needs {target}: "
    return f"{entry.at[:16].replace('T', ' ')}  {score}{codes}"


def _title(job: Job) -> str:
    return f"{job.id}  {one_line(job.title, 120)}"
