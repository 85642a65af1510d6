"""A connection whose request does not arrive is closed, and one that is only slow to be answered is not."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from web_kit import PATIENCE, serving, shop

uvicorn = pytest.importorskip("uvicorn", reason="LOUD: uvicorn is not installed, so the page is NOT tested")

TimelyProtocol = pytest.importorskip("donewhen.web.timely_requests").TimelyProtocol
WHOLE = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"


async def slow(scope: dict[str, Any], receive: Any, send: Any) -> None:
    """An application that reads the request and then takes longer than a request may take to arrive."""
    while (await receive()).get("more_body"):
        pass
    await asyncio.sleep(1.0)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


class Quick(TimelyProtocol):  # type: ignore[misc, valid-type]
    seconds = 0.4


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(
            slow, http=Quick, lifespan="off", log_config=None, loop="asyncio", timeout_keep_alive=20
        )
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[listener])), daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        server.should_exit = True
        thread.join(PATIENCE)


def connected(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), PATIENCE)


def until_closed(wire: socket.socket) -> bytes:
    answer = b""
    while chunk := wire.recv(65536):
        answer += chunk
    return answer


@pytest.mark.parametrize("begun", [b"", WHOLE[:8], WHOLE[:-1]], ids=["nothing", "half a head", "half a body"])
def test_a_request_that_does_not_arrive_is_closed(port: int, begun: bytes) -> None:
    with connected(port) as wire:
        wire.sendall(begun)
        assert until_closed(wire) == b""


def test_small_pieces_do_not_buy_more_time(port: int) -> None:
    with connected(port) as wire:
        began = time.monotonic()
        with pytest.raises(OSError):
            while time.monotonic() - began < PATIENCE:
                wire.sendall(b"a")
                time.sleep(0.05)


def test_an_answer_may_take_as_long_as_it_likes_and_the_connection_is_used_again(port: int) -> None:
    with connected(port) as wire:
        for _ in range(2):
            wire.sendall(WHOLE)
            answer = b""
            while not answer.endswith(b"ok"):
                answer += wire.recv(65536)
            assert answer.startswith(b"HTTP/1.1 200")


def test_half_a_second_request_is_closed_as_well(port: int) -> None:
    with connected(port) as wire:
        wire.sendall(WHOLE)
        while not wire.recv(65536).endswith(b"ok"):
            pass
        wire.sendall(WHOLE[:12])
        assert until_closed(wire) == b""


def test_the_page_itself_closes_half_sent_requests(tmp_path: Any) -> None:
    shop(tmp_path, "Greet")
    server = serving(tmp_path)
    try:
        with ExitStack() as stack:
            wires = [stack.enter_context(connected(server.port)) for _ in range(20)]
            for wire in wires:
                wire.sendall(b"GET / HT")
            assert [until_closed(wire) for wire in wires] == [b""] * 20
        assert server.get("/").status == 200
    finally:
        server.stop()
