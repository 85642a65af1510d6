"""How was each criterion shown? Told by the chain alone, so that whoever has the chain comes to the same answer."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.ledger.approval import Policy, is_approval
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.criteria import Criterion


class NotShownError(ValueError):
    """The chain has nothing that shows a criterion or a command."""


class AttestedRecord(NamedTuple):
    """A chain up to the completion that is attested."""

    chain: str
    before: Sequence[Entry]
    completed: Entry
    policy: Policy
    commands: tuple[str, ...]
    """The verification commands that were agreed, in their normal form."""

    @property
    def strict(self) -> bool:
        """Whether the truth gate asked for evidence. Where it did not, nothing was shown, whatever was run."""
        return self.completed.data.get("truth_mode") == "strict"


def attested_command(record: AttestedRecord, command: str) -> dict[str, Any]:
    """How a verification command of the job was shown."""
    found = _verified(record, "command", command) if record.strict else _ASSERTED
    if found is None:
        raise NotShownError(f"nothing shows that `{command}` passed")
    return dict(found)


def attested_criterion(record: AttestedRecord, criterion: Criterion) -> dict[str, Any]:
    """How a criterion was shown: by the gate's own run or look, by a judge, or by somebody's word that counts."""
    if not record.strict:
        return dict(_ASSERTED)
    check = criterion.check
    kind = check.kind if check is not None else "verification" if record.commands else "manual"
    found: dict[str, Any] | None = None
    match kind:
        case "run":
            found = _verified(record, "command", shlex.join(check.argv)) if check is not None else None
        case "file":
            found = _verified(record, "file", check.normal) if check is not None else None
        case "verification":
            found = _covered(record)
        case "manual":
            found = _signed_off(record, criterion)
        case "judge":
            found = _judged(record, criterion)
    if found is None and kind in ("run", "file", "verification"):
        found = _overruled(record, criterion)
    if found is None:
        raise NotShownError(f"nothing shows {criterion.id}")
    return found


_ASSERTED = {"how": "asserted"}


def _verified(record: AttestedRecord, what: str, evidence: str) -> dict[str, Any] | None:
    """The newest run of a command or look at a file, if it passed."""
    # What the patterns take for a secret is left out of the ledger; this machine's variables have no say in it.
    names = (evidence, redact_secrets(evidence, {}))
    runs = (one for one in reversed(record.before) if one.type == "ran" and one.data.get("what") == what)
    newest = next((run for run in runs if run.data.get("evidence") in names), None)
    if newest is None or newest.data.get("passed") is not True or newest.data.get("settled") is not True:
        return None
    told = {"how": "verified", "what": what, **_place(newest)}
    if what == "command":
        report = newest.data.get("report")
        told |= {
            "command": newest.data.get("evidence"),
            "exit_code": newest.data.get("exit_code"),
            "tests": report if isinstance(report, Mapping) else None,
            "evidence": newest.data.get("record"),
        }
    return told


def _covered(record: AttestedRecord) -> dict[str, Any] | None:
    """A criterion without a check of its own is as good as the job's verification."""
    runs = [_verified(record, "command", command) for command in record.commands]
    if any(run is None for run in runs):
        return None
    return {"how": "verified", "what": "verification", "entries": [run["entry"] for run in runs if run is not None]}


def _signed_off(record: AttestedRecord, criterion: Criterion) -> dict[str, Any] | None:
    for one in reversed(record.before):
        value = one.data.get("value")
        text = value.get("text") if isinstance(value, Mapping) else None
        about = (one.type, one.data.get("decision"), text)
        if about == ("decided", "sign_off", criterion.text) and is_approval(one, record.chain, record.policy):
            return {"how": "signed_off", **_place(one), "by": one.by._asdict()}
    return None


def _overruled(record: AttestedRecord, criterion: Criterion) -> dict[str, Any] | None:
    """Somebody's word above the check. About which work it was, the gate knew; a chain does not say."""
    return next((told for one in reversed(record.before) if (told := _word(record, criterion, one))), None)


def _word(record: AttestedRecord, criterion: Criterion, entry: Entry) -> dict[str, Any] | None:
    about = (entry.type, entry.data.get("text"), entry.data.get("verdict"))
    if about != ("overridden", criterion.text, "pass") or not is_approval(entry, record.chain, record.policy):
        return None
    return {"how": "overruled", **_place(entry), "by": entry.by._asdict()}


def _judged(record: AttestedRecord, criterion: Criterion) -> dict[str, Any] | None:
    """By the completion itself: it names the verdict, or the person's word, on which it rests."""
    listed = record.completed.data.get("judged")
    about = listed.get(criterion.id) if isinstance(listed, Mapping) else None
    if not isinstance(about, Mapping) or about.get("state") != "passed" or criterion.check is None:
        return None
    entry = next((one for one in record.before if one.hash == about.get("entry")), None)
    if entry is None:
        return None
    if entry.type == "overridden":
        return _word(record, criterion, entry)
    asked = ("ran", "judge", redact_secrets(f"judge {criterion.text}", {}), criterion.check.text, True)
    found = (entry.type, *(entry.data.get(name) for name in ("what", "evidence", "mission", "passed")))
    if found != asked:
        return None
    kept = ("mission", "model", "guidance_step", "votes", "agreement")
    return {"how": "judged", **_place(entry), **{name: entry.data.get(name) for name in kept}}


def _place(entry: Entry) -> dict[str, Any]:
    return {"entry": entry.hash, "at": entry.at}
