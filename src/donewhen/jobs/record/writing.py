"""The one way to write: lock, read, finish what a killed writer left, append to the ledger, update the plan, and
refresh the views.

``with writing(workspace, path) as job:`` holds the lock of a plan and its chain; ``job.append(…)`` records an entry and
the plan fields that follow from it. ``operation`` groups several writes, so that the views are refreshed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from pathlib import Path
from typing import Any

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.notices import notify
from donewhen.jobs.ledger.approval import Approval, signature
from donewhen.jobs.ledger.entries import Chain, Entry, EventKind, first_link
from donewhen.jobs.ledger.ledger import Ledger, OpenChains, has_entry_files
from donewhen.jobs.plan.document import Document
from donewhen.jobs.plan.frontmatter import Value
from donewhen.jobs.plan.job import Job, missing_fields
from donewhen.jobs.plan.snapshot import Snapshot, snapshot_of
from donewhen.jobs.plan.workspace import Workspace, remove_temporary_files
from donewhen.jobs.record.gone_back import keep_head
from donewhen.jobs.record.projection import (
    expected_fields,
    kept_fields,
    pending_writes,
    shared_fields,
    typed_fields,
)

# The views are made of agreements and gates, so they stand above the writer, which knows them by name only.
_VIEWS = "donewhen.jobs.board.views"
# What an entry has besides the data of the call that made it.
_ADDED = frozenset({"writes", "adopted", "signature", "unproved", "named"})
# These count as iterations: whoever sets a plan back by hand must not get another one for nothing.
_COUNTED: frozenset[EventKind] = frozenset({"started", "refused"})


class RecordedError(DonewhenError):
    """The ledger has the entry, but the plan file could not be updated."""

    code = "recorded"


class _Operation:
    """One command or call that writes: which jobs it has written to, and the chains that it has open."""

    def __init__(self, workspace: Workspace, *, refreshes: bool, creates_views: bool) -> None:
        self.workspace = workspace
        self.refreshes = refreshes
        self.creates_views = creates_views
        self.files = OpenChains()
        self.changed: dict[Path, None] = {}
        self.snapshot: Snapshot | None = None


_CURRENT: ContextVar[_Operation | None] = ContextVar("donewhen_operation", default=None)


@contextmanager
def operation(workspace: Workspace, *, views: bool = True, create: bool = False) -> Iterator[_Operation]:
    """Group the writes of one command or call; the views are refreshed at its end, unless ``views`` is false.

    With ``create``, views that don't exist are created. Inside another operation this changes nothing else.
    """
    current = _CURRENT.get()
    if current is not None and current.workspace.root == workspace.root:
        current.creates_views |= create
        yield current
        return
    mine = _Operation(workspace.live, refreshes=views, creates_views=create)
    token = _CURRENT.set(mine)
    try:
        yield mine
    finally:
        _CURRENT.reset(token)
        mine.files.close()
        # Also after an error, because entries stand even if the rest of the command has failed.
        _refresh_views(mine)


class Writing:
    """A plan and its chain while their lock is held."""

    def __init__(self, mine: _Operation, snapshot: Snapshot, path: Path, chain: str | None) -> None:
        remove_temporary_files(path.parent)
        self.snapshot = snapshot
        self.path = path
        self._operation = mine
        document = snapshot.live.read(path) if chain is None else None
        chain = self.chain_name = _chain_name(path, document) if chain is None else chain
        ledger = snapshot.ledger
        self._is_parent = snapshot.is_parent_plan(path) and has_entry_files(chain)
        if self._is_parent:
            remove_temporary_files(ledger.folder_of(chain))
        self._ledger = Ledger(ledger.folder, ledger.locks, clock=ledger.clock, files=mine.files)
        before = snapshot.seen_chain(chain)
        self.chain: Chain = self._ledger.read(chain)
        snapshot.keep_chain(chain, self.chain)
        self._unfinished: Entry | None = None
        self._fresh = False
        # A plan whose chain has no new entry needs no repair, so it is read again only if it is written to.
        seen = snapshot.seen_document(path)
        unchanged = before is not None and before.head is not None and before.head == self.chain.head
        if document is not None or seen is None or not unchanged or self._pending(seen):
            seen = self._read_document(document)
        self._document = seen

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.chain.entries

    @property
    def document(self) -> Document:
        """The plan file, read under the lock."""
        return self._document if self._fresh else self._read_document()

    @property
    def job(self) -> Job:
        """The job, read under the lock."""
        if not self._fresh:
            self._read_document()
        return self.snapshot.job_at(self.path)

    def append(
        self,
        kind: EventKind,
        data: Mapping[str, Any],
        approval: Approval,
        writes: Mapping[str, Value] | None = None,
    ) -> Entry:
        """Append an entry and write the fields that follow from it into the plan.

        The ledger is written first: a value that is only in the ledger can be repaired, a value that is only in the
        file would look like a forgery. An entry whose plan fields were not written, because a writer was killed or the
        disk was full, is not recorded a second time when the call is repeated, unless it counts as an iteration.
        """
        if self._is_repeated(kind, data, approval):
            return self.entries[-1]
        head = self.chain.head
        fields = dict(writes or {})
        writes_plan = bool(fields) or head is None or bool(missing_fields(self._document.fields))
        document = self.document if writes_plan else self._document
        if head is None:
            # What was typed before has happened nowhere.
            data = {**data, "adopted": kept_fields(document.fields)}
            fields = {**typed_fields(document.fields), **fields}
        fields = {**missing_fields(document.fields), **fields}
        live = self.snapshot.live
        # Before the ledger: a plan that can't be rewritten must not leave half a change.
        raw = live.rewritten(document, self.path, shared_fields(fields) if self._is_parent else fields)
        content = dict(data)
        if fields:
            known = expected_fields(self.entries) if self._is_parent and head is not None else document.fields
            content["writes"] = {name: [known.get(name), value] for name, value in fields.items()}
        if approval.named and approval.by.kind == "person":
            content["named"] = approval.named
        if approval.why:
            content["unproved"] = approval.why
        link = head or first_link(self.chain_name)
        content |= signature(approval, self.chain_name, link, kind, content)
        if self._is_parent:
            entry = self._ledger.append_file(self.chain_name, kind, content, approval.by, self.chain)
        else:
            entry = self._ledger.append(self.chain_name, kind, content, approval.by)
        self._operation.changed[self.path] = None
        self._operation.snapshot = self.snapshot
        intact = tuple(failure for failure in self.chain.breaks if not failure.torn)
        self.chain = Chain((*self.entries, entry), intact, (entry.hash,) if self._is_parent else ())
        self.snapshot.keep_chain(self.chain_name, self.chain)
        keep_head(live, self.chain_name, self.entries, self.chain_name if self.path == live.project_file else "")
        try:
            self._write(document, raw)
        except OSError as error:
            where = live.where(self.path)
            raise _recorded_error(entry, self.chain_name, error.strerror or str(error), where) from error
        return entry

    def write_fields(self, changes: Mapping[str, Value]) -> None:
        """Change fields of the plan that are not in the ledger."""
        raw = self.snapshot.live.rewritten(self.document, self.path, changes)
        self._write(self.document, raw)

    def replace_text(self, raw: bytes) -> Job:
        """Write other text into the plan, outside of its fields."""
        self._keep_document(self.snapshot.live.write_plan(self.path, raw))
        return self.job

    def _keep_document(self, document: Document) -> None:
        self.snapshot.keep_document(self.path, document)
        self._document = document
        self._fresh = True

    def _write(self, document: Document, raw: bytes) -> None:
        if raw != document.raw:
            self._keep_document(self.snapshot.live.write_plan(self.path, raw))

    def _read_document(self, document: Document | None = None) -> Document:
        """Read the plan, and finish a write that was interrupted after its entry was recorded."""
        live = self.snapshot.live
        document = live.read(self.path) if document is None else document
        missing = self._pending(document)
        if missing:
            self._unfinished = self.entries[-1]
            raw = live.rewritten(document, self.path, missing)
            document = live.write_plan(self.path, raw)
            self._operation.changed[self.path] = None
        self._keep_document(document)
        return document

    def _pending(self, document: Document) -> dict[str, Value]:
        return {} if self._is_parent else pending_writes(document.fields, self.entries)

    def _is_repeated(self, kind: EventKind, data: Mapping[str, Any], approval: Approval) -> bool:
        last = None if kind in _COUNTED else self._unfinished
        if last is None or last is not self.entries[-1] or (last.type, last.by) != (kind, approval.by):
            return False
        return {name: value for name, value in last.data.items() if name not in _ADDED} == dict(data)


@contextmanager
def writing(workspace: Workspace, path: Path, chain: str | None = None) -> Iterator[Writing]:
    """Hold the lock of a plan and its chain, with both read under it. If you need two, take the project's first.

    ``workspace`` may be a snapshot; it then has the new contents of this plan and its chain. ``chain`` is the name of
    the chain if it is known; for a job whose plan may be unreadable, for example.
    """
    with operation(workspace) as mine, workspace.live.locked(path):
        snapshot = snapshot_of(workspace)
        yield Writing(mine, snapshot, path, chain)


def _chain_name(path: Path, document: Document | None) -> str:
    fields = {} if document is None else document.fields
    return str(fields.get("work_item_id") or fields.get("id") or path.parent.name)


def _recorded_error(entry: Entry, chain: str, reason: str, where: str) -> RecordedError:
    return RecordedError(
        f"The {entry.type!r} entry is recorded and in force (entry {entry.seq} of {chain}), but the plan file could "
        f"not be updated: {reason}.",
        where=where,
        next_step="Free disk space or fix the permissions. The next command for it updates the plan; "
        "repeating this one records nothing twice.",
    )


def _refresh_views(mine: _Operation) -> None:
    if not mine.changed or not mine.refreshes:
        return
    snapshot = mine.snapshot or snapshot_of(mine.workspace)
    try:
        import_module(_VIEWS).refresh_views(snapshot, [*mine.changed], create=mine.creates_views)
    except (OSError, DonewhenError) as error:
        reason = error.message if isinstance(error, DonewhenError) else error.strerror or str(error)
        notify(
            f"It is recorded, but the task tracker and the dashboard could not be updated: {reason.rstrip('.')}. "
            "The next command that writes updates them."
        )
