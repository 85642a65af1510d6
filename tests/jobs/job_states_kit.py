"""A project with one job of every kind, and what everything that shows a job should say about each.

The table of ``docs/reference/job-states.md`` is made from the same list.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "review"))

from court_kit import ADA, BOT, JUDGED, Court

from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.gates.evidence_status import collect_evidence
from donewhen.jobs.lifecycle.setting_aside import record_dispute, set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job
from donewhen.jobs.plan.job import Job

WRITTEN = "The result is written down.\n  check: file outputs/primary.md"
OUTPUT = "outputs/primary.md"


class Stage(Court):
    """A project in which jobs are brought into a state."""

    def new(
        self,
        title: str,
        *criteria: str,
        agreed: bool = True,
        started: bool = True,
        work: bool = True,
        edits: Mapping[str, str] = {},
        **options: Any,
    ) -> Job:
        """A job whose output is in its own folder; ``edits`` are made in its plan before anybody agrees."""
        made = add_job(self.workspace, title, criteria=criteria or (WRITTEN,), outputs=(OUTPUT,), **options)
        for before, after in edits.items():
            made = self.edit(made, before, after)
        if agreed:
            self.agree(made)
        if agreed and started:
            assert start_job(self.workspace, made.id, BOT.by).started
        if agreed and started and work:
            self.output(made)
        return self.read(made)

    def output(self, job: Job, text: str = "The log has 12 lines.\n") -> Path:
        path = job.folder / OUTPUT
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def done(self, title: str, **options: Any) -> Job:
        job = self.new(title, **options)
        assert self.complete(job).done
        return self.read(job)

    def script(self, name: str, text: str) -> str:
        """A criterion that a script of this name decides."""
        self.write(f"{name}.sh", text)
        return f"The script passes.\n  check: run sh {name}.sh"

    def chain(self, job: Job) -> Path:
        return self.workspace.folder / "ledger" / f"{job.id}.jsonl"


class Kind(NamedTuple):
    """A kind of job: how it comes about, and its state, code and next step."""

    name: str
    about: str
    make: Callable[[Stage], Job]
    state: str
    code: str | None
    next: str
    unrecorded: bool = False
    """Whether only an evaluation of now can know it, so that a survey shows what was recorded before."""

    @property
    def words(self) -> tuple[str, str | None, str]:
        return self.state, self.code, self.next


def typed_agreement(stage: Stage) -> Job:
    return stage.edit(stage.new("Typed", agreed=False), "status: planned", "status: planned\nagreement_status: agreed")


def waits(stage: Stage) -> Job:
    above = stage.new("Above", work=False)
    return stage.new("Below", started=False, depends_on=[above.id])


def depends_on_nothing(stage: Stage) -> Job:
    return stage.new("Dangling", started=False, edits={"depends_on: []": 'depends_on: ["WI-20200101-001"]'})


def upstream_changed(stage: Stage) -> Job:
    above = stage.done("Changing")
    job = stage.new("On changing", depends_on=[above.id])
    stage.output(above, "The log has 13 lines.\n")
    assert stage.complete(above).done
    return job


def dependency_invalid(stage: Stage) -> Job:
    first = stage.done("First")
    second = stage.done("Second", depends_on=[first.id])
    job = stage.new("Third", started=False, depends_on=[second.id])
    assert start_job(stage.workspace, first.id, BOT.by).started
    return job


def failed(stage: Stage) -> Job:
    job = stage.new("Failing", stage.script("failing", "exit 1\n"))
    stage.complete(job)
    return job


def stale(stage: Stage) -> Job:
    job = stage.new("Stale", stage.script("stale", "exit 0\n"))
    collect_evidence(stage.workspace, job, BOT.by)
    stage.output(job, "The log has 15 lines.\n")
    return job


def lesson_missing(stage: Stage) -> Job:
    required = {
        "lesson_capture_required: false": "lesson_capture_required: true",
        "  - freshness": "  - freshness\n  - linked_lesson_captured",
    }
    job = stage.new("Teaching", edits=required)
    collect_evidence(stage.workspace, job, BOT.by)
    return job


def low_score(stage: Stage) -> Job:
    job = stage.new("Ambitious", edits={"reward_target: 80": "reward_target: 100"})
    collect_evidence(stage.workspace, job, BOT.by)
    return job


def out_of_budget(stage: Stage) -> Job:
    job = stage.new("Spent", stage.script("spent", "exit 1\n"), stakes="low")
    for _ in range(3):
        stage.complete(job)
    return stage.read(job)


def blocked(stage: Stage) -> Job:
    job = stage.new("Stuck")
    set_job_aside(stage.workspace, job.id, BOT.by, reason="The server is down.")
    return stage.read(job)


def asked(stage: Stage) -> Job:
    job = stage.new("Unclear")
    set_job_aside(stage.workspace, job.id, BOT.by, question="Which log?")
    return stage.read(job)


def asked_at_the_limit(stage: Stage) -> Job:
    job = stage.new("Unclear at last", stage.script("limit", "exit 1\n"), stakes="low")
    for _ in range(2):
        stage.complete(job)
    set_job_aside(stage.workspace, job.id, BOT.by, question="Which log?")
    return stage.read(job)


def disputed(stage: Stage) -> Job:
    job = stage.new("Contested", stage.script("contested", "exit 1\n"))
    stage.complete(job)
    record_dispute(stage.workspace, job.id, BOT.by, "The script is wrong.")
    return stage.read(job)


def undecided(stage: Stage) -> Job:
    job = stage.new("Judged", JUDGED)
    stage.votes = "pf?"
    stage.complete(job)
    return stage.read(job)


def loosened(stage: Stage) -> Job:
    return stage.edit(stage.new("Loosened"), "reward_target: 80", "reward_target: 10")


def forged(stage: Stage) -> Job:
    return stage.edit(stage.new("Forged"), "status: in_progress", "status: done")


def broken_chain(stage: Stage) -> Job:
    job = stage.new("Broken")
    path = stage.chain(job)
    path.write_text(path.read_text().replace('"name":"bot"', '"name":"bat"'))
    return job


def newer_version(stage: Stage) -> Job:
    job = stage.new("Newer")
    path = stage.chain(job)
    *lines, last = path.read_text().splitlines()
    path.write_text("\n".join([*lines, json.dumps({**json.loads(last), "v": 99})]) + "\n")
    return job


def cancelled(stage: Stage) -> Job:
    job = stage.new("Dropped")
    decide(stage.workspace, job, Decision("cancel", "Not needed."), ADA)
    return stage.read(job)


def completable(stage: Stage) -> Job:
    job = stage.new("Finished")
    collect_evidence(stage.workspace, job, BOT.by)
    return job


def spoiled(stage: Stage) -> Job:
    job = stage.done("Spoiled")
    (job.folder / OUTPUT).unlink()
    return job


def spoiled_and_refused(stage: Stage) -> Job:
    job = spoiled(stage)
    assert not stage.complete(job).done
    return stage.read(job)


def invalidated(stage: Stage) -> Job:
    above = stage.done("Replaced")
    job = stage.done("On replaced", depends_on=[above.id])
    assert start_job(stage.workspace, above.id, BOT.by).started
    stage.output(above, "The log has 14 lines.\n")
    assert stage.complete(above).invalidated
    return stage.read(job)


def on_reopened(stage: Stage) -> Job:
    above = stage.done("Reopened")
    job = stage.done("On reopened", depends_on=[above.id])
    assert start_job(stage.workspace, above.id, BOT.by).started
    return job


def _new(title: str, *criteria: str, **options: Any) -> Callable[[Stage], Job]:
    return lambda stage: stage.new(title, *criteria, **options)


AGREE, START, WHY, RUN = ("donewhen agree JOB", "donewhen start JOB", "donewhen why JOB", "donewhen run JOB")
READY, AUDIT, REVIEW, DIFF = ("donewhen ready", "donewhen audit", "donewhen review", "donewhen contract diff JOB")

KINDS = (
    Kind(
        "proposed", "planned, and nobody has agreed", _new("New", agreed=False), "not_agreed", "not_agreed_yet", AGREE
    ),
    Kind(
        "typed", "the plan says agreed, the ledger does not", typed_agreement, "not_agreed", "agreement_unsealed", AGREE
    ),
    Kind("agreed", "agreed, not started", _new("Agreed", started=False), "ready", "not_started", START),
    Kind("waiting", "a dependency is not done", waits, "waiting", "dependency_open", READY),
    Kind("dangling", "a dependency does not exist", depends_on_nothing, "waiting", "dependency_missing", READY),
    Kind("started", "started, nothing was done", _new("Started", work=False), "in_progress", "output_missing", WHY),
    Kind(
        "upstream_changed",
        "a dependency's output has changed since the start",
        upstream_changed,
        "in_progress",
        "upstream_changed",
        START,
    ),
    Kind(
        "not_shown",
        "the work was done, but nothing was run",
        _new("Unshown"),
        "in_progress",
        "criterion_not_shown",
        RUN,
    ),
    Kind("failed", "a criterion is not met", failed, "in_progress", "criterion_failed", WHY),
    Kind("stale", "evidence is stale", stale, "in_progress", "criterion_stale", RUN),
    Kind(
        "command",
        "a verification command was never run",
        _new("Commanded", WRITTEN, commands=["true"]),
        "in_progress",
        "criterion_not_shown",
        RUN,
    ),
    Kind(
        "manual",
        "a person has to sign off",
        _new("Manual", "It reads well.\n  check: manual"),
        "needs_person",
        "needs_human",
        "donewhen review",
    ),
    Kind(
        "lesson",
        "a required lesson is missing",
        lesson_missing,
        "in_progress",
        "lesson_not_captured",
        "donewhen lessons add --job JOB",
    ),
    Kind(
        "low_score",
        "the score is below the target",
        low_score,
        "in_progress",
        "score_too_low",
        "donewhen reward JOB --explain",
    ),
    Kind("undecided", "the votes of a judge disagree", undecided, "needs_person", "needs_human", REVIEW),
    Kind("completable", "all gates are open", completable, "completable", None, "donewhen complete JOB"),
    Kind(
        "out_of_budget",
        "all iterations are used up",
        out_of_budget,
        "out_of_budget",
        "budget_exceeded",
        'donewhen decide JOB --raise-budget 4 --reason "…"',
    ),
    Kind("blocked", "set aside with a reason", blocked, "blocked", None, START),
    Kind("asked", "set aside with a question", asked, "asked", None, REVIEW),
    Kind(
        "asked_at_limit",
        "the same, and starting again would exceed the budget",
        asked_at_the_limit,
        "asked",
        None,
        REVIEW,
    ),
    Kind("disputed", "the agent disputes a refusal", disputed, "disputed", None, REVIEW),
    Kind("loosened", "an agreed term was loosened", loosened, "voided", "agreement_voided", DIFF),
    Kind("forged", "`status: done` was typed into the plan", forged, "tampered", "record_tampered", AUDIT),
    Kind("broken", "an entry of the ledger was changed", broken_chain, "record_broken", "record_broken", AUDIT),
    Kind(
        "newer", "a newer version of donewhen wrote the ledger", newer_version, "record_broken", "other_version", AUDIT
    ),
    Kind("cancelled", "cancelled by a person", cancelled, "cancelled", "cancelled", READY),
    Kind("done", "done", lambda stage: stage.done("Done"), "done", None, READY),
    Kind(
        "spoiled", "done, then an output was deleted", spoiled, "no_longer_done", "output_missing", WHY, unrecorded=True
    ),
    Kind(
        "refused_again",
        "the same, after another `donewhen complete`",
        spoiled_and_refused,
        "in_progress",
        "output_missing",
        WHY,
    ),
    Kind("invalidated", "done on an output that was replaced", invalidated, "in_progress", "upstream_changed", START),
    Kind(
        "on_reopened", "done on a job that was started again", on_reopened, "no_longer_done", "dependency_open", READY
    ),
    # At the end: completing a replaced output looks for all jobs that are no longer done.
    Kind(
        "dependency_invalid",
        "a dependency is no longer valid",
        dependency_invalid,
        "waiting",
        "dependency_invalid",
        READY,
    ),
)
