"""Which jobs are in progress, for a hook that must answer quickly: from the ends of the chains, never from an index.

The last lines of a chain say the status of its job. A chain that still ends as it was marked after it was read as a
whole (``record/head_watch.py``) needs no other look; any other chain is verified from its first line.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Container, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.files import read_regular
from donewhen.foundation.size_limits import PLAN_FILE
from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.entries import parse_entry
from donewhen.jobs.ledger.head_marks import Mark
from donewhen.jobs.ledger.ledger import chain_of, irregular_chain, open_chain
from donewhen.jobs.plan.ids import id_in, is_parent
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.gone_back import end_of, report_problem
from donewhen.jobs.record.head_watch import GoneBack, Watch, watch
from donewhen.jobs.record.history import history_of
from donewhen.jobs.record.projection import adopted_fields

_WINDOW = 8192
_SETTLING = 0.2
_CLOSED = ("done", "cancelled")
# As in every plan that donewhen has written. Other forms are parsed.
_STATUS = re.compile(rb"^status:[ \t]*([a-z_]+)[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True)
class OpenJobs:
    """What an agent may be working on, and what of the record has gone back."""

    names: tuple[str, ...]
    """Jobs in progress, and those of which the ledger can't say it."""
    gone_back: tuple[GoneBack, ...] = ()
    problem: str = ""
    """Why the marks can't be used; empty if they can."""


@dataclass(frozen=True)
class OwnJobs:
    """Jobs in progress: those of the one who asks, and those of others."""

    own: tuple[str, ...]
    others: Mapping[str, str]
    """Each with ``clone`` or ``session``: what somebody else's it is."""


@dataclass(frozen=True)
class _ChainEnd:
    """What the last lines of a chain say. ``status`` is None if they don't say it."""

    seq: int
    hash: str
    status: str | None


@dataclass(frozen=True)
class _Looked:
    """What a look at all chains has found."""

    names: tuple[str, ...]
    missing: Mapping[str, tuple[tuple[Mark, ...], int]]
    grown: Mapping[str, tuple[Mark, ...]]


def find_open_jobs(workspace: Workspace, *, guarded: bool = True) -> OpenJobs:
    """Look at all chains, and mark where they end."""
    project = workspace.project().id
    seen = watch(workspace)
    looked = _look(workspace, seen, project)
    if any(looked.missing.values()):
        # git may be writing the files just now.
        time.sleep(_SETTLING)
        seen = watch(workspace)
        looked = _look(workspace, seen, project)
    problem = seen.kept.problem or seen.kept.out_of_reach
    if not problem and (looked.grown or (guarded and not seen.kept.guarded)):
        problem = seen.heads.put(looked.grown, guarded=guarded)
    if problem:
        report_problem(problem)
    return OpenJobs(looked.names, seen.located(looked.missing), seen.kept.problem)


def own_jobs(workspace: Workspace, names: Sequence[str], session: str = "") -> OwnJobs:
    """Which of these jobs are one's own: all but those that another clone, or another agent that still runs, has
    started. ``session`` is the id of the agent's session, if it is known."""
    if not names:
        return OwnJobs((), {})
    from donewhen.jobs.record.workers import this_worker, whose, worker_on_record

    me = this_worker(workspace.root, session)
    others: dict[str, str] = {}
    for name in names:
        chain = workspace.ledger.read(name)
        # What a broken chain says is not known.
        if chain.whole and (other := whose(worker_on_record(chain.entries), me)):
            others[name] = other
    return OwnJobs(tuple(name for name in names if name not in others), others)


def _look(workspace: Workspace, seen: Watch, project: str) -> _Looked:
    names: list[str] = []
    missing: dict[str, tuple[tuple[Mark, ...], int]] = {}
    grown: dict[str, tuple[Mark, ...]] = {}
    chains = _chain_files(workspace.ledger.folder)
    # Who may approve is not known from a broken chain of the project, so no job's record counts then.
    trusted = workspace.ledger.read(project).whole
    for name in sorted({*chains, *seen.chains()}):
        marks = seen.marks(name)
        parent = is_parent(name, project)
        path = None if parent else chains.get(name)
        end = None if path is None else _read_end(path)
        status = "" if end is None else end.status
        if end is None or status is None or [*marks] != [Mark(seen.branch, end.seq, end.hash, status)]:
            chain = workspace.ledger.read_settled(name)
            status = str(history_of(name, chain.entries, Policy()).status)
            if chain.whole:
                lost = seen.missing(name, chain.entries)
                grown |= seen.grown(name, chain.entries, end_of(name, chain.entries, project, status))
            else:
                # Of an open job, the gates say that its record is broken, or of another version.
                hashes = {entry.hash for entry in chain.entries}
                closed = status in _CLOSED and not any(failure.other_version for failure in chain.breaks)
                lost = tuple(mark for mark in marks if mark.hash not in hashes) if closed else ()
                status = status if status in _CLOSED else "damaged"
            if lost:
                missing[name] = (lost, len(chain.entries))
        if (
            not parent
            and name in chains
            and (status in ("in_progress", "damaged") or not (trusted or status in _CLOSED))
        ):
            names.append(name)
    names += _claimed_in_plans(workspace, chains)
    return _Looked(tuple(names), missing, grown)


def _chain_files(folder: Path) -> dict[str, str | None]:
    """The chains with their files; None for those with a file for each entry. Raise LedgerError if one is no regular
    file."""
    found: dict[str, str | None] = {}
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            name = chain_of(entry)
            if name is None:
                continue
            if entry.name == name:
                found[name] = None
            elif not entry.is_file(follow_symlinks=False):
                raise irregular_chain(Path(entry.path))
            else:
                found.setdefault(name, entry.path)
    return found


def _read_end(path: str) -> _ChainEnd | None:
    """What the last lines of a chain say; None if it must be read as a whole."""
    descriptor = open_chain(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        window = os.pread(descriptor, _WINDOW, max(0, size - _WINDOW))
    finally:
        os.close(descriptor)
    if not window.endswith(b"\n"):
        return None
    lines = window.split(b"\n")[:-1]
    whole = size <= _WINDOW
    last = follower = None
    for position in range(len(lines) - 1, -1 if whole else 0, -1):
        entry = parse_entry(lines[position])
        if isinstance(entry, str) or (follower is not None and follower.prev != entry.hash):
            return None
        last, follower = last or entry, entry
        status = entry.content.writes.get("status")
        if status is not None:
            return _ChainEnd(last.seq, last.hash, str(status[1]))
    if last is None:
        return None
    if not whole or follower is None:
        return _ChainEnd(last.seq, last.hash, None)
    return _ChainEnd(last.seq, last.hash, str(adopted_fields(follower.content.adopted).get("status", "planned")))


def _claimed_in_plans(workspace: Workspace, chains: Container[str]) -> list[str]:
    """The jobs without a chain whose plans say that they are in progress."""
    names = []
    for folder, name in workspace.names():
        identifier = id_in(name)
        if identifier in chains:
            continue
        path = folder / name / "plan.md"
        with suppress(OSError, DonewhenError):
            found = _STATUS.findall(read_regular(path, PLAN_FILE))
            if identifier is not None and len(found) == 1 and found[0] != b"in_progress":
                continue
            job = workspace.job_at(path)
            if job.id not in chains and job.status == "in_progress":
                names.append(job.id)
    return names
