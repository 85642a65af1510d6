"""Parse an untrusted attestation file, strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.untrusted_json import UntrustedJsonError, read_object
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.versions import NewerVersionError
from donewhen.jobs.plan.criteria import Criterion, parse_check
from donewhen.jobs.receipts.attestation import COMMIT, PREDICATE, STATEMENT, Claims
from donewhen.jobs.receipts.dsse import Envelope, EnvelopeError, is_envelope, read_envelope

MAX_BYTES = 16 << 20
_JOB = re.compile(r"WI-\d{8}-\d{3,12}")
_PROJECT = re.compile(r"PJ-\d{8}-\d{3,12}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_PREDICATE = re.compile(r"urn:donewhen:completion:v([1-9][0-9]{0,8})")


class AttestationFormError(DonewhenError):
    """The file can't be read as an attestation of a job."""

    code = FindingCode.ATTESTATION_FORM.value
    exit_code = ExitCode.USAGE

    def __init__(self, problem: str, *, next_step: str = FINDINGS[FindingCode.ATTESTATION_FORM].next_step) -> None:
        super().__init__(f"Not a valid attestation: {problem}.", next_step=next_step)


class Subject(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file with its digest, or the commit that contains the files."""

    name: str
    digest: dict[str, str]


class _Criterion(msgspec.Struct, frozen=True):
    id: str
    text: str
    check: str | None = None


class _Approvers(msgspec.Struct, frozen=True):
    ci: bool
    keys: tuple[str, ...]


class _Maker(msgspec.Struct, frozen=True):
    version: str


class _Predicate(msgspec.Struct, frozen=True):
    """The claims of the author. The rest of a predicate is derived from the chain and compared as a whole."""

    job: str
    title: str
    project: str
    criteria: tuple[_Criterion, ...]
    approvers: _Approvers
    made_by: _Maker
    chain: tuple[dict[str, Any], ...]


class _Statement(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"type": "_type"}):
    type: str
    subject: tuple[Subject, ...]
    predicateType: str  # noqa: N815 - the name in the format
    predicate: _Predicate


class Attestation(NamedTuple):
    """The parsed content of a file; nothing in it is checked yet."""

    statement: Mapping[str, Any]
    """The statement as it was read, to compare it with the one that the chain supports."""
    claims: Claims
    subjects: tuple[Subject, ...]
    chain: bytes
    """The ledger lines that it contains."""
    envelope: Envelope | None


def read_attestation(raw: bytes) -> Attestation:
    """Parse an envelope with a statement in it, or a bare statement."""
    if len(raw) > MAX_BYTES:
        raise AttestationFormError(f"it is larger than {MAX_BYTES >> 20} MiB")
    try:
        data = read_object(raw)
        envelope = read_envelope(data) if is_envelope(data) else None
        statement = data if envelope is None else read_object(envelope.payload)
        typed = _typed(statement)
        chain = b"".join(canonical_json(entry) + b"\n" for entry in typed.predicate.chain)
        return Attestation(statement, _claims(typed), typed.subject, chain, envelope)
    except NewerVersionError as error:
        raise AttestationFormError(str(error), next_step="Update donewhen, then check it again.") from error
    except (UntrustedJsonError, EnvelopeError, _FormError) as error:
        raise AttestationFormError(str(error)) from error


class _FormError(ValueError):
    """A statement has unexpected fields or types."""


def _typed(statement: Mapping[str, Any]) -> _Statement:
    if statement.get("_type") != STATEMENT:
        raise _FormError(f"its _type is not {STATEMENT}")
    if statement.get("predicateType") != PREDICATE:
        newer = isinstance(kind := statement.get("predicateType"), str) and _PREDICATE.fullmatch(kind)
        if newer and int(newer[1]) > 1:
            raise NewerVersionError(f"it was made by a newer version of donewhen ({kind})")
        raise _FormError(f"its predicateType is not {PREDICATE}")
    try:
        return msgspec.convert(statement, _Statement)
    except msgspec.ValidationError as error:
        raise _FormError(str(error)) from error


def _claims(statement: _Statement) -> Claims:
    predicate = statement.predicate
    return Claims(
        _matching("job", predicate.job, _JOB),
        predicate.title,
        _matching("project", predicate.project, _PROJECT),
        tuple(map(_criterion, predicate.criteria)),
        Policy(predicate.approvers.ci, frozenset(predicate.approvers.keys)),
        predicate.made_by.version,
        _commit(statement.subject),
    )


def _commit(subjects: Sequence[Subject]) -> str | None:
    """Return the commit among the subjects; every other subject is a file with its SHA-256."""
    commits: list[str] = []
    for subject in subjects:
        if set(subject.digest) == {"gitCommit"} and subject.name == COMMIT:
            commits.append(_matching("gitCommit", subject.digest["gitCommit"], _COMMIT))
        elif set(subject.digest) != {"sha256"}:
            raise _FormError("a subject has a digest other than sha256")
    if len(commits) > 1:
        raise _FormError("it names two commits")
    return commits[0] if commits else None


def _criterion(criterion: _Criterion) -> Criterion:
    try:
        check = None if criterion.check is None else parse_check(criterion.check, "criteria")
    except DonewhenError as error:
        raise _FormError(error.message.rstrip(".")) from error
    return Criterion(criterion.id, criterion.text, check, 0)


def _matching(what: str, text: str, pattern: re.Pattern[str]) -> str:
    if pattern.fullmatch(text) is None:
        raise _FormError(f"{what} has the wrong form: {text[:60]!r}")
    return text
