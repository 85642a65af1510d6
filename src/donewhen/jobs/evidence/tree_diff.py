"""Diff of a work tree since a commit, compared by content so that git filters can't hide a change."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from donewhen.foundation.canonical import digest, digest_of
from donewhen.foundation.git import git, worktree_root
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.contract.inputs import is_generated, tracked_tree
from donewhen.jobs.plan.workspace import Workspace

_MAX_FILES = 200
_MAX_LINES = 4000
_MAX_BYTES = 1 << 20
_MISSION_FILES = frozenset(
    (
        *("mission.toml", "initial_guidance.json", "guidance.json", "guidance.history.jsonl", "hypotheses.json"),
        *("tickets.jsonl", "reviews.jsonl", "reviewed.jsonl"),
    )
)
_MISSION_FOLDERS = ("runs/", "snapshots/")


def resolve_commit(root: Path, name: str = "HEAD") -> str | None:
    """Return the commit hash of a revision; None without git or if there is no such commit."""
    answer = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return None if answer is None else answer.decode("ascii", "replace").strip()


def diff_since(workspace: Workspace, commit: str, *, without: Iterable[str] = ()) -> str | None:
    """Return the diff of all files that the commit has or git tracks now; None if the commit doesn't exist.

    Leaves out files that donewhen writes, files in mission folders that hold guidance, labels and runs, and the
    project files named in ``without``.
    """
    top = worktree_root(workspace.root)
    before = None if top is None else _committed_blobs(top, commit)
    if top is None or before is None:
        return None
    names = {path.removeprefix(f"{top}/") for _, path in tracked_tree(workspace) if path.startswith(f"{top}/")}
    # Includes files that were removed from the index since: they may have changed or be deleted.
    names |= {name for name in before if not _is_generated_file(workspace, top, name)}
    inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    missions = f"{inside}{PurePosixPath(workspace.settings().judge.missions)}"
    excluded = {f"{inside}{path}" for path in without}
    lines: list[str] = []
    more: dict[str, str | None] = {}
    folders: dict[str, bool] = {}
    changed = 0
    for name in sorted(path for path in names if path not in excluded and not _is_mission_file(path, missions)):
        content = _content(top, name, folders)
        old = before.get(name)
        if _is_same(content, old):
            continue
        changed += 1
        if changed <= _MAX_FILES:
            lines += _file_diff(name, None if old is None else git(old.top, "cat-file", "blob", old.name), content)
        else:
            more[name] = git_blob_hash(content, None)
    if more:
        lines.append(f"[… and {len(more)} more changed files, {digest_of(more)[7:19]}]")
    return "\n".join(lines)


def _is_mission_file(name: str, missions: str) -> bool:
    """Whether a file belongs to a mission; other files in a mission's folder count as work."""
    if not name.startswith(f"{missions}/"):
        return False
    _, _, inner = name.removeprefix(f"{missions}/").partition("/")
    return inner in _MISSION_FILES or inner.startswith(_MISSION_FOLDERS)


class _Blob(NamedTuple):
    """A file of a commit, and the repository that contains it."""

    top: Path
    name: str


def _committed_blobs(top: Path, commit: str, prefix: str = "") -> dict[str, _Blob] | None:
    """Return the files of a commit and of its submodules; None if there is no such commit."""
    listed = git(top, "ls-tree", "-r", "-z", "--full-tree", commit)
    if listed is None:
        return None
    blobs: dict[str, _Blob] = {}
    for row in listed.split(b"\0"):
        if row:
            meta, _, name = row.partition(b"\t")
            _, kind, blob = meta.split()
            path = os.fsdecode(name)
            if kind == b"commit":
                blobs |= _committed_blobs(top / path, blob.decode(), f"{prefix}{path}/") or {}
            else:
                blobs[f"{prefix}{path}"] = _Blob(top, blob.decode())
    return blobs


def _is_generated_file(workspace: Workspace, top: Path, name: str) -> bool:
    """Whether donewhen generates this file, whether it exists or not."""
    path = top / name
    return path.is_relative_to(workspace.root) and is_generated(workspace, path)


def _content(top: Path, name: str, folders: dict[str, bool]) -> bytes | None:
    """Return a file's content; None if it is missing or its folder is outside of the tree. ``folders`` is a cache."""
    path = top / name
    parent = str(path.parent)
    if parent not in folders:
        folders[parent] = Path(os.path.realpath(parent)).is_relative_to(os.path.realpath(top))
    try:
        if not folders[parent]:
            return None
        if path.is_symlink():
            return os.fsencode(os.readlink(path))  # noqa: PTH115
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _is_same(content: bytes | None, old: _Blob | None) -> bool:
    if content is None or old is None:
        return content is None and old is None
    # git itself may convert line endings on checkout.
    return old.name in (git_blob_hash(content, old.name), git_blob_hash(content.replace(b"\r\n", b"\n"), old.name))


def git_blob_hash(content: bytes | None, like: str | None) -> str | None:
    """Return the hash that git gives a blob, with the same algorithm as the hash ``like``."""
    if content is None:
        return None
    hasher = hashlib.sha256() if like is not None and len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    hasher.update(b"blob %d\0" % len(content))
    hasher.update(content)
    return hasher.hexdigest()


def _file_diff(name: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    title = one_line(name, 300)
    yield f"--- {title if old is not None else '(new file)'}"
    yield f"+++ {title if new is not None else '(removed)'}"
    if old is not None and new is not None and b"\r\n" not in old:
        new = new.replace(b"\r\n", b"\n")
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        # With a hash, so that different contents give different diffs.
        yield f"[not a text, or too large to show, {digest(new or b'')[7:19]}]"
        return
    yield from list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]


def _lines(content: bytes | None) -> list[str] | None:
    if content is None:
        return []
    if len(content) > _MAX_BYTES or b"\0" in content:
        return None
    lines = content.decode("utf-8", "replace").split("\n")
    return lines if len(lines) <= _MAX_LINES else None
