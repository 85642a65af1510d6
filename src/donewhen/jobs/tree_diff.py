"""What has changed in a repository since a commit: compared by content, so that no filter of git's can hide a line."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from donewhen.foundation.text import one_line
from donewhen.jobs.git import git, toplevel
from donewhen.jobs.inputs import tracked_tree
from donewhen.jobs.workspace import Workspace

_MOST_FILES = 200
_MOST_LINES = 4000
_LARGEST = 1 << 20


def head_commit(root: Path) -> str | None:
    """The commit that a project stands on; None without git, or before the first commit."""
    answer = git(root, "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    return None if answer is None else answer.decode("ascii", "replace").strip()


def diff_since(workspace: Workspace, commit: str) -> str:
    """The differences of all tracked files from a commit, without what donewhen writes; nothing where it is gone."""
    top = toplevel(workspace.root)
    listed = None if top is None else git(top, "ls-tree", "-r", "-z", "--full-tree", commit)
    if top is None or listed is None:
        return ""
    rows = (row.partition(b"\t") for row in listed.split(b"\0") if row)
    before = {os.fsdecode(name): meta.split()[2].decode() for meta, _, name in rows}
    now = {name: path for name, path in tracked_tree(workspace) if path.startswith(f"{top}/")}
    inside = "" if top == workspace.root else f"{workspace.root.relative_to(top).as_posix()}/"
    told: list[str] = []
    changed = 0
    for name in sorted({*now, *(one for one in before if one in now or _is_gone(top, one, inside, workspace))}):
        content = _content(Path(now[name])) if name in now else None
        if _blob(content, before.get(name)) == before.get(name):
            continue
        changed += 1
        if changed <= _MOST_FILES:
            old = None if name not in before else git(top, "cat-file", "blob", before[name])
            told += _file_diff(name, old, content)
    if changed > _MOST_FILES:
        told.append(f"[… and {changed - _MOST_FILES} more changed files]")
    return "\n".join(told)


def _is_gone(top: Path, name: str, inside: str, workspace: Workspace) -> bool:
    """Whether a file of the commit was removed; what donewhen writes is nobody's work, there or not."""
    from donewhen.jobs.inputs import is_generated

    path = top / name
    return not os.path.lexists(path) and not (name.startswith(inside) and is_generated(workspace, path))


def _content(path: Path) -> bytes | None:
    try:
        if path.is_symlink():
            return os.fsencode(os.readlink(path))  # noqa: PTH115
        return path.read_bytes() if path.is_file() else None
    except OSError:
        return None


def _blob(content: bytes | None, like: str | None) -> str | None:
    """The name that git would give a content."""
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
    texts = [_lines(one) for one in (old, new)]
    before, after = texts
    if before is None or after is None:
        yield "[not a text, or too large to show]"
        return
    yield from list(difflib.unified_diff(before, after, lineterm="", n=3))[2:]


def _lines(content: bytes | None) -> list[str] | None:
    if content is None:
        return []
    if len(content) > _LARGEST or b"\0" in content:
        return None
    lines = content.decode("utf-8", "replace").split("\n")
    return lines if len(lines) <= _MOST_LINES else None
