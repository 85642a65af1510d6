"""How often an agent was held back, remembered from one hook process to the next."""

from __future__ import annotations

import fcntl
import json
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from donewhen.completion.decision import GuardState
from donewhen.foundation.files import write_atomically
from donewhen.protocols import CompletionReport

FOLDER = ".donewhen"
_IGNORED = "# Local to this machine.\nstate/\ncache/\nindex.sqlite*\n"


class Attempts:
    """The attempts of one agent session, in ``.donewhen/state/`` of the project."""

    def __init__(self, root: Path, runtime: str, session_id: str, kind: str) -> None:
        # Readable, safe as a file name, and still apart for ids that differ in what is not.
        told_apart = zlib.crc32(session_id.encode("utf-8", "surrogatepass"))
        key = f"{runtime}-{kind}-{re.sub(r'[^A-Za-z0-9]', '-', session_id)[:64]}-{told_apart:08x}"
        self._folder = root / FOLDER / "state"
        self._file = self._folder / f"attempts-{key}.json"
        self._session = key
        self.state = GuardState()

    @contextmanager
    def open(self, *, fresh: bool) -> Iterator[Attempts]:
        """Hold the lock and the state as it was left (a new one for a ``fresh`` start), and save what it becomes."""
        self._folder.mkdir(parents=True, exist_ok=True)
        ignore = self._folder.parent / ".gitignore"
        if not ignore.exists():
            write_atomically(ignore, _IGNORED.encode())
        descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self.state = GuardState() if fresh else self._load()
            yield self
            if self.state.refusals:
                write_atomically(self._file, json.dumps(self.state._asdict()).encode())
            else:
                self._file.unlink(missing_ok=True)
        finally:
            os.close(descriptor)

    def unverified(self, report: CompletionReport) -> None:
        """Leave a record of a stop that was let through without proof."""
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
            data = json.loads(self._file.read_bytes())
            return GuardState(int(data["attempts"]), int(data["refusals"]), int(data["stalled"]), data["last_reason"])
        except (OSError, ValueError, KeyError, TypeError):
            # Lost or broken: counting starts anew, which holds the agent longer, never shorter.
            return GuardState()
