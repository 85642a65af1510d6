"""What `donewhen log` prints of a job's chain."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from donewhen.jobs.contract.agreeing import agree, agreement_proposals
from donewhen.jobs.ledger.approval import Approval
from donewhen.jobs.ledger.entries import Actor
from donewhen.jobs.lifecycle.completion import complete
from donewhen.jobs.lifecycle.start import start_job
from donewhen.jobs.plan.creating import add_job, create_project

BOT = Actor("bot")


def test_every_event_is_a_sentence_and_a_refusal_has_its_codes(
    repository: Path, donewhen: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    workspace = create_project(repository, "Shop")
    job = add_job(workspace, "Prices", criteria=["There are prices.\n  check: file /prices.csv"])
    for proposal in agreement_proposals(workspace, [job]):
        agree(workspace, proposal, Approval(Actor("ada", "person")))
    start_job(workspace, job.id, BOT)
    complete(workspace, job.id, BOT)
    agreed, started, ran, refused = donewhen(["log", job.id], repository).stdout.splitlines()
    assert "(person)  agreed: sha256:" in agreed
    assert started.endswith("bot (agent)  work started")
    assert ran.endswith("failed: file /prices.csv")
    assert "closed: " in refused
    assert "criterion_failed" in refused
    assert "{" not in started + refused
