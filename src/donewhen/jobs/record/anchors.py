"""Heads of the ledger's chains, kept in a second place: a git note or a trailer of a commit message.

A chain proves nothing against its only writer, who can write it anew. Against a head that stands elsewhere it does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.git import git
from donewhen.jobs.ledger.ledger import Chain, Entry
from donewhen.jobs.plan.workspace import Workspace

TRAILER = "Donewhen-Head"
NOTES = "donewhen"
_LINE = re.compile(rf"{TRAILER}: (\S+) ([1-9][0-9]{{0,17}}) (sha256:[0-9a-f]{{64}})")


class Anchor(NamedTuple):
    """What a chain looked like when it was anchored: its entry number ``seq`` had this hash."""

    chain: str
    seq: int
    hash: str
    commit: str

    def holds(self, entries: Sequence[Entry]) -> bool:
        """Whether the chain still has that entry."""
        return 0 < self.seq <= len(entries) and entries[self.seq - 1].hash == self.hash


class AnchorError(DonewhenError):
    """The heads can't be put anywhere."""

    code = "anchor"


def anchor_lines(chains: Mapping[str, Chain]) -> tuple[str, ...]:
    """The heads as lines, which serve as trailers and as a note."""
    return tuple(
        f"{TRAILER}: {name} {chain.entries[-1].seq} {chain.entries[-1].hash}"
        for name, chain in sorted(chains.items())
        if chain.entries
    )


def write_note(workspace: Workspace, chains: Mapping[str, Chain]) -> str:
    """Put the heads into a note on the current commit, whose hash is returned."""
    heads = anchor_lines(chains)
    if not heads:
        raise AnchorError("There is no head to anchor: nothing has happened yet.", next_step="donewhen agree")
    commit = git(workspace.root, "rev-parse", "HEAD")
    if commit is None:
        raise AnchorError("There is no commit to put a note on.", next_step="Commit first, in a git repository.")
    known = {name: chain.entries for name, chain in chains.items()}
    lost = [anchor for anchor in read_anchors(workspace) if not anchor.holds(known.get(anchor.chain, ()))]
    if lost:
        raise AnchorError(
            f"{lost[0].chain} is not what commit {lost[0].commit[:10]} anchored, and is not anchored in its place.",
            next_step="donewhen audit",
        )
    text = "\n".join(heads).encode() + b"\n"
    identity = ("-c", "user.name=donewhen", "-c", "user.email=donewhen@localhost")
    if git(workspace.root, *identity, "notes", f"--ref={NOTES}", "add", "-f", "-F", "-", "HEAD", given=text) is None:
        raise AnchorError("git did not take the note.", next_step="Try: git notes --ref=donewhen add")
    return commit.decode().strip()


def read_anchors(workspace: Workspace) -> tuple[Anchor, ...]:
    """Every head in the notes and trailers of the commits up to this one."""
    return tuple(_read(workspace))


def _read(workspace: Workspace) -> Iterator[Anchor]:
    form = f"--format=%x1e%H%n%(trailers:key={TRAILER})%N"
    answer = git(workspace.root, "log", f"--notes={NOTES}", form, "HEAD")
    for block in (answer or b"").decode("utf-8", "replace").split("\x1e")[1:]:
        commit, _, text = block.partition("\n")
        for found in _LINE.finditer(text):
            yield Anchor(found[1], int(found[2]), found[3], commit.strip())
