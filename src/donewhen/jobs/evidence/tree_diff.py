"""What has changed in a repository since a commit: compared by content, so that no filter of git's can hide a line."""

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

_MOST_FILES = 200
_MOST_LINES = 4000
_LARGEST = 1 << 20
_MISSION_FILES = frozenset(
    (
        *("mission.toml", "initial_guidance.json", "guidance.json", "guidance.history.jsonl", "hypotheses.json"),
        *("tickets.jsonl", "reviews.jsonl", "reviewed.jsonl"),
    )
)
_MISSION_FOLDERS = ("runs/", "snapshots/")


def commit_of(root: Path, name: str = "HEAD") -> str | None:
    """The commit of a name, or the one that a project stands on; None without git, or where there is none."""
    answer = git(root, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    return None if answer is None else answer.decode("ascii", "replace").strip()


def diff_since(workspace: Workspace, commit: str, *, without: Iterable[str] = ()) -> str | None:
    """The differences of all files from a commit that it has or git tracks now; None where the commit is gone.

    Without what donewhen writes, without what people and judges write about the work into the folders of
    missions, and without files of the project that are named.
    """
    top = worktree_root(workspace.root)
    before = None if top is None else _committed(top, commit)
    if top is None or before is None:
        return None
    names = {path.removeprefix(f"{top}/") for _, path in tracked_tree(workspace) if path.startswith(f"{top}/")}
    # Also what git was told to forget: its content is here, or it is gone.
    names |= {one for one in before if not _is_nobodys(workspace, top, one)}
    inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    missions = f"{inside}{PurePosixPath(workspace.settings().judge.missions)}"
    named = {f"{inside}{one}" for one in without}
    told: list[str] = []
    more: dict[str, str | None] = {}
    folders: dict[str, bool] = {}
    changed = 0
    for name in sorted(one for one in names if one not in named and not _is_of_a_mission(one, missions)):
        content = _content(top, name, folders)
        old = before.get(name)
        if _is_same(content, old):
            continue
        changed += 1
        if changed <= _MOST_FILES:
            told += _file_diff(name, None if old is None else git(old.top, "cat-file", "blob", old.name), content)
        else:
            more[name] = blob_name(content, None)
    if more:
        told.append(f"[… and {len(more)} more changed files, {digest_of(more)[7:19]}]")
    return "\n".join(told)


def _is_of_a_mission(name: str, missions: str) -> bool:
    """Whether a file is one of those in which a mission is kept; what else somebody puts beside them is work."""
    if not name.startswith(f"{missions}/"):
        return False
    _, _, inner = name.removeprefix(f"{missions}/").partition("/")
    return inner in _MISSION_FILES or inner.startswith(_MISSION_FOLDERS)


class _Blob(NamedTuple):
    """A file of a commit, and the repository that has it."""

    top: Path
    name: str


def _committed(top: Path, commit: str, above: str = "") -> dict[str, _Blob] | None:
    """The files of a commit, with those of its submodules; None where there is no such commit."""
    listed = git(top, "ls-tree", "-r", "-z", "--full-tree", commit)
    if listed is None:
        return None
    found: dict[str, _Blob] = {}
    for row in listed.split(b"\0"):
        if row:
            meta, _, name = row.partition(b"\t")
            _, kind, blob = meta.split()
            path = os.fsdecode(name)
            if kind == b"commit":
                found |= _committed(top / path, blob.decode(), f"{above}{path}/") or {}
            else:
                found[f"{above}{path}"] = _Blob(top, blob.decode())
    return found


def _is_nobodys(workspace: Workspace, top: Path, name: str) -> bool:
    """Whether donewhen writes a file, there or not."""
    path = top / name
    return path.is_relative_to(workspace.root) and is_generated(workspace, path)


def _content(top: Path, name: str, folders: dict[str, bool]) -> bytes | None:
    """What stands in a file; nothing of what is behind a folder that leads out. ``folders`` remembers which do."""
    path = top / name
    above = str(path.parent)
    if above not in folders:
        folders[above] = Path(os.path.realpath(above)).is_relative_to(os.path.realpath(top))
    try:
        if not folders[above]:
            return None
        if path.is_symlink():
            return os.fsencode(os.readlink(path))  # noqa: PTH115
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _is_same(content: bytes | None, old: _Blob | None) -> bool:
    if content is None or old is None:
        return content is None and old is None
    # The one thing that git itself may do to a text on its way out.
    return old.name in (blob_name(content, old.name), blob_name(content.replace(b"\r\n", b"\n"), old.name))


def blob_name(content: bytes | None, like: str | None) -> str | None:
    """The name that git would give a content, in the way in which ``like`` is one."""
    if content is None:
        return None
    made = hashlib.sha256() if like is not None and len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    made.update(b"blob %d\0" % len(content))
    made.update(content)
    return made.hexdigest()


def _file_diff(name: str, old: bytes | None, new: bytes | None) -> Iterator[str]:
    shown = one_line(name, 300)
    yield f"--- {shown if old is not None else '(new file)'}"
    yield f"+++ {shown if new is not None else '(removed)'}"
    if old is not None and new is not None and b"\r\n" not in old:
        new = new.replace(b"\r\n", b"\n")
    before, after = _lines(old), _lines(new)
    if before is None or after is None:
        # By its hash, so that another content is another difference.
        yield f"[not a text, or too large to show, {digest(new or b'')[7:19]}]"
        return
    yield from list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]


def _lines(content: bytes | None) -> list[str] | None:
    if content is None:
        return []
    if len(content) > _LARGEST or b"\0" in content:
        return None
    lines = content.decode("utf-8", "replace").split("\n")
    return lines if len(lines) <= _MOST_LINES else None
