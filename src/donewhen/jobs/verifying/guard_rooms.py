"""Rooms for the checks of a stop: the files that judge come from a base commit, the work from the checkout."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from donewhen.config.settings import GuardSettings, Settings
from donewhen.foundation.errors import DonewhenError
from donewhen.foundation.process import split_command
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.verifying.base_branch import base_of
from donewhen.jobs.verifying.checkout_state import with_working_files
from donewhen.jobs.verifying.checkouts import branch_files, work_files, write_claim_folder
from donewhen.jobs.verifying.judging_files import files_that_judge
from donewhen.jobs.verifying.rooms import make_room
from donewhen.jobs.verifying.work_outputs import WorkOutputs


@dataclass(frozen=True)
class GuardRooms:
    """Where to run the checks of a stop, and the settings of the base, which say what they are."""

    settings: Settings
    folders: tuple[tuple[str, Path], ...]
    """The project in each room, after a label; the checks must pass in all of them."""


@contextmanager
def guard_rooms(root: Path, ref: str, table: str) -> Iterator[GuardRooms]:
    """Lay out the files of the checkout with the judging files of ``ref``; if they differ from its own, also those."""
    live = Workspace(Path(os.path.realpath(root)), "small")
    base = with_working_files(base_of(live, ref))
    with tempfile.TemporaryDirectory(prefix="donewhen-stop-", ignore_cleanup_errors=True) as folder:
        place = Path(os.path.realpath(folder))
        for name in ("agreed", "strict", "own"):
            (place / name).mkdir()
        agreed = write_claim_folder(base._replace(work=base.files, head=base.commit), live, place / "agreed")
        settings = agreed.settings()
        guard: GuardSettings = getattr(settings, table)
        judges = files_that_judge(base, _commands_of(guard), settings.verify.from_base)
        files, changed = work_files(base, agreed, judges)
        strict = make_room(base, live, place / "strict", files, judges, WorkOutputs())
        folders = [(f"With the tests of {ref}: " if changed else "", strict.workspace.root)]
        if changed:
            own = make_room(base, live, place / "own", branch_files(base, agreed), judges, WorkOutputs())
            folders.append(("With the tests as they are here: ", own.workspace.root))
        yield GuardRooms(settings, tuple(folders))


def _commands_of(guard: GuardSettings) -> Iterator[tuple[str, ...]]:
    for text in (*guard.commands, *((guard.tests.run,) if guard.tests is not None else ())):
        # A command that can't be split is reported when it is run.
        with suppress(DonewhenError):
            yield split_command(text)
