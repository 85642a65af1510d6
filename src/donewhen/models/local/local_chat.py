"""A chat model on this machine: weights in a GGUF file, run in this process by llama.cpp.

One question at a time, each with all the cores there are: on a CPU more at once only share them. What two questions
have in common at their beginning is worked out once.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import threading
from collections import OrderedDict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from donewhen.foundation.errors import ConfigError, MissingExtraError
from donewhen.foundation.plain_text import one_line
from donewhen.models.chat import Ability, ChatAnswer, ChatRequest
from donewhen.models.logprobs import logprob_margin
from donewhen.models.roles import FinishReason, ModelError, Usage

if TYPE_CHECKING:
    from xllamacpp import Server

CONTEXT = 8192
CONTEXT_VARIABLE = "DONEWHEN_LOCAL_CONTEXT"
_MAGIC = b"GGUF"
_LIKELIEST = 40
"""So many tokens are looked at for the two options."""
_WEIGHED = 512
"""Answers that are remembered: the draws of a ticket at several temperatures are one and the same question here."""
_SILENT = -1
_PROMPTS = 256
"""Mebibytes for prompts that may come again."""
_SAMPLES, _SAMPLE = 64, 1 << 16


class LocalChat:
    """One file of weights. They are loaded for the first question, and stay until nobody holds this any more."""

    abilities: frozenset[Ability] = frozenset({"schema", "choice"})
    priced = True

    def __init__(self, path: Path, *, context: int | None = None, threads: int | None = None) -> None:
        try:
            import xllamacpp  # noqa: F401 - is it there?
        except ImportError:
            raise MissingExtraError("A model on this machine", "local") from None
        self.path = path
        self._fingerprint = fingerprint(path)
        self._context = context or _number_in(CONTEXT_VARIABLE) or CONTEXT
        self._threads = threads or _number_in("OMP_NUM_THREADS") or os.cpu_count() or 1
        self._server: Server | None = None
        self._turn = ThreadPoolExecutor(1, thread_name_prefix="donewhen-local")
        self._weighed: OrderedDict[bytes, ChatAnswer] = OrderedDict()

    @property
    def name(self) -> str:
        return f"local/1:{self.path.name}#{self._fingerprint}"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Answer when it is this question's turn. Given up, it ends at the next token."""
        asked = _name_of(request)
        # Nothing is drawn here: what is asked again gets the same answer.
        same = request.choice is not None or request.temperature <= 0.0
        known = self._weighed.get(asked) if same else None
        if known is not None:
            self._weighed.move_to_end(asked)
            return known._replace(usage=known.usage._replace(cached_tokens=known.usage.prompt_tokens))
        given_up = threading.Event()
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._turn, self._answered, request, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise
        if same:
            self._weighed[asked] = answer
            if len(self._weighed) > _WEIGHED:
                self._weighed.popitem(last=False)
        return answer

    async def aclose(self) -> None:
        """Nothing belongs to an event loop. The weights stay for the next question."""

    def _answered(self, request: ChatRequest, given_up: threading.Event) -> ChatAnswer:
        if given_up.is_set():
            raise ModelError("Nobody waits for this answer any more.")
        server = self._loaded()
        return _weighed(server, request) if request.choice is not None else _written(server, request, given_up)

    def _loaded(self) -> Server:
        if self._server is None:
            import xllamacpp

            settings = xllamacpp.CommonParams()
            settings.model.path = str(self.path)
            settings.n_ctx = self._context
            settings.n_parallel = 1
            settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = self._threads
            settings.warmup = False
            # Beside the prompt that it is at: it would take gigabytes.
            settings.cache_ram_mib = _PROMPTS
            settings.verbosity = _SILENT
            # It listens on loopback, whether or not anybody wants it to: nobody else on this machine may ask it.
            settings.api_keys = [secrets.token_hex(16)]
            settings.ui = settings.endpoint_slots = False
            try:
                self._server = xllamacpp.Server(settings)
            except (RuntimeError, ValueError, OSError) as error:
                raise ConfigError(
                    f"The weights can't be loaded: {one_line(str(error), 200)}.",
                    where=str(self.path),
                    next_step="Is it a whole GGUF file of a chat model, and is there enough memory for it?",
                ) from error
        return self._server


def fingerprint(path: Path) -> str:
    """What tells these weights from others: the size, and pieces from all over a file that may have gigabytes."""
    found = sha256()
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ConfigError("This is not a GGUF file.", where=str(path))
            size = file.seek(0, os.SEEK_END)
            found.update(str(size).encode())
            for number in range(_SAMPLES):
                file.seek(max(0, size - _SAMPLE) * number // (_SAMPLES - 1))
                found.update(file.read(_SAMPLE))
    except OSError as error:
        raise ConfigError(
            f"The weights can't be read: {error.strerror}.", where=str(path), next_step="donewhen models list"
        ) from error
    return found.hexdigest()[:12]


def _weighed(server: Server, request: ChatRequest) -> ChatAnswer:
    """How likely each of two words is to come next: the prompt is read, and nothing is written."""
    assert request.choice is not None  # noqa: S101 - whoever calls has looked
    found = _told(
        server.handle_chat_completions(
            {
                "messages": _messages(request, request.choice.after),
                "max_tokens": 1,
                "temperature": 0.0,
                "logprobs": True,
                "top_logprobs": _LIKELIEST,
                "cache_prompt": True,
            }
        )
    )
    try:
        choice = found["choices"][0]
        first = choice["logprobs"]["content"][0]
        top = [(str(one["token"]), float(one["logprob"])) for one in first["top_logprobs"]]
        text = f"{request.choice.after}{first['token']}"
    except (KeyError, IndexError, TypeError) as error:
        # The model had nothing to say after that.
        raise ModelError("The model ended its answer before the verdict.") from error
    return ChatAnswer(text, _usage(found), "stop", logprob_margin(top, request.choice.options))


def _written(server: Server, request: ChatRequest, given_up: threading.Event) -> ChatAnswer:
    """An answer token by token, so that it can be ended in between."""
    pieces: list[str] = []
    last: dict[str, Any] = {}
    problem: list[object] = []

    def piece(told: Any) -> bool:
        for one in told if isinstance(told, list) else [told]:
            if "error" in one:
                problem.append(one)
                return True
            last.update({name: value for name, value in one.items() if value})
            for choice in one.get("choices") or ():
                pieces.append((choice.get("delta") or {}).get("content") or "")
                if choice.get("finish_reason"):
                    last["finish_reason"] = choice["finish_reason"]
        return given_up.is_set()

    asked: dict[str, Any] = {
        "messages": _messages(request, request.begun),
        "max_tokens": request.max_tokens,
        "temperature": request.temperature,
        "seed": request.sample,
        "cache_prompt": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.schema is not None:
        form = {"name": "answer", "schema": dict(request.schema)}
        asked["response_format"] = {"type": "json_schema", "json_schema": form}
    server.handle_chat_completions(asked, piece)
    if problem:
        _told(problem[0])
    if given_up.is_set():
        raise ModelError("Nobody waits for this answer any more.")
    reason: FinishReason = "length" if last.get("finish_reason") == "length" else "stop"
    # What was begun comes back with the answer.
    text = "".join(pieces).removeprefix(request.begun)
    return ChatAnswer(text, _usage(last), reason)


def _messages(request: ChatRequest, begun: str) -> list[dict[str, str]]:
    """The turns; what the answer begins with is a turn that is not over."""
    turns = [{"role": message.role, "content": message.content} for message in request.messages]
    return [*turns, {"role": "assistant", "content": begun}] if begun else turns


def _told(found: Any) -> Mapping[str, Any]:
    """An answer, unless it is an error."""
    error = found.get("error") if isinstance(found, Mapping) else {"message": "something that is no answer"}
    if error is not None:
        told = one_line(str(error.get("message", error)), 200)
        more = f" {CONTEXT_VARIABLE} sets how much fits." if error.get("type") == "exceed_context_size_error" else ""
        raise ModelError(f"The model on this machine answered: {told}.{more}")
    assert isinstance(found, Mapping)  # noqa: S101 - anything else is the error above
    return found


def _usage(found: Mapping[str, Any]) -> Usage:
    used = found.get("usage") or {}
    details = used.get("prompt_tokens_details") or {}
    return Usage(
        int(used.get("prompt_tokens", 0)), int(used.get("completion_tokens", 0)), int(details.get("cached_tokens", 0))
    )


def _name_of(request: ChatRequest) -> bytes:
    return sha256(repr(request._replace(temperature=0.0, sample=0)).encode()).digest()


def _number_in(variable: str) -> int | None:
    """A positive number in the environment."""
    told = os.environ.get(variable, "").strip()
    if not told:
        return None
    if not told.isdecimal() or not int(told):
        raise ConfigError(f"{variable} is not a positive number: {told!r}.")
    return int(told)
