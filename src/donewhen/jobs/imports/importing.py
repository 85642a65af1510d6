"""Jobs out of a source: what is new is made, what is there stays as it is, and what the source claims is not believed.

A job remembers what it was made of (``imported_from``, ``imported_hash``), so that importing again makes nothing twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from donewhen.foundation.errors import DonewhenError, UsageError
from donewhen.foundation.files import read_regular
from donewhen.foundation.locks import locked
from donewhen.foundation.plain_text import one_line
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
TOGETHER = 200
"""Jobs that are made while the project is locked; then others get a turn."""
_STAMP = re.compile(rb'^imported_from:[ \t]*("(?:[^"\\\r\n]|\\.)*")', re.MULTILINE)
_SHOWN = 3

State = Literal["new", "there", "changed"]
Watch = Callable[[int, int], None]


class ImportedJob(NamedTuple):
    """An item with the dependencies that can be meant, and its job; none yet where it was only looked at."""

    item: ImportItem
    job: str | None
    state: State


class ImportResult(NamedTuple):
    """How an import went, or would go."""

    kind: Kind
    root: Path
    made: tuple[ImportedJob, ...]
    """In the order of the source."""
    findings: tuple[ImportFinding, ...]

    @property
    def new(self) -> int:
        return sum(one.state == "new" for one in self.made)

    @property
    def claimed(self) -> int:
        """How many the source calls done."""
        return sum(one.item.claim.done for one in self.made)

    @property
    def complete(self) -> bool:
        """Whether everything in the source was understood."""
        return not any(finding.code == FindingCode.IMPORT_NOT_UNDERSTOOD for finding in self.findings)


class _Known(NamedTuple):
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
    dry_run: bool = False,
    watch: Watch = lambda _done, _all: None,
) -> ImportResult:
    """Make a job of everything in a source that is none yet; with ``dry_run``, only find out what would be made."""
    gathered = gather_source(source, kind)
    imported = _understood(gathered)
    if not imported.items:
        # Nothing imported is no success, and the reasons are the first thing to know.
        first = next(iter(imported.findings), None)
        why = f" {first.where}: {first.message}" if first else ""
        raise UsageError(f"There is nothing to import.{why}", where=str(source))
    find_workstream_folder(workspace, workstream)
    if dry_run:
        return _imported(workspace, gathered, imported, commands, None, watch)
    with _alone(workspace):
        return _imported(workspace, gathered, imported, commands, _Maker(workspace, workstream), watch)


def _understood(gathered: GatheredSource) -> ReadSource:
    read = READERS[gathered.kind](gathered.texts)
    return drop_duplicate_items(ReadSource(tuple(map(clean_item, read.items)), (*gathered.findings, *read.findings)))


@contextmanager
def _alone(workspace: Workspace) -> Iterator[None]:
    """One import at a time. The project itself is locked for a moment only, each time."""
    workspace.prepare()
    with locked(workspace.folder / "state" / "locks" / "import.lock"):
        yield


class _Maker(NamedTuple):
    workspace: Workspace
    workstream: str | None


def _imported(
    workspace: Workspace,
    gathered: GatheredSource,
    imported: ReadSource,
    commands: Sequence[str],
    maker: _Maker | None,
    watch: Watch,
) -> ImportResult:
    known = dict(_known(workspace))
    hashes = {item.key: item.hash for item in imported.items}
    order = order_items(imported.items, known)
    findings = [*imported.findings]
    # What depends on what is told of new jobs; those that are there have the dependencies of their plans.
    places = {item.where for item in imported.items if item.key not in known}
    findings += (finding for finding in order.findings if finding.where in places)
    findings += _differences(workspace, imported.items, known, hashes)
    findings += _gone(workspace, gathered, hashes, known)
    ids = {key: one.job for key, one in known.items()}
    new = [item for item in order.items if item.key not in known]
    count = 0
    watch(count, len(new))
    for start in range(0, len(new), TOGETHER):
        for item, job, told in _batch(new[start : start + TOGETHER], hashes, commands, ids, maker):
            findings += told
            ids[item] = job
            count += 1
            watch(count, len(new))
    if maker is not None and not new and find_workstream_folder(workspace, maker.workstream) is not None:
        # An import that was killed may have made jobs that are in no list yet; whoever makes jobs lists them.
        with job_maker(workspace, maker.workstream):
            pass
    sound = {item.key: item for item in order.items}
    made = tuple(
        ImportedJob(sound[key], ids.get(key) or None, _state(known.get(key), identity))
        for key, identity in hashes.items()
    )
    return ImportResult(gathered.kind, gathered.root, made, tuple(findings))


def _batch(
    items: Sequence[ImportItem],
    hashes: Mapping[str, str],
    commands: Sequence[str],
    ids: Mapping[str, str],
    maker: _Maker | None,
) -> Iterator[tuple[str, str, tuple[ImportFinding, ...]]]:
    """Each item's key, the job that was made of it, and what there is to know."""
    if maker is None:
        for item in items:
            yield item.key, "", draft_job(item, hashes[item.key], commands, dict.fromkeys(item.depends_on, "")).findings
        return
    with job_maker(maker.workspace, maker.workstream) as make:
        for item in items:
            drafted = draft_job(item, hashes[item.key], commands, ids)
            path = make(drafted.job)
            yield item.key, id_in(path.parent.name) or path.parent.name, drafted.findings


def _state(known: _Known | None, now: str) -> State:
    if known is None:
        return "new"
    return "there" if known.hash in (None, now) else "changed"


def _known(workspace: Workspace) -> Iterator[tuple[str, _Known]]:
    """What was imported before, by what it was made of; the first job where somebody has copied one."""
    seen: set[str] = set()
    for place in workspace.places():
        try:
            raw = read_regular(place.path)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UsageError(
                f"The plan can't be read ({error.strerror}), so nobody knows what it was imported from.",
                where=workspace.where(place.path),
                next_step="Repair it, and import again.",
            ) from error
        if b"imported_from" not in raw:
            continue
        key, stamp = _stamps(raw)
        if key is not None and key not in seen:
            seen.add(key)
            yield key, _Known(place.id, place.path, stamp)


def _stamps(raw: bytes) -> tuple[str | None, str | None]:
    try:
        fields = parse_document(raw, "the plan").fields
    except DocumentError:
        # A plan that somebody broke is still the job that it was.
        found = _STAMP.search(raw)
        try:
            return (str(json.loads(found[1])) if found else None), None
        except ValueError:
            return None, None
    key, stamp = fields.get("imported_from"), fields.get("imported_hash")
    return (key if isinstance(key, str) else None), (stamp if isinstance(stamp, str) else None)


def _differences(
    workspace: Workspace, items: Sequence[ImportItem], known: Mapping[str, _Known], hashes: Mapping[str, str]
) -> Iterator[ImportFinding]:
    """What the source says otherwise than when it was imported."""
    for item in items:
        before = known.get(item.key)
        if before is None:
            continue
        parts = [key.partition(":")[2] for key in item.parts if key not in known]
        where = workspace.where(before.path)
        if _state(before, hashes[item.key]) == "changed":
            told = _told(workspace, before, item)
            message = f"{item.name} has changed in the source ({item.where}): {told} {before.job} is as it was."
            yield ImportFinding(FindingCode.IMPORT_CHANGED, message, where)
        if parts:
            message = (
                f"{item.name} has new parts in the source: {', '.join(parts)}. {before.job} does not wait for them."
            )
            yield ImportFinding(FindingCode.IMPORT_CHANGED, message, where)


def _told(workspace: Workspace, before: _Known, item: ImportItem) -> str:
    try:
        there = [criterion.text for criterion in workspace.job_at(before.path).criteria]
    except DonewhenError:
        return "its plan can't be compared."
    more = [criterion for criterion in item.criteria if criterion not in there]
    less = [one for one in there if one not in item.criteria]
    if not more and not less:
        return "the criteria are the same; its title, its words, its priority or what it depends on is not."
    parts = [f"it asks for {_some(more)}" if more else "", f"it no longer asks for {_some(less)}" if less else ""]
    return f"{'; '.join(part for part in parts if part)}."


def _some(texts: Sequence[str]) -> str:
    shown = ", ".join(repr(one_line(text, 80)) for text in texts[:_SHOWN])
    return shown + (f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else "")


def _gone(
    workspace: Workspace, gathered: GatheredSource, hashes: Mapping[str, str], known: Mapping[str, _Known]
) -> Iterator[ImportFinding]:
    """Jobs of items that a source has no more, where the source is all there is of its kind."""
    if gathered.scope is None:
        return
    for key, one in known.items():
        if key.startswith(gathered.scope) and key not in hashes:
            message = (
                f"{key.partition(':')[2]} is no longer in the source, or can't be read there. {one.job} is as it was."
            )
            yield ImportFinding(FindingCode.IMPORT_GONE, message, workspace.where(one.path))
