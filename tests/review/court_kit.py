"""A project in a repository whose gates ask a judge that votes as the test says, and people to overrule it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from donewhen.foundation.binary import Binary
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy, project_agreement
from donewhen.jobs.evidence.commands import EvidenceRun
from donewhen.jobs.evidence.requirements import Requirement, requirement_for
from donewhen.jobs.gates.evidence_status import EvidenceStatus, collect_evidence, evidence_statuses
from donewhen.jobs.judge.judge_evidence import JudgeQuestion, ask_judge, judge_question
from donewhen.jobs.judge.missions import find_mission
from donewhen.jobs.judge.person_overrides import OverrideRecord, override_gate
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor, Entry
from donewhen.jobs.lifecycle.completion import Completion, complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.history import History, history_of
from donewhen.judging.labels import JudgeStatement, Label
from donewhen.judging.mission import Mission
from donewhen.models.roles import Completion as Answer
from donewhen.models.roles import RolloutRequest
from donewhen.review.items import ReviewItem
from donewhen.review.queue import review_queue
from donewhen.testing.models import ScriptedJudge

ADA = Approval(Actor("ada", "person"))
BEN = Approval(Actor("ben", "person"))
BOT = Approval(Actor("bot"))
JUDGED = "The report convinces.\n  check: judge:reports"
WRITTEN = "The report is there.\n  check: file /report.md"
CHECKED = "The check passes.\n  check: run sh check.sh"
NOTHING = {"G0": "Unless a rule says otherwise, the verdict is pass."}
"""What a judge begins with that was taught nothing."""
TAUGHT = NOTHING | {
    "G1": 'When "lorem" occurs, the verdict is fail.',
    "G2": 'When "wobbly" occurs, the verdict is fail.',
}
RULES = {"S1": "Only what is shown counts.", "G0": "The report must name its numbers."}
TEMPERATURES = (0.1, 0.4, 0.7)


class Ticking:
    """A clock on which no two moments are the same."""

    def __init__(self) -> None:
        self._seconds = itertools.count()

    def now(self) -> datetime:
        return datetime(2026, 2, 14, 10, tzinfo=UTC) + timedelta(seconds=next(self._seconds))

    def monotonic(self) -> float:
        return 0.0


def write_mission(
    folder: Path,
    toml: str = "",
    rules: Mapping[str, str] = RULES,
    tickets: Sequence[Mapping[str, str]] = (),
    model: str = "scripted",
) -> Path:
    """A mission whose sure verdicts are not shown to people unless ``toml`` says so."""
    folder.mkdir(parents=True, exist_ok=True)
    review = "" if "manual_review" in toml else "[manual_review]\nspot_check = 0.0\n"
    (folder / "mission.toml").write_text(f'mission = "{folder.name}"\nmodel = "{model}"\n{toml}\n{review}')
    (folder / "initial_guidance.json").write_text(json.dumps(rules))
    lines = ({"mission": folder.name, **ticket} for ticket in tickets)
    (folder / "tickets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


class Court:
    """A project whose gates ask a judge."""

    def __init__(
        self,
        root: Path,
        git: Callable[..., str],
        monkeypatch: pytest.MonkeyPatch | None = None,
        rules: Mapping[str, str] = RULES,
    ) -> None:
        """With a ``monkeypatch``, the judge is scripted; without one it is the default model, in any process."""
        self.root = root
        self.git = git
        self.votes = "ppp"
        """One letter for each answer: pass, fail, or ? for one that can't be used."""
        self.reason = "it reads well"
        self.meanwhile: Callable[[], None] = lambda: None
        """What somebody else does while the judge is thinking."""
        self.model = ScriptedJudge(self._vote, name="scripted/1", free=True)
        if monkeypatch is not None:
            monkeypatch.setattr("donewhen.models.executors.open_model", lambda _: self.model)
        self.write("check.sh", "exit 0\n")
        model = "contrast" if monkeypatch is None else "scripted"
        self.folder = write_mission(root / "missions" / "reports", rules=rules, model=model)
        self.workspace: Workspace = create_project(root, "Court", clock=Ticking())
        self.commit()

    def _vote(self, request: RolloutRequest) -> Answer:
        if request.decode.temperature == TEMPERATURES[0]:
            self.meanwhile()
        letter = self.votes[TEMPERATURES.index(request.decode.temperature)]
        word = {"p": "pass", "f": "fail"}.get(letter)
        return Answer("I can't say." if word is None else f"Verdict: {word}\nReason: {self.reason}", margin=0.5)

    @property
    def asked(self) -> int:
        """How many answers the judge has given."""
        return len(self.model.rollouts)

    @property
    def mission(self) -> Mission:
        return find_mission(self.workspace, "reports")

    def write(self, name: str, text: str | bytes) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def commit(self, *arguments: str) -> str:
        self.git(self.root, "add", "--all", *arguments)
        self.git(self.root, "commit", "-q", "--allow-empty", "-m", "x")
        return self.git(self.root, "rev-parse", "HEAD").strip()

    def settings(self, toml: str, rules: Mapping[str, str] = RULES) -> None:
        """Other settings of the mission."""
        tickets = (self.folder / "tickets.jsonl").read_bytes()
        write_mission(self.folder, toml, rules)
        (self.folder / "tickets.jsonl").write_bytes(tickets)

    def job(
        self,
        *criteria: str,
        title: str = "Report",
        outputs: Sequence[str] = ("/report.md",),
        started: bool = True,
        work: str | None = "42 lines were parsed.\n",
        **more: Any,
    ) -> Job:
        """A job that was agreed to and started, with its work done; by default a judge decides about it."""
        made = add_job(self.workspace, title, criteria=criteria or (JUDGED,), outputs=outputs, **more)
        self.agree(made)
        if started:
            assert start_job(self.workspace, made.id, BOT.by).started
        if work is not None:
            self.write("report.md", work)
        return self.read(made)

    def agree(self, *jobs: Job) -> None:
        for proposal in agreement_proposals(self.workspace, [self.read(job) for job in jobs]):
            agree(self.workspace, proposal, ADA)

    def read(self, job: Job) -> Job:
        return self.workspace.job_at(job.path)

    def edit(self, job: Job, before: str, after: str) -> Job:
        text = job.path.read_text()
        assert before in text
        job.path.write_text(text.replace(before, after, 1))
        return self.read(job)

    def entries(self, chain: Job | str) -> tuple[Entry, ...]:
        found = self.workspace.ledger.read(chain if isinstance(chain, str) else chain.id)
        assert not found.breaks
        return found.entries

    def project_entries(self) -> tuple[Entry, ...]:
        return self.entries(self.workspace.project().id)

    def project_state(self) -> str:
        return project_agreement(self.workspace, self.workspace.project()).state

    def history(self, job: Job) -> History:
        return history_of(job.id, self.entries(job), approval_policy(self.workspace))

    def requirement(self, job: Job, name: str = "AC-1") -> Requirement:
        return requirement_for(self.read(job), name)

    def question(self, job: Job, name: str = "AC-1") -> JudgeQuestion:
        return judge_question(self.workspace, self.read(job), self.requirement(job, name), self.entries(job))

    def ticket(self, job: Job, name: str = "AC-1") -> Mapping[str, str]:
        """What a judge is shown."""
        return self.question(job, name).ticket.evidence

    def collect(self, job: Job, **options: Any) -> None:
        collect_evidence(self.workspace, self.read(job), BOT.by, **options)

    def ask(self, job: Job, name: str = "AC-1", *, again: bool = False) -> EvidenceRun:
        return ask_judge(self.workspace, self.read(job), self.requirement(job, name), BOT.by, again=again)

    def standing(self, job: Job, name: str = "AC-1") -> EvidenceStatus:
        return next(
            status for status in evidence_statuses(self.workspace, self.read(job)) if status.requirement.name == name
        )

    def complete(self, job: Job) -> Completion:
        return complete(self.workspace, job.id, BOT.by)

    def codes(self, job: Job) -> set[str]:
        """Try to complete it; the reasons, but for the score, which follows from the others."""
        found = self.complete(job)
        assert found.evaluation is not None and not found.done
        return {reason.code.value for reason in found.evaluation.reasons} - {"score_too_low"}

    def overrule(
        self, job: Job, verdict: Binary, by: Approval = ADA, name: str = "AC-1", reason: str = "I looked at it"
    ) -> OverrideRecord:
        return override_gate(self.workspace, self.read(job), name, verdict, reason, by)

    def queue(self, **options: Any) -> list[ReviewItem]:
        return list(review_queue(self.workspace, **options))

    def kinds(self, **options: Any) -> list[str]:
        return [one.kind for one in self.queue(**options)]


def label(
    group: str, verdict: str, by: str = "ada", number: int = 0, said: JudgeStatement | None = None, **more: Any
) -> Label:
    """A label as a person gives it."""
    given: dict[str, Any] = {
        "group_id": group,
        "label": verdict,
        "by": by,
        "at": f"2026-02-14T10:00:{number:02d}Z",
        "said": said,
        "evidence": {"text": f"what {group} shows"},
    }
    return Label(**given | more)


def said(verdict: str | None, passes: int = 3, fails: int = 0, *, decided: bool = True) -> JudgeStatement:
    given: dict[str, Any] = {"verdict": verdict, "passes": passes, "fails": fails, "decided": decided}
    return JudgeStatement(**given)
