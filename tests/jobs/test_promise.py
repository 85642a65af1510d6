"""A real promise has a receipt that the ledger knows, and what was done then still stands."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.contract.agreement import approval_policy
from donewhen.jobs.contract.decisions import Decision, decide
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.ledger.gate_program import this_gate
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.promise import Promise, PromiseCheck, promise_of, verify_promise
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace, find_workspace
from sentences import assert_sentences

ADA = Approval(Actor("ada", "person"))
BOT = Actor("bot")
SAYS_YES = "It says yes.\n  check: file outputs/primary.md matches /yes/"
NOBODYS = "sha256:" + "0" * 64


@pytest.fixture
def shop(tmp_path: Path) -> Workspace:
    return create_project(tmp_path, "Shop")


def made(shop: Workspace, title: str, **about: object) -> Job:
    job = add_job(shop, title, criteria=[SAYS_YES], **about)  # type: ignore[arg-type]
    for proposal in agreement_proposals(shop, [job]):
        agree(shop, proposal, ADA)
    return job


def finished(shop: Workspace, job: Job, text: str = "yes\n") -> Promise:
    assert start_job(shop, job.id, BOT).started
    (job.folder / "outputs" / "primary.md").write_text(text)
    promise = complete(shop, job.id, BOT).promise
    assert promise is not None
    return promise


@pytest.fixture
def job(shop: Workspace) -> Job:
    return made(shop, "First")


@pytest.fixture
def promise(shop: Workspace, job: Job) -> Promise:
    return finished(shop, job)


def verified(shop: Workspace, text: str) -> PromiseCheck:
    return verify_promise(shop, text, approval_policy(shop))


def test_a_real_promise_is_real_also_in_the_middle_of_a_text(shop: Workspace, job: Job, promise: Promise) -> None:
    assert verified(shop, promise.text) == PromiseCheck(job.id, True, "the ledger has this completion", this_gate())
    assert verified(shop, f"I am glad to say:\n\n{promise.text}\n\nBye.\n").real
    assert verified(shop, promise.text.replace("\n", "\r\n")).real


def test_a_promise_names_what_is_done_and_the_entry_that_shows_it(shop: Workspace, job: Job, promise: Promise) -> None:
    entry = shop.ledger.read(job.id).entries[-1]
    assert promise == Promise(job.id, entry.hash) == promise_of(job.id, entry)
    assert promise.text.splitlines() == [f"<promise>{job.id}-DONE</promise>", f"receipt: {entry.hash}"]


def test_a_text_without_a_promise_has_none(shop: Workspace, promise: Promise) -> None:
    for text in ("", "It is done.", f"receipt: {promise.receipt}", "<promise>DONE</promise>"):
        assert verified(shop, text) == PromiseCheck(None, False, "the text contains no promise")


def test_a_promise_that_was_typed_has_no_receipt(shop: Workspace, job: Job, promise: Promise) -> None:
    assert promise.receipt
    found = verified(shop, f"<promise>{job.id}-DONE</promise>")
    assert (found.id, found.real) == (job.id, False)
    assert_sentences(found.why)


def test_a_promise_that_was_quoted_from_the_docs_is_not_real(shop: Workspace, promise: Promise) -> None:
    quoted = f"`<promise>WI-20260214-001-DONE</promise>`\nreceipt: {NOBODYS}"
    assert not verified(shop, quoted).real
    assert not verified(shop, "<promise>WI-...-DONE</promise>\nreceipt: sha256:…").real
    assert not verified(shop, f"<promise>WI-20260214-001-DONE</promise>\nreceipt: {promise.receipt}").real


@pytest.mark.parametrize(
    "receipt", [NOBODYS, "sha256:" + "f" * 63, "", "sha256:" + "F" * 64], ids=["nobodys", "short", "empty", "capitals"]
)
def test_an_invented_receipt_shows(shop: Workspace, job: Job, promise: Promise, receipt: str) -> None:
    assert promise.receipt != receipt
    assert not verified(shop, f"<promise>{job.id}-DONE</promise>\nreceipt: {receipt}").real


def test_the_receipt_of_another_job_does_not_fit(shop: Workspace, job: Job, promise: Promise) -> None:
    other = made(shop, "Other")
    theirs = finished(shop, other)
    found = verified(shop, f"<promise>{job.id}-DONE</promise>\nreceipt: {theirs.receipt}")
    assert (found.id, found.real) == (job.id, False)
    assert_sentences(found.why)
    assert verified(shop, theirs.text).real
    assert verified(shop, promise.text).real


def test_the_receipt_of_the_project_does_not_fit_a_job(shop: Workspace, job: Job, promise: Promise) -> None:
    project = shop.project()
    receipt = shop.ledger.head(project.id)
    assert verified(shop, f"<promise>{project.id}-DONE</promise>\nreceipt: {receipt}").real
    assert not verified(shop, f"<promise>{job.id}-DONE</promise>\nreceipt: {receipt}").real
    assert not verified(shop, f"<promise>{project.id}-DONE</promise>\nreceipt: {promise.receipt}").real


def test_only_a_completion_is_a_receipt(shop: Workspace, job: Job, promise: Promise) -> None:
    entries = shop.ledger.read(job.id).entries
    genuine = [entry.type for entry in entries if verified(shop, promise_of(job.id, entry).text).real]
    assert genuine == ["completed"]
    assert entries[-1].hash == promise.receipt
    assert len(entries) > 3


def test_a_refusal_is_no_receipt(shop: Workspace, job: Job) -> None:
    start_job(shop, job.id, BOT)
    refused = complete(shop, job.id, BOT).entry
    assert refused.type == "refused"
    assert not verified(shop, promise_of(job.id, refused).text).real


def test_a_job_that_was_started_again_takes_its_promise_back(shop: Workspace, job: Job, promise: Promise) -> None:
    start_job(shop, job.id, BOT)
    found = verified(shop, promise.text)
    assert (found.id, found.real) == (job.id, False)
    assert_sentences(found.why)


def test_only_the_newest_promise_of_a_job_stands(shop: Workspace, job: Job, promise: Promise) -> None:
    newer = finished(shop, job, "yes, better\n")
    assert newer != promise
    assert not verified(shop, promise.text).real
    assert verified(shop, newer.text).real


def test_an_invalidated_job_has_no_promise(shop: Workspace, job: Job, promise: Promise) -> None:
    below = made(shop, "Below", depends_on=[job.id])
    theirs = finished(shop, below)
    assert verified(shop, theirs.text).real
    finished(shop, job, "yes, better\n")
    assert_sentences(verified(shop, theirs.text).why)
    assert promise.id == job.id


def test_a_promise_does_not_hold_on_contents_that_have_changed_since(shop: Workspace, job: Job) -> None:
    finished(shop, job)
    below = made(shop, "Below", depends_on=[job.id])
    promise = finished(shop, below)
    (job.folder / "outputs" / "primary.md").write_text("yes, secretly\n")
    found = verified(shop, promise.text)
    assert (found.id, found.real) == (below.id, False)
    (job.folder / "outputs" / "primary.md").write_text("yes\n")
    assert verified(shop, promise.text).real


def test_a_cancelled_job_has_no_promise(shop: Workspace, job: Job, promise: Promise) -> None:
    decide(shop, shop.job(job.id), Decision("cancel", "not wanted"), Approval(BOT))
    assert verified(shop, promise.text).real
    decide(shop, shop.job(job.id), Decision("cancel", "not wanted"), ADA)
    assert not verified(shop, promise.text).real


@pytest.mark.parametrize("line", [0, 2, -1], ids=["first", "middle", "last"])
def test_a_broken_chain_verifies_nothing(shop: Workspace, job: Job, promise: Promise, line: int) -> None:
    path = shop.folder / "ledger" / f"{job.id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[line] = lines[line].replace(b'"bot"', b'"bob"').replace(b'"ada"', b'"bob"')
    path.write_bytes(b"".join(lines))
    assert verified(shop, promise.text) == PromiseCheck(job.id, False, "the ledger is broken")


def test_a_chain_without_its_beginning_verifies_nothing(shop: Workspace, job: Job, promise: Promise) -> None:
    path = shop.folder / "ledger" / f"{job.id}.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    assert not verified(shop, promise.text).real


def test_a_chain_of_another_project_verifies_nothing_here(
    shop: Workspace, job: Job, promise: Promise, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = create_project(tmp_path_factory.mktemp("elsewhere"), "Elsewhere")
    assert made(elsewhere, "First").id == job.id
    assert not verified(elsewhere, promise.text).real


def test_a_torn_last_line_does_no_harm(shop: Workspace, job: Job, promise: Promise) -> None:
    with (shop.folder / "ledger" / f"{job.id}.jsonl").open("ab") as file:
        file.write(b'{"seq": ')
    assert verified(shop, promise.text).real


def test_a_promise_is_as_good_in_a_copy_at_another_place(
    shop: Workspace, promise: Promise, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("copy") / "here"
    shutil.copytree(shop.root, copy, ignore=shutil.ignore_patterns("state", "index.sqlite*"))
    assert verified(find_workspace(copy), promise.text).real
