"""Base class of clients for chat servers: key, address, pacing, price, and unsupported options."""

from __future__ import annotations

import asyncio
import itertools
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from typing import Any, ClassVar, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from donewhen.foundation.caller_variables import CALLER_VARIABLES
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
    """Makes calls when there is a slot."""

    @property
    def patience(self) -> Patience: ...

    @property
    def in_flight(self) -> int:
        """Calls in flight."""
        ...

    async def call(self, make: Callable[[], Awaitable[T]], *, timed: bool = True) -> T: ...


C = TypeVar("C", bound=_Client)


class RemoteChat(ABC, Generic[C]):
    """One model on one server. The key comes from the environment and is sent only to that server."""

    kind: ClassVar[str]
    key_variable: ClassVar[str]
    address_variable: ClassVar[str]
    schema_option: ClassVar[str]
    """The option that constrains answers to a schema."""

    def __init__(self, model: str, base_url: str | None = None, patience: Patience | None = None) -> None:
        # The SDK would read the variable itself, and then the model's name would lack the address.
        base_url = base_url or CALLER_VARIABLES.get(self.address_variable) or None
        if "@" in urlsplit(base_url or "").netloc:
            # The model's name, including the address, is recorded with every run.
            raise ConfigError(
                "The address of the model's server contains a user name or password.", next_step="Remove it."
            )
        # Key files often end in a line break, and an invalid header error would show the key.
        key = CALLER_VARIABLES.get(self.key_variable, "").strip()
        if not key.isprintable() or " " in key:
            raise ConfigError(f"{self.key_variable} is not a valid key: it contains white space.")
        if not key and base_url is None:
            raise ConfigError(
                f"{self.key_variable} is not set.", next_step=f"Set it, or use another server: {self.kind}:MODEL@URL"
            )
        self.pace: Pacing = Pace(patience)
        self._model = model
        self._key = key or "none"
        self._base_url = base_url
        self._server = base_url or self.kind
        self._price = price_of(model)
        self._unsupported: set[str] = set()
        self._clients: list[C] = []
        self._turns = itertools.count()
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def name(self) -> str:
        return f"{self.kind}:{self._model}" + (f"@{self._base_url}" if self._base_url else "")

    @property
    def abilities(self) -> frozenset[Ability]:
        return frozenset() if self.schema_option in self._unsupported else frozenset({"schema"})

    @property
    def priced(self) -> bool:
        return self._price is not None

    async def complete(self, request: ChatRequest) -> ChatAnswer:
        """Call the model with retries. Options that the server rejects are omitted from then on."""
        while True:
            # Decided once for all attempts: a stream has its own timeout between chunks.
            streamed = should_stream(request, self._unsupported)
            try:
                return await self.pace.call(
                    lambda: self._call_server(self._client(), request, streamed),  # noqa: B023 - over before it changes
                    timed=not streamed,
                )
            except UnsupportedOption as refused:
                self._unsupported.add(refused.option)

    async def aclose(self) -> None:
        """Close the connections."""
        clients, self._clients = self._clients, []
        if self._loop is asyncio.get_running_loop():
            for client in clients:
                await client.close()

    @abstractmethod
    def _new_client(self) -> C:
        """Create a client without retries of its own: the pace must see every response."""

    @abstractmethod
    async def _call_server(self, client: C, request: ChatRequest, streamed: bool) -> ChatAnswer:
        """Make one call. A stream raises TimeoutError if no chunk arrives in time."""

    def _supported(self, options: dict[str, Any]) -> dict[str, Any]:
        """Return the options without those that the server has rejected."""
        return {name: value for name, value in options.items() if name not in self._unsupported}

    def cost_of(self, usage: Usage) -> float:
        """Return the cost by the price table; 0 if the model is not in it."""
        return 0.0 if self._price is None else self._price.of(usage)

    def _client(self) -> C:
        """Return a client for this event loop: connections can't move between loops.

        Several clients share the calls in flight, because a client scans all of its connections for each call.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._clients, self._loop = [], loop
        wanted = -(-self.pace.in_flight // _CALLS_A_CLIENT) or 1
        while len(self._clients) < wanted:
            self._clients.append(self._new_client())
        return self._clients[next(self._turns) % wanted]
