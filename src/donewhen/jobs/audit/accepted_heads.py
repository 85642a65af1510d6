"""A person says that the ledger is right as it is, although it ended later before."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from donewhen.jobs.ledger.approval import Policy
from donewhen.jobs.ledger.head_marks import Mark
from donewhen.jobs.plan.workspace import Workspace, WorkspaceError, find_workspace
from donewhen.jobs.record.gone_back import chains_gone_back, end_of
from donewhen.jobs.record.head_watch import GoneBack, Watch, watch
from donewhen.jobs.record.history import history_of


@dataclass(frozen=True)
class HeadsGoneBack:
    """What of the record is behind where it ended before."""

    gone_back: tuple[GoneBack, ...]
    problem: str
    """Why the marks can't be used; empty if they can."""


def heads_gone_back(root: Path) -> HeadsGoneBack:
    """Compare all chains of a project with their marks; also of a folder in which there was a project."""
    workspace = _workspace_or_none(root)
    if workspace is not None:
        return HeadsGoneBack(chains_gone_back(workspace), watch(workspace).kept.problem)
    seen = watch(Workspace(root, "small"))
    return HeadsGoneBack(seen.vanished(), seen.kept.problem)


def accept_heads(root: Path) -> str:
    """Mark all chains as they end now, and forget how they ended; return why that is not possible, or an empty text."""
    workspace = _workspace_or_none(root)
    seen = watch(workspace or Workspace(root, "small"))
    if workspace is None:
        kept = {name: marks for name, marks in seen.kept.marks.items() if seen.has_file(name)}
        return seen.heads.replace(kept)
    own = {seen.prefix + chain for chain in seen.chains()}
    kept = {name: marks for name, marks in seen.kept.marks.items() if name not in own}
    return seen.heads.replace(kept | _marks_now(workspace, seen))


def _marks_now(workspace: Workspace, seen: Watch) -> dict[str, tuple[Mark, ...]]:
    project = workspace.project().id
    marks: dict[str, tuple[Mark, ...]] = {}
    for chain in workspace.ledger.chains():
        entries = workspace.ledger.read_settled(chain).entries
        end = end_of(chain, entries, project, str(history_of(chain, entries, Policy()).status))
        if end.seq:
            marks[seen.prefix + chain] = (Mark(seen.branch, end.seq, end.hash, end.status),)
    return marks


def _workspace_or_none(root: Path) -> Workspace | None:
    try:
        return find_workspace(root)
    except WorkspaceError:
        return None
