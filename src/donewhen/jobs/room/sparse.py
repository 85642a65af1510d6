"""Files that git leaves out of a sparse checkout. They are committed as they are, although they are not on disk."""

from __future__ import annotations

import os
from collections.abc import Collection

from donewhen.foundation.git import git
from donewhen.foundation.git_objects import TreeFile
from donewhen.jobs.room.agreed_tree import AgreedFiles

_LEFT_OUT = b"S"


def left_out_of_checkout(agreed: AgreedFiles, disk: Collection[str]) -> dict[str, TreeFile]:
    """The agreed files that are not on disk because git leaves them out.

    Only with the agreed content in git's index: whoever commits these files, commits what was agreed to, so that
    an agent can't remove a file by leaving it out.
    """
    missing = [name for name in agreed.files if name not in disk]
    if not missing or not agreed.place.has_git:
        return {}
    listed = git(agreed.place.top, "ls-files", "-t", "--stage", "-z") or b""
    index: dict[str, str] = {}
    for row in listed.split(b"\0"):
        about, _, name = row.partition(b"\t")
        words = about.split()
        if len(words) == 4 and words[0] == _LEFT_OUT:
            index[os.fsdecode(name)] = words[2].decode()
    committed = agreed.committed
    return {
        name: agreed.files[name] for name in missing if name in committed and index.get(name) == committed[name].blob
    }
