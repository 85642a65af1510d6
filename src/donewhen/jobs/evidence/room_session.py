"""The rooms of a job while its checks run: read at one moment, laid out once, put back before each command."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace

from donewhen.foundation.cancellation import raise_if_cancelled
from donewhen.foundation.plain_text import join_limited, one_line
from donewhen.foundation.process import CommandNotRunnableError, CommandResult
from donewhen.jobs.evidence.conditions import command_environment
from donewhen.jobs.evidence.placed_runs import RoomPlace, run_in_place
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis
from donewhen.jobs.room.blobs import DiskBlobs, SeveralBlobs, StoredBlobs
from donewhen.jobs.room.building import changed_files
from donewhen.jobs.room.disk_tree import read_disk
from donewhen.jobs.room.names import matches_pattern
from donewhen.jobs.room.own_folders import RoomError, temporary_folder, writing_there
from donewhen.jobs.room.reading import RoomReading, read_rooms
from donewhen.jobs.room.room_plan import Tree
from donewhen.jobs.room.rooms import Room, room_folder

_MAX_LISTED = 5
_NOT_FOUND = 127
"""The exit status of shells for a program that does not exist."""


class PrepareFailedError(RoomError):
    """An agreed command that builds what the checks need has failed."""

    def __init__(self, argv: Sequence[str], run: ReportedRun, why: str = "") -> None:
        why = why or f"failed with exit status {run.result.exit_code}"
        if run.result.ending == "timed_out":
            why = "timed out"
        super().__init__(f"the prepare command `{shlex.join(argv)}` {why}")
        self.run = run


@dataclass
class RoomSession:
    """The rooms of one job, open for running commands."""

    workspace: Workspace
    job: Job
    reading: RoomReading
    _stack: ExitStack = field(repr=False)
    _rooms: dict[str, Room] = field(default_factory=dict)
    _failed: dict[str, PrepareFailedError] = field(default_factory=dict)
    """The rooms whose files could not be built: they are not built again for the next check."""

    def run_first(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        """Run a command on the agreed files with the work."""
        return self._run("first", self.reading.plan.agreed, argv, environment, timeout)

    def run_second(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        """Run a command on everything as the agent has it."""
        return self._run("second", self.reading.plan.whole, argv, environment, timeout)

    def run_agreed(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        """Run a command on the agreed files alone."""
        return self._run("agreed", self.reading.agreed_tree, argv, environment, timeout)

    @property
    def notes(self) -> tuple[str, ...]:
        """Why the rooms may lack something that was agreed."""
        room = self._rooms.get("first")
        built = room.tree if room is not None else {}
        missing = [name for name in self.reading.basis.tree.present if name not in built]
        if not missing:
            return self.reading.notes
        names = join_limited([one_line(name, 100) for name in missing], _MAX_LISTED)
        return (*self.reading.notes, f"agreed to be present, but missing here or changed since: {names}")

    def written(self) -> tuple[str, ...]:
        """The agreed files that the last commands have changed in the rooms."""
        names = {name: None for room in self._rooms.values() for name in room.changed()}
        return tuple(names)

    def is_still(self, names: Sequence[str] | None) -> bool:
        """Whether the disk still has the bytes that were read; with ``names``, only of these files and of the work."""
        files = self.reading.disk.files
        if names is not None:
            watched = {*names, *(change.name for change in self.reading.plan.work)}
            files = {name: file for name, file in files.items() if name in watched}
        return not changed_files(self.reading.agreed.place.top, files)

    def _run(
        self, use: str, tree: Tree, argv: Sequence[str], environment: Mapping[str, str], timeout: float
    ) -> ReportedRun:
        room = self._room(use, tree)
        room.prepare()
        return self._run_in(room, argv, environment, timeout)

    def _room(self, use: str, tree: Tree) -> Room:
        if use in self._failed:
            raise self._failed[use]
        if use in self._rooms:
            return self._rooms[use]
        reading = self.reading
        place = reading.agreed.place
        folder = self._stack.enter_context(room_folder(place.top, use, keep=len(tree) >= _KEPT_FROM))
        room = Room(
            folder,
            tree,
            reading.agreed,
            reading.blobs,
            reading.is_writable,
            environments=reading.disk.environments,
            commit=reading.commit if place.has_git else None,
        )
        self._rooms[use] = room
        try:
            self._build(room)
        except PrepareFailedError as error:
            self._failed[use] = error
            raise
        return room

    def _build(self, room: Room) -> None:
        """Run the agreed commands that build what the checks need, and keep what they wrote at agreed paths."""
        commands = self.reading.basis.prepare
        if not commands:
            return
        room.prepare()
        self._open_present(room)
        limit = self.workspace.settings().jobs.command_timeout
        environment = command_environment(self.workspace)
        for argv in commands:
            try:
                run = self._run_in(room, argv, environment, limit)
            except CommandNotRunnableError as error:
                missing = CommandResult(tuple(argv), "exited", _NOT_FOUND, error.message, 0.0)
                raise PrepareFailedError(argv, ReportedRun(missing, None, None), "can't be run") from error
            raise_if_cancelled()
            if not run.result.succeeded:
                raise PrepareFailedError(argv, run)
        self._keep_built(room)

    def _run_in(self, room: Room, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        place = RoomPlace(self.workspace.root, self.reading.agreed.place.top, room.project, room.folder)
        run = run_in_place(place, argv, environment, timeout)
        output = run.result.output.replace(str(room.folder), str(self.reading.agreed.place.top))
        return replace(run, result=replace(run.result, output=output))

    def _is_present(self, name: str) -> bool:
        reading = self.reading
        patterns = reading.basis.present(reading.agreed.place.inside)
        return name not in reading.agreed.files and any(matches_pattern(name, pattern) for pattern in patterns)

    def _open_present(self, room: Room) -> None:
        """Let commands write what they build over what is there, which has to look older than its sources."""
        for name in filter(self._is_present, room.tree):
            path = room.folder / name
            if not path.is_symlink():
                path.chmod(path.stat().st_mode | 0o200)
                os.utime(path, (0, 0))

    def _keep_built(self, room: Room) -> None:
        """Make what lies at agreed paths part of the room's files."""
        like = self.reading.agreed.like
        # Everything else is passed over, like what git ignores.
        found = read_disk(room.folder, {}, (), ignored=frozenset, like=like, wanted=self._is_present)
        store = StoredBlobs(self._stack.enter_context(temporary_folder("built")))
        names = [(name, file.blob) for name, file in found.files.items()]
        with writing_there(room.folder):
            for content in DiskBlobs(str(room.folder)).contents(names):
                store.put(content, like)
        others = {name: file for name, file in room.tree.items() if not self._is_present(name)}
        room.tree = {**others, **found.files}
        room.blobs = SeveralBlobs(room.blobs, store)


_KEPT_FROM = 500
"""The number of files from which it pays to keep a room for the next time."""
_OPEN: ContextVar[RoomSession | None] = ContextVar("donewhen_rooms", default=None)


@contextmanager
def room_session(workspace: Workspace, job: Job, *, basis: RoomBasis | None = None) -> Iterator[RoomSession | None]:
    """The rooms of a job; None if its checks run in the work tree. Inside another session of the same job, that one.

    ``basis`` is what the rooms are made of, if not the job's agreement.
    """
    current = _OPEN.get()
    same = current is not None and current.job.path == job.path and current.workspace.root == workspace.root
    if current is not None and same and basis is None:
        yield current
        return
    with ExitStack() as stack:
        reading = stack.enter_context(read_rooms(snapshot_of(workspace), job, basis=basis, fetch=True))
        if reading is None:
            yield None
            return
        session = RoomSession(workspace, job, reading, stack)
        token = _OPEN.set(session)
        try:
            yield session
        finally:
            _OPEN.reset(token)
