"""Reading an attestation that came from somewhere: one form, strictly, before anything in it is believed."""

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

LARGEST = 16 << 20
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
        super().__init__(f"This is not an attestation as donewhen reads it: {problem}.", next_step=advice)


class Attestation(NamedTuple):
    """What a file says, none of it checked yet."""

    statement: Mapping[str, Any]
    claims: Claims
    chain: bytes
    """The lines of the ledger that it carries."""
    envelope: Envelope | None


def read_attestation(raw: bytes) -> Attestation:
    """An envelope with a statement in it, or a bare statement."""
    if len(raw) > LARGEST:
        raise AttestationFormError(f"it is larger than {LARGEST >> 20} MiB")
    try:
        data = read_object(raw)
        envelope = read_envelope(data) if is_envelope(data) else None
        statement = data if envelope is None else read_object(envelope.payload)
        return Attestation(statement, _claims(statement), _chain(statement), envelope)
    except (UntrustedJsonError, EnvelopeError, _WrongError) as error:
        raise AttestationFormError(str(error)) from error


class _WrongError(ValueError):
    """A statement has other fields, or other kinds of values, than ours."""


def _claims(statement: Mapping[str, Any]) -> Claims:
    _fields("a statement", statement, {"_type", "subject", "predicateType", "predicate"})
    if statement["_type"] != STATEMENT:
        raise _WrongError(f"its _type is not {STATEMENT}")
    if statement["predicateType"] != PREDICATE:
        raise _WrongError(f"its predicateType is not {PREDICATE}")
    predicate = _table("the predicate", statement["predicate"])
    approvers = _table("approvers", predicate.get("approvers"))
    keys = approvers.get("keys")
    if type(approvers.get("ci")) is not bool or not isinstance(keys, list):
        raise _WrongError("approvers has other values than ci and keys")
    return Claims(
        _matching("job", predicate.get("job"), _JOB),
        _text("title", predicate.get("title")),
        _matching("project", predicate.get("project"), _PROJECT),
        _criteria(predicate.get("criteria")),
        Policy(approvers["ci"], frozenset(_text("a key", key) for key in keys)),
        _text("version", _table("made_by", predicate.get("made_by")).get("version")),
        _commit(statement["subject"]),
    )


def _commit(subjects: object) -> str | None:
    """The commit that the statement names; every subject is a file by its SHA-256, or that commit."""
    if not isinstance(subjects, list):
        raise _WrongError("its subject is not a list")
    commits: list[str] = []
    for one in subjects:
        subject = _table("a subject", one)
        _fields("a subject", subject, _SUBJECT)
        _text("a subject's name", subject["name"])
        digest = _table("a digest", subject["digest"])
        if set(digest) == {"gitCommit"} and subject["name"] == COMMIT:
            commits.append(_matching("gitCommit", digest["gitCommit"], _COMMIT))
        elif set(digest) != {"sha256"}:
            raise _WrongError("a subject has another digest than sha256")
    if len(commits) > 1:
        raise _WrongError("it names two commits")
    return commits[0] if commits else None


def _criteria(value: object) -> tuple[Criterion, ...]:
    if not isinstance(value, list):
        raise _WrongError("criteria is not a list")
    found = []
    for one in value:
        about = _table("a criterion", one)
        check = about.get("check")
        try:
            parsed = None if check is None else parse_check(_text("a check", check), "criteria")
        except DonewhenError as error:
            raise _WrongError(error.message.rstrip(".")) from error
        found.append(Criterion(_text("an id", about.get("id")), _text("a text", about.get("text")), parsed, 0))
    return tuple(found)


def _chain(statement: Mapping[str, Any]) -> bytes:
    chain = statement["predicate"].get("chain")
    if not isinstance(chain, list) or not all(isinstance(one, dict) for one in chain):
        raise _WrongError("chain is not a list of entries")
    return b"".join(canonical_json(one) + b"\n" for one in chain)


def _fields(what: str, value: Mapping[str, Any], names: set[str]) -> None:
    if set(value) != names:
        raise _WrongError(f"{what} has {', '.join(sorted(names))}, and nothing else")


def _table(what: str, value: object) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _WrongError(f"{what} is not an object")
    return value


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise _WrongError(f"{what} is not a text")
    return value


def _matching(what: str, value: object, pattern: re.Pattern[str]) -> str:
    text = _text(what, value)
    if pattern.fullmatch(text) is None:
        raise _WrongError(f"{what} is not one: {text[:60]!r}")
    return text
