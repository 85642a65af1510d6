"""The state folders of the person who runs donewhen: outside of every project."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

HEADS = "heads"
"""The kind of the files that say where ledgers ended (``jobs/ledger/head_marks.py``)."""
_INSIDE = Path(".local") / "state"


def person_state_folders(environ: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """The folders that may hold the person's state, the one for new files first. They may not exist yet.

    The variables are the caller's, who may be an agent. So the home folder of the user's account counts as well,
    whatever they say: what is there can't be hidden by a variable.
    """
    found: list[Path] = []
    state, home, account = environ.get("XDG_STATE_HOME", ""), environ.get("HOME", ""), _home_of_account()
    if os.path.isabs(state):  # noqa: PTH117 - a hook must start fast
        found.append(Path(state) / "donewhen")
    found += [Path(folder) / _INSIDE / "donewhen" for folder in (home, account) if os.path.isabs(folder)]  # noqa: PTH117
    return tuple(dict.fromkeys(found))


def kept_for(kind: str, place: Path) -> tuple[Path, ...]:
    """The files of one kind about a work tree that may exist, in each of the folders."""
    import hashlib

    name = hashlib.sha256(os.fsencode(place)).hexdigest()[:24]
    return tuple(folder / kind / f"{name}.jsonl" for folder in person_state_folders())


def _home_of_account() -> str:
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:  # a container with a user id of its own
        return ""
