"""Describe a ledger entry in one sentence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from donewhen.foundation.plain_text import one_line
from donewhen.jobs.issues.mirror_status import mirror_entry_text
from donewhen.jobs.ledger.ledger import Entry


def entry_text(entry: Entry) -> str:
    """Return the sentence that describes an entry."""
    data: Mapping[str, Any] = entry.data
    match entry.type:
        case "agreed":
            return _agreement_text(data)
        case "ran":
            explanation = data.get("told") if data.get("what") in ("judge", "file") else ""
            verdict = "passed" if data.get("passed") else "needs a person" if data.get("needs_human") else "failed"
            return one_line(f"{data.get('evidence')}: {verdict}{f', {explanation}' if explanation else ''}")
        case "completed" | "refused" | "evaluated":
            return _evaluation_text(data)
        case "decided":
            value = data.get("value")
            about = value.get("criterion", "") if isinstance(value, Mapping) else "" if value is None else value
            what = f"{str(data.get('decision')).replace('_', ' ')} {about}".strip()
            return one_line(f"{what}: {data.get('reason')}")
        case "overridden":
            reason = f": {data['reason']}" if data.get("reason") else ""
            return one_line(f"{data.get('criterion')} {data.get('verdict')}{reason}")
        case "started":
            given = data.get("lessons")
            lessons = f", with {len(given)} lesson(s) from earlier jobs" if isinstance(given, Mapping) and given else ""
            commit = f" at commit {str(data['commit'])[:10]}" if data.get("commit") else ""
            return f"work started{commit}{lessons}"
        case "lesson":
            answer = f": {data['said']}" if data.get("said") else ""
            return one_line(f"{data.get('lesson')} {str(data.get('how')).replace('_', ' ')}{answer}")
        case "mirrored":
            return mirror_entry_text(data)
        case _:
            return one_line(str(data.get("why") or data.get("reason") or ""))


def _agreement_text(data: Mapping[str, Any]) -> str:
    seal = str(data.get("hash", "")).partition(":")[2][:12]
    match data.get("how"):
        case "agreed":
            return f"sealed as {seal}"
        case "tightened":
            return f"terms tightened, sealed as {seal}"
        case _:
            return "unproved, does not count"


def _evaluation_text(data: Mapping[str, Any]) -> str:
    gates = data.get("gates")
    closed = [str(name) for name, codes in gates.items() if codes] if isinstance(gates, Mapping) else []
    score = f"score {data['score']}" if "score" in data else ""
    states = f"closed: {', '.join(closed)}" if closed else "all gates open" if gates else ""
    return one_line(", ".join(part for part in (score, states) if part))
