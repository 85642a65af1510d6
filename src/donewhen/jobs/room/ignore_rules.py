"""Which files git ignores according to the agreed `.gitignore` files: an agent can't hide work, or bring in more."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

from donewhen.foundation.git import git
from donewhen.jobs.room.agreed_tree import AgreedFiles
from donewhen.jobs.room.disk_tree import IgnoredNames
from donewhen.jobs.room.temporary_repository import temporary_repository

_RULES = ".gitignore"


@contextmanager
def agreed_ignore_rules(agreed: AgreedFiles) -> Iterator[IgnoredNames]:
    """A function that returns which of some names are ignored. Without git or agreed rules nothing is."""
    rules = {name: file for name, file in agreed.files.items() if name.rpartition("/")[2] == _RULES}
    if not agreed.place.has_git or not rules:
        yield lambda _: ()
        return
    with temporary_repository(rules, agreed.blobs, agreed.like) as place:

        def ignored(names: Sequence[str]) -> Collection[str]:
            given = b"".join(os.fsencode(name) + b"\0" for name in names)
            # Exit status 1 means that none is, which is an answer like any other.
            found = git(
                place,
                "-c",
                f"core.excludesFile={os.devnull}",
                "check-ignore",
                "--no-index",
                "--stdin",
                "-z",
                given=given,
            )
            return () if found is None else [os.fsdecode(name) for name in found.split(b"\0") if name]

        yield ignored
