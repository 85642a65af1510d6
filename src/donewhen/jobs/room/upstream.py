"""Files that came from the agreed branch of the server since the agreement, by a merge, rebase or pull."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from donewhen.foundation.git import GitError, git
from donewhen.foundation.git_objects import ObjectReader, TreeFile
from donewhen.jobs.ledger.entry_content import AgreedTree, Upstream
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.agreed_tree import AgreedFiles, MissingCommitError, agreed_files
from donewhen.jobs.room.checkout_forms import CheckedOut
from donewhen.jobs.room.room_plan import RoomPlan

_MAX_COMMITS = 20_000


@dataclass(frozen=True)
class UpstreamFiles:
    """A later commit of the agreed branch that the work is based on now."""

    commit: str
    files: Mapping[str, TreeFile] = field(repr=False)
    provisional: bool
    """Whether the server could not be asked, so that only the clone says that the commit is there."""
    submodules: Mapping[str, str] = field(default_factory=dict, repr=False)


def upstream_of(top: Path) -> Upstream | None:
    """Where the current branch comes from; None without a remote."""
    branch = _text(git(top, "symbolic-ref", "--quiet", "--short", "HEAD"))
    remote = _text(git(top, "config", "--get", f"branch.{branch}.remote")) if branch else ""
    remote = remote if remote and remote != "." else "origin"
    url = _text(git(top, "config", "--get", f"remote.{remote}.url"))
    if not url:
        return None
    head = _text(git(top, "symbolic-ref", "--quiet", "--short", f"refs/remotes/{remote}/HEAD"))
    return Upstream(url, head.removeprefix(f"{remote}/") or branch or "main")


def upstream_files(
    workspace: Workspace,
    tree: AgreedTree,
    job: Job,
    agreed: AgreedFiles,
    plan: RoomPlan,
    in_checkout: Callable[[AgreedFiles], CheckedOut],
    *,
    fetch: bool,
) -> UpstreamFiles | None:
    """The commit of the agreed branch that explains changes which are not in the first run; None if there is none.

    ``in_checkout`` gives its files the form that they have on disk.
    """
    if tree.upstream is None or tree.commit is None:
        return None
    top = agreed.place.top
    head = _text(git(top, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"))
    commit = _shared_with_server(top, tree.upstream, head) if fetch else None
    provisional = commit is None
    if commit is None:
        commit = _text(git(top, "merge-base", f"refs/remotes/origin/{tree.upstream.branch}", head))
    if not commit or commit == tree.commit:
        return None
    try:
        with ObjectReader(top) as reader:
            if not _descends(reader, commit, tree.commit):
                return None
        with agreed_files(workspace, AgreedTree(commit=commit), job) as later:
            files = dict(later.files)
            form = in_checkout(later)
    except (GitError, MissingCommitError):
        return None
    kept = [*plan.outside, *plan.tests]
    explained = any(
        change.name in form.unmodified or _blob(form.agreed.files, change.name) == change.blob for change in kept
    )
    return UpstreamFiles(commit, files, provisional, later.submodules) if explained else None


def _shared_with_server(top: Path, upstream: Upstream, head: str) -> str | None:
    """The newest commit of HEAD that the server's branch has, too. The gate asks the server itself; None if it can't be
    reached, empty if there is no such commit."""
    # A new repository each time: settings in one that stays could lead to another server.
    with tempfile.TemporaryDirectory(prefix="donewhen-upstream-", ignore_cleanup_errors=True) as place:
        return _newest_shared(Path(os.path.realpath(place)), top, upstream, head)


def _newest_shared(folder: Path, top: Path, upstream: Upstream, head: str) -> str | None:
    objects = git(top, "rev-parse", "--path-format=absolute", "--git-path", "objects")
    # Made before git is started, which would otherwise take the project's repository for this one.
    (folder / ".git").mkdir(parents=True, exist_ok=True)
    made = ("--quiet", "--template=", f"--object-format={'sha256' if len(head) == 64 else 'sha1'}")
    if objects is None or git(folder, "init", *made) is None:
        return None
    alternates = folder / ".git" / "objects" / "info" / "alternates"
    alternates.parent.mkdir(parents=True, exist_ok=True)
    alternates.write_bytes(objects)
    url = upstream.url if "://" in upstream.url or upstream.url.startswith("/") else _absolute(top, upstream.url)
    if git(folder, "fetch", "--quiet", "--no-tags", url, f"+refs/heads/{upstream.branch}:refs/heads/tip") is None:
        return None
    return _text(git(folder, "merge-base", "refs/heads/tip", head))


def _absolute(top: Path, url: str) -> str:
    return str(top / url) if (top / url).exists() else url


def _descends(reader: ObjectReader, commit: str, ancestor: str) -> bool:
    waiting, seen = [commit], {commit}
    while waiting and len(seen) < _MAX_COMMITS:
        current = waiting.pop()
        if current == ancestor:
            return True
        for parent in reader.parents(current):
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    return False


def _blob(files: Mapping[str, TreeFile], name: str) -> str:
    file = files.get(name)
    return "" if file is None else file.blob


def _text(output: bytes | None) -> str:
    return "" if output is None else output.decode("utf-8", "replace").strip()
