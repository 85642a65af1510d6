"""Answers under the question that they answer: no question that was answered is paid for twice.

SQLite, safe to delete. An answer is on record as soon as it is there, so that a process that is killed loses none.
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
_DELETE = "Delete the file, if it is broken; it only saves asking again."
NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
"""How the system says that nothing may be written somewhere."""
_NOT_ALLOWED_IN_SQLITE = frozenset({sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM})


class AnswerStoreError(DonewhenError):
    """The answers can't be kept."""

    code = "answers"


class AnswerStoreReadOnlyError(AnswerStoreError):
    """Nothing may be written where the answers are."""


class StoredAnswer(NamedTuple):
    """An answer, and the run that paid for it: how many calls it had made by then."""

    completion: Completion
    payer: str
    call: int


class AnswerStore:
    """The answers in one file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._connection = sqlite3.connect(path, timeout=10.0, isolation_level=None, check_same_thread=False)
            self._connection.execute("pragma journal_mode = wal")
            # A killed process loses nothing by this; a machine that loses power, at most the last answers.
            self._connection.execute("pragma synchronous = normal")
            self._connection.execute(_TABLE)
        except (sqlite3.Error, OSError) as error:
            if hasattr(self, "_connection"):
                self._connection.close()
            kind = AnswerStoreReadOnlyError if _is_unwritable(error) else AnswerStoreError
            raise kind(f"The answers of models can't be kept: {error}.", where=str(path), next_step=_DELETE) from error

    def get(self, question: str) -> StoredAnswer | None:
        """The answer to a question, if it was answered before."""
        find = "select payer, call, answer from answers where question = ?"
        try:
            row = self._connection.execute(find, (question,)).fetchone()
            return None if row is None else StoredAnswer(_decoded(row[2]), row[0], row[1])
        except (sqlite3.Error, ValueError, TypeError) as error:
            raise AnswerStoreError(
                f"A kept answer can't be read: {error}.", where=str(self._path), next_step=_DELETE
            ) from error

    def put(self, question: str, completion: Completion, payer: str, call: int = 0) -> Completion:
        """Keep an answer, and give back the one that is kept: the first that came, from whichever run."""
        try:
            self._connection.execute(
                "insert or ignore into answers values (?, ?, ?, ?)", (question, payer, call, _encoded(completion))
            )
        except sqlite3.Error as error:
            raise AnswerStoreError(f"An answer can't be kept: {error}.", where=str(self._path)) from error
        kept = self.get(question)
        return completion if kept is None else kept.completion

    def paid(self, payer: str, after: int) -> int:
        """How many answers a run has paid for after it had made so many calls."""
        find = "select count(*) from answers where payer = ? and call > ?"
        try:
            return int(self._connection.execute(find, (payer, after)).fetchone()[0])
        except sqlite3.Error as error:
            raise AnswerStoreError(
                f"The kept answers can't be read: {error}.", where=str(self._path), next_step=_DELETE
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
    # The low byte is the code, what is above it says more.
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _NOT_ALLOWED_IN_SQLITE


def question_key(model: str, role: str, request: RolloutRequest | ReflectionRequest) -> str:
    """The name of a question: the model, the role, and all that the model is shown."""
    drawn: list[object]
    if isinstance(request, RolloutRequest):
        drawn = [request.decode.temperature, request.decode.sample]
        if not request.reason:
            drawn.append("no reason")
    else:
        # A second attempt at the same cases is another question: the first answer is what it is about.
        drawn = [request.attempt, request.max_operations, request.schema]
    return digest_of([model, role, request.prompt.shared, request.prompt.own, drawn])


def _encoded(completion: Completion) -> str:
    return json.dumps(
        [completion.text, list(completion.usage), completion.finish_reason, completion.margin, completion.cost]
    )


def _decoded(text: str) -> Completion:
    answer, usage, reason, margin, cost = json.loads(text)
    return Completion(answer, Usage(*usage), reason, margin, cost)
