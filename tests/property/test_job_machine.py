"""No sequence of commands and hand edits reaches done unless the work was done.

The machine keeps books of its own about what is agreed, what is written, how often it was tried and what was promised;
they know nothing of gates. Two jobs, of which the second builds on the first.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from donewhen.foundation.errors import UsageError
from donewhen.jobs.audit.audit import audit_workspace
from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.contract.terms import job_terms, terms_hash
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.evaluate_and_record import evaluate_and_record
from donewhen.jobs.lifecycle.promise import Promise, verify_promise
from donewhen.jobs.lifecycle.setting_aside import set_job_aside
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.document import rewrite_fields
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import PROJECTED, expected_fields

MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
ADA = Approval(Actor("ada", "person"))
BOT = Approval(Actor("bot"))
EXAMPLES = int(os.environ.get("DONEWHEN_EXAMPLES", "12"))

BY_FILE = "It says yes.\n  check: file outputs/primary.md matches /yes/"
HOSTILE: dict[str, dict[str, Any]] = {
    "done": {"status": "done"},
    "done with a date": {"status": "done", "completed_at": "2026-01-01T00:00:00Z"},
    "back to work": {"status": "in_progress", "completed_at": ""},
    "score": {"reward_last_score": 100, "truth_last_status": "pass", "truth_last_failures": []},
    "iteration": {"iteration": 0},
    "target": {"reward_target": 0},
    "budget": {"max_iterations": 99},
    "truth": {"truth_mode": "off"},
    "outputs": {"outputs": []},
    "dependencies": {"depends_on": []},
}
TERMS = ("reward_target", "max_iterations", "truth_mode", "outputs", "depends_on")
names = st.sampled_from(["upper", "lower"])
often_good = st.sampled_from(["yes\n", "yes\n", "yes\n", "yes, other\n", "no\n", "\n", ""])


class Book:
    """What the machine itself knows of a job."""

    def __init__(self) -> None:
        self.agreed = False
        self.limit = 2
        self.tries = 0
        self.started = False
        self.needs_decision = False
        self.freed = False
        self.cancelled = False
        self.standing: str | None = None
        """The receipt of the completion that stands."""
        self.terms = ""
        self.built_on = ""
        self.honest: set[str] = set()


class Jobs(RuleBasedStateMachine):
    """Everything that people, agents and vandals do to two jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(dir=MEMORY))
        self.shop = create_project(self.root, "Shop")
        upper = add_job(self.shop, "Upper", stakes="low", criteria=["It says yes."])
        command = f"grep -q yes {self.shop.where(upper.folder / 'outputs' / 'primary.md')}"
        upper.path.write_bytes(rewrite_fields(upper.document, {"truth_required_commands": [command]}))
        lower = add_job(self.shop, "Lower", stakes="low", criteria=[BY_FILE], depends_on=[upper.id])
        self.path = {"upper": upper.path, "lower": lower.path}
        self.id = {"upper": upper.id, "lower": lower.id}
        self.original = {name: dict(self.shop.read(path).fields) for name, path in self.path.items()}
        self.body = {name: self.shop.read(path).body for name, path in self.path.items()}
        self.book = {"upper": Book(), "lower": Book()}
        self.promises: list[Promise] = []
        agree(self.shop, agreement_proposals(self.shop, [])[0], ADA)

    def teardown(self) -> None:
        shutil.rmtree(self.root)

    # What people do

    @rule(name=names)
    def a_person_agrees(self, name: str) -> None:
        """To what they know, not to what somebody has put into the file meanwhile."""
        if not self.loosened(name):
            agree(self.shop, agreement_proposals(self.shop, [self.shop.job(self.id[name])])[1], ADA)
            self.book[name].agreed = True

    @rule(name=names)
    def a_person_raises_the_budget(self, name: str) -> None:
        book, job = self.book[name], self.shop.job(self.id[name])
        wanted = max(book.tries, job.max_iterations, job.iteration) + 1
        if wanted < 50:
            decide(self.shop, job, Decision("raise_budget", "go on", wanted), ADA)
            book.freed, book.limit, book.needs_decision = book.freed or book.needs_decision, wanted, False
            self.original[name]["max_iterations"] = wanted

    @rule(name=names)
    def a_person_cancels(self, name: str) -> None:
        decide(self.shop, self.shop.job(self.id[name]), Decision("cancel", "not wanted"), ADA)
        self.book[name].cancelled, self.book[name].standing = True, None

    @rule(name=names)
    def a_person_wants_it_after_all(self, name: str) -> None:
        decide(self.shop, self.shop.job(self.id[name]), Decision("rescope", "wanted"), ADA)
        book = self.book[name]
        # It is read from the file whether there is something to take back.
        if self.history(name).status != "cancelled":
            book.cancelled = False
        book.freed, book.needs_decision = book.freed or book.needs_decision, False

    # What agents do

    @rule(name=names)
    def an_agent_agrees(self, name: str) -> None:
        agree(self.shop, agreement_proposals(self.shop, [self.shop.job(self.id[name])])[1], BOT)

    @rule(name=names, kind=st.sampled_from(["raise_budget", "target", "cancel", "rescope"]))
    def an_agent_decides(self, name: str, kind: Any) -> None:
        value = {"raise_budget": 200, "target": 0}.get(kind)
        assert not decide(self.shop, self.shop.job(self.id[name]), Decision(kind, "me", value), BOT).counts

    @rule(name=names, text=often_good)
    def somebody_writes_the_output(self, name: str, text: str) -> None:
        (self.path[name].parent / "outputs" / "primary.md").write_text(text)

    @rule(name=names)
    def an_agent_starts(self, name: str) -> None:
        book = self.book[name]
        if start_job(self.shop, self.id[name], BOT.by).started:
            assert self.may_be_done(name, started=False)
            book.tries += book.started
            book.started, book.standing = True, None

    @rule(name=names, collecting=st.booleans())
    def somebody_looks(self, name: str, collecting: bool) -> None:
        evaluate_and_record(self.shop, self.id[name], BOT.by, collecting=collecting)

    @rule(name=names, question=st.booleans())
    def an_agent_rests(self, name: str, question: bool) -> None:
        book = self.book[name]
        try:
            set_job_aside(self.shop, self.id[name], BOT.by, **{"question" if question else "reason": "stuck"})
        except UsageError:
            assert book.cancelled or book.standing is not None

    @rule(name=names)
    def an_agent_completes(self, name: str) -> None:
        book = self.book[name]
        result = complete(self.shop, self.id[name], BOT.by)
        self.promises += [one for one in (result.promise, *result.cascade) if one is not None]
        if result.repeated:
            assert result.entry.hash == book.standing
            assert name == "upper" or self.output("upper") == book.built_on
            return
        if not result.done:
            assert result.job.status != "done"
            # What was never agreed to, or never started, is refused for nothing.
            book.tries += book.agreed and book.started
            if book.tries > book.limit:
                book.needs_decision, book.freed = True, False
            book.standing = None
            return
        assert self.may_be_done(name, started=True), f"{name} was completed"
        assert "yes" in self.output(name)
        book.standing, book.built_on = result.entry.hash, self.output("upper")
        book.terms = terms_hash(job_terms(result.job))
        book.honest.add(result.entry.hash)
        lower = self.book["lower"]
        if name == "upper" and lower.standing is not None and lower.built_on != self.output("upper"):
            assert [one.id for one in result.invalidated] == [self.id["lower"]]
            lower.standing = None

    @rule(both=st.booleans(), text=st.sampled_from(["yes\n", "yes, other\n"]))
    def honest_work(self, both: bool, text: str) -> None:
        """The whole way, so that there is something to spoil."""
        for name in ("upper", "lower") if both else ("upper",):
            self.revert(name)
            self.a_person_agrees(name)
            self.an_agent_starts(name)
            self.somebody_writes_the_output(name, text)
            self.an_agent_completes(name)

    # What vandals do

    @rule(name=names, trick=st.sampled_from(sorted(HOSTILE)))
    def somebody_types_into_the_plan(self, name: str, trick: str) -> None:
        document = self.shop.read(self.path[name])
        self.path[name].write_bytes(rewrite_fields(document, HOSTILE[trick]))

    @rule(name=names)
    def somebody_takes_the_criteria_out(self, name: str) -> None:
        text = self.path[name].read_text()
        kept = [line for line in text.split("\n") if not line.startswith(("- AC-", "  check:"))]
        self.path[name].write_text("\n".join(kept))

    @rule(name=names)
    def somebody_reverts_the_edits(self, name: str) -> None:
        self.revert(name)

    @rule()
    def somebody_deletes_the_evidence(self) -> None:
        shutil.rmtree(self.shop.folder / "evidence", ignore_errors=True)
        shutil.rmtree(self.shop.base / "outputs", ignore_errors=True)

    # What must never be

    @invariant()
    def what_says_done_and_audits_clean_was_done(self) -> None:
        saying = [name for name, path in self.path.items() if self.shop.read(path).fields.get("status") == "done"]
        if not saying:
            return
        found = audit_workspace(self.shop).findings
        for name in saying:
            where = self.shop.where(self.path[name])
            if any(one.where.startswith(where) or self.id[name] in one.message for one in found):
                continue
            completed = self.history(name).completed
            assert completed is not None, f"{name} says done, and nobody has completed it"
            assert completed.hash in self.book[name].honest
            assert not any(completed.data["gates"].values())
            assert completed.data["terms"] == self.book[name].terms

    @invariant()
    def only_what_stands_is_promised(self) -> None:
        policy = approval_policy(self.shop)
        for name, book in self.book.items():
            entries = self.shop.ledger.read(self.id[name]).entries
            given = [promise for promise in self.promises if promise.id == self.id[name]]
            typed = [Promise(self.id[name], entry.hash) for entry in entries[-3:]]
            real = {one.receipt for one in (*given, *typed) if verify_promise(self.shop, one.text, policy).real}
            assert real <= {book.standing}

    @invariant()
    def a_project_is_not_done_while_a_job_is_open(self) -> None:
        if self.shop.project().status == "done":
            assert all(one.standing is not None or one.cancelled for one in self.book.values())
            assert any(one.standing is not None for one in self.book.values())

    # The machine's own books

    def may_be_done(self, name: str, *, started: bool) -> bool:
        """Whether, by the books, the job may be worked on (or completed) at all."""
        book = self.book[name]
        # Whatever a person has decided since the block gives another try.
        within = (book.tries <= book.limit or book.freed) and not book.needs_decision
        ground = name == "upper" or self.book["upper"].standing is not None
        assert book.agreed, f"{name} was never agreed to"
        assert not self.loosened(name), f"{name} was loosened"
        assert not book.cancelled, f"{name} was cancelled"
        assert ground, f"{name} stands on something that is not done"
        assert within, f"{name} was tried {book.tries} times of {book.limit}"
        return True

    def loosened(self, name: str) -> bool:
        document = self.shop.read(self.path[name])
        return "- AC-1" not in document.body or any(
            document.fields.get(one) != self.original[name].get(one) for one in TERMS
        )

    def output(self, name: str) -> str:
        path = self.path[name].parent / "outputs" / "primary.md"
        return path.read_text() if path.exists() else ""

    def history(self, name: str) -> Any:
        entries = self.shop.ledger.read(self.id[name]).entries
        return history_of(self.id[name], entries, approval_policy(self.shop))

    def revert(self, name: str) -> None:
        """Undo every edit: terms as they were, projected fields as the ledger has them."""
        path = self.path[name]
        entries = self.shop.ledger.read(self.id[name]).entries
        shown = expected_fields(entries) if entries else {one: self.original[name].get(one) for one in PROJECTED}
        terms = {one: self.original[name][one] for one in TERMS}
        known = {one: value for one, value in shown.items() if value is not None}
        path.write_bytes(rewrite_fields(self.shop.read(path), {**terms, **known}))
        if "- AC-1" not in (document := self.shop.read(path)).body:
            head = document.text.removesuffix(document.body)
            path.write_text(head + self.body[name])


TestJobs = Jobs.TestCase
TestJobs.settings = settings(
    max_examples=EXAMPLES,
    stateful_step_count=20,
    deadline=None,
    # Shrinking takes minutes with real files: only where somebody has asked for many examples.
    phases=[Phase.generate, *([Phase.shrink] if "DONEWHEN_EXAMPLES" in os.environ else [])],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)
