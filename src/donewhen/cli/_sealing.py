"""Show proposals, ask a person, and seal them: all at once, in batches, or one after the other."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Literal

import click

from donewhen.cli._agreement_page import agreement_page
from donewhen.cli._jobs import ask_for_approval, uncounted_finding
from donewhen.cli._keys import press_key
from donewhen.cli._output import Finding, Output
from donewhen.cli._pager import show_lines
from donewhen.foundation.errors import ExitCode
from donewhen.jobs.board.views import rebuild_views
from donewhen.jobs.contract.agreeing import AgreementProposal, agreement_proposals
from donewhen.jobs.contract.agreement_notes import agreement_notes
from donewhen.jobs.judge.missions import unread_judge_rules
from donewhen.jobs.ledger.approval import Approval, is_at_terminal, unproved_actor
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.person_check import why_no_person
from donewhen.jobs.lifecycle.agreeing import FullProposal, agree_fully, full_proposals, tree_problems
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import place_of

_BATCH, _LARGEST_BATCH = 20, 25
"""Proposals that are shown together, and up to how many are not divided."""


class Sealing:
    """One run of ``agree``: what was sealed, and what could not be."""

    def __init__(
        self, output: Output, workspace: Workspace, notes: str, no_baseline: bool, key: Path | None, ci: bool
    ) -> None:
        self.output, self.workspace = output, workspace
        self._notes, self._no_baseline, self._key, self._ci = notes, no_baseline, key, ci
        self._approval: Approval | None = None
        self.refused: list[Finding] = []
        self._shown = 0
        self.entries: dict[str, str] = {}
        self.states: dict[str, str] = {}
        self._unreachable: dict[str, list[str]] = {}
        self._by: Actor | None = None
        self._used = Approval(unproved_actor())
        self.stopped: Finding | None = None

    @property
    def asks_person(self) -> bool:
        """Whether a person types a word: then nothing is sealed that does not fit on a few screens."""
        return self._key is None and not self._ci and why_no_person() is None

    def refuse(self, findings: Iterable[Finding]) -> None:
        """Show problems first, and keep what has them out of the agreement."""
        self.refused += findings
        new, self._shown = self.refused[self._shown :], len(self.refused)
        for finding in new:
            self.output.say(f"✗ {finding.where}: {finding.message}", fg="red")
            if finding.code == FindingCode.UNCOMMITTED:
                self.output.say(f"  next: {finding.next}", dim=True)

    def approve_all(self) -> bool:
        """Ask once for all jobs that are shown one after the other."""
        self._approval = self._ask("agree job by job under your name")
        return self._approval is not None

    def seal(self, proposals: Sequence[AgreementProposal], place: str, *, each: bool) -> bool:
        """Show these proposals, ask, and seal them. False if nothing more is to be asked."""
        output, workspace = self.output, self.workspace
        asked = self._key is not None or self._ci or is_at_terminal()
        full = _with_files(output, workspace, proposals, tests=asked)
        self.refuse(
            Finding(problem.code, problem.message, problem.where, "Commit them first, then: donewhen agree")
            for found in full
            for problem in tree_problems(found)
        )
        full = tuple(found for found in full if not any(tree_problems(found)))
        if not full:
            return True
        unusual = {
            found.terms.chain: [*agreement_notes(workspace, found.terms.plan)]
            for found in full
            if isinstance(found.terms.plan, Job)
        }
        if place:
            output.say(f"── {place} ──", dim=True)
        if not show_lines(output, agreement_page(full, unusual, workspace.now())):
            self.stopped = Finding(FindingCode.NOT_AGREED, "You stopped reading. Nothing was agreed.")
            return False
        judged = [found.terms.plan for found in full if isinstance(found.terms.plan, Job)]
        for name, keys in unread_judge_rules(workspace, judged).items():
            message = f"its model can't read {', '.join(keys)}, so a person decides where they might change the verdict"
            output.say(f"! judge:{name}: {message}", fg="yellow")
        unknown = {name: why for found in full for name, why in found.unknown_tests.items()}
        if unknown and not self._no_baseline and asked and not self._agreed_without(unknown):
            self._refuse_without_baseline(unknown)
            return False
        if each and self._approval is not None:
            answer = _one_by_one(output)
            if answer != "agree":
                return answer == "skip"
        approval = self._approval if each else self._ask("agree to this")
        if approval is None:
            return False
        self._record(full, approval)
        return True

    def finish(self) -> ExitCode:
        """Say what comes next, and end."""
        output = self.output
        if self.stopped is not None and not self.entries:
            return output.fail(ExitCode.GATE_FAILED, self.stopped)
        findings = [*self.refused]
        if self.stopped is not None:
            sealed = len(self.entries)
            findings.append(self.stopped)
            output.say(f"{self.stopped.message} {sealed} were agreed to before.", fg="yellow")
        agreed = [name for name, state in self.states.items() if state == "agreed"]
        if not self.entries:
            return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, {"agreed": []}, findings)
        data = {
            "agreed": agreed,
            "by": self._by._asdict() if self._by is not None else None,
            "states": self.states,
            "entries": self.entries,
            "unreachable": self._unreachable,
        }
        if len(agreed) < len(self.states):
            finding = uncounted_finding(self._used, "approval", "A person has to run: donewhen agree")
            output.say(finding.message, fg="yellow")
            output.say(f"  next: {finding.next}", dim=True)
            findings.append(finding)
        elif place_of(self.workspace).has_git:
            files = " ".join(agreement_files(self.workspace))
            commit = f"git add {files} && git commit"
            output.say(f"  Commit the agreement, so that others and CI have it: {commit}", dim=True)
        return output.finish(ExitCode.GATE_FAILED if findings else ExitCode.PASS, data, findings)

    def _ask(self, what: str) -> Approval | None:
        approval = ask_for_approval(self.output, what, key=self._key, ci=self._ci)
        if approval is None:
            self.stopped = Finding(FindingCode.NOT_AGREED, "The word didn't match. Nothing was agreed.")
        return approval

    def _record(self, full: Sequence[FullProposal], approval: Approval) -> None:
        self._by, self._used = approval.by, approval
        new = {
            found.terms.chain: agree_fully(self.workspace, found, approval, notes=self._notes).hash for found in full
        }
        rebuild_views(self.workspace)
        plans = [found.terms.plan for found in full]
        jobs = [self.workspace.job_at(plan.path) for plan in plans if isinstance(plan, Job)]
        after = {proposal.chain: proposal.agreement.state for proposal in agreement_proposals(self.workspace, jobs)}
        for name in new:
            self.output.say(f"{name}: {after[name]}", fg="green" if after[name] == "agreed" else "yellow")
        self.entries |= new
        self.states |= {name: after[name] for name in new}
        self._unreachable |= {found.terms.chain: list(found.unreachable) for found in full if found.unreachable}

    def _agreed_without(self, unknown: Mapping[str, str]) -> bool:
        """Ask whether to agree although the tests of some commands are not known; without a terminal: no."""
        if self._key is not None or self._ci:
            return False
        for name, why in unknown.items():
            self.output.note(f"`{name}` can't be run now: {why}. Lost tests would not be noticed.")
        typed: str = click.prompt("Type yes to agree without a baseline", default="", show_default=False, err=True)
        return typed.strip().casefold() == "yes"

    def _refuse_without_baseline(self, unknown: Mapping[str, str]) -> None:
        code = FindingCode.NO_BASELINE
        findings = [
            Finding(code, f"`{name}` can't be run on the agreed files: {why}.", next=FINDINGS[code].next_step)
            for name, why in unknown.items()
        ]
        for finding in findings:
            self.output.say(f"✗ {finding.message}", fg="red")
        if not self.entries:
            self.output.say("Nothing was agreed.", bold=True)
        self.output.say(f"  next: {FINDINGS[code].next_step}", dim=True)
        self.refused += findings


def batches_of(ready: Sequence[AgreementProposal], *, by_hand: bool, each: bool) -> list[Sequence[AgreementProposal]]:
    """What is shown and asked about together; nobody reads hundreds of jobs before one question."""
    if each:
        return [[proposal] for proposal in ready]
    if not by_hand or len(ready) <= _LARGEST_BATCH:
        return [ready] if ready else []
    return [ready[at : at + _BATCH] for at in range(0, len(ready), _BATCH)]


def _one_by_one(output: Output) -> Literal["agree", "skip", "quit"]:
    while True:
        pressed = press_key(output, "a agree · s skip · q quit").lower()
        if pressed == "a":
            return "agree"
        if pressed in ("s", "n", "\r", "\n", " "):
            return "skip"
        if pressed in ("q", "\x04", ""):
            return "quit"


def agreement_files(workspace: Workspace) -> tuple[str, ...]:
    """The folders and files in which an agreement is recorded, relative to the current folder, for a shell."""
    plans = ["jobs"] if workspace.form == "small" else [workspace.project_file.name, "workstreams"]
    names = [name for name in (*plans, workspace.folder.name) if (workspace.root / name).exists()]
    return tuple(shlex.quote(os.path.relpath(workspace.root / name)) for name in names)


def _with_files(
    output: Output, workspace: Workspace, ready: Sequence[AgreementProposal], *, tests: bool
) -> tuple[FullProposal, ...]:
    """Find out what else is agreed to; shows progress while tests run."""
    with ExitStack() as stack:
        shown: list[Callable[[str], None]] = []

        def show(name: str) -> None:
            text = f"Running the tests as they are now: {name}"
            if not shown:
                shown.append(stack.enter_context(output.progress(text)))
            shown[0](text)

        return full_proposals(workspace, ready, baselines=tests, on_progress=show)
