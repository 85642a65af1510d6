"""Check whether a job can be attested now, and build the statement from the workspace."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from donewhen import __version__
from donewhen.foundation.git import git
from donewhen.foundation.plain_text import join_limited
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.contract.agreement import approval_policy, job_agreement, project_agreement
from donewhen.jobs.contract.inputs import output_manifest
from donewhen.jobs.contract.terms import criterion_term
from donewhen.jobs.ledger.entries import Chain, Entry
from donewhen.jobs.ledger.entry_content import Completed
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.lifecycle.promise import InvalidCompletion, current_completion
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.receipts.attestation import AttestationError, Claims, seal_at_completion, statement_of
from donewhen.jobs.record.projection import mismatches

_MAX_LISTED = 5


def attest_job(workspace: Workspace, name: str) -> dict[str, Any]:
    """Return the statement about a job that is still completed and whose outputs are unchanged."""
    job = workspace.job(name)
    policy = approval_policy(workspace)
    chain = workspace.ledger.read(job.id)
    completed = current_completion(workspace, job.id, chain, policy)
    where = workspace.where(job.path)
    if isinstance(completed, InvalidCompletion):
        raise AttestationError(completed.code, f"{job.id} can't be attested: {completed.why}.", where=where)
    _refuse_edited(workspace, job, chain, where)
    _refuse_changed_outputs(workspace, job, completed, where)
    agreed = set(seal_at_completion(job.id, chain.entries, completed, policy)[1].criteria)
    statement = statement_of(
        Claims(
            job.id,
            job.title,
            workspace.project().id,
            # Criteria added after the completion were not part of it.
            tuple(criterion for criterion in job.criteria if criterion_term(criterion) in agreed),
            policy,
            __version__,
            _commit(workspace, job, completed),
        ),
        chain.entries,
    )
    _refuse_private(workspace, job, statement)
    return statement


def _refuse_edited(workspace: Workspace, job: Job, chain: Chain, where: str) -> None:
    project = project_agreement(workspace, workspace.project())
    agreement = job_agreement(job, chain, project)
    for name, state in (("project", project.state), ("job", agreement.state)):
        if state != "agreed":
            message = f"{job.id} can't be attested: the agreement of the {name} is {state}."
            raise AttestationError(FindingCode.VOIDED, message, where=where)
    edited = mismatches(job.document.fields, chain.entries)
    if edited:
        message = f"{job.id} can't be attested: {edited[0].field} was edited by hand."
        raise AttestationError(FindingCode.TAMPERED, message, where=where)


def _refuse_changed_outputs(workspace: Workspace, job: Job, completed: Entry, where: str) -> None:
    """Raise if an output has changed since the completion."""
    before, now = completed.read_as(Completed).outputs or {}, output_manifest(workspace, job).files
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    if changed:
        names = join_limited(changed, _MAX_LISTED)
        message = f"{job.id} can't be attested: these outputs changed after it was done: {names}."
        raise AttestationError(FindingCode.OUTPUT_CHANGED, message, where=where)


def _commit(workspace: Workspace, job: Job, completed: Entry) -> str | None:
    """Return the current commit if it contains the outputs and the ledger unchanged, else None."""
    names = [
        *(completed.read_as(Completed).outputs or {}),
        workspace.where(workspace.folder / "ledger" / f"{job.id}.jsonl"),
    ]
    status = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignored", "--", *names)
    differing = git(workspace.root, "--literal-pathspecs", *status)
    head = git(workspace.root, "rev-parse", "--verify", "HEAD")
    return head.decode().strip() if differing == b"" and head is not None else None


def _refuse_private(workspace: Workspace, job: Job, statement: Mapping[str, Any]) -> None:
    """Raise if the statement contains a secret, or a path of this machine that is not part of the contract."""
    agreed = json.dumps(statement["predicate"]["contract"]["terms"], ensure_ascii=False)
    home = os.path.expanduser("~")  # noqa: PTH111
    paths = [path for path in (str(workspace.root), home) if len(path) > 1]
    for number, entry in enumerate(statement["predicate"]["chain"], 1):
        for text in _texts(entry):
            message = f"{job.id} can't be attested: entry {number} of its chain contains"
            if redact_secrets(text) != text:
                raise AttestationError(FindingCode.PRIVATE, f"{message} text that looks like a secret.")
            if any(path in text for path in paths) and json.dumps(text, ensure_ascii=False)[1:-1] not in agreed:
                raise AttestationError(FindingCode.PRIVATE, f"{message} a path of this machine.")
    if redact_secrets(statement["predicate"]["title"]) != statement["predicate"]["title"]:
        raise AttestationError(FindingCode.PRIVATE, f"{job.id} can't be attested: its title contains a secret.")


def _texts(value: object) -> Iterator[str]:
    """Yield every text in a value, including the names of fields."""
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, Mapping):
            waiting += [*item, *item.values()]
        elif isinstance(item, Sequence):
            waiting += item
