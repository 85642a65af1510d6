"""Count how often an agent was held back, across hook processes."""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

from donewhen.completion.stop_decision import GuardState
from donewhen.config.state_folder import FOLDER, prepare_state_folder
from donewhen.foundation.files import read_limited, write_atomically
from donewhen.foundation.locks import LockedError, locked
from donewhen.foundation.size_limits import STATE
from donewhen.protocols import CompletionReport

_PATIENCE = 20.0


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
        self._folder = root / FOLDER / "state" if local else self._elsewhere()
        self._name = f"attempts-{key}.json"
        self._session = key
        self.state = GuardState()

    @property
    def held(self) -> bool:
        """Whether this agent was held back and has not been let go since."""
        return any((folder / self._name).is_file() for folder in (self._folder, self._elsewhere()))

    @contextmanager
    def open(self, *, fresh: bool) -> Iterator[StopAttempts]:
        """Lock and load the state (a new one if ``fresh``), and save it at the end of the ``with`` block."""
        with ExitStack() as stack:
            try:
                stack.enter_context(self._locked())
            except (OSError, LockedError):
                # A lock that is held this long is treated as an error.
                self._folder = self._elsewhere()
                stack.enter_context(self._locked())
            self.state = GuardState() if fresh else self._load()
            yield self
            if self.state.refusals:
                write_atomically(self._folder / self._name, json.dumps(self.state._asdict()).encode())
            else:
                (self._folder / self._name).unlink(missing_ok=True)

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

    def _elsewhere(self) -> Path:
        import tempfile

        place = zlib.crc32(str(self._root).encode("utf-8", "surrogatepass"))
        return Path(tempfile.gettempdir()) / f"donewhen-{os.getuid()}" / f"{place:08x}"

    def record_unverified(self, report: CompletionReport) -> None:
        """Record a stop that was allowed without verification."""
        from datetime import UTC, datetime

        row = {
            "at": datetime.now(UTC).isoformat(timespec="seconds"),
            "session": self._session,
            "status": report.status,
            "attempts": report.attempts,
            "code": report.code,
            "feedback": report.feedback,
        }
        with (self._folder / "unverified.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def _load(self) -> GuardState:
        try:
            data = json.loads(read_limited(self._folder / self._name, STATE))
            return GuardState(int(data["attempts"]), int(data["refusals"]), int(data["stalled"]), data["last_reason"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
            # Missing or broken: counting restarts, which holds the agent back longer, never shorter.
            return GuardState()
