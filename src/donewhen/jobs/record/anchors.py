"""Anchors: heads of the ledger's chains, copied to a git note or a trailer of a commit message.

A chain alone can be rewritten by its writer without a trace. An anchored head makes that detectable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.git import git
from donewhen.jobs.ledger.entries import Chain, Entry, has_entry
from donewhen.jobs.plan.workspace import Workspace

TRAILER = "Donewhen-Head"
NOTES = "donewhen"
_LINE = re.compile(rf"{TRAILER}: (\S+) ([1-9][0-9]{{0,17}}) (sha256:[0-9a-f]{{64}})")


class Anchor(NamedTuple):
    """An anchored head: the chain's entry number ``seq`` had this hash."""

    chain: str
    seq: int
    hash: str
    commit: str

    def holds(self, entries: Sequence[Entry]) -> bool:
        """Whether the chain still has that entry."""
        return has_entry(entries, self.seq, self.hash)


class AnchorError(DonewhenError):
    """The heads can't be anchored."""

    code = "anchor"


def anchor_lines(chains: Mapping[str, Chain]) -> tuple[str, ...]:
    """The heads as lines, for trailers and for a note."""
    return tuple(
        f"{TRAILER}: {name} {entry.seq} {entry.hash}"
        for name, chain in sorted(chains.items())
        for entry in chain.entries
        if entry.hash in (chain.heads or (chain.head,))
    )


def write_note(workspace: Workspace, chains: Mapping[str, Chain]) -> str:
    """Write the heads into a git note on the current commit; return the commit's hash."""
    heads = anchor_lines(chains)
    if not heads:
        raise AnchorError("There is nothing to anchor: the ledger is empty.", next_step="donewhen agree")
    commit = git(workspace.root, "rev-parse", "HEAD")
    if commit is None:
        raise AnchorError("There is no commit to add a note to.", next_step="Commit first, in a git repository.")
    known = {name: chain.entries for name, chain in chains.items()}
    lost = [anchor for anchor in read_anchors(workspace) if not anchor.holds(known.get(anchor.chain, ()))]
    if lost:
        raise AnchorError(
            f"{lost[0].chain} does not match its anchor at commit {lost[0].commit[:10]}. Nothing was anchored.",
            next_step="donewhen audit",
        )
    text = "\n".join(heads).encode() + b"\n"
    identity = ("-c", "user.name=donewhen", "-c", "user.email=donewhen@localhost")
    if git(workspace.root, *identity, "notes", f"--ref={NOTES}", "add", "-f", "-F", "-", "HEAD", given=text) is None:
        raise AnchorError("git could not add the note.", next_step="Try: git notes --ref=donewhen add")
    return commit.decode().strip()


def read_anchors(workspace: Workspace) -> tuple[Anchor, ...]:
    """Every anchor in the notes and trailers of the commits up to HEAD."""
    return tuple(_anchors_in_log(workspace))


def _anchors_in_log(workspace: Workspace) -> Iterator[Anchor]:
    form = f"--format=%x1e%H%n%(trailers:key={TRAILER})%N"
    log = git(workspace.root, "log", f"--notes={NOTES}", form, "HEAD")
    for block in (log or b"").decode("utf-8", "replace").split("\x1e")[1:]:
        commit, _, text = block.partition("\n")
        for match in _LINE.finditer(text):
            yield Anchor(match[1], int(match[2]), match[3], commit.strip())
