"""Does an attestation hold? Asked of the file alone: no workspace, no git, no network.

A chain proves nothing against its only writer. What a check of the chain shows is that nobody has edited one part of
the file and left the others; who vouches for all of it, only a signature by a key that the reader trusts can say.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Literal, NamedTuple

from donewhen.foundation.canonical import canonical_json
from donewhen.jobs.contract.inputs import hash_file
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.ledger import Chain, verify_chain
from donewhen.jobs.receipts.attestation import AttestationError, statement_of
from donewhen.jobs.receipts.attestation_file import Attestation
from donewhen.jobs.receipts.dsse import check_signers

State = Literal["holds", "open", "broken"]
# A chain that somebody made up can have any value anywhere; whatever trips over one, it is not one of ours.
_TRIPPED = (TypeError, KeyError, ValueError, AttributeError, IndexError, RecursionError, OverflowError)
# Where the workspace is not at hand, it can't be repaired there.
_ASK = "Don't rely on it. Ask for a new one: donewhen attest JOB"
_ADVICE = {
    FindingCode.CHAIN_BROKEN: _ASK,
    FindingCode.PATH_OUTSIDE: _ASK,
    FindingCode.OUTPUT_CHANGED: "These are not the files that were attested. Ask for those, or for a new attestation.",
}


class CheckLine(NamedTuple):
    """One thing that was checked. What is ``open`` does not speak against the file, and not for it."""

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
    """Everything that was checked."""

    lines: tuple[CheckLine, ...]
    signed_by: tuple[str, ...]

    @property
    def state(self) -> State:
        """``holds`` only where nothing is broken and a trusted key has signed."""
        states = {line.state for line in self.lines}
        return "broken" if "broken" in states else "holds" if self.signed_by else "open"


def check_attestation(
    attestation: Attestation, *, keys: Sequence[str] = (), files: Path | None = None, job: str | None = None
) -> AttestationVerdict:
    """Check a file that was read: who signed it, its chain, what it says by that, and the files if they are there."""
    signature, signed_by = _signature(attestation, keys)
    chain = verify_chain(attestation.claims.job, attestation.chain)
    lines = [signature, _chain(attestation, chain), *(_content(attestation, chain) if chain.whole else ())]
    if job is not None and attestation.claims.job != job:
        message = f"it is about {attestation.claims.job}, not about {job}"
        lines.append(CheckLine("job", "broken", message, FindingCode.OTHER_JOB))
    if files is not None:
        lines += _files(attestation.statement["subject"], files)
    return AttestationVerdict(tuple(lines), signed_by)


def _signature(attestation: Attestation, keys: Sequence[str]) -> tuple[CheckLine, tuple[str, ...]]:
    if attestation.envelope is None:
        message = "nobody has signed it, so anybody could have written it"
        return CheckLine("signature", "open", message, FindingCode.UNSIGNED), ()
    if not keys:
        names = ", ".join(
            signature.keyid[:16] or "a key without a name" for signature in attestation.envelope.signatures
        )
        message = f"signed by {names}, but no key was given that you trust"
        return CheckLine("signature", "open", message, FindingCode.SIGNER_UNKNOWN), ()
    found = check_signers(attestation.envelope, keys)
    if found.good:
        beside = len(found.wrong) + len(found.others)
        message = f"signed by {', '.join(found.good)}" + (
            f"; {beside} more signature(s) were not counted" * bool(beside)
        )
        return CheckLine("signature", "holds", message), found.good
    if found.wrong:
        message = f"the signature that names {', '.join(found.wrong)} does not fit"
        return CheckLine("signature", "broken", message, FindingCode.SIGNATURE_WRONG), ()
    message = (
        f"signed by {', '.join(other[:16] or 'a key without a name' for other in found.others)}, which you did not give"
    )
    return CheckLine("signature", "open", message, FindingCode.SIGNER_UNKNOWN), ()


def _chain(attestation: Attestation, chain: Chain) -> CheckLine:
    name = attestation.claims.job
    if chain.breaks:
        first = chain.breaks[0]
        message = f"the chain of {name} does not hold at entry {first.line}: {first.problem}"
        return CheckLine("chain", "broken", message, FindingCode.CHAIN_BROKEN)
    return CheckLine("chain", "holds", f"the {len(chain.entries)} entries of {name} follow each other")


def _content(attestation: Attestation, chain: Chain) -> Iterator[CheckLine]:
    """Derive the statement again, and compare."""
    try:
        derived = statement_of(attestation.claims, chain.entries)
        same = canonical_json(derived) == canonical_json(attestation.statement)
    except AttestationError as error:
        done = error.finding is not FindingCode.NOT_DONE
        told = error.message.rstrip(".")
        yield CheckLine("receipt", "broken", told, FindingCode.PREDICATE_WRONG if done else FindingCode.RECEIPT_WRONG)
        return
    except _TRIPPED:
        told = "an entry has a value that no entry of donewhen has"
        yield CheckLine("receipt", "broken", told, FindingCode.RECEIPT_WRONG)
        return
    receipt, stated = derived["predicate"]["receipt"], attestation.statement["predicate"].get("receipt")
    if receipt != stated:
        told = f"the completion in the chain has the receipt {receipt}, not {stated}"
        yield CheckLine("receipt", "broken", told, FindingCode.RECEIPT_WRONG)
    else:
        yield CheckLine("receipt", "holds", f"the completion that stands has the receipt {receipt}")
    if same:
        yield CheckLine("statement", "holds", "everything that the chain can show is what the chain says")
        return
    names = ", ".join(_differing(attestation.statement, derived))
    yield CheckLine("statement", "broken", f"not what the chain says: {names}", FindingCode.PREDICATE_WRONG)


def _differing(stated: Mapping[str, Any], derived: Mapping[str, Any]) -> Iterator[str]:
    if canonical_json(stated["subject"]) != canonical_json(derived["subject"]):
        yield "subject"
    one, other = stated["predicate"], derived["predicate"]
    for name in sorted({*one, *other}):
        if name not in one or name not in other or canonical_json(one[name]) != canonical_json(other[name]):
            yield name


def _files(subjects: Sequence[Mapping[str, Any]], folder: Path) -> Iterator[CheckLine]:
    top = Path(os.path.realpath(folder))
    for subject in subjects:
        if "sha256" not in subject["digest"]:
            yield CheckLine("file", "open", f"{subject['name']} is not looked at: that takes the repository")
            continue
        name = subject["name"]
        path = _inside(top, name)
        if path is None:
            yield CheckLine("file", "broken", f"{name} leads out of the folder", FindingCode.PATH_OUTSIDE)
            continue
        found = hash_file(path)
        if found == f"sha256:{subject['digest']['sha256']}":
            yield CheckLine("file", "holds", f"{name} is what was attested")
        else:
            there = "is another content" if found.startswith("sha256:") else f"is {found}"
            yield CheckLine("file", "broken", f"{name} {there}", FindingCode.OUTPUT_CHANGED)


def _inside(top: Path, name: str) -> Path | None:
    """The file of this name in a folder; None where the name, or a link on the way, leads out of it."""
    parts = PurePosixPath(name).parts
    if not parts or name.startswith("/") or ".." in parts or "\0" in name:
        return None
    real = Path(os.path.realpath(top.joinpath(*parts)))
    return real if real.is_relative_to(top) else None
