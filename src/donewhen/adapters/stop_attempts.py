"""Count how often an agent was held back, across hook processes."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from donewhen.adapters.stop_record import RECORD, StopRow, append_row, records_of_person
from donewhen.completion.stop_decision import GuardState
from donewhen.config.state_folder import FOLDER, prepare_state_folder
from donewhen.foundation.files import read_limited, write_atomically
from donewhen.foundation.locks import LockedError, locked
from donewhen.foundation.size_limits import STATE
from donewhen.protocols import CompletionReport

_PATIENCE = 20.0
_MAX_SESSIONS = 500
"""Number of sessions whose state is kept. The state of others is forgotten, which holds an agent back longer."""


class Verdict(NamedTuple):
    """What was decided about the work of a session, and about which state of it."""

    status: str
    """``verified``; ``exempt``, if the stop was not to be checked; or ``recorded``, if it is on record."""
    work: str | None
    """The fingerprint of the work; None if it is not known."""
    turn: str | None


class StopAttempts:
    """The attempts of one agent session, stored in ``.donewhen/state/`` of the project.

    If that folder can't be written, they are stored in a folder of the user in the temporary directory. Otherwise an
    agent could end the check by making the folder read-only. Outside projects (``local=False``), that folder is used
    from the start.
    """

    def __init__(self, root: Path, runtime: str, session_id: str, kind: str, *, local: bool = True) -> None:
        # Readable and safe as a file name; the hash distinguishes ids that differ only in other characters.
        session_hash = zlib.crc32(session_id.encode("utf-8", "surrogatepass"))
        key = f"{runtime}-{kind}-{re.sub(r'[^A-Za-z0-9]', '-', session_id)[:64]}-{session_hash:08x}"
        self._root = root
        self._folder = root / FOLDER / "state" if local else folder_elsewhere(root)
        self._name = f"attempts-{key}.json"
        self._session = key
        self.state = GuardState()
        self.turn: str | None = None
        """The message of the person that the attempts belong to, if the runtime says it."""
        self.work: str | None = None
        """The fingerprint of the work after the last check."""
        self.verdict: Verdict | None = None

    @property
    def name(self) -> str:
        """The name of the files about this session, without their end."""
        return self._name.removesuffix(".json")

    @property
    def held(self) -> bool:
        """Whether this agent was held back and has not been let go since."""
        for folder in (self._folder, folder_elsewhere(self._root)):
            self._load(folder)
            if self.state.refusals:
                return True
        return False

    @contextmanager
    def open(self, *, retried: bool, turn: str | None = None) -> Iterator[StopAttempts]:
        """Lock and load the state, and save it at the end of the ``with`` block.

        Counting restarts with another message of the person: with another ``turn``, or where the runtime doesn't say
        it, if the agent was not ``retried``.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked())
            except (OSError, LockedError):
                # A lock that is held this long is treated as an error.
                self._folder = folder_elsewhere(self._root)
                stack.enter_context(self._locked())
            self._load(self._folder)
            if not retried if turn is None else turn != self.turn:
                self.state = GuardState()
            self.turn = turn
            yield self
            self._save()

    def forget(self) -> None:
        """Forget the attempts of this session and what was decided."""
        self.state, self.verdict = GuardState(), None

    def _locked(self) -> AbstractContextManager[None]:
        above = self._folder.parent
        if above.name == FOLDER:
            prepare_state_folder(self._root)
        else:
            above.mkdir(parents=True, exist_ok=True, mode=0o700)
            if above.is_symlink() or above.lstat().st_uid != os.getuid():
                raise PermissionError(f"{above} belongs to another user")
        self._folder.mkdir(exist_ok=True, mode=0o700)
        if not os.access(self._folder, os.W_OK | os.X_OK):
            raise PermissionError(f"{self._folder} can't be written to")
        return locked(self._folder / "lock", wait=_PATIENCE)

    def record(self, report: CompletionReport, how: str = "stop", end: str | None = None) -> None:
        """Record how a stop or a session ended. A later record of the same ``end`` replaces the earlier one.

        What is not recorded in the project is recorded twice: temporary folders differ between processes.
        """
        row = StopRow(self._session, report.status, report.attempts, report.code, report.feedback, how, end)
        in_project = self._folder.parent.name == FOLDER
        append_row(row, self._folder / RECORD, *(() if in_project else records_of_person(self._root)))

    def record_without_state(self, report: CompletionReport, how: str = "stop") -> None:
        """Record an end where no state can be kept, not even elsewhere."""
        row = StopRow(self._session, report.status, report.attempts, report.code, report.feedback, how, None)
        append_row(row, *records_of_person(self._root))

    def _load(self, folder: Path) -> None:
        self.state, self.turn, self.work, self.verdict = GuardState(), None, None, None
        try:
            data = json.loads(read_limited(folder / self._name, STATE))
            self.state = GuardState(
                int(data["attempts"]),
                int(data["refusals"]),
                int(data["stalled"]),
                data["last_reason"],
                int(data.get("unchanged", 0)),
            )
            self.turn, self.work = _text(data.get("turn")), _text(data.get("work"))
            verdict = data.get("verdict")
            if verdict is not None:
                self.verdict = Verdict(str(verdict["status"]), _text(verdict["work"]), _text(verdict["turn"]))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
            # Missing or broken: counting restarts, which holds the agent back longer, never shorter.
            return

    def _save(self) -> None:
        path = self._folder / self._name
        if not self.state.refusals and self.verdict is None:
            path.unlink(missing_ok=True)
            return
        is_new = not path.exists()
        data = self.state._asdict() | {"turn": self.turn, "work": self.work}
        data["verdict"] = None if self.verdict is None else self.verdict._asdict()
        write_atomically(path, json.dumps(data).encode())
        if is_new:
            _forget_old_sessions(self._folder)


def folder_elsewhere(root: Path) -> Path:
    """The folder in which attempts are kept if the project's own can't be used."""
    import tempfile

    place = zlib.crc32(str(root).encode("utf-8", "surrogatepass"))
    return Path(tempfile.gettempdir()) / f"donewhen-{os.getuid()}" / f"{place:08x}"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _forget_old_sessions(folder: Path) -> None:
    """Keep the folder small: not every runtime reports the end of a session."""
    with suppress(OSError):
        files = sorted(folder.glob("attempts-*.json"), key=lambda path: path.stat().st_mtime_ns)
        for path in files[:-_MAX_SESSIONS]:
            path.unlink(missing_ok=True)
