"""The marks of a workspace beside its chains: which entries are missing, and which branches still have them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from donewhen.config.state_folder import FOLDER
from donewhen.foundation.git import git
from donewhen.foundation.git_head import WITHOUT_GIT, checked_out
from donewhen.foundation.plain_text import one_line
from donewhen.jobs.ledger.entries import Entry, has_entry
from donewhen.jobs.ledger.entry_files import entry_file_name
from donewhen.jobs.ledger.head_marks import HeadMarks, KeptMarks, Mark, after_growth, is_same_line
from donewhen.jobs.ledger.ledger import has_entry_files
from donewhen.jobs.plan.workspace import Workspace

ACCEPT = "donewhen audit --accept-heads"
_MAX_BRANCHES = 1000
_MAX_MERGES = 50
_BRANCHES = ("refs/heads", "refs/remotes", "refs/tags")


class End(NamedTuple):
    """The entry that counts as the end of a chain."""

    seq: int = 0
    hash: str = ""
    status: str = ""


class GoneBack(NamedTuple):
    """A chain that does not have the entry with which it ended before."""

    chain: str
    mark: Mark
    now: int
    """The number of the entry with which it ends now; 0 if there is no chain."""
    elsewhere: str
    """A branch that still has the entry; empty if no branch has it."""
    same_branch: bool

    @property
    def lost(self) -> bool:
        """Whether it is not only another branch that is checked out."""
        return self.same_branch or not self.elsewhere

    @property
    def holds(self) -> bool:
        """Whether an agent is held back for it. The record of another branch that is gone holds only for an open job:
        people delete branches."""
        return self.lost and (self.same_branch or self.mark.status in ("", "in_progress"))

    @property
    def message(self) -> str:
        """Where the record ended, and where it ends now."""
        now = "it is gone" if not self.now else f"it ends at entry {self.now}"
        if self.now and self.now >= self.mark.seq:
            now = "that entry is not in it"
        where = _named(self.mark.branch)
        return f"The record of {self.chain} ended at entry {self.mark.seq}{where and f' {where}'} before; now {now}."

    @property
    def next_step(self) -> str:
        """What brings it back, and what a person does who wanted this."""
        accept = f"If a person went back on purpose, they say so at a terminal: {ACCEPT}"
        if not self.lost:
            name = one_line(self.elsewhere.removeprefix("refs/heads/").removeprefix("refs/"), 100)
            return f"Switch to {name}, or merge it. {accept}"
        if self.mark.branch == WITHOUT_GIT:
            return f"Put the file back. {accept}"
        return f"Bring it back (git stash pop, git reflog, or a backup). {accept}"


def _named(branch: str) -> str:
    if branch.startswith("refs/heads/"):
        return f"on branch {one_line(branch.removeprefix('refs/heads/'), 100)}"
    return ""


@dataclass(frozen=True)
class Watch:
    """The marks of a workspace, as they were before its chains were read."""

    workspace: Workspace
    heads: HeadMarks
    kept: KeptMarks
    prefix: str

    @property
    def branch(self) -> str:
        return self.heads.place.branch

    def marks(self, chain: str) -> tuple[Mark, ...]:
        return self.kept.marks.get(self.prefix + chain, ())

    def chains(self) -> tuple[str, ...]:
        """The chains of this workspace that have marks."""
        names = (name.removeprefix(self.prefix) for name in self.kept.marks if name.startswith(self.prefix))
        return tuple(name for name in names if ":" not in name)

    def vanished(self) -> tuple[GoneBack, ...]:
        """The chains of all workspaces in this work tree that have marks and no file."""
        names = [name for name in self.kept.marks if not self.has_file(name)]
        return self.located({name: (self.kept.marks[name], 0) for name in names})

    def has_file(self, name: str) -> bool:
        """Whether anything of a chain is there, named as in the marks: ``folder:chain``, or its name alone."""
        file = self._file_of(name)
        return os.path.lexists(file) or os.path.lexists(str(file).removesuffix(".jsonl"))

    def _file_of(self, name: str) -> Path:
        folder, _, chain = name.rpartition(":")
        return self.heads.place.top / folder / FOLDER / "ledger" / f"{chain}.jsonl"

    def gone_back(self, chain: str, entries: Sequence[Entry]) -> tuple[GoneBack, ...]:
        """The marks whose entries a chain no longer has."""
        return self.located({chain: (self.missing(chain, entries), len(entries))})

    def missing(self, chain: str, entries: Sequence[Entry]) -> tuple[Mark, ...]:
        """The marks of a chain whose entries it does not have."""
        return tuple(mark for mark in self.marks(chain) if not _has(entries, mark))

    def located(self, missing: Mapping[str, tuple[tuple[Mark, ...], int]]) -> tuple[GoneBack, ...]:
        """Find out which branches have the missing entries of chains, each given with the end of its chain now."""
        pairs = [(chain, mark, now) for chain, (marks, now) in missing.items() for mark in marks]
        if not pairs:
            return ()
        settled = {(chain, mark) for chain, mark, _ in pairs if self._left_out_by_merge(chain, mark)}
        pairs = [pair for pair in pairs if pair[:2] not in settled]
        branches = self._branches([(chain, mark) for chain, mark, _ in pairs])
        return tuple(
            GoneBack(chain, mark, now, branches.get((chain, mark), ""), is_same_line(mark.branch, self.branch))
            for chain, mark, now in pairs
        )

    def grown(self, chain: str, entries: Sequence[Entry], end: End) -> dict[str, tuple[Mark, ...]]:
        """The marks of a chain after it was read, if they change."""
        known = self.marks(chain)
        if not end.seq:
            return {}
        past = [mark for mark in known if _has(entries, mark)]
        now = after_growth(known, Mark(self.branch, end.seq, end.hash, end.status), past)
        return {} if now == known else {self.prefix + chain: now}

    def _branches(self, pairs: Sequence[tuple[str, Mark]]) -> dict[tuple[str, Mark], str]:
        """The branches that have these entries at their tips."""
        if self.branch == WITHOUT_GIT:
            return {}
        found: dict[tuple[str, Mark], str] = {}
        named = [(chain, mark, mark.branch) for chain, mark in pairs if mark.branch.startswith("refs/")]
        self._search(named, found)
        left = [pair for pair in pairs if pair not in found]
        if left:
            listed = git(
                self.heads.place.top,
                *("for-each-ref", f"--count={_MAX_BRANCHES}", "--sort=-creatordate", "--format=%(refname)"),
                *_BRANCHES,
            )
            refs = (listed or b"").decode("utf-8", "surrogateescape").split("\n")
            for ref in filter(None, refs):
                self._search([(chain, mark, ref) for chain, mark in left if (chain, mark) not in found], found)
        return found

    def _left_out_by_merge(self, chain: str, mark: Mark) -> bool:
        """Whether a merge of this branch had the entry on one side and kept the chain of the other side, whole. Two
        continuations of a chain can't be merged in another way."""
        if self.branch == WITHOUT_GIT:
            return False
        top = self.heads.place.top
        for file in self._paths_in_git(chain, mark):
            wanted = ("log", "--merges", "--full-history", f"-n{_MAX_MERGES}", "--format=%H %P", "HEAD", "--", file)
            for line in (git(top, *wanted) or b"").decode("ascii", "replace").splitlines():
                kept, *sides = _blobs(top, [f"{commit}:{file}" for commit in line.split()])
                has = [f'"hash":"{mark.hash}"'.encode() in side for side in sides]
                if any(has) and any(side == kept and not its for side, its in zip(sides, has, strict=True)):
                    return True
        return False

    def _paths_in_git(self, chain: str, mark: Mark) -> tuple[str, ...]:
        """The files that may have an entry: that of its chain, and one of its own if it is no job's."""
        file = self._file_of(chain if ":" in chain else self.prefix + chain)
        own = file.with_name(file.name.removesuffix(".jsonl")) / entry_file_name(mark.seq, mark.hash)
        files = (file, own) if has_entry_files(file.name) else (file,)
        return tuple(path.relative_to(self.heads.place.top).as_posix() for path in files)

    def _search(self, wanted: Sequence[tuple[str, Mark, str]], found: dict[tuple[str, Mark], str]) -> None:
        searched = [
            (chain, mark, ref, f"{ref}:{file}")
            for chain, mark, ref in wanted
            for file in self._paths_in_git(chain, mark)
        ]
        contents = _blobs(self.heads.place.top, [name for *_, name in searched])
        for (chain, mark, ref, _), content in zip(searched, contents, strict=True):
            if f'"hash":"{mark.hash}"'.encode() in content:
                found[chain, mark] = ref


def _blobs(top: Path, names: Sequence[str]) -> list[bytes]:
    """The contents that git has under these names; empty for what it does not have."""
    if not names or any("\n" in name for name in names):
        return [b""] * len(names)
    output = git(top, "cat-file", "--batch", given=os.fsencode("\n".join(names) + "\n")) or b""
    found = [*_contents(output, len(names))]
    return found + [b""] * (len(names) - len(found))


def _contents(output: bytes, count: int) -> Iterable[bytes]:
    """The contents in the output of ``git cat-file --batch``; empty for what git does not have."""
    position = 0
    for _ in range(count):
        end = output.find(b"\n", position)
        if end < 0:
            return
        header = output[position:end].split(b" ")
        if len(header) == 3 and header[2].isdigit() and header[1] == b"blob":
            size = int(header[2])
            yield output[end + 1 : end + 1 + size]
            position = end + 1 + size + 1
        else:
            yield b""
            position = end + 1


def watch(workspace: Workspace) -> Watch:
    """Read the marks of a workspace. Chains must be read after this: whatever was marked by now is in them."""
    place = checked_out(workspace.root)
    heads = HeadMarks(place)
    relative = Path(os.path.realpath(workspace.root)).relative_to(place.top).as_posix()
    return Watch(workspace, heads, heads.read(), "" if relative == "." else f"{relative}:")


def _has(entries: Sequence[Entry], mark: Mark) -> bool:
    return has_entry(entries, mark.seq, mark.hash)
