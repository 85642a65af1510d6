"""Records a model's answers and replays them in tests: no server, no key, no waiting.

Questions that are not on the tape are sent to the model and recorded. Commit the tape, and no calls are needed::

    with Cassette("tests/tapes/release.jsonl", "openai:gpt-4o-mini") as model:
        verdict = Judge(mission, mission.guidance(), model).judge(ticket)

``DONEWHEN_CASSETTES=none`` forbids calls in a test run, ``all`` records everything again.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Literal, Self, cast, get_args

from donewhen.foundation.errors import ConfigError, UsageError
from donewhen.foundation.plain_text import one_line
from donewhen.foundation.secrets import redact_secrets
from donewhen.models.answer_store import question_key
from donewhen.models.registry import open_model
from donewhen.models.roles import (
    Case,
    Closable,
    Completion,
    Model,
    ModelError,
    Priced,
    ReflectionRequest,
    RolloutRequest,
    Studious,
    Terse,
)
from donewhen.testing._tape import (
    FORMAT,
    CassetteError,
    Header,
    RecordedCompletion,
    Role,
    Tape,
    TapeEntry,
    TapeWriter,
    read_tape,
    wrong_model_error,
)

__all__ = ["Cassette", "CassetteError", "Record"]

Record = Literal["none", "new", "all"]

_VARIABLE = "DONEWHEN_CASSETTES"
_RECORD = f"Record it with a model, without stored answers: Cassette(path, model), {_VARIABLE}=new"
_ROLE_NAMES: dict[Role, str] = {"rollout": "rollout", "decision": "decision pass", "ops": "ops pass"}
_WORDS = 100


class Cassette:
    """A model that replays the recorded answers of another one.

    ``record`` selects the questions that are sent to the model: ``none`` (replay only), ``new`` (those that are not on
    the tape) or ``all`` (each once). The default is ``DONEWHEN_CASSETTES`` from the environment, else ``new``; without
    a model it is ``none``. A model given as a string is opened on its first question.

    Each answer is written at once; :meth:`close` (also called at the end of a ``with`` block and by ``aclose``) sorts
    the tape.
    """

    def __init__(
        self, path: str | os.PathLike[str], model: Model | str | None = None, *, record: Record | None = None
    ) -> None:
        self.path = Path(path)
        self.record = _mode(model, record)
        self._model = model
        self._chosen = model if isinstance(model, str) else None
        self._studied: Sequence[Case] | None = None
        self._recorder: TapeWriter | None = None
        tape = read_tape(self.path, torn=self.record != "none")
        if tape.header is None and self.record == "none":
            raise CassetteError("The tape does not exist.", where=str(self.path), next_step=_RECORD)
        if self.record == "all":
            tape = Tape()
        self._header = tape.header
        self._entries = dict(tape.entries)
        self._check_model()

    @property
    def name(self) -> str:
        """The name of the recorded model."""
        return self._model_header.model

    @property
    def free(self) -> bool:
        return self._model_header.free

    @property
    def priced(self) -> bool:
        return self._model_header.priced

    @property
    def reads_reasons(self) -> bool:
        return self._model_header.reads_reasons

    def study(self, cases: Sequence[Case]) -> None:
        # Passed on with the first question to the model, if there is any.
        self._studied = cases

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self._answer("rollout", request, lambda model: model.roll(request))

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._answer("decision", request, lambda model: model.decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._answer("ops", request, lambda model: model.propose(request))

    def close(self) -> None:
        """Sort the tape. The cassette can still be used afterwards."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close(self._entries)

    async def aclose(self) -> None:
        """Close the tape and the model."""
        try:
            if isinstance(self._model, Closable):
                await self._model.aclose()
        finally:
            self.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _model_header(self) -> Header:
        """The header of the tape, or the model's own data if nothing is recorded yet."""
        if self._header is None:
            model = self._open_model()
            priced = not isinstance(model, Priced) or model.priced
            reasons = model.reads_reasons if isinstance(model, Terse) else True
            self._header = Header(FORMAT, model.name, model.free, priced, self._chosen, reasons)
        return self._header

    async def _answer(
        self,
        role: Role,
        request: RolloutRequest | ReflectionRequest,
        ask: Callable[[Model], Awaitable[Completion]],
    ) -> Completion:
        key = question_key(self.name, role, request)
        entry = self._entries.get(key)
        if entry is None:
            question = _question_text(request)
            if self.record == "none":
                raise self._missing_answer(role, question)
            entry = self._keep(await _entry(key, role, question, ask(self._open_model())))
        if entry.answer is None:
            raise ModelError(entry.error or "")
        return entry.answer.completion()

    def _keep(self, entry: TapeEntry) -> TapeEntry:
        """Keep an answer, and return the kept one: the first for its key."""
        if self._recorder is None:
            self._recorder = TapeWriter(self.path, self._model_header, anew=self.record == "all")
            if self.record != "all":
                self._entries = {**self._recorder.earlier, **self._entries}
        kept = self._entries.setdefault(entry.key, entry)
        # A new answer to a known question is not appended, which would give two answers; close() writes it.
        if kept is entry and entry.key not in self._recorder.earlier:
            self._recorder.append(entry)
        return kept

    def _open_model(self) -> Model:
        """Return the model, opened, after it has studied the cases."""
        if isinstance(self._model, str):
            self._model = open_model(self._model)
            self._check_model()
        if self._model is None:
            raise UsageError("No model to record.", next_step=_RECORD)
        if self._studied is not None and isinstance(self._model, Studious):
            self._model.study(self._studied)
        self._studied = None
        return self._model

    def _check_model(self) -> None:
        """Raise CassetteError if the tape belongs to another model, as far as known without opening it."""
        header, model = self._header, self._model
        if header is None or model is None:
            return
        if not isinstance(model, str) and model.name != header.model:
            raise wrong_model_error(self.path, model.name, header.model)
        if isinstance(model, str) and header.chosen not in (None, model):
            raise wrong_model_error(self.path, model, header.chosen or "")

    def _missing_answer(self, role: Role, question: str) -> CassetteError:
        same = any(entry.question == question for entry in self._entries.values())
        why = " It has an answer to the same text, so the rules or the prompt have changed." if same else ""
        return CassetteError(
            f"The tape has no answer to this {_ROLE_NAMES[role]}: {question}.{why}",
            where=str(self.path),
            next_step=_RECORD,
        )


def _mode(model: Model | str | None, record: Record | None) -> Record:
    if model is None:
        if record not in (None, "none"):
            raise UsageError("A tape can't be recorded without a model.", next_step=_RECORD)
        return "none"
    mode = record or os.environ.get(_VARIABLE) or "new"
    for known in get_args(Record):
        if mode == known:
            return cast("Record", known)
    where = _VARIABLE if record is None else "record"
    raise ConfigError(f"Unknown recording mode {mode!r}.", where=where, next_step="Use one of: none, new, all.")


async def _entry(key: str, role: Role, question: str, answer: Awaitable[Completion]) -> TapeEntry:
    try:
        return TapeEntry(key, role, question, RecordedCompletion.of(await answer))
    except ModelError as error:
        return TapeEntry(key, role, question, error=redact_secrets(str(error)))


def _question_text(request: RolloutRequest | ReflectionRequest) -> str:
    """Return the first words of the question and its sampling parameters."""
    if isinstance(request, RolloutRequest):
        words = " ".join(request.evidence.values())
        sampling = f"temperature {request.decode.temperature:g}, sample {request.decode.sample}"
    else:
        words = " ".join(case.ticket_key for case in request.cases)
        sampling = f"attempt {request.attempt}"
    return f"{one_line(redact_secrets(words), _WORDS)} ({sampling})"
