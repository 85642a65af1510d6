"""Ask a model once, and test with its answers from then on: without a server, a key, or a wait.

What is not on the tape yet is asked for and recorded; commit the tape, and nothing needs to be asked any more::

    with Cassette("tests/tapes/release.jsonl", "openai:gpt-4o-mini") as model:
        verdict = Judge(mission, mission.guidance(), model).judge(ticket)

``DONEWHEN_CASSETTES=none`` keeps a test run from asking anything, ``all`` has everything asked again.
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
    of_another_model,
    read_tape,
)

__all__ = ["Cassette", "CassetteError", "Record"]

Record = Literal["none", "new", "all"]

_VARIABLE = "DONEWHEN_CASSETTES"
_RECORD = f"Record it, with the model and where no answers are kept yet: Cassette(path, model), {_VARIABLE}=new"
_CALLED: dict[Role, str] = {"rollout": "rollout", "decision": "decision pass", "ops": "ops pass"}
_WORDS = 100


class Cassette:
    """A model that says what another one has said.

    ``record`` says what that one is asked: ``none``, only what is on the tape is answered; ``new``, what is not on it;
    ``all``, everything, once. Without it the environment's ``DONEWHEN_CASSETTES`` counts, else it is ``new``; without
    a model it is ``none``. A model that is named by a string is opened when it is first asked.

    Everything is on the tape as soon as it is answered; :meth:`close` puts it in order, and so does the end of a
    ``with`` block or of whoever lets go of the model.
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
            raise CassetteError("There is no tape.", where=str(self.path), next_step=_RECORD)
        if self.record == "all":
            tape = Tape()
        self._header = tape.header
        self._entries = dict(tape.entries)
        self._check()

    @property
    def name(self) -> str:
        """That of the model behind it: a replay stands for that model."""
        return self._about.model

    @property
    def free(self) -> bool:
        return self._about.free

    @property
    def priced(self) -> bool:
        return self._about.priced

    @property
    def reads_reasons(self) -> bool:
        return self._about.reads_reasons

    def study(self, cases: Sequence[Case]) -> None:
        # Handed on when the model is asked, which may be never.
        self._studied = cases

    async def roll(self, request: RolloutRequest) -> Completion:
        return await self._answered("rollout", request, lambda model: model.roll(request))

    async def decide(self, request: ReflectionRequest) -> Completion:
        return await self._answered("decision", request, lambda model: model.decide(request))

    async def propose(self, request: ReflectionRequest) -> Completion:
        return await self._answered("ops", request, lambda model: model.propose(request))

    def close(self) -> None:
        """Put the tape in order. It may be asked again."""
        recorder, self._recorder = self._recorder, None
        if recorder is not None:
            recorder.close(self._entries)

    async def aclose(self) -> None:
        """The same, and let go of what the model holds."""
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
    def _about(self) -> Header:
        """What the tape says of its model or, where nothing is recorded yet, what the model says of itself."""
        if self._header is None:
            model = self._behind()
            priced = not isinstance(model, Priced) or model.priced
            reasons = model.reads_reasons if isinstance(model, Terse) else True
            self._header = Header(FORMAT, model.name, model.free, priced, self._chosen, reasons)
        return self._header

    async def _answered(
        self,
        role: Role,
        request: RolloutRequest | ReflectionRequest,
        ask: Callable[[Model], Awaitable[Completion]],
    ) -> Completion:
        key = question_key(self.name, role, request)
        found = self._entries.get(key)
        if found is None:
            question = _beginning(request)
            if self.record == "none":
                raise self._unanswered(role, question)
            found = self._recorded(await _entry(key, role, question, ask(self._behind())))
        if found.answer is None:
            raise ModelError(found.error or "")
        return found.answer.completion()

    def _recorded(self, entry: TapeEntry) -> TapeEntry:
        """Keep an answer, and give back the one that is kept: the first that came."""
        if self._recorder is None:
            self._recorder = TapeWriter(self.path, self._about, anew=self.record == "all")
            if self.record != "all":
                self._entries = {**self._recorder.earlier, **self._entries}
        kept = self._entries.setdefault(entry.key, entry)
        # What is asked again is not appended, because there would be two answers then: it comes with the order.
        if kept is entry and entry.key not in self._recorder.earlier:
            self._recorder.append(entry)
        return kept

    def _behind(self) -> Model:
        """The model, which has seen what it wanted to see."""
        if isinstance(self._model, str):
            self._model = open_model(self._model)
            self._check()
        if self._model is None:
            raise UsageError("There is no model to record.", next_step=_RECORD)
        if self._studied is not None and isinstance(self._model, Studious):
            self._model.study(self._studied)
        self._studied = None
        return self._model

    def _check(self) -> None:
        """The tape must be of this model, as far as that can be told without opening it."""
        header, model = self._header, self._model
        if header is None or model is None:
            return
        if not isinstance(model, str) and model.name != header.model:
            raise of_another_model(self.path, model.name, header.model)
        if isinstance(model, str) and header.chosen not in (None, model):
            raise of_another_model(self.path, model, header.chosen or "")

    def _unanswered(self, role: Role, question: str) -> CassetteError:
        same = any(entry.question == question for entry in self._entries.values())
        why = " It has one to the same words, so that the rules or the prompt have changed." if same else ""
        return CassetteError(
            f"The tape has no answer to this {_CALLED[role]}: {question}.{why}",
            where=str(self.path),
            next_step=_RECORD,
        )


def _mode(model: Model | str | None, record: Record | None) -> Record:
    if model is None:
        if record not in (None, "none"):
            raise UsageError("A tape can't be recorded without a model.", next_step=_RECORD)
        return "none"
    said = record or os.environ.get(_VARIABLE) or "new"
    for known in get_args(Record):
        if said == known:
            return cast("Record", known)
    where = _VARIABLE if record is None else "record"
    raise ConfigError(f"{said!r} is no way to record.", where=where, next_step="There are: none, new, all.")


async def _entry(key: str, role: Role, question: str, answer: Awaitable[Completion]) -> TapeEntry:
    try:
        return TapeEntry(key, role, question, RecordedCompletion.of(await answer))
    except ModelError as error:
        return TapeEntry(key, role, question, error=redact_secrets(str(error)))


def _beginning(request: RolloutRequest | ReflectionRequest) -> str:
    """The first words of what is asked, and which draw it is."""
    if isinstance(request, RolloutRequest):
        words = " ".join(request.evidence.values())
        draw = f"temperature {request.decode.temperature:g}, sample {request.decode.sample}"
    else:
        words = " ".join(case.ticket_key for case in request.cases)
        draw = f"attempt {request.attempt}"
    return f"{one_line(redact_secrets(words), _WORDS)} ({draw})"
