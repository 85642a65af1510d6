"""The rooms of a job while its checks run: read at one moment, laid out once, put back before each command."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from pathlib import Path

from donewhen.foundation.cancellation import raise_if_cancelled
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
from donewhen.jobs.room.reading import RoomReading, read_rooms
from donewhen.jobs.room.room_plan import Tree
from donewhen.jobs.room.rooms import Room, RoomError, room_folder


class PrepareFailedError(RoomError):
    """An agreed command that builds what the checks need has failed."""

    def __init__(self, argv: Sequence[str], run: ReportedRun) -> None:
        super().__init__(f"the prepare command `{shlex.join(argv)}` failed with exit status {run.result.exit_code}")
        self.run = run


@dataclass
class RoomSession:
    """The rooms of one job, open for running commands."""

    workspace: Workspace
    job: Job
    reading: RoomReading
    _stack: ExitStack = field(repr=False)
    _rooms: dict[str, Room] = field(default_factory=dict)

    def run_first(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        """Run a command on the agreed files with the work."""
        return self._run("first", self.reading.plan.agreed, argv, environment, timeout)

    def run_second(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        """Run a command on everything as the agent has it."""
        return self._run("second", self.reading.plan.whole, argv, environment, timeout)

    def run_agreed(self, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        """Run a command on the agreed files alone."""
        return self._run("agreed", self.reading.agreed.files, argv, environment, timeout)

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
        run = self._run_in(room, argv, environment, timeout)
        output = run.result.output.replace(str(room.folder), str(self.reading.agreed.place.top))
        return replace(run, result=replace(run.result, output=output))

    def _run_in(self, room: Room, argv: Sequence[str], environment: Mapping[str, str], timeout: float) -> ReportedRun:
        place = RoomPlace(self.workspace.root, self.reading.agreed.place.top, room.project, room.folder)
        return run_in_place(place, argv, environment, timeout)

    def _room(self, use: str, tree: Tree) -> Room:
        if use in self._rooms:
            return self._rooms[use]
        reading = self.reading
        place = reading.agreed.place
        folder = self._stack.enter_context(room_folder(place.top, use))
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
        self._build(room)
        return room

    def _build(self, room: Room) -> None:
        """Run the agreed commands that build what the checks need, and keep what they wrote at agreed paths."""
        commands = self.reading.basis.prepare
        if not commands:
            return
        room.prepare()
        settings = self.workspace.settings().jobs
        environment = command_environment(self.workspace)
        for argv in commands:
            run = self._run_in(room, argv, environment, settings.command_timeout)
            raise_if_cancelled()
            if not run.result.succeeded:
                raise PrepareFailedError(argv, run)
        self._keep_built(room)

    def _keep_built(self, room: Room) -> None:
        reading = self.reading
        place = reading.agreed.place
        present = reading.basis.present(place.inside)

        def kept(name: str) -> bool:
            return name not in room.tree and any(matches_pattern(name, pattern) for pattern in present)

        found = read_disk(room.folder, room.tree, (), like=reading.agreed.like, wanted=kept)
        built = {name: file for name, file in found.files.items() if kept(name)}
        store = StoredBlobs(Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="donewhen-built-"))))
        for content in DiskBlobs(str(room.folder)).contents([(name, file.blob) for name, file in built.items()]):
            store.put(content, reading.agreed.like)
        room.tree = {**room.tree, **built}
        room.blobs = SeveralBlobs(room.blobs, store)


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
