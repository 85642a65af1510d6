"""Store of model answers by question, so that no question is paid for twice.

SQLite, safe to delete. Each answer is saved at once, so that a killed process loses none.
"""

from __future__ import annotations

import errno
import json
import sqlite3
from pathlib import Path
from typing import NamedTuple, Self

from donewhen.foundation.canonical import digest_of
from donewhen.foundation.errors import DonewhenError
from donewhen.models.roles import Completion, ReflectionRequest, RolloutRequest, Usage

_TABLE = (
    "create table if not exists answers (question text primary key, payer text not null, call integer not null, "
    "answer text not null)"
)
_DELETE = "If the file is broken, delete it: it is only a cache of model answers."
NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""Error numbers for a location that is not writable."""
_NOT_ALLOWED_IN_SQLITE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})


class AnswerStoreError(DonewhenError):
    """The store can't be read or written."""

    code = "answers"


class AnswerStoreReadOnlyError(AnswerStoreError):
    """The store is not writable."""


class StoredAnswer(NamedTuple):
    """An answer, the run that paid for it, and the number of that call in the run."""

    completion: Completion
    payer: str
    call: int


class AnswerStore:
    """A store in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._connection.execute("pragma journal_mode = wal")
            # A killed process loses nothing; a power failure loses at most the last answers.
            self._connection.execute("pragma synchronous = normal")
            self._connection.execute(_TABLE)
        except (sqlite3.Error, OSError) as error:
            if hasattr(self, "_connection"):
                self._connection.close()
            kind = AnswerStoreReadOnlyError if _is_unwritable(error) else AnswerStoreError
            raise kind(
                f"The store of model answers can't be opened: {error}.", where=str(path), next_step=_DELETE
            ) from error

    def get(self, question: str) -> StoredAnswer | None:
        """Return the stored answer to a question, if there is one."""
        find = "select payer, call, answer from answers where question = ?"
        try:
            row = self._connection.execute(find, (question,)).fetchone()
            return None if row is None else StoredAnswer(_decoded(row[2]), row[0], row[1])
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise AnswerStoreError(
                f"A stored answer can't be read: {error}.", where=str(self._path), next_step=_DELETE
            ) from error

    def put(self, question: str, completion: Completion, payer: str, call: int = 0) -> Completion:
        """Store an answer, and return the stored one: the first that any run stored."""
        try:
            self._connection.execute(
                "insert or ignore into answers values (?, ?, ?, ?)", (question, payer, call, _encoded(completion))
            )
        except sqlite3.Error as error:
            raise AnswerStoreError(f"An answer can't be stored: {error}.", where=str(self._path)) from error
        stored = self.get(question)
        return completion if stored is None else stored.completion

    def paid(self, payer: str, after: int) -> int:
        """Return how many answers a run has paid for after call number ``after``."""
        find = "select count(*) from answers where payer = ? and call > ?"
        try:
            return int(self._connection.execute(find, (payer, after)).fetchone()[0])
        except sqlite3.Error as error:
            raise AnswerStoreError(
                f"The stored answers can't be read: {error}.", where=str(self._path), next_step=_DELETE
            ) from error

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_unwritable(error: sqlite3.Error | OSError) -> bool:
    if isinstance(error, OSError):
        return error.errno in NOT_ALLOWED
    # The low byte is the primary result code.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_ALLOWED_IN_SQLITE


def question_key(model: str, role: str, request: RolloutRequest | ReflectionRequest) -> str:
    """Return the key of a question: a digest of the model, the role and everything the model is shown."""
    drawn: list[object]
    if isinstance(request, RolloutRequest):
        drawn = [request.decode.temperature, request.decode.sample]
        if not request.reason:
            drawn.append("no reason")
    else:
        # A second attempt at the same cases is a different question.
        drawn = [request.attempt, request.max_operations, request.schema]
    return digest_of([model, role, request.prompt.shared, request.prompt.own, drawn])


def _encoded(completion: Completion) -> str:
    return json.dumps(
        [completion.text, list(completion.usage), completion.finish_reason, completion.margin, completion.cost]
    )


def _decoded(text: str) -> Completion:
    answer, usage, reason, margin, cost = json.loads(text)
    return Completion(answer, Usage(*usage), reason, margin, cost)
