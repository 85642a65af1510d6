"""Build a judge's ticket from a job: its outputs, the diff and the gate's own evidence, but no claims of the agent.

The texts are exact: nothing in them is redacted, so that nothing can be hidden from the judge.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.errors import ConfigError
from donewhen.foundation.files import read_whole
from donewhen.foundation.plain_text import one_line, visible_text
from donewhen.foundation.secrets import redact_secrets
from donewhen.jobs.contract.inputs import expand_path, hash_file
from donewhen.jobs.evidence.requirements import Requirement, requirements_of
from donewhen.jobs.evidence.store import EvidenceStore
from donewhen.jobs.evidence.tree_diff import diff_since
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.ledger.entry_content import CommandRun, Ran, Started
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace

if TYPE_CHECKING:
    from donewhen.judging.mission import Mission
    from donewhen.judging.ticket import Ticket

_MAX_BYTES = 4 << 20
_DURATION = re.compile(r"(?<![\w.])\d{1,9}(?:\.\d{1,9})?(?= ?(?:ms|s|secs?|seconds?)\b)")
_MIN_OUTPUT_CHARS = 200
"""Room that each output should get; if there is less, the remaining outputs are represented by one hash."""
_OMISSION = re.compile(
    r"\[(?:[0-9a-f]{12} … \d+ characters left out|\d+ bytes, (?:too large|not a text)|can't be read:|"
    r"… and \d+ more files)"
)
"""Markers that replace omitted text in a ticket. Writing one into an output gains nothing: a person then decides."""


class CheckedRequirement(NamedTuple):
    """A requirement that the gate has checked, and the entry with the result."""

    requirement: Requirement
    entry: Entry


def job_ticket(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    mission: Mission,
    store: EvidenceStore,
    checked: Sequence[CheckedRequirement],
    started: Entry | None,
) -> Ticket | None:
    """Return the ticket for a criterion that a judge decides; None if there is no artifact to judge."""
    from donewhen.judging.ticket import Ticket

    settings = mission.settings.from_job
    evidence = job_artifacts(
        workspace, job, requirement, store, checked, started, parts=settings.parts, most=settings.max_chars
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
    checked: Sequence[CheckedRequirement],
    started: Entry | None,
    *,
    parts: Sequence[str] = ("task", "outputs", "diff", "evidence"),
    most: int = 40_000,
) -> dict[str, str]:
    """Return the texts to judge, by name, in at most ``most`` characters; empty if there is only the task."""
    return fit_to_size(
        uncut_artifacts(workspace, job, requirement, store, checked, started, parts=parts, most=most), most
    )


def uncut_artifacts(
    workspace: Workspace,
    job: Job,
    requirement: Requirement,
    store: EvidenceStore,
    checked: Sequence[CheckedRequirement],
    started: Entry | None,
    *,
    parts: Sequence[str],
    most: int,
) -> dict[str, str]:
    """Return the texts before they are cut to ``most`` characters."""
    artifacts: dict[str, str] = {}
    commit_missing = False
    if "outputs" in parts:
        artifacts |= _outputs(workspace, job, most // _MIN_OUTPUT_CHARS)
    commit = started.read_as(Started).commit if started is not None else None
    if "diff" in parts and commit is not None:
        diff = diff_since(workspace, commit, without=_agent_evidence_files(workspace, job))
        artifacts |= {"diff": diff} if diff else {}
        commit_missing = diff is None
    if "evidence" in parts:
        artifacts |= {
            f"evidence {check.requirement.name} {number}": _evidence_text(store, check)
            for number, check in enumerate(checked, 1)
        }
    if not any(text.strip() for text in artifacts.values()):
        return {}
    if commit_missing:
        # Stated in the ticket, so that removing a commit can't hide changes unnoticed.
        artifacts["diff"] = f"[what has changed can't be told: the commit {str(commit)[:12]} is not here any more]"
    # Only the agreed text: anybody can edit a title, and could address the judge there.
    task = {"task": requirement.text} if "task" in parts else {}
    return {**task, **artifacts}


def shown_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts as they are stored and shown: without secrets and hidden characters."""
    return {name: visible_text(redact_secrets(text)) for name, text in texts.items()}


def redacted_runs(checked: Sequence[CheckedRequirement]) -> tuple[str, ...]:
    """Return the commands whose output was not stored completely, because some of it looked like a secret."""
    runs = [check.entry.content for check in checked]
    return tuple(run.evidence for run in runs if isinstance(run, CommandRun) and run.redacted)


def outputs_not_shown(evidence: Mapping[str, str]) -> tuple[str, ...]:
    """Return the outputs that are not completely in a ticket; a judge must have seen all of the work."""
    outputs = {name: text for name, text in evidence.items() if name.startswith("output ") or name == "more outputs"}
    return tuple(name for name, text in outputs.items() if _OMISSION.search(text))


def machine_checked_requirements(job: Job) -> tuple[Requirement, ...]:
    """Return the requirements that the gate checks itself, before a judge is asked."""
    return tuple(requirement for requirement in requirements_of(job) if requirement.check.kind in ("run", "file"))


def _outputs(workspace: Workspace, job: Job, most: int) -> dict[str, str]:
    texts: dict[str, str] = {}
    more: dict[str, str] = {}
    for path in job.outputs:
        with suppress(ConfigError):
            for name, full in expand_path(workspace, job, path, "outputs"):
                if not full.is_file():
                    continue
                title = f"output {one_line(name, 200)}"
                if len(texts) >= most:
                    more[ascii(name)] = _hash(full)
                else:
                    # Names may differ only in invisible characters; neither file may hide the other.
                    texts[title if title not in texts else f"{title} ({len(texts) + 1})"] = _text(full)
    return texts | ({"more outputs": f"[… and {len(more)} more files, {digest_of(more)[7:19]}]"} if more else {})


def _agent_evidence_files(workspace: Workspace, job: Job) -> Iterator[str]:
    """Yield the files in the job's folder where the agent describes its work: they are claims, not work."""
    for path in job.verification_evidence:
        with suppress(ConfigError):
            if not path.startswith("/"):
                yield from (name for name, _ in expand_path(workspace, job, path, "verification_evidence"))


def _text(path: Path) -> str:
    """Return the text of a file, or a marker with its hash, so that different contents give different tickets."""
    try:
        size = path.stat().st_size
        content = read_whole(path) if size <= _MAX_BYTES else b""
    except OSError as error:
        return f"[can't be read: {error.strerror}]"
    if size > _MAX_BYTES:
        return f"[{size} bytes, too large to show, {_hash(path)[7:19]}]"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = "\0"
    return text if "\0" not in text else f"[{size} bytes, not a text, {_hash(path)[7:19]}]"


def _hash(path: Path) -> str:
    return hash_file(os.path.realpath(path))


def _evidence_text(store: EvidenceStore, check: CheckedRequirement) -> str:
    run = check.entry.read_as(Ran)
    verdict = "passed" if run.passed else "failed"
    if not isinstance(run, CommandRun):
        return f"{check.requirement.evidence}\n{verdict}: {run.told or ''}"
    output = store.get(run.output or "") or b""
    message = f"$ {check.requirement.evidence}\n{verdict}, exit status {run.exit_code}"
    if run.report is not None:
        # In the order in which the ledger has them, so that the same work has the same ticket.
        counts = sorted((name, count) for name, count in run.report.numbers().items() if isinstance(count, int))
        message += ", " + ", ".join(f"{count} {name}" for name, count in counts)
    # Durations differ from run to run and must not change the ticket of the same work.
    return f"{message}\n{_DURATION.sub('…', output.decode('utf-8', 'replace'))}"


def fit_to_size(parts: Mapping[str, str], most: int) -> dict[str, str]:
    """Cut the longest parts to fit into ``most`` characters. Nothing else is changed."""
    texts = dict(parts)
    left, by_length = most, sorted(texts, key=lambda name: len(texts[name]))
    room: dict[str, int] = {}
    for index, name in enumerate(by_length):
        room[name] = min(len(texts[name]), left // (len(by_length) - index))
        left -= room[name]
    return {name: _cut(text, room[name]) for name, text in texts.items()}


def _cut(text: str, room: int) -> str:
    """Keep the start and the end of a text, with a hash of the whole, so that changes in the middle are detected."""
    if len(text) <= room:
        return text
    name = digest(text.encode("utf-8", "replace"))[7:19]
    half = (room - len(_left_out(len(text), name))) // 2
    if half <= 0:
        # Never cut the marker itself: it must stay recognisable.
        return _left_out(len(text), name).strip()
    return f"{text[:half]}{_left_out(len(text) - 2 * half, name)}{text[len(text) - half :]}"


def _left_out(count: int, name: str) -> str:
    return f"\n[{name} … {count} characters left out …]\n"
