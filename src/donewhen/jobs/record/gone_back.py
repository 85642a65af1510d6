"""Whether a chain has gone back behind where it ended before, on this machine (see ``ledger/head_marks.py``).

What may take a record back, and what does not: docs/decisions/0053-a-record-does-not-go-back.md.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from donewhen.foundation.errors import DonewhenError, ExitCode
from donewhen.foundation.notices import notify
from donewhen.foundation.plain_text import join_limited
from donewhen.jobs.ledger.entries import Entry
from donewhen.jobs.plan.ids import is_parent
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.record.head_watch import ACCEPT, End, GoneBack, watch

_SETTLING = 0.2
"""Seconds after which a difference is looked at again: git may be writing the files just now."""
_MAX_LISTED = 3
_REPORTED: set[str] = set()


class GoneBackError(DonewhenError):
    """The record of a job ended later before, so nothing is promised from what is left of it."""

    code = "record_gone_back"
    exit_code = ExitCode.GATE_FAILED


def end_of(chain: str, entries: Sequence[Entry], project: str, status: str) -> End:
    """The entry that counts as the end of a chain. Of a project or workstream that is the last word of a person: what
    jobs record there differs between branches, and one side is dropped when they are merged."""
    if is_parent(chain, project):
        approved = next((entry for entry in reversed(entries) if entry.by.kind != "agent"), None)
        return End() if approved is None else End(approved.seq, approved.hash, "agreed")
    return End(entries[-1].seq, entries[-1].hash, status) if entries else End()


def keep_head(workspace: Workspace, chain: str, entries: Sequence[Entry], project: str) -> None:
    """Mark the end of a chain that was just written. That never fails; a mark that can't be kept is reported."""
    try:
        seen = watch(workspace.live)
        status = next((mark.status for mark in reversed(seen.marks(chain))), "")
        written = entries[-1].content.writes.get("status")
        end = end_of(chain, entries, project, status if written is None else str(written[1]))
        changed = seen.grown(chain, entries, end)
        problem = seen.kept.problem or seen.kept.out_of_reach or (seen.heads.put(changed) if changed else "")
    except OSError as error:
        problem = f"{error.filename or ''}: {error.strerror or error}"
    if problem:
        report_problem(problem)


def report_problem(problem: str) -> None:
    """Say that the marks can't be read or written, once in each process: a command may write many entries."""
    if problem in _REPORTED:
        return
    _REPORTED.add(problem)
    notify(
        f"Where the ledger ends can't be kept outside of the project, so a step back would go unnoticed: {problem}. "
        "Make that a file that you can write."
    )


def require_no_step_back(workspace: Workspace, chain: str, *, lost_only: bool = False) -> None:
    """Raise GoneBackError if the record of a job ended later before. ``lost_only``: not if another branch has it."""
    behind = None
    # What a snapshot has read may be older than the marks; and git may be writing the files just now.
    for source, settling in ((workspace, 0.0), (workspace.live, 0.0), (workspace.live, _SETTLING)):
        time.sleep(settling)
        read = source.ledger.read(chain)
        if not read.whole:
            return  # the gates say so
        seen = watch(workspace.live)
        if seen.kept.problem:
            raise GoneBackError(
                f"Where the ledger ended before can't be read: {seen.kept.problem}. No promise is given without that.",
                where=workspace.where(workspace.ledger.place_of(chain)),
                next_step=f"Have a person look at that file, and say at a terminal that the ledger is right: {ACCEPT}",
            )
        found = seen.gone_back(chain, read.entries)
        behind = next((gone for gone in found if gone.lost or not lost_only), None)
        if behind is None:
            return
    if behind is not None:
        raise GoneBackError(
            f"{behind.message} No promise is given from an older record.",
            where=workspace.where(workspace.ledger.place_of(chain)),
            next_step=behind.next_step,
        )


def chains_gone_back(workspace: Workspace, chains: Iterable[str] | None = None) -> tuple[GoneBack, ...]:
    """The marks of all chains, or of these, whose entries are gone."""
    seen = watch(workspace.live)
    missing = {}
    for chain in sorted(seen.chains() if chains is None else chains):
        read = workspace.ledger.read(chain)
        if seen.missing(chain, read.entries):
            read = workspace.live.ledger.read_settled(chain)
        entries = read.entries
        # Of a broken chain, the gates and the audit say so.
        if read.whole and (marks := seen.missing(chain, entries)):
            missing[chain] = (marks, len(entries))
    return seen.located(missing)


def lost_chains(workspace: Workspace, project: str) -> tuple[str, ...]:
    """The chains besides the project's own that have gone back, other than by another branch being checked out."""
    chains = [chain for chain in watch(workspace.live).chains() if chain != project]
    return tuple(dict.fromkeys(gone.chain for gone in chains_gone_back(workspace, chains) if gone.lost))


def summary(gone: Sequence[GoneBack]) -> str:
    """The first of them in full, and the others by their names."""
    others = tuple(dict.fromkeys(each.chain for each in gone[1:] if each.chain != gone[0].chain))
    more = f" So did {join_limited([*others], _MAX_LISTED)}." if others else ""
    return f"{gone[0].message}{more}"
