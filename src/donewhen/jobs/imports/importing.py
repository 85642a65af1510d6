"""Import jobs from a source: new items become jobs, existing jobs stay unchanged, and claims of the source don't count.

A job records its origin (``imported_from``, ``imported_hash``), so that importing again creates no duplicates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.files import read_regular
from donewhen.foundation.locks import locked
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.foundation.process import split_command
from donewhen.foundation.size_limits import PLAN_FILE
from donewhen.jobs.imports import backlog, feature_list, openspec, spec_kit
from donewhen.jobs.imports.drafting import draft_job
from donewhen.jobs.imports.gathering import GatheredSource, gather_source
from donewhen.jobs.imports.items import (
    ImportFinding,
    ImportItem,
    Kind,
    Reader,
    ReadSource,
    clean_item,
    drop_duplicate_items,
)
from donewhen.jobs.imports.ordering import order_items
from donewhen.jobs.imports.selecting import EVERYTHING, Selection, select_items
from donewhen.jobs.ledger.finding_codes import FindingCode
from donewhen.jobs.plan.creating import find_workstream_folder, job_maker
from donewhen.jobs.plan.document import parse_document
from donewhen.jobs.plan.frontmatter import DocumentError
from donewhen.jobs.plan.ids import id_in
from donewhen.jobs.plan.workspace import Workspace

READERS: dict[Kind, Reader] = {
    "backlog": backlog.read_backlog,
    "spec-kit": spec_kit.read_spec_kit,
    "openspec": openspec.read_openspec,
    "feature-list": feature_list.read_feature_list,
}
BATCH = 200
"""Number of jobs created per lock of the project; other processes get a turn in between."""
_STAMP = re.compile(rb'^imported_from:[ \t]*("(?:[^"\\\r\n]|\\.)*")', re.MULTILINE)
_MAX_LISTED = 3

State = Literal["new", "there", "changed"]
Watch = Callable[[int, int], None]


class ImportedJob(NamedTuple):
    """An item with its valid dependencies, and its job; None in a dry run."""

    item: ImportItem
    job: str | None
    state: State


@dataclass(frozen=True)
class ImportResult:
    """The result of an import or of a dry run."""

    kind: Kind
    root: Path
    made: tuple[ImportedJob, ...]
    """In the order of the source."""
    findings: tuple[ImportFinding, ...]

    @property
    def new(self) -> int:
        return sum(job.state == "new" for job in self.made)

    @property
    def claimed(self) -> int:
        """The number of items that the source calls done."""
        return sum(job.item.claim.done for job in self.made)

    @property
    def complete(self) -> bool:
        """Whether everything in the source was understood."""
        return not any(finding.code == FindingCode.IMPORT_NOT_UNDERSTOOD for finding in self.findings)


class _ImportedBefore(NamedTuple):
    """A job that was imported before."""

    job: str
    path: Path
    hash: str | None


def import_jobs(
    workspace: Workspace,
    source: Path,
    kind: Kind | None = None,
    *,
    commands: Sequence[str] = (),
    workstream: str | None = None,
    selection: Selection = EVERYTHING,
    dry_run: bool = False,
    watch: Watch = lambda _done, _all: None,
) -> ImportResult:
    """Create a job for every new item of a source that is selected; with ``dry_run``, only return what would be
    created."""
    for command in commands:
        split_command(command)
    gathered = gather_source(source, kind)
    imported = _read_items(gathered)
    if not imported.items:
        # Importing nothing is an error; its first reason is part of the message.
        first = next(iter(imported.findings), None)
        why = f" {first.where}: {first.message}" if first else ""
        raise UsageError(f"There is nothing to import.{why}", where=str(source))
    selected = select_items(imported.items, selection, str(source))
    find_workstream_folder(workspace, workstream)
    if dry_run:
        return _import_items(workspace, gathered, imported, selected, commands, None, watch)
    with _import_lock(workspace):
        target = _Target(workspace, workstream)
        return _import_items(workspace, gathered, imported, selected, commands, target, watch)


def _read_items(gathered: GatheredSource) -> ReadSource:
    read = READERS[gathered.kind](gathered.texts)
    return drop_duplicate_items(ReadSource(tuple(map(clean_item, read.items)), (*gathered.findings, *read.findings)))


@contextmanager
def _import_lock(workspace: Workspace) -> Iterator[None]:
    """Allow one import at a time. The project itself is only locked per batch."""
    workspace.prepare()
    with locked(workspace.folder / "state" / "locks" / "import.lock"):
        yield


class _Target(NamedTuple):
    workspace: Workspace
    workstream: str | None


def _import_items(
    workspace: Workspace,
    gathered: GatheredSource,
    imported: ReadSource,
    selected: Sequence[ImportItem],
    commands: Sequence[str],
    maker: _Target | None,
    watch: Watch,
) -> ImportResult:
    known = dict(_known(workspace))
    hashes = {item.key: item.hash for item in selected}
    every = {item.key for item in imported.items}
    order = order_items(selected, known, every - hashes.keys())
    findings = [*imported.findings]
    # Dependency findings are reported for new jobs only; existing jobs have the dependencies of their plans.
    places = {item.where for item in selected if item.key not in known}
    findings += (finding for finding in order.findings if finding.where in places)
    findings += _differences(workspace, selected, known, hashes)
    findings += _removed_items(workspace, gathered, every, known)
    ids = {key: before.job for key, before in known.items()}
    new = [item for item in order.items if item.key not in known]
    count = 0
    watch(count, len(new))
    for start in range(0, len(new), BATCH):
        for item, job, batch_findings in _create_batch(new[start : start + BATCH], hashes, commands, ids, maker):
            findings += batch_findings
            ids[item] = job
            count += 1
            watch(count, len(new))
    ordered = {item.key: item for item in order.items}
    made = tuple(
        ImportedJob(ordered[key], ids.get(key) or None, _state(known.get(key), identity))
        for key, identity in hashes.items()
    )
    return ImportResult(gathered.kind, gathered.root, made, tuple(findings))


def _create_batch(
    items: Sequence[ImportItem],
    hashes: Mapping[str, str],
    commands: Sequence[str],
    ids: Mapping[str, str],
    maker: _Target | None,
) -> Iterator[tuple[str, str, tuple[ImportFinding, ...]]]:
    """Yield each item's key, the job created from it, and the findings."""
    if maker is None:
        for item in items:
            yield item.key, "", draft_job(item, hashes[item.key], commands, dict.fromkeys(item.depends_on, "")).findings
        return
    with job_maker(maker.workspace, maker.workstream) as make:
        for item in items:
            drafted = draft_job(item, hashes[item.key], commands, ids)
            path = make(drafted.job)
            yield item.key, id_in(path.parent.name) or path.parent.name, drafted.findings


def _state(known: _ImportedBefore | None, now: str) -> State:
    if known is None:
        return "new"
    return "there" if known.hash in (None, now) else "changed"


def _known(workspace: Workspace) -> Iterator[tuple[str, _ImportedBefore]]:
    """Yield the jobs that were imported before, by item key; the first of several with the same key."""
    seen: set[str] = set()
    for place in workspace.places():
        try:
            raw = read_regular(place.path, PLAN_FILE)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(
                f"The plan can't be read ({error.strerror}), so its origin is unknown.",
                where=workspace.where(place.path),
                next_step="Repair it and import again.",
            ) from error
        if b"imported_from" not in raw:
            continue
        key, stamp = _import_stamps(raw)
        if key is not None and key not in seen:
            seen.add(key)
            yield key, _ImportedBefore(place.id, place.path, stamp)


def _import_stamps(raw: bytes) -> tuple[str | None, str | None]:
    try:
        fields = parse_document(raw, "the plan").fields
    except DocumentError:
        # A plan that can't be parsed is still the imported job.
        match = _STAMP.search(raw)
        try:
            return (str(json.loads(match[1])) if match else None), None
        except ValueError:
            return None, None
    key, stamp = fields.get("imported_from"), fields.get("imported_hash")
    return (key if isinstance(key, str) else None), (stamp if isinstance(stamp, str) else None)


def _differences(
    workspace: Workspace, items: Sequence[ImportItem], known: Mapping[str, _ImportedBefore], hashes: Mapping[str, str]
) -> Iterator[ImportFinding]:
    """Yield the items that changed in the source since they were imported."""
    for item in items:
        before = known.get(item.key)
        if before is None:
            continue
        parts = [key.partition(":")[2] for key in item.parts if key not in known]
        where = workspace.where(before.path)
        if _state(before, hashes[item.key]) == "changed":
            difference = _describe_change(workspace, before, item)
            message = (
                f"{item.name} has changed in the source ({item.where}): {difference} {before.job} was not changed."
            )
            yield ImportFinding(FindingCode.IMPORT_CHANGED, message, where)
        if parts:
            message = (
                f"{item.name} has new parts in the source: {', '.join(parts)}. {before.job} does not depend on them."
            )
            yield ImportFinding(FindingCode.IMPORT_CHANGED, message, where)


def _describe_change(workspace: Workspace, before: _ImportedBefore, item: ImportItem) -> str:
    try:
        plan_criteria = [criterion.text for criterion in workspace.job_at(before.path).criteria]
    except DonewhenError:
        return "its plan can't be read for comparison."
    added = [criterion for criterion in item.criteria if criterion not in plan_criteria]
    removed = [criterion for criterion in plan_criteria if criterion not in item.criteria]
    if not added and not removed:
        return "its title, description, priority or dependencies; the criteria are the same."
    parts = [f"added {_list_some(added)}" if added else "", f"removed {_list_some(removed)}" if removed else ""]
    return f"{'; '.join(part for part in parts if part)}."


def _list_some(texts: Sequence[str]) -> str:
    return join_limited([repr(one_line(text, 80)) for text in texts], _MAX_LISTED)


def _removed_items(
    workspace: Workspace, gathered: GatheredSource, every: Collection[str], known: Mapping[str, _ImportedBefore]
) -> Iterator[ImportFinding]:
    """Yield the jobs whose items are no longer in the source, if the source is complete."""
    if gathered.scope is None:
        return
    for key, before in known.items():
        if key.startswith(gathered.scope) and key not in every:
            name = key.partition(":")[2]
            message = f"{name} is no longer in the source, or can't be read there. {before.job} was not changed."
            yield ImportFinding(FindingCode.IMPORT_GONE, message, workspace.where(before.path))
