"""May this job be attested now, and with what? Everything that is looked at in the workspace for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from donewhen import __version__
from donewhen.foundation.git import git
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.contract.agreement import approval_policy, job_agreement, project_agreement
from donewhen.jobs.contract.inputs import output_manifest
from donewhen.jobs.contract.terms import criterion_term
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.ledger.ledger import Chain, Entry
from donewhen.jobs.lifecycle.promise import InvalidCompletion, standing_completion
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.receipts.attestation import AttestationError, Claims, seal_at_completion, statement_of
from donewhen.jobs.record.projection import mismatches

_SHOWN = 5


def attest_job(workspace: Workspace, name: str) -> dict[str, Any]:
    """The statement about a job whose completion stands now, with outputs that are what they were then."""
    job = workspace.job(name)
    policy = approval_policy(workspace)
    chain = workspace.ledger.read(job.id)
    completed = standing_completion(workspace, job.id, chain, policy)
    where = workspace.where(job.path)
    if isinstance(completed, InvalidCompletion):
        raise AttestationError(completed.code, f"{job.id} is not attested: {completed.why}.", where=where)
    _refuse_edited(workspace, job, chain, where)
    _refuse_other_outputs(workspace, job, completed, where)
    agreed = set(seal_at_completion(job.id, chain.entries, completed, policy).terms["criteria"])
    statement = statement_of(
        Claims(
            job.id,
            job.title,
            workspace.project().id,
            # What was added after the completion is not what was completed.
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
            message = f"{job.id} is not attested: the agreement about the {name} is {state}."
            raise AttestationError(FindingCode.VOIDED, message, where=where)
    edited = mismatches(job.document.fields, chain.entries)
    if edited:
        message = f"{job.id} is not attested: {edited[0].field} was edited by hand."
        raise AttestationError(FindingCode.TAMPERED, message, where=where)


def _refuse_other_outputs(workspace: Workspace, job: Job, completed: Entry, where: str) -> None:
    """What is attested are the contents at the completion, and only while they are still there."""
    then, now = completed.data.get("outputs"), output_manifest(workspace, job).files
    before: Mapping[str, Any] = then if isinstance(then, Mapping) else {}
    changed = sorted(one for one in {*before, *now} if before.get(one) != now.get(one))
    if changed:
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        message = f"{job.id} is not attested: changed after it was done: {', '.join(changed[:_SHOWN])}{more}."
        raise AttestationError(FindingCode.OUTPUT_CHANGED, message, where=where)


def _commit(workspace: Workspace, job: Job, completed: Entry) -> str | None:
    """The current commit, where it has the outputs and the ledger just as they are; else there is none to name."""
    names = [*completed.data["outputs"], workspace.where(workspace.folder / "ledger" / f"{job.id}.jsonl")]
    look = ("status", "--porcelain", "-z", "--untracked-files=all", "--ignored", "--", *names)
    differing = git(workspace.root, "--literal-pathspecs", *look)
    head = git(workspace.root, "rev-parse", "--verify", "HEAD")
    return head.decode().strip() if differing == b"" and head is not None else None


def _refuse_private(workspace: Workspace, job: Job, statement: Mapping[str, Any]) -> None:
    """An attestation is for others: no secret leaves with it, and no path of this machine but those in the contract."""
    agreed = json.dumps(statement["predicate"]["contract"]["terms"], ensure_ascii=False)
    home = os.path.expanduser("~")  # noqa: PTH111
    places = [one for one in (str(workspace.root), home) if len(one) > 1]
    for number, entry in enumerate(statement["predicate"]["chain"], 1):
        for text in _texts(entry):
            message = f"{job.id} is not attested: entry {number} of its chain has"
            if redact_secrets(text) != text:
                raise AttestationError(FindingCode.PRIVATE, f"{message} what looks like a secret.")
            if any(place in text for place in places) and json.dumps(text, ensure_ascii=False)[1:-1] not in agreed:
                raise AttestationError(FindingCode.PRIVATE, f"{message} a path of this machine.")
    if redact_secrets(statement["predicate"]["title"]) != statement["predicate"]["title"]:
        raise AttestationError(FindingCode.PRIVATE, f"{job.id} is not attested: its title has a secret in it.")


def _texts(value: object) -> Iterator[str]:
    """Every text in a value, names of fields as well."""
    waiting: list[object] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, Mapping):
            waiting += [*one, *one.values()]
        elif isinstance(one, Sequence):
            waiting += one
