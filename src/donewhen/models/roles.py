"""What a model is to the judge and to the learner: two roles, each a question and an answer.

A request carries the prompt, which chat models read, and what the prompt was made from, which rule-following ones use.
An answer is text. Whether it is any good is for the reader to say; a model that can't answer raises ``ModelError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from donewhen.foundation.errors import DonewhenError

Binary = Literal["pass", "fail"]
FinishReason = Literal["stop", "length", "refused"]


class ModelError(DonewhenError):
    """A model gave no answer: it is not there, it took too long, it broke."""

    code = "model"


class Usage(NamedTuple):
    """What an answer cost, as far as the model tells."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class Completion(NamedTuple):
    """A model's answer."""

    text: str
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    margin: float | None = None
    """How far the verdict was from the other one, where the model can tell: below zero, where luck drew the lesser."""
    cost: float = 0.0
    """In the currency of the price table."""


class Decode(NamedTuple):
    """How one answer is drawn. The same decode of the same prompt is the same question."""

    temperature: float = 0.1
    sample: int = 0


class Prompt(NamedTuple):
    """Text for a chat model. ``shared`` comes first and is the same for every ticket, so that it can be cached."""

    shared: str
    own: str


class AnswerForm(NamedTuple):
    """How the two lines of an answer are written."""

    verdict: str = "Verdict"
    reason: str = "Reason"
    pass_: str = "pass"  # noqa: S105
    fail: str = "fail"


class RolloutRequest(NamedTuple):
    """One judgement of one ticket. The label is not in it."""

    prompt: Prompt
    rules: Mapping[str, str]
    """The scaffold and the guidance by key, in the order in which they bind."""
    evidence: Mapping[str, str]
    """The ticket's texts by name."""
    decode: Decode
    language: str
    form: AnswerForm = AnswerForm()
    reason: bool = True
    """Whether somebody will read the reason. A model that writes it only for that may leave it out."""


class Case(NamedTuple):
    """A judged ticket with its label, as reflection sees it."""

    ticket_key: str
    label: Binary
    evidence: Mapping[str, str]
    verdict: Binary | None
    reason: str
    passes: int = 0
    fails: int = 0
    malformed: int = 0
    cluster: str = ""


class ReflectionRequest(NamedTuple):
    """A question about cases: which of them teach nothing, or what they teach."""

    prompt: Prompt
    rules: Mapping[str, str]
    cases: tuple[Case, ...]
    language: str
    schema: Mapping[str, Any]
    """The JSON Schema of the answer, for models that can be held to one."""
    max_operations: int = 0
    attempt: int = 0
    """0 at first; cases that the answer left out come again with 1, 2, …"""


class Roller(Protocol):
    """Judges one ticket once."""

    async def roll(self, request: RolloutRequest) -> Completion:
        """Two lines, verdict and reason, in the words of the mission's language."""
        ...


class Reflector(Protocol):
    """Looks at what was judged, with the labels."""

    async def decide(self, request: ReflectionRequest) -> Completion:
        """The decision pass: one JSON object that names the cases without evidence for their label."""
        ...

    async def propose(self, request: ReflectionRequest) -> Completion:
        """The ops pass: one JSON object with operations and hypotheses."""
        ...


class Model(Roller, Reflector, Protocol):
    """Both roles, under a name that says exactly which model it is."""

    @property
    def name(self) -> str:
        """The identity that answers are kept under: kind, version, weights, whatever changes what it says."""
        ...

    @property
    def free(self) -> bool:
        """Whether asking again costs nothing and gives the same answer, so that nothing need be kept."""
        ...


@runtime_checkable
class Priced(Protocol):
    """A model whose answers cost something, if it is known what."""

    @property
    def priced(self) -> bool: ...


@runtime_checkable
class Closable(Protocol):
    """A model that holds connections or memory, which it can let go of."""

    async def aclose(self) -> None: ...


@runtime_checkable
class Terse(Protocol):
    """A model that writes a reason for people alone: its reflection does not read any."""

    @property
    def reads_reasons(self) -> bool: ...


@runtime_checkable
class Studious(Protocol):
    """A reflector that wants to see all training cases of an epoch before it is asked about some of them."""

    def study(self, cases: Sequence[Case]) -> None:
        """What was judged in this epoch, with labels. Never a validation or a test ticket."""
        ...
