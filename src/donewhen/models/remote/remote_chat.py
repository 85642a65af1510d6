"""What all chat models over the wire share: a key, a server, a pace, a price, and what that server does not know."""

from __future__ import annotations

import asyncio
import itertools
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from donewhen.foundation.errors import ConfigError
from donewhen.models.chat import Ability, ChatAnswer, ChatRequest
from donewhen.models.remote.pacing import Pace, Patience
from donewhen.models.remote.prices import price_of
from donewhen.models.remote.server_errors import UnsupportedOption
from donewhen.models.remote.streams import should_stream
from donewhen.models.roles import Usage

T = TypeVar("T")

_CALLS_A_CLIENT = 32


class _Client(Protocol):
    async def close(self) -> None: ...


class Pacing(Protocol):
    """Makes calls when it is their turn."""

    @property
    def patience(self) -> Patience: ...

    @property
    def in_flight(self) -> int:
        """Calls that are under way."""
        ...

    async def call(self, make: Callable[[], Awaitable[T]], *, timed: bool = True) -> T: ...


C = TypeVar("C", bound=_Client)


class RemoteChat(ABC, Generic[C]):
    """One model on one server. The key comes from the environment, and goes nowhere but to that server."""

    kind: ClassVar[str]
    key_variable: ClassVar[str]
    address_variable: ClassVar[str]
    schema_option: ClassVar[str]
    """The option that holds a model to a schema."""

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        # The client would take it from there by itself, and nobody would know whose answers they are.
        base_url = base_url or os.environ.get(self.address_variable) or None
        if "@" in urlsplit(base_url or "").netloc:
            # A model's name is written down with every run.
            raise ConfigError("The address of a model's server holds a name or a password.", next_step="Leave it out.")
        # Keys come from files that end in a line break; in a header it would be an error that shows the key.
        key = os.environ.get(self.key_variable, "").strip()
        if not key.isprintable() or " " in key:
            raise ConfigError(f"{self.key_variable} is not a key: there is white space in it.")
        if not key and base_url is None:
            raise ConfigError(
                f"{self.key_variable} is not set.", next_step=f"Set it, or name another server: {self.kind}:MODEL@URL"
            )
        self.pace: Pacing = Pace(patience)
        self._model = model
        self._key = key or "none"
        self._base_url = base_url
        self._server = base_url or self.kind
        self._price = price_of(model)
        self._left_out: set[str] = set()
        self._clients: list[C] = []
        self._turns = itertools.count()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}:{self._model}" + (f"@{self._base_url}" if self._base_url else "")

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset() if self.schema_option in self._left_out else frozenset({"schema"})

    @property
    def priced(self) -> bool:
        return self._price is not None

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Ask, as often as it takes; what the server does not know is left out from then on."""
        while True:
            # Said once for all tries: a stream is watched from piece to piece, and not by the pace.
            streamed = should_stream(request, self._left_out)
            try:
                return await self.pace.call(
                    lambda: self._asked(self._connected(), request, streamed),  # noqa: B023 - over before it changes
                    timed=not streamed,
                )
            except UnsupportedOption as refused:
                self._left_out.add(refused.option)

    async def aclose(self) -> None:
        """Let go of the connections."""
        clients, self._clients = self._clients, []
        if self._loop is asyncio.get_running_loop():
            for client in clients:
                await client.close()

    @abstractmethod
    def _new_client(self) -> C:
        """A client without retries of its own: the pace must hear what the server says."""

    @abstractmethod
    async def _asked(self, client: C, request: ChatRequest, streamed: bool) -> ChatAnswer:
        """One call. A streamed one raises TimeoutError where no piece comes any more."""

    def _known(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options without those that the server has refused."""
        return {name: value for name, value in options.items() if name not in self._left_out}

    def cost_of(self, usage: Usage) -> float:
        """What an answer costs by the price table; nothing, where the model is not in it."""
        return 0.0 if self._price is None else self._price.of(usage)

    def _connected(self) -> C:
        """A client of this event loop: connections can't be taken from one to another.

        They take turns, one for so many calls in flight: a client looks at each of its connections for each call.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._clients, self._loop = [], loop
        wanted = -(-self.pace.in_flight // _CALLS_A_CLIENT) or 1
        while len(self._clients) < wanted:
            self._clients.append(self._new_client())
        return self._clients[next(self._turns) % wanted]
