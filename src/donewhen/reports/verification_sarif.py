"""A verification as SARIF 2.1.0: one result per reason, at its place in the job file, and one rule per code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from donewhen import __version__
from donewhen.foundation.canonical import digest_of
from donewhen.foundation.plain_text import plain_text
from donewhen.jobs.ledger.finding_codes import FINDINGS, FindingCode
from donewhen.jobs.ledger.gate_results import GATE_REASONS, GateCode
from donewhen.jobs.verifying import CaseReason, Verification
from donewhen.reports.verification_places import FileLocation, location_of_reason

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def sarif(verification: Verification, exit_code: int) -> bytes:
    """Return the SARIF document; it is the same for the same findings."""
    fallback = FileLocation(f"{verification.inside}{verification.project_file}", 1)
    lines = [(reason, "error") for reason in verification.reasons] + [(note, "note") for note in verification.notes]
    rules = sorted({reason.code for reason, _ in lines})
    run = {
        "tool": {"driver": {"name": "donewhen", "version": __version__, "rules": [_rule(code) for code in rules]}},
        "automationDetails": {"id": "donewhen/verify"},
        "invocations": [{"executionSuccessful": not verification.broken, "exitCode": exit_code}],
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The root of the repository."}}},
        "results": [
            _result(reason, level, rules.index(reason.code), location_of_reason(verification, reason) or fallback)
            for reason, level in lines
        ],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2).encode() + b"\n"


def meaning_of(code: str) -> tuple[str, str] | None:
    """Return the meaning of a code and the next step; None if the code belongs to another kind of error."""
    known: Mapping[str, Any] = {**{gate_code.value: GATE_REASONS[gate_code] for gate_code in GateCode}, **_FINDINGS}
    meaning = known.get(code)
    return None if meaning is None else (meaning.meaning, meaning.next_step)


_FINDINGS = {code.value: FINDINGS[code] for code in FindingCode}


def _rule(code: str) -> dict[str, Any]:
    meaning, step = meaning_of(code) or ("Something could not be read or run.", "Read the message.")
    return {
        "id": code,
        "name": "".join(word.capitalize() for word in code.split("_")),
        "shortDescription": {"text": meaning},
        "help": {"text": f"{meaning} {step}"},
    }


def _result(reason: CaseReason, level: str, rule: int, place: FileLocation) -> dict[str, Any]:
    text = plain_text(reason.message if reason.next is None else f"{reason.message} Next: {reason.next}")
    return {
        "ruleId": reason.code,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(place.path), "uriBaseId": "SRCROOT"},
                    "region": {"startLine": place.line},
                }
            }
        ],
        # Without the line number, which changes when the text above it does.
        "partialFingerprints": {"donewhen/v1": digest_of([reason.code, place.path, text])},
    }
