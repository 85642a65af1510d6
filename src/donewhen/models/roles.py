"""The two roles of a model, for the judge and for the learner: requests, answers and protocols.

A request carries the prompt for chat models, and the data the prompt was made from for rule-based models. The answer is
text, which the caller validates; a model that can't answer raises ``ModelError``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from donewhen.foundation.binary import Binary
from donewhen.foundation.errors import DonewhenError

FinishReason = Literal["stop", "length", "refused"]


class ModelError(DonewhenError):
    """A model gave no answer: it is unavailable, it timed out or it failed."""

    code = "model"


class Usage(NamedTuple):
    """Tokens that an answer used, as reported by the model."""

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
    """Margin of the verdict over the other one, if known; negative if sampling picked the less likely one."""
    cost: float = 0.0
    """In the currency of the price table."""


class Decode(NamedTuple):
    """Sampling parameters. The same decode of the same prompt is the same question."""

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
    """Scaffold and guidance by key, in order of precedence."""
    evidence: Mapping[str, str]
    """The ticket's texts by name."""
    decode: Decode
    language: str
    form: AnswerForm = AnswerForm()
    reason: bool = True
    """Whether the reason will be read; if not, the model may leave it out."""


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
    """A question about cases: which have no evidence, or which rules they suggest."""

    prompt: Prompt
    rules: Mapping[str, str]
    cases: tuple[Case, ...]
    language: str
    schema: Mapping[str, Any]
    """JSON Schema of the answer, for models that support one."""
    max_operations: int = 0
    attempt: int = 0
    """0 for the first attempt; cases missing in the answer are asked again with 1, 2, …"""


class Roller(Protocol):
    """Judges one ticket once."""

    async def roll(self, request: RolloutRequest) -> Completion:
        """Return two lines, verdict and reason, in the mission's language."""
        ...


class Reflector(Protocol):
    """Reviews judged cases together with their labels."""

    async def decide(self, request: ReflectionRequest) -> Completion:
        """The decision pass: return a JSON object with the cases that lack evidence for their label."""
        ...

    async def propose(self, request: ReflectionRequest) -> Completion:
        """The ops pass: return a JSON object with operations and hypotheses."""
        ...


class Model(Roller, Reflector, Protocol):
    """Both roles, with a name that identifies the model."""

    @property
    def name(self) -> str:
        """Key for stored answers: kind, version, weights, and everything else that changes answers."""
        ...

    @property
    def free(self) -> bool:
        """Whether calls cost nothing and are deterministic, so that answers need not be stored."""
        ...


@runtime_checkable
class Priced(Protocol):
    """A model that says whether its price is known."""

    @property
    def priced(self) -> bool: ...


@runtime_checkable
class Indifferent(Protocol):
    """A model whose answers don't depend on all of the sampling parameters."""

    def same_as(self, decode: Decode) -> Decode:
        """Return the same decode for all decodes that get the same answer to the same ticket."""
        ...


def distinct_decode(model: object, decode: Decode) -> Decode:
    """Return what identifies a decode for a model: two decodes with the same result are the same question."""
    return model.same_as(decode) if isinstance(model, Indifferent) else decode


class UnreadRule(NamedTuple):
    """A rule that a model can't read, and therefore can't follow."""

    key: str
    fails_only: bool = False
    """Whether the rule can only lead to *fail*. False if that is not known."""

    @property
    def scaffold(self) -> bool:
        return self.key.startswith("S")

    def may_change(self, verdict: Binary) -> bool:
        """Whether the rule, if it were read, might change a verdict."""
        return verdict == "pass" or not self.fails_only


@runtime_checkable
class PartialReader(Protocol):
    """A model that can't read every sentence."""

    def unread_rules(self, rules: Mapping[str, str]) -> tuple[UnreadRule, ...]:
        """Return the rules that it can't read."""
        ...

    def rules_in_doubt(self, request: RolloutRequest, verdict: Binary) -> tuple[str, ...]:
        """Return the keys of the rules that it can't read and that might change its verdict on this ticket."""
        ...


def unread_rules(model: object, rules: Mapping[str, str]) -> tuple[UnreadRule, ...]:
    """Return the rules that a model can't read; chat models read any sentence."""
    return model.unread_rules(rules) if isinstance(model, PartialReader) else ()


def rules_in_doubt(model: object, request: RolloutRequest, verdict: Binary) -> tuple[str, ...]:
    """Return the keys of the rules that a model can't read and that might change its verdict on a ticket."""
    return model.rules_in_doubt(request, verdict) if isinstance(model, PartialReader) else ()


@runtime_checkable
class LineCounter(Protocol):
    """A model that reads across line breaks and counts lines, so that joining lines could only mislead it."""

    @property
    def counts_lines(self) -> bool: ...


def counts_lines(model: object) -> bool:
    """Whether a model counts lines; chat models read the text as one."""
    return isinstance(model, LineCounter) and model.counts_lines


@runtime_checkable
class PointCounter(Protocol):
    """A model whose margin is a sum of points, of which two double the odds."""

    @property
    def in_points(self) -> bool: ...


def scores_in_points(model: object) -> bool:
    """Whether the margins of a model are points; those of chat models are no measure that is the same for all."""
    return isinstance(model, PointCounter) and model.in_points


@runtime_checkable
class Closable(Protocol):
    """A model with connections or memory to release."""

    async def aclose(self) -> None: ...


@runtime_checkable
class Terse(Protocol):
    """A model that says whether its reflection reads reasons; otherwise they are only for people."""

    @property
    def reads_reasons(self) -> bool: ...


@runtime_checkable
class Studious(Protocol):
    """A reflector that studies all training cases of an epoch before reflection starts."""

    def study(self, cases: Sequence[Case]) -> None:
        """Receive the labelled training cases of this epoch. Never validation or test tickets."""
        ...
