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
from donewhen.isolation.confinement import ConfinementError
from donewhen.jobs.evidence.bytecode import (
    COMPILING_TIMEOUT,
    compiling_command,
    interpreter_of,
    put_compiled,
    read_compiled,
)
from donewhen.jobs.evidence.environment import EnvironmentNow, environment_now
from donewhen.jobs.evidence.hindrances import missing_program, timeout_text
from donewhen.jobs.evidence.placed_runs import RoomPlace, run_in_place
from donewhen.jobs.evidence.reach_failures import reach_notes
from donewhen.jobs.evidence.started_programs import checks_of, reach_of_checks
from donewhen.jobs.evidence.store import evidence_store
from donewhen.jobs.evidence.test_report import ReportedRun
from donewhen.jobs.ledger.entry_content import FoundSign
from donewhen.jobs.ledger.gate_results import GateCode
from donewhen.jobs.plan.job import Job
from donewhen.jobs.plan.snapshot import snapshot_of
from donewhen.jobs.plan.workspace import Workspace
from donewhen.jobs.room.basis import RoomBasis
from donewhen.jobs.room.blobs import DiskBlobs, SeveralBlobs, StoredBlobs
from donewhen.jobs.room.building import change_files, changed_files
from donewhen.jobs.room.confining import is_mounted
from donewhen.jobs.room.disk_tree import read_disk
from donewhen.jobs.room.names import matches_pattern
from donewhen.jobs.room.own_folders import RoomError, temporary_folder, writing_there
from donewhen.jobs.room.reach import Reach
from donewhen.jobs.room.reading import RoomReading, read_rooms
from donewhen.jobs.room.room_plan import Tree
from donewhen.jobs.room.rooms import Room, room_folder
from donewhen.jobs.room.surroundings import Surroundings, machine_name
from donewhen.jobs.room.work_signs import recorded_signs, sources_of_reading

_MAX_LISTED = 5
_NOT_FOUND = 127
"""The exit status of shells for a program that does not exist."""


class PrepareFailedError(RoomError):
    """An agreed command that builds what the checks need has failed."""

    def __init__(self, argv: Sequence[str], run: ReportedRun, why: str = "", hindrance: GateCode | None = None) -> None:
        why = why or f"failed with exit status {run.result.exit_code}"
        if run.result.ending == "timed_out":
            why = timeout_text(run.result)
        super().__init__(f"the prepare command `{shlex.join(argv)}` {why}")
        self.run = run
        self.hindrance = GateCode.MACHINE_OVERLOADED if run.result.strain else hindrance
        """What kept it from showing anything about the work."""


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

    _environment: EnvironmentNow | None = None
    _signs: list[FoundSign] | None = None
    _reach: Reach | None = field(default=None, repr=False)
    _compiled: Mapping[str, bytes] | None = field(default=None, repr=False)
    """Compiled modules that every command finds; None before they are read."""

    def environment(self, surroundings: Surroundings) -> EnvironmentNow | None:
        """What could be loaded here besides the files of the rooms; None if the agreement says nothing about it."""
        if self._environment is None and surroundings.private:
            self._environment = environment_now(self.workspace, self.reading, surroundings)
        return self._environment

    def signs(self) -> list[FoundSign]:
        """The changed lines of the work that a person should look at."""
        if self._signs is None:
            self._signs = recorded_signs(sources_of_reading(self.reading), self.workspace.settings().jobs.signs_allowed)
        return self._signs

    def run_first(self, argv: Sequence[str], surroundings: Surroundings, timeout: float) -> ReportedRun:
        """Run a command on the agreed files with the work."""
        return self._run("first", self.reading.plan.agreed, argv, surroundings, timeout)

    def run_second(self, argv: Sequence[str], surroundings: Surroundings, timeout: float) -> ReportedRun:
        """Run a command on everything as the agent has it."""
        return self._run("second", self.reading.plan.whole, argv, surroundings, timeout)

    def run_agreed(self, argv: Sequence[str], surroundings: Surroundings, timeout: float) -> ReportedRun:
        """Run a command on the agreed files alone."""
        return self._run("agreed", self.reading.agreed_tree, argv, surroundings, timeout)

    def compile_installed(self, argv: Sequence[str], sources: Sequence[str], surroundings: Surroundings) -> str | None:
        """Compile installed modules with the interpreter of a command, and store them; None if that is not possible."""
        program = interpreter_of(argv, self.workspace.root, surroundings.variables)
        if program is None or not sources:
            return None
        names: list[str | None] = []
        store = evidence_store(self.workspace)
        around = replace(surroundings, on_bytecode=lambda cache: names.append(put_compiled(store, cache, sources)))
        self.run_agreed(compiling_command(program, sources), around, COMPILING_TIMEOUT)
        return names[0] if names else None

    def _with_compiled(self, surroundings: Surroundings) -> Surroundings:
        if not surroundings.private:
            return surroundings
        if self._compiled is None:
            basis, store = self.reading.basis, evidence_store(self.workspace)
            here = basis.environment is not None and basis.environment.machine == machine_name()
            found = [read_compiled(store, name) for name in basis.compiled] if here else []
            self._compiled = {name: content for modules in found for name, content in modules.items()}
        return replace(surroundings, bytecode=self._compiled)

    def run_merged(
        self, argv: Sequence[str], surroundings: Surroundings, timeout: float, changed: Mapping[str, bytes | None]
    ) -> ReportedRun:
        """Run a command on what would be merged, while some files have another content or are missing."""
        plan = self.reading.plan
        use, tree = ("second", plan.whole) if plan.two_runs else ("first", plan.agreed)
        room = self._room(use, tree, surroundings)
        room.prepare()
        change_files(room.folder, changed)
        return self._run_in(room, argv, surroundings, timeout)

    def _in_reach(self, surroundings: Surroundings) -> Reach:
        if self._reach is None:
            checks = checks_of(self.reading, self.workspace.root)
            self._reach = reach_of_checks(checks, surroundings) if surroundings.private else Reach()
        return self._reach

    def reach_notes(self, run: ReportedRun, surroundings: Surroundings) -> tuple[str, ...]:
        """What to say about a failed run: nothing, or what it did not find because that is out of reach."""
        around = replace(surroundings, reach=self._in_reach(surroundings))
        return reach_notes(run, around, self.reading.agreed.place.top)

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
        self, use: str, tree: Tree, argv: Sequence[str], surroundings: Surroundings, timeout: float
    ) -> ReportedRun:
        room = self._room(use, tree, surroundings)
        room.prepare()
        with room.watched():
            return self._run_in(room, argv, surroundings, timeout)

    def _room(self, use: str, tree: Tree, surroundings: Surroundings) -> Room:
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
            mounted=is_mounted(surroundings),
            commit=reading.commit if place.has_git else None,
            judging=reading.judges.judges,
            built=reading.judges.built,
            changed_names=[change.name for change in reading.plan.changes if change.name in tree],
        )
        self._rooms[use] = room
        try:
            self._build(room, surroundings)
        except PrepareFailedError as error:
            self._failed[use] = error
            raise
        return room

    def _build(self, room: Room, surroundings: Surroundings) -> None:
        """Run the agreed commands that build what the checks need, and keep what they wrote at agreed paths."""
        commands = self.reading.basis.prepare
        if not commands:
            return
        room.prepare()
        self._open_present(room)
        limit = self.workspace.settings().jobs.command_timeout
        for argv in commands:
            try:
                run = self._run_in(room, argv, surroundings, limit)
            except ConfinementError:
                # It says nothing about the command.
                raise
            except CommandNotRunnableError as error:
                missing = CommandResult(tuple(argv), "exited", _NOT_FOUND, error.message, 0.0)
                hindrance = missing_program(argv[0], self.workspace.root, surroundings.variables, known=False)
                raise PrepareFailedError(argv, ReportedRun(missing, None, None), "can't be run", hindrance) from error
            raise_if_cancelled()
            if not run.result.succeeded:
                raise PrepareFailedError(argv, run)
        self._keep_built(room)

    def _run_in(self, room: Room, argv: Sequence[str], surroundings: Surroundings, timeout: float) -> ReportedRun:
        place = RoomPlace(self.workspace.root, self.reading.agreed.place.top, room.project, room.folder)
        around = replace(
            self._with_compiled(surroundings),
            environments=tuple(room.environments),
            reach=self._in_reach(surroundings),
        )
        run = run_in_place(place, argv, around, timeout)
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
