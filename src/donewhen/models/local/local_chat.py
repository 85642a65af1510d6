"""A chat model on this machine: weights in a GGUF file, run in this process by llama.cpp.

One question at a time with all cores: on a CPU, parallel questions would only share them. A prefix shared by two
questions is computed once.
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
"""Number of top tokens searched for the two options."""
_CACHED_ANSWERS = 512
"""Size of the answer cache: all samples of a ticket, at any temperature, are the same question here."""
_SILENT = -1
_PROMPTS = 256
"""Mebibytes for the prompt cache."""
_SAMPLES, _SAMPLE = 64, 1 << 16


class LocalChat:
    """One file of weights, loaded on the first question and kept in memory until this object is released."""

    abilities: frozenset[Ability] = frozenset({"schema", "choice"})
    priced = True

    def __init__(self, path: Path, *, context: int | None = None, threads: int | None = None) -> None:
        try:
            import xllamacpp  # noqa: F401 - only checks that it is installed
        except ImportError:
            raise MissingExtraError("A local model", "local") from None
        self.path = path
        self._fingerprint = fingerprint(path)
        self._context = context or _number_in(CONTEXT_VARIABLE) or CONTEXT
        self._threads = threads or _number_in("OMP_NUM_THREADS") or os.cpu_count() or 1
        self._server: Server | None = None
        self._turn = ThreadPoolExecutor(1, thread_name_prefix="donewhen-local")
        self._answers: OrderedDict[bytes, ChatAnswer] = OrderedDict()

    @property
    def name(self) -> str:
        return f"local/1:{self.path.name}#{self._fingerprint}"

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Answer one question at a time. A cancelled question ends at the next token."""
        key = _cache_key(request)
        # Without sampling, the same question always gets the same answer.
        deterministic = request.choice is not None or request.temperature <= 0.0
        cached = self._answers.get(key) if deterministic else None
        if cached is not None:
            self._answers.move_to_end(key)
            return cached._replace(usage=cached.usage._replace(cached_tokens=cached.usage.prompt_tokens))
        given_up = threading.Event()
        try:
            answer = await asyncio.get_running_loop().run_in_executor(self._turn, self._answer, request, given_up)
        except asyncio.CancelledError:
            given_up.set()
            raise
        if deterministic:
            self._answers[key] = answer
            if len(self._answers) > _CACHED_ANSWERS:
                self._answers.popitem(last=False)
        return answer

    async def aclose(self) -> None:
        """Do nothing: the weights stay loaded and belong to no event loop."""

    def _answer(self, request: ChatRequest, given_up: threading.Event) -> ChatAnswer:
        if given_up.is_set():
            raise ModelError("The question was cancelled.")
        server = self._load()
        return _compare_options(server, request) if request.choice is not None else _generate(server, request, given_up)

    def _load(self) -> Server:
        if self._server is None:
            import xllamacpp

            settings = xllamacpp.CommonParams()
            settings.model.path = str(self.path)
            settings.n_ctx = self._context
            settings.n_parallel = 1
            settings.cpuparams.n_threads = settings.cpuparams_batch.n_threads = self._threads
            settings.warmup = False
            # In addition to the current prompt; the default would take gigabytes.
            settings.cache_ram_mib = _PROMPTS
            settings.verbosity = _SILENT
            # The server always listens on loopback; a random key keeps other processes out.
            settings.api_keys = [secrets.token_hex(16)]
            settings.ui = settings.endpoint_slots = False
            try:
                self._server = xllamacpp.Server(settings)
            except (RuntimeError, ValueError, OSError) as error:
                raise ConfigError(
                    f"The weights can't be loaded: {one_line(str(error), 200)}.",
                    where=str(self.path),
                    next_step="Check that it is a complete GGUF file of a chat model and that there is enough memory.",
                ) from error
        return self._server


def fingerprint(path: Path) -> str:
    """Return a fingerprint of the weights from the size and samples of the file, which may have gigabytes."""
    digest = sha256()
    try:
        with path.open("rb") as file:
            if file.read(len(_MAGIC)) != _MAGIC:
                raise ConfigError("This is not a GGUF file.", where=str(path))
            size = file.seek(0, os.SEEK_END)
            digest.update(str(size).encode())
            for number in range(_SAMPLES):
                file.seek(max(0, size - _SAMPLE) * number // (_SAMPLES - 1))
                digest.update(file.read(_SAMPLE))
    except OSError as error:
        raise ConfigError(
            f"The weights can't be read: {error.strerror}.", where=str(path), next_step="donewhen models list"
        ) from error
    return digest.hexdigest()[:12]


def _compare_options(server: Server, request: ChatRequest) -> ChatAnswer:
    """Return the margin between the two options; evaluates the prompt and generates no text."""
    assert request.choice is not None  # noqa: S101 - checked by the caller
    response = _checked_response(
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
        choice = response["choices"][0]
        first = choice["logprobs"]["content"][0]
        top = [(str(token["token"]), float(token["logprob"])) for token in first["top_logprobs"]]
        text = f"{request.choice.after}{first['token']}"
    except (KeyError, IndexError, TypeError) as error:
        # The model ended its answer there.
        raise ModelError("The model ended its answer before the verdict.") from error
    return ChatAnswer(text, _usage(response), "stop", logprob_margin(top, request.choice.options))


def _generate(server: Server, request: ChatRequest, given_up: threading.Event) -> ChatAnswer:
    """Generate an answer token by token, so that it can be cancelled in between."""
    pieces: list[str] = []
    last: dict[str, Any] = {}
    problem: list[object] = []

    def receive(data: Any) -> bool:
        for chunk in data if isinstance(data, list) else [data]:
            if "error" in chunk:
                problem.append(chunk)
                return True
            last.update({name: value for name, value in chunk.items() if value})
            for choice in chunk.get("choices") or ():
                pieces.append((choice.get("delta") or {}).get("content") or "")
                if choice.get("finish_reason"):
                    last["finish_reason"] = choice["finish_reason"]
        return given_up.is_set()

    body: dict[str, Any] = {
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
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    server.handle_chat_completions(body, receive)
    if problem:
        _checked_response(problem[0])
    if given_up.is_set():
        raise ModelError("The question was cancelled.")
    reason: FinishReason = "length" if last.get("finish_reason") == "length" else "stop"
    # The answer repeats the given beginning.
    text = "".join(pieces).removeprefix(request.begun)
    return ChatAnswer(text, _usage(last), reason)


def _messages(request: ChatRequest, begun: str) -> list[dict[str, str]]:
    """Return the messages; a given beginning becomes an unfinished assistant message."""
    messages = [{"role": message.role, "content": message.content} for message in request.messages]
    return [*messages, {"role": "assistant", "content": begun}] if begun else messages


def _checked_response(response: Any) -> Mapping[str, Any]:
    """Return the response; raise ModelError if it is an error."""
    error = response.get("error") if isinstance(response, Mapping) else {"message": "an invalid response"}
    if error is not None:
        reason = one_line(str(error.get("message", error)), 200).removesuffix(".")
        more = f" {CONTEXT_VARIABLE} sets the context size." if error.get("type") == "exceed_context_size_error" else ""
        raise ModelError(f"The local model returned an error: {reason}.{more}")
    assert isinstance(response, Mapping)  # noqa: S101 - anything else is the error above
    return response


def _usage(response: Mapping[str, Any]) -> Usage:
    used = response.get("usage") or {}
    details = used.get("prompt_tokens_details") or {}
    return Usage(
        int(used.get("prompt_tokens", 0)), int(used.get("completion_tokens", 0)), int(details.get("cached_tokens", 0))
    )


def _cache_key(request: ChatRequest) -> bytes:
    return sha256(repr(request._replace(temperature=0.0, sample=0)).encode()).digest()


def _number_in(variable: str) -> int | None:
    """Return the positive number in an environment variable, if it is set."""
    value = os.environ.get(variable, "").strip()
    if not value:
        return None
    if not value.isdecimal() or not int(value):
        raise ConfigError(f"{variable} must be a positive integer, not {value!r}.")
    return int(value)
