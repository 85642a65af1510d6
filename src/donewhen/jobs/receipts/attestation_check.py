"""Check an attestation from the file alone: no workspace, no git, no network.

A chain proves nothing against its only writer. Checking it shows that the parts of the file are consistent; only a
signature by a key that the reader trusts shows who vouches for all of it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from donewhen.foundation.canonical import canonical_json
from donewhen.jobs.contract.inputs import hash_file
from donewhen.jobs.ledger.entries import Chain, verify_chain
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.receipts.attestation import AttestationError, statement_of
from donewhen.jobs.receipts.attestation_file import Attestation, Subject
from donewhen.jobs.receipts.dsse import check_signers

State = Literal["holds", "open", "broken"]
# The reader may not have the workspace, so the usual advice to repair it does not apply.
_ASK_FOR_NEW = "Don't rely on it. Ask for a new one: donewhen attest JOB"
_ADVICE = {
    FindingCode.CHAIN_BROKEN: _ASK_FOR_NEW,
    FindingCode.PATH_OUTSIDE: _ASK_FOR_NEW,
    FindingCode.OUTPUT_CHANGED: "These are not the attested files. Ask for those, or for a new attestation.",
}


class CheckLine(NamedTuple):
    """The result of one check. ``open`` means neither confirmed nor refuted."""

    check: str
    state: State
    told: str
    code: FindingCode | None = None

    @property
    def next(self) -> str | None:
        if self.code is None:
            return None
        return _ADVICE.get(self.code, FINDINGS[self.code].next_step)


class AttestationVerdict(NamedTuple):
    """The results of all checks."""

    lines: tuple[CheckLine, ...]
    signed_by: tuple[str, ...]

    @property
    def state(self) -> State:
        """``holds`` only if nothing is broken and a trusted key has signed."""
        states = {line.state for line in self.lines}
        return "broken" if "broken" in states else "holds" if self.signed_by else "open"


def check_attestation(
    attestation: Attestation, *, keys: Sequence[str] = (), files: Path | None = None, job: str | None = None
) -> AttestationVerdict:
    """Check the signatures, the chain, the statement derived from it and, if ``files`` is given, the files."""
    signature, signed_by = _check_signature(attestation, keys)
    chain = verify_chain(attestation.claims.job, attestation.chain)
    lines = [signature, _check_chain(attestation, chain), *(_check_content(attestation, chain) if chain.whole else ())]
    if job is not None and attestation.claims.job != job:
        message = f"it is about {attestation.claims.job}, not about {job}"
        lines.append(CheckLine("job", "broken", message, FindingCode.OTHER_JOB))
    if files is not None:
        lines += _check_files(attestation.subjects, files)
    return AttestationVerdict(tuple(lines), signed_by)


def _check_signature(attestation: Attestation, keys: Sequence[str]) -> tuple[CheckLine, tuple[str, ...]]:
    if attestation.envelope is None:
        message = "not signed, so anybody could have written it"
        return CheckLine("signature", "open", message, FindingCode.UNSIGNED), ()
    if not keys:
        names = ", ".join(signature.keyid[:16] or "an unnamed key" for signature in attestation.envelope.signatures)
        message = f"signed by {names}, but no trusted key was given"
        return CheckLine("signature", "open", message, FindingCode.SIGNER_UNKNOWN), ()
    signers = check_signers(attestation.envelope, keys)
    if signers.good:
        uncounted = len(signers.wrong) + len(signers.others)
        message = f"signed by {', '.join(signers.good)}" + (
            f"; {uncounted} other signature(s) ignored" * bool(uncounted)
        )
        return CheckLine("signature", "holds", message), signers.good
    if signers.wrong:
        message = f"the signature by {', '.join(signers.wrong)} is invalid"
        return CheckLine("signature", "broken", message, FindingCode.SIGNATURE_WRONG), ()
    names = ", ".join(keyid[:16] or "an unnamed key" for keyid in signers.others)
    message = f"signed by {names}, which is not among the given keys"
    return CheckLine("signature", "open", message, FindingCode.SIGNER_UNKNOWN), ()


def _check_chain(attestation: Attestation, chain: Chain) -> CheckLine:
    name = attestation.claims.job
    if chain.breaks:
        first = chain.breaks[0]
        code = FindingCode.OTHER_VERSION if first.other_version else FindingCode.CHAIN_BROKEN
        message = f"the chain of {name} is broken at entry {first.line}: {first.problem}"
        return CheckLine("chain", "broken", message, code)
    return CheckLine("chain", "holds", f"the {len(chain.entries)} entries of {name} are linked")


def _check_content(attestation: Attestation, chain: Chain) -> Iterator[CheckLine]:
    """Derive the statement from the chain again, and compare."""
    try:
        derived = statement_of(attestation.claims, chain.entries)
        same = canonical_json(derived) == canonical_json(attestation.statement)
    except AttestationError as error:
        done = error.finding is not FindingCode.NOT_DONE
        message = error.message.rstrip(".")
        yield CheckLine(
            "receipt", "broken", message, FindingCode.PREDICATE_WRONG if done else FindingCode.RECEIPT_WRONG
        )
        return
    receipt, stated = derived["predicate"]["receipt"], attestation.statement["predicate"].get("receipt")
    if receipt != stated:
        message = f"the completion in the chain has the receipt {receipt}, not {stated}"
        yield CheckLine("receipt", "broken", message, FindingCode.RECEIPT_WRONG)
    else:
        yield CheckLine("receipt", "holds", f"the valid completion has the receipt {receipt}")
    if same:
        yield CheckLine("statement", "holds", "everything derived from the chain matches")
        return
    names = ", ".join(_differing_fields(attestation.statement, derived))
    yield CheckLine("statement", "broken", f"does not match the chain: {names}", FindingCode.PREDICATE_WRONG)


def _differing_fields(stated: Mapping[str, Any], derived: Mapping[str, Any]) -> Iterator[str]:
    if canonical_json(stated["subject"]) != canonical_json(derived["subject"]):
        yield "subject"
    stated_predicate, derived_predicate = stated["predicate"], derived["predicate"]
    for name in sorted({*stated_predicate, *derived_predicate}):
        if (
            name not in stated_predicate
            or name not in derived_predicate
            or canonical_json(stated_predicate[name]) != canonical_json(derived_predicate[name])
        ):
            yield name


def _check_files(subjects: Sequence[Subject], folder: Path) -> Iterator[CheckLine]:
    top = Path(os.path.realpath(folder))
    for subject in subjects:
        name = subject.name
        if "sha256" not in subject.digest:
            yield CheckLine("file", "open", f"{name} was not checked: that needs the repository")
            continue
        path = _inside(top, name)
        if path is None:
            yield CheckLine("file", "broken", f"{name} is outside of the folder", FindingCode.PATH_OUTSIDE)
            continue
        digest = hash_file(path)
        if digest == f"sha256:{subject.digest['sha256']}":
            yield CheckLine("file", "holds", f"{name} matches")
        else:
            there = "has other content" if digest.startswith("sha256:") else f"is {digest}"
            yield CheckLine("file", "broken", f"{name} {there}", FindingCode.OUTPUT_CHANGED)


def _inside(top: Path, name: str) -> Path | None:
    """Return the file of this name in a folder; None if the name, or a link on the way, leaves it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        return None
    real = Path(os.path.realpath(top.joinpath(*parts)))
    return real if real.is_relative_to(top) else None
