"""A ticket made of a job: what it put out, what changed, what the gate itself saw; never what is merely said."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.plain_text import one_line, visible_text
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.contract.inputs import expand_path, hash_file
from donewhen.jobs.evidence.requirements import Requirement, requirements_of
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.evidence.tree_diff import diff_since
from donewhen.jobs.ledger.ledger import Entry
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

if TYPE_CHECKING:
    from donewhen.judging.mission import Mission
    from donewhen.judging.ticket import Ticket

_LARGEST = 4 << 20
_TOOK = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?(?= ?(?:ms|s|secs?|seconds?)\b)")
_LEAST = 200
"""So many characters each output should have; where there is less room, some outputs are named by their hash alone."""
_IN_PLACE = re.compile(
    r"\[(?:[0-9a-f]{12} … \d+ characters left out|\d+ bytes, (?:too large|not a text)|can't be read:|"
    r"… and \d+ more files)"
)
"""What stands in a ticket where a text, or a piece of it, does not. Whoever writes it into their work gains nothing."""


class ShownRequirement(NamedTuple):
    """A need that the gate has looked into, and the entry that says so."""

    requirement: Requirement
    entry: Entry


def job_ticket(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    mission: Mission,
    store: EvidenceStore,
    shown: Sequence[ShownRequirement],
    started: Entry | None,
) -> Ticket | None:
    """The ticket for a criterion that a judge decides; None where there is nothing to judge but words."""
    from donewhen.judging.ticket import Ticket

    wanted = mission.settings.from_job
    evidence = job_artifacts(
        workspace, job, requirement, store, shown, started, parts=wanted.parts, most=wanted.max_chars
    )
    if not evidence:
        return None
    name = digest_of([mission.name, evidence]).partition(":")[2][:12]
    return Ticket(f"{job.id}.{requirement.name}.{name}", mission.name, None, evidence, job.id)


def job_artifacts(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    store: EvidenceStore,
    shown: Sequence[ShownRequirement],
    started: Entry | None,
    *,
    parts: Sequence[str] = ("task", "outputs", "diff", "evidence"),
    most: int = 40_000,
) -> dict[str, str]:
    """What there is to look at, by names; nothing where there is only the task."""
    real: dict[str, str] = {}
    lost = False
    if "outputs" in parts:
        real |= _outputs(workspace, job, most // _LEAST)
    commit = started.data.get("commit") if started is not None else None
    if "diff" in parts and isinstance(commit, str):
        diff = diff_since(workspace, commit, without=_claims(workspace, job))
        real |= {"diff": diff} if diff else {}
        lost = diff is None
    if "evidence" in parts:
        real |= {f"evidence {one.requirement.name} {number}": _seen(store, one) for number, one in enumerate(shown, 1)}
    if not any(text.strip() for text in real.values()):
        return {}
    if lost:
        # Said, so that doing away with a commit hides nothing in silence.
        real["diff"] = f"[what has changed can't be told: the commit {str(commit)[:12]} is not here any more]"
    # What was agreed, word for word, and no more: a title is anybody's, and would speak to the judge.
    task = {"task": requirement.text} if "task" in parts else {}
    return fit_to_size({**task, **real}, most)


def outputs_not_shown(evidence: Mapping[str, str]) -> tuple[str, ...]:
    """The outputs that are not in a ticket word for word: what was made is what a judge has to have seen."""
    outputs = {name: text for name, text in evidence.items() if name.startswith("output ") or name == "more outputs"}
    return tuple(name for name, text in outputs.items() if _IN_PLACE.search(text))


def hard_requirements(job: Job) -> tuple[Requirement, ...]:
    """What the gate itself can decide, and decides before a judge is asked."""
    return tuple(requirement for requirement in requirements_of(job) if requirement.check.kind in ("run", "file"))


def _outputs(workspace: Workspace, job: Job, most: int) -> dict[str, str]:
    found: dict[str, str] = {}
    more: dict[str, str] = {}
    for path in job.outputs:
        with suppress(ConfigError):
            for name, full in expand_path(workspace, job, path, "outputs"):
                if not full.is_file():
                    continue
                shown = f"output {one_line(name, 200)}"
                if len(found) >= most:
                    more[ascii(name)] = _hash(full)
                else:
                    # Names may differ in what can't be seen, and neither may hide the other.
                    found[shown if shown not in found else f"{shown} ({len(found) + 1})"] = _text(full)
    return found | ({"more outputs": f"[… and {len(more)} more files, {digest_of(more)[7:19]}]"} if more else {})


def _claims(workspace: Workspace, job: Job) -> Iterator[str]:
    """What an agent has written down about its work, in the folder of the job: it is no work, and decides nothing."""
    for path in job.verification_evidence:
        with suppress(ConfigError):
            if not path.startswith("/"):
                yield from (name for name, _ in expand_path(workspace, job, path, "verification_evidence"))


def _text(path: Path) -> str:
    """The text of a file, or what there is instead: with its hash, so that another content is another ticket."""
    try:
        size = path.stat().st_size
        content = path.read_bytes() if size <= _LARGEST else b""
    except OSError as error:
        return f"[can't be read: {error.strerror}]"
    if size > _LARGEST:
        return f"[{size} bytes, too large to show, {_hash(path)[7:19]}]"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    return text if "\0" not in text else f"[{size} bytes, not a text, {_hash(path)[7:19]}]"


def _hash(path: Path) -> str:
    return hash_file(os.path.realpath(path))


def _seen(store: EvidenceStore, requirement: ShownRequirement) -> str:
    data = requirement.entry.data
    verdict = "passed" if data.get("passed") is True else "failed"
    if data.get("what") == "file":
        return f"{requirement.requirement.evidence}\n{verdict}: {data.get('told', '')}"
    output = store.get(str(data.get("output"))) or b""
    message = f"$ {requirement.requirement.evidence}\n{verdict}, exit status {data.get('exit_code')}"
    report = data.get("report")
    if isinstance(report, Mapping):
        message += ", " + ", ".join(f"{count} {name}" for name, count in report.items() if isinstance(count, int))
    # How long it took differs from run to run, and must not make another ticket of the same work.
    return f"{message}\n{_TOOK.sub('…', output.decode('utf-8', 'replace'))}"


def fit_to_size(parts: Mapping[str, str], most: int) -> dict[str, str]:
    """Every part, without secrets and hidden characters; the long ones share the room that the short ones leave."""
    texts = {name: visible_text(redact_secrets(text)) for name, text in parts.items()}
    left, open_ones = most, sorted(texts, key=lambda name: len(texts[name]))
    room: dict[str, int] = {}
    for at, name in enumerate(open_ones):
        room[name] = min(len(texts[name]), left // (len(open_ones) - at))
        left -= room[name]
    return {name: _cut(text, room[name]) for name, text in texts.items()}


def _cut(text: str, room: int) -> str:
    """The beginning and the end, with what is left out by its hash: exchanged, it must not go unnoticed."""
    if len(text) <= room:
        return text
    name = digest(text.encode("utf-8", "replace"))[7:19]
    half = (room - len(_left_out(len(text), name))) // 2
    if half <= 0:
        # Whole, however little room there is: it must be known for what it is.
        return _left_out(len(text), name).strip()
    return f"{text[:half]}{_left_out(len(text) - 2 * half, name)}{text[len(text) - half :]}"


def _left_out(count: int, name: str) -> str:
    return f"\n[{name} … {count} characters left out …]\n"
