"""A verification as SARIF 2.1.0: a result a reason, at its place in the job file, a rule a code."""

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


def sarif(found: Verification, exit_code: int) -> bytes:
    """The document; the same for the same findings."""
    fallback = FileLocation(f"{found.inside}{found.project_file}", 1)
    lines = [(reason, "error") for reason in found.reasons] + [(note, "note") for note in found.notes]
    rules = sorted({one.code for one, _ in lines})
    run = {
        "tool": {"driver": {"name": "donewhen", "version": __version__, "rules": [_rule(code) for code in rules]}},
        "automationDetails": {"id": "donewhen/verify"},
        "invocations": [{"executionSuccessful": not found.broken, "exitCode": exit_code}],
        "originalUriBaseIds": {"SRCROOT": {"description": {"text": "The root of the repository."}}},
        "results": [
            _result(one, level, rules.index(one.code), location_of_reason(found, one) or fallback)
            for one, level in lines
        ],
        "columnKind": "unicodeCodePoints",
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2).encode() + b"\n"


def meaning_of(code: str) -> tuple[str, str] | None:
    """What a code means, and what to do about it; None for a code of an error elsewhere."""
    known: Mapping[str, Any] = {**{one.value: GATE_REASONS[one] for one in GateCode}, **_FINDINGS}
    found = known.get(code)
    return None if found is None else (found.meaning, found.next_step)


_FINDINGS = {one.value: FINDINGS[one] for one in FindingCode}


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
        # Not by the line: it moves when something above it is written.
        "partialFingerprints": {"donewhen/v1": digest_of([reason.code, place.path, text])},
    }
