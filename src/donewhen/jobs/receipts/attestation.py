"""Build a portable receipt: an in-toto Statement about a completed job.

It contains the job's whole chain. Everything else in it is either derived from that chain, here and by its checker, or
is one of the few claims that a chain can't prove.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.contract.agreement import Seal, current_seal, seals_in
from donewhen.jobs.contract.terms import criterion_term
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import Completed, RoomRun
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.terms_content import JobTerms, plain_terms
from donewhen.jobs.plan.criteria import Criterion
from donewhen.jobs.receipts.attested_criteria import (
    AttestedRecord,
    NoEvidenceError,
    attested_command,
    attested_criterion,
)
from donewhen.jobs.record.history import history_of

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:donewhen:completion:v1"
COMMIT = "git commit"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MAX_TITLE_LENGTH = 200


class AttestationError(DonewhenError):
    """The job can't be attested; ``finding`` is the reason."""

    code = "attestation"
    exit_code = ExitCode.GATE_FAILED

    def __init__(self, finding: FindingCode, message: str, *, where: str | None = None) -> None:
        super().__init__(message, where=where, next_step=FINDINGS[finding].next_step)
        self.finding = finding


class Claims(NamedTuple):
    """What the chain of a job can't prove: claims of the attestation's author."""

    job: str
    title: str
    project: str
    criteria: tuple[Criterion, ...]
    """With their ids in the plan; texts and checks are those of the contract."""
    policy: Policy
    version: str
    commit: str | None = None


def statement_of(claims: Claims, entries: Sequence[Entry]) -> dict[str, Any]:
    """Derive the statement from a chain; raise AttestationError if the chain does not support it."""
    completed = _completion(claims, entries)
    completion = completed.read_as(Completed)
    seal, terms = seal_at_completion(claims.job, entries, completed, claims.policy)
    return {
        "_type": STATEMENT,
        "subject": subjects_of(completed, claims.commit),
        "predicateType": PREDICATE,
        "predicate": {
            "job": claims.job,
            "title": one_line(claims.title, _MAX_TITLE_LENGTH),
            "project": claims.project,
            # Spelled out here: completing a job creates the promise, and this only repeats it.
            "promise": f"<promise>{claims.job}-DONE</promise>",
            "receipt": completed.hash,
            "completed": {
                "at": completed.at,
                "by": completed.by._asdict(),
                "score": completion.score,
                "gates": completion.gates,
                "truth_mode": completion.truth_mode or None,
            },
            "contract": {
                "hash": seal.hash,
                "terms": dict(sorted(plain_terms(terms).items())),
                "agreed": _entry_reference(seal.entry),
                "changed": [_entry_reference(change) for change in _changes(claims, entries, completed)],
            },
            **({} if completion.room is None else {"room": _room_of(completion.room)}),
            **({} if completion.gate is None else {"gate": msgspec.to_builtins(completion.gate)}),
            **({} if not completion.strength else {"strength": _strength_of(completion)}),
            **_evidence_fields(claims, entries, completed, terms),
            "approvers": {"ci": claims.policy.ci, "keys": sorted(claims.policy.keys)},
            "chain": [json.loads(entry.line()) for entry in entries],
            "made_by": {"name": "donewhen", "version": claims.version},
        },
    }


def _room_of(room: RoomRun) -> dict[str, Any]:
    """What the files were that the checks saw."""
    return {
        "commit": room.commit,
        "tree": room.tree,
        "runs": room.runs,
        "provisional": room.provisional,
        "not_in_first_run": [*room.outside, *room.tests],
    }


def _strength_of(completion: Completed) -> list[dict[str, Any]]:
    """How strong the evidence for each criterion was, by its id in the plan."""
    return [{"id": name, **msgspec.to_builtins(strength)} for name, strength in completion.strength.items()]


def seal_at_completion(job: str, entries: Sequence[Entry], completed: Entry, policy: Policy) -> tuple[Seal, JobTerms]:
    """Return the contract under which a job was completed, and its terms."""
    seal = current_seal(job, entries[: completed.seq], policy)
    terms = None if seal is None else seal.terms
    if seal is None or not isinstance(terms, JobTerms) or seal.hash != completed.read_as(Completed).terms:
        raise AttestationError(FindingCode.VOIDED, "The completion does not belong to the agreed contract.")
    return seal, terms


def _changes(claims: Claims, entries: Sequence[Entry], completed: Entry) -> list[Entry]:
    """The entries that changed the terms between agreement and completion, by tightening or by a decision."""
    changes: list[Entry] = []
    previous: Seal | None = None
    upto = entries[: completed.seq]
    for entry, seal in zip(upto, seals_in(claims.job, upto, claims.policy), strict=True):
        if previous is None or seal is None or seal.entry is not previous.entry:
            changes.clear()
        elif seal.terms != previous.terms:
            changes.append(entry)
        previous = seal
    return changes


def _entry_reference(entry: Entry) -> dict[str, Any]:
    return {"at": entry.at, "by": entry.by._asdict(), "entry": entry.hash}


def subjects_of(completed: Entry, commit: str | None) -> list[dict[str, Any]]:
    """The outputs with their digests, and the commit that contains them."""
    outputs = completed.read_as(Completed).outputs or {}
    subjects = []
    for name, value in sorted(outputs.items()):
        digest = _DIGEST.fullmatch(value or "")
        if digest is None:
            raise AttestationError(FindingCode.NO_SUBJECT, f"The output {name} is not a file: {value}.")
        subjects.append({"name": name, "digest": {"sha256": digest[1]}})
    if not subjects:
        raise AttestationError(FindingCode.NO_SUBJECT, "The job has no outputs to attest.")
    return [*subjects, {"name": COMMIT, "digest": {"gitCommit": commit}}] if commit is not None else subjects


def _completion(claims: Claims, entries: Sequence[Entry]) -> Entry:
    completed = history_of(claims.job, entries, claims.policy).completed
    if completed is None:
        raise AttestationError(FindingCode.NOT_DONE, "According to its chain, the job is not done.")
    completion = completed.read_as(Completed)
    if not completion.gates or completion.closed:
        raise AttestationError(
            FindingCode.NOT_DONE, "According to its chain, the job was completed with a closed gate."
        )
    if completion.score is None:
        raise AttestationError(FindingCode.NOT_DONE, "According to its chain, the job was completed without a score.")
    return completed


def _evidence_fields(claims: Claims, entries: Sequence[Entry], completed: Entry, terms: JobTerms) -> dict[str, Any]:
    claimed = {criterion_term(criterion) for criterion in claims.criteria}
    if claimed != set(terms.criteria) or len({criterion.id for criterion in claims.criteria}) != len(claims.criteria):
        raise AttestationError(FindingCode.VOIDED, "The criteria are not the agreed ones.")
    record = AttestedRecord(claims.job, entries[: completed.seq - 1], completed, claims.policy, terms.commands)
    try:
        criteria = [
            {
                "id": criterion.id,
                "text": criterion.text,
                "check": None if criterion.check is None else criterion.check.normal,
                "shown": attested_criterion(record, criterion),
            }
            for criterion in claims.criteria
        ]
        verification = [{"command": command, "shown": attested_command(record, command)} for command in terms.commands]
    except NoEvidenceError as error:
        raise AttestationError(FindingCode.NOT_SHOWN, f"According to its chain, {error}.") from error
    return {"criteria": criteria, "verification": verification}
