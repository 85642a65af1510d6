"""Parse an untrusted attestation file, strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from donewhen.foundation.canonical import canonical_json
from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.untrusted_json import UntrustedJsonError, read_object
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.plan.criteria import Criterion, parse_check
from donewhen.jobs.receipts.attestation import COMMIT, PREDICATE, STATEMENT, Claims
from donewhen.jobs.receipts.dsse import Envelope, EnvelopeError, is_envelope, read_envelope

MAX_BYTES = 16 << 20
_JOB = re.compile(r"WI-\d{8}-\d{3,12}")
_PROJECT = re.compile(r"PJ-\d{8}-\d{3,12}")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_SUBJECT = {"name", "digest"}


class AttestationFormError(DonewhenError):
    """The file can't be read as an attestation of a job."""

    code = FindingCode.ATTESTATION_FORM.value
    exit_code = ExitCode.USAGE

    def __init__(self, problem: str) -> None:
        advice = FINDINGS[FindingCode.ATTESTATION_FORM].next_step
        super().__init__(f"Not a valid attestation: {problem}.", next_step=advice)


class Attestation(NamedTuple):
    """The parsed content of a file; nothing in it is checked yet."""

    statement: Mapping[str, Any]
    claims: Claims
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
        return Attestation(statement, _claims(statement), _chain(statement), envelope)
    except (UntrustedJsonError, EnvelopeError, _FormError) as error:
        raise AttestationFormError(str(error)) from error


class _FormError(ValueError):
    """A statement has unexpected fields or types."""


def _claims(statement: Mapping[str, Any]) -> Claims:
    _require_fields("a statement", statement, {"_type", "subject", "predicateType", "predicate"})
    if statement["_type"] != STATEMENT:
        raise _FormError(f"its _type is not {STATEMENT}")
    if statement["predicateType"] != PREDICATE:
        raise _FormError(f"its predicateType is not {PREDICATE}")
    predicate = _object("the predicate", statement["predicate"])
    approvers = _object("approvers", predicate.get("approvers"))
    keys = approvers.get("keys")
    if type(approvers.get("ci")) is not bool or not isinstance(keys, list):
        raise _FormError("approvers must have ci (true or false) and keys (a list)")
    return Claims(
        _text_matching("job", predicate.get("job"), _JOB),
        _text("title", predicate.get("title")),
        _text_matching("project", predicate.get("project"), _PROJECT),
        _criteria(predicate.get("criteria")),
        Policy(approvers["ci"], frozenset(_text("a key", key) for key in keys)),
        _text("version", _object("made_by", predicate.get("made_by")).get("version")),
        _commit(statement["subject"]),
    )


def _commit(subjects: object) -> str | None:
    """Return the commit among the subjects; every other subject is a file with its SHA-256."""
    if not isinstance(subjects, list):
        raise _FormError("its subject is not a list")
    commits: list[str] = []
    for value in subjects:
        subject = _object("a subject", value)
        _require_fields("a subject", subject, _SUBJECT)
        _text("a subject's name", subject["name"])
        digest = _object("a digest", subject["digest"])
        if set(digest) == {"gitCommit"} and subject["name"] == COMMIT:
            commits.append(_text_matching("gitCommit", digest["gitCommit"], _COMMIT))
        elif set(digest) != {"sha256"}:
            raise _FormError("a subject has a digest other than sha256")
    if len(commits) > 1:
        raise _FormError("it names two commits")
    return commits[0] if commits else None


def _criteria(value: object) -> tuple[Criterion, ...]:
    if not isinstance(value, list):
        raise _FormError("criteria is not a list")
    criteria = []
    for item in value:
        fields = _object("a criterion", item)
        check = fields.get("check")
        try:
            parsed = None if check is None else parse_check(_text("a check", check), "criteria")
        except DonewhenError as error:
            raise _FormError(error.message.rstrip(".")) from error
        criteria.append(Criterion(_text("an id", fields.get("id")), _text("a text", fields.get("text")), parsed, 0))
    return tuple(criteria)


def _chain(statement: Mapping[str, Any]) -> bytes:
    chain = statement["predicate"].get("chain")
    if not isinstance(chain, list) or not all(isinstance(entry, dict) for entry in chain):
        raise _FormError("chain is not a list of entries")
    return b"".join(canonical_json(entry) + b"\n" for entry in chain)


def _require_fields(what: str, value: Mapping[str, Any], names: set[str]) -> None:
    if set(value) != names:
        raise _FormError(f"{what} must have exactly {', '.join(sorted(names))}")


def _object(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _FormError(f"{what} is not an object")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise _FormError(f"{what} is not a string")
    return value


def _text_matching(what: str, value: object, pattern: re.Pattern[str]) -> str:
    text = _text(what, value)
    if pattern.fullmatch(text) is None:
        raise _FormError(f"{what} has the wrong form: {text[:60]!r}")
    return text
