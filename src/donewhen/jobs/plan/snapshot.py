"""A workspace of which every plan, chain and settings file is read at most once.

A decision looks at many files, and several parts of it look at the same ones. From a snapshot they all see the same
contents, whatever others write meanwhile. Nothing can be written through it (see ``record/writing.py``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from donewhen.config.loader import load
from donewhen.config.settings import Settings
from donewhen.foundation.canonical import digest
from donewhen.foundation.size_limits import SizeLimit
from donewhen.jobs.ledger.entries import Chain
from donewhen.jobs.ledger.ledger import Ledger
from donewhen.jobs.plan.document import Document
from donewhen.jobs.plan.job import Job, Project
from donewhen.jobs.plan.workspace import FROM_SETTINGS, Key, Workspace

_T = TypeVar("_T")
_Mark: TypeAlias = "tuple[int, ...] | None"
"""What changes when a file is replaced or written to; None if there is no file."""


class _Seen:
    """What was read so far, with the mark of its file."""

    def __init__(self) -> None:
        self.documents: dict[Path, tuple[_Mark, Document]] = {}
        self.jobs: dict[Path, Job] = {}
        self.projects: dict[Path, Project] = {}
        self.chains: dict[str, tuple[_Mark, Chain]] = {}
        self.settings: Settings | None = None
        self.hashes: dict[str, str] = {}
        self.computed: dict[Key, Any] = {}
        self.names: list[tuple[Path, str]] | None = None


class _SeenLedger(Ledger):
    """The chains of a snapshot."""

    def __init__(self, live: Ledger, seen: _Seen) -> None:
        super().__init__(live.folder, live.locks, clock=live.clock)
        self._seen = seen

    def read(self, chain: str) -> Chain:
        known = self._seen.chains.get(chain)
        if known is None:
            # The mark is taken first: a file that changes in between is then read again, not missed.
            known = (_chain_mark(self, chain), super().read(chain))
            self._seen.chains[chain] = known
        return known[1]


class Snapshot(Workspace):
    """A project and its jobs at one moment."""

    _seen: _Seen

    def __init__(self, live: Workspace) -> None:
        super().__init__(live.root, live.form, live.clock)
        object.__setattr__(self, "_seen", _Seen())

    @property
    def live(self) -> Workspace:
        return Workspace(self.root, self.form, self.clock)

    @property
    def ledger(self) -> Ledger:
        return _SeenLedger(super().ledger, self._seen)

    def settings(self) -> Settings:
        if self._seen.settings is None:
            self._seen.settings = load(self.root, read=self.read_file)
        return self._seen.settings

    def once(self, key: Key, compute: Callable[[], _T]) -> _T:
        if key not in self._seen.computed:
            self._seen.computed[key] = compute()
        value: _T = self._seen.computed[key]
        return value

    def put_computed(self, key: Key, value: object) -> None:
        """Replace a computed value, by a caller who has computed it anew."""
        self._seen.computed[key] = value

    def content_hashes(self) -> Mapping[str, str]:
        return self._seen.hashes

    def names(self) -> Iterator[tuple[Path, str]]:
        if self._seen.names is None:
            self._seen.names = list(super().names())
        return iter(self._seen.names)

    def read(self, path: Path) -> Document:
        known = self._seen.documents.get(path)
        if known is None:
            known = (_mark(path), super().read(path))
            self._seen.documents[path] = known
        return known[1]

    def job_at(self, path: Path) -> Job:
        if path not in self._seen.jobs:
            self._seen.jobs[path] = super().job_at(path)
        return self._seen.jobs[path]

    def project(self) -> Project:
        path = self.project_file
        if path not in self._seen.projects:
            self._seen.projects[path] = super().project()
        return self._seen.projects[path]

    @contextmanager
    def locked(self, path: Path) -> Iterator[None]:
        raise TypeError(f"A snapshot can't be locked: {path}")
        yield

    def write_plan(self, path: Path, raw: bytes) -> Document:
        raise TypeError(f"A snapshot can't be written to: {path}")

    def seen_document(self, path: Path) -> Document | None:
        """A plan, if it was read."""
        known = self._seen.documents.get(path)
        return None if known is None else known[1]

    def seen_chain(self, name: str) -> Chain | None:
        """A chain, if it was read."""
        known = self._seen.chains.get(name)
        return None if known is None else known[1]

    def keep_document(self, path: Path, document: Document) -> None:
        """Take a plan that the holder of its lock has just read or written."""
        self._forget_document(path)
        self._seen.documents[path] = (_mark(path), document)

    def keep_chain(self, name: str, chain: Chain) -> None:
        """Take a chain that the holder of its lock has just read or written."""
        self._seen.chains[name] = (_chain_mark(self.ledger, name), chain)
        self._seen.projects.clear()

    def after_writing(self, job: Job) -> Snapshot:
        """A new snapshot that knows the plan and the chain of a job which was just written, and the settings.

        All other plans and chains are read again: others may have written them while this job was evaluated.
        """
        new = Snapshot(self)
        if job.path in self._seen.documents:
            new._seen.documents[job.path] = self._seen.documents[job.path]
        if job.id in self._seen.chains:
            new._seen.chains[job.id] = self._seen.chains[job.id]
        new._seen.settings = self._seen.settings
        new._seen.computed = {key: value for key, value in self._seen.computed.items() if key[0] == FROM_SETTINGS}
        return new

    def forget_changed(self) -> None:
        """Forget what was written since it was read, and what can't be told. For views, which decide nothing."""
        for path, (mark, _) in [*self._seen.documents.items()]:
            if mark is None or _mark(path) != mark:
                self._forget_document(path)
        ledger = self.ledger
        for name, (mark, _) in [*self._seen.chains.items()]:
            if mark is None or _chain_mark(ledger, name) != mark:
                del self._seen.chains[name]
        self._seen.names = None

    def read_file(self, path: Path, limit: SizeLimit) -> bytes:
        content = super().read_file(path, limit)
        if not path.is_symlink():
            self._seen.hashes[str(path)] = digest(content)
        return content

    def _forget_document(self, path: Path) -> None:
        self._seen.documents.pop(path, None)
        self._seen.jobs.pop(path, None)
        self._seen.projects.pop(path, None)


def snapshot_of(workspace: Workspace) -> Snapshot:
    """A snapshot of a workspace, which reads each file when it is first needed; a snapshot is returned as it is."""
    if isinstance(workspace, Snapshot):
        return workspace
    return Snapshot(workspace)


def _chain_mark(ledger: Ledger, chain: str) -> _Mark:
    file, folder = _mark(ledger.path_of(chain)), _mark(ledger.folder_of(chain))
    return file if folder is None else (*(file or ()), *folder)


def _mark(path: Path) -> _Mark:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
